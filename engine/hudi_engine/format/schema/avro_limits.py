"""Which Avro schemas of metadata files are safe to decode with, whatever the data after them says.

A schema travels with the data and may be anybody's. Most types cost at least a byte each, so the size of the file
bounds the work. What costs nothing does not: an array of nulls of any length, records within records without end.
No plan or metadata of Hudi has either, nor types that contain themselves (Avro specification, schema declaration).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import fastavro
from fastavro.schema import SchemaParseException, UnknownType

MAX_TYPES = 10_000
"""Most types that a record of metadata may consist of, counted where they are used. Hudi's largest has a few hundred."""
MAX_TABLE_TYPES = 1_000_000
"""Most types that the schema of a table may consist of: three for each column that may be null."""

_BYTES = {"null": 0, "boolean": 1, "int": 1, "long": 1, "float": 4, "double": 8, "bytes": 1, "string": 1}


def decodable(schema: Any) -> Any:
    """Return a schema that came with data as fastavro decodes by it."""
    check_decodable(schema)
    try:
        return fastavro.parse_schema(schema)
    except (SchemaParseException, UnknownType) as error:
        raise ValueError(f"it has no Avro schema: {error}") from error


def check_decodable(schema: Any, most_types: int = MAX_TYPES) -> None:
    """Refuse a schema by which few bytes make unbounded work."""
    try:
        _Sizes(most_types).of(schema, "")
    except RecursionError as error:
        raise ValueError("an Avro schema nests too deeply") from error


class _Sizes:
    """Smallest number of bytes, and number of types, of schemas, by the names they define."""

    def __init__(self, most_types: int) -> None:
        self._most = most_types
        self._known: dict[str, tuple[int, int] | None] = {}

    def of(self, schema: Any, space: str) -> tuple[int, int]:
        """Return (fewest bytes, types) of a value."""
        size, types = self._union(schema, space) if isinstance(schema, list) else self._single(schema, space)
        if types > self._most:
            raise ValueError(f"an Avro schema has more than {self._most} types")
        return size, types

    def _union(self, branches: list[Any], space: str) -> tuple[int, int]:
        found = [self.of(branch, space) for branch in branches]
        return 1, 1 + sum(types for _, types in found)

    def _single(self, schema: Any, space: str) -> tuple[int, int]:
        """Return the fewest bytes of a value and the types in it; items without bytes would make a count without an end."""
        if isinstance(schema, str):
            return (_BYTES[schema], 1) if schema in _BYTES else self._named(schema, space)
        if not isinstance(schema, Mapping) or "type" not in schema:
            raise ValueError(f"{str(schema)[:60]!r} is no Avro type")
        kind = schema["type"]
        if kind == "array":
            size, types = self.of(schema.get("items"), space)
            if size == 0:
                raise ValueError(
                    "an Avro array has items that take no bytes, so it could have any number of them"
                )
            return 1, 1 + types
        if kind == "map":
            return 1, 1 + self.of(schema.get("values"), space)[1]
        if kind in ("record", "error", "enum", "fixed"):
            return self._defined(schema, space)
        return self.of(kind, space)

    def _defined(self, schema: Mapping[str, Any], space: str) -> tuple[int, int]:
        name, space = _full_name(str(schema.get("name")), schema.get("namespace"), space)
        self._known[name] = None
        if schema["type"] == "enum":
            found = (1, 1)
        elif schema["type"] == "fixed":
            found = (int(schema.get("size") or 0), 1)
        else:
            fields = [self.of(field.get("type"), space) for field in schema.get("fields") or ()]
            found = (sum(size for size, _ in fields), 1 + sum(types for _, types in fields))
        self._known[name] = found
        return found

    def _named(self, name: str, space: str) -> tuple[int, int]:
        for full in (_full_name(name, None, space)[0], name):
            if full in self._known:
                found = self._known[full]
                if found is None:
                    raise ValueError(f"the Avro type {name!r} is recursive: it contains itself")
                return found
        raise ValueError(f"{name!r} is no Avro type")


def _full_name(name: str, namespace: object, space: str) -> tuple[str, str]:
    """Return the full name of a type and the namespace of what is named inside it."""
    if "." in name:
        return name, name.rpartition(".")[0]
    inner = space if namespace is None else str(namespace)
    return (f"{inner}.{name}" if inner else name), inner
