"""Texts of columns that are enums in the table's Avro schema, which only other writers make: they must be among the symbols.

A text that is none could not be written into a log, and in a base file no reader by Avro would take it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import SchemaError
from hudi_engine.format.logformat.datums.types import AvroType, compile_schema
from hudi_engine.format.schema.nested import array_parts, walk_avro


def check_symbols(rows: pa.Table, avro: Mapping[str, Any]) -> None:
    """Refuse rows with a text that is none of the symbols of its enum; nothing is looked at where there are no enums.

    Args:
        rows: Rows with data columns of the table.

    Raises:
        SchemaError: It names the column, the text and the symbols.
    """
    if not any(each.get("type") == "enum" for each in walk_avro(avro)):
        return
    record = compile_schema(avro)
    for name, kind in zip(record.names, record.children, strict=True):
        if name in rows.column_names and _has_enum(kind):
            for chunk in rows.column(name).chunks:
                _check(chunk, kind, name)


def _has_enum(kind: AvroType) -> bool:
    return kind.kind == "enum" or any(map(_has_enum, kind.children))


def _check(values: pa.Array, kind: AvroType, path: str) -> None:
    """Refuse texts of an enum at whatever depth of some values."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if kind.kind == "enum":
        texts = pc.unique(values).drop_null()
        others = texts.filter(pc.invert(pc.is_in(texts, value_set=pa.array(kind.symbols, pa.string()))))
        if len(others):
            raise SchemaError(
                f"column {path!r} is an enum of {', '.join(kind.symbols)} in the table's Avro schema, and {others[0].as_py()!r} is "
                "none of them. Let the writer that made the schema add it, or rebuild the table, which makes the column text"
            )
    elif _has_enum(kind):
        # of a map the values have a type of their own, and the keys are text
        parts = array_parts(values)[-len(kind.children) :]
        names = kind.names or ("value" if kind.kind == "map" else "element",)
        for name, part, inner in zip(names, kind.children, parts, strict=True):
            _check(inner, part, f"{path}.{name}")
