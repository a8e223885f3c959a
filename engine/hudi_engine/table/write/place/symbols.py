"""Texts of columns that are enums in the table's Avro schema, which only other writers make: they must be among the symbols.

A text that is none could not be written into a log, and in a base file no reader by Avro would take it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import SchemaError
from hudi_engine.format.logformat.datums.types import AvroType, compile_schema


def check_symbols(rows: pa.Table, avro: Mapping[str, Any]) -> None:
    """Refuse rows with a text that is none of the symbols of its enum; nothing is looked at where there are no enums.

    Args:
        rows: Rows with data columns of the table.

    Raises:
        SchemaError: It names the column, the text and the symbols.
    """
    if not _names_enum(avro):
        return
    record = compile_schema(avro)
    for name, kind in zip(record.names, record.children, strict=True):
        if name in rows.column_names and _has_enum(kind):
            for chunk in rows.column(name).chunks:
                _check(chunk, kind, name)


def _names_enum(avro: object) -> bool:
    if isinstance(avro, Mapping):
        return avro.get("type") == "enum" or any(_names_enum(each) for each in avro.values())
    return isinstance(avro, Sequence) and not isinstance(avro, str) and any(map(_names_enum, avro))


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
    elif kind.kind == "record":
        for name, part, values_of in zip(kind.names, kind.children, values.flatten(), strict=True):
            if _has_enum(part):
                _check(values_of, part, f"{path}.{name}")
    elif kind.kind == "array":
        _check(values.flatten(), kind.children[0], f"{path}.element")
    elif kind.kind == "map":
        pairs = values.cast(
            pa.list_(pa.struct([("key", values.type.key_type), ("value", values.type.item_type)]))
        )
        _check(pairs.flatten().flatten()[1], kind.children[0], f"{path}.value")
