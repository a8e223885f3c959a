"""Columns of other writers that this engine reads and does not write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hudi_engine.errors import UnsupportedTableError
from hudi_engine.format.schema.avro import load_avro
from hudi_engine.format.schema.vectors import VECTOR


def refuse_only_read(avro: str | bytes | Mapping[str, Any], table: str) -> None:
    """Refuse to write rows of a table whose columns would be stored otherwise than their writer stores them.

    Raises:
        UnsupportedTableError: It names the columns and the way out.
    """
    named: dict[str, str] = {}
    found = [
        str(field["name"])
        for field in load_avro(avro)["fields"]
        if VECTOR in _logical_types(field["type"], named)
    ]
    if found:
        raise UnsupportedTableError(
            f"table {table!r} has vectors (VECTOR) in {', '.join(map(repr, found))}; this engine reads such columns but does not "
            "write them. Write to it with Apache Hudi 1.2, or rebuild it here, where they become arrays of numbers"
        )


def _logical_types(schema: object, named: dict[str, str]) -> Iterator[str]:
    """Yield the logical types of an Avro type and of all that it is made of; types with a name are noted for later references."""
    if isinstance(schema, str) and schema in named:
        yield named[schema]
    if isinstance(schema, list):
        for branch in schema:
            yield from _logical_types(branch, named)
    if isinstance(schema, Mapping):
        logical = schema.get("logicalType")
        if isinstance(logical, str):
            if "name" in schema:
                named[str(schema["name"])] = logical
            yield logical
        for part in ("type", "items", "values"):
            yield from _logical_types(schema.get(part), named)
        for field in schema.get("fields") or ():
            yield from _logical_types(field.get("type"), named)
