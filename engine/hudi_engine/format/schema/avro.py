"""Avro schemas of Hudi tables and their Arrow form (table versions 4 to 6, 8 and 9).

Commit metadata, log blocks and Parquet footers hold the table schema as Avro JSON. Names of nested records
and of decimals follow the form Spark writers give them (source: Hudi table format, commit metadata): a nested
record is named like its field, in the namespace ``<parent namespace>.<parent record>``; a decimal is a
``fixed`` named ``fixed``.

Arrow side: ``timestamp[us, UTC]`` (``ms`` for ``timestamp-millis``), ``date32``, ``decimal128``, ``string``, ``binary``,
``list``, ``map<string, T>``, ``struct``; every field nullable. So a time has the same number in Arrow as in Avro, and what
writes it into Parquet, keys or delete blocks need not know the Avro schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any

import fastavro
import pyarrow as pa
from fastavro.schema import SchemaParseException, UnknownType

from hudi_engine.errors import HudiError, SchemaError
from hudi_engine.format.schema.meta_fields import META_FIELDS, meta_fields
from hudi_engine.format.schema.nested import is_list, type_parts

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


# A schema comes with the data, from any writer. Most types take at least a byte, so the size of the file bounds the work; arrays of
# nulls and types that contain themselves do not, and no metadata of Hudi has them (Avro specification, schema declaration).
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
        name, space = full_name(str(schema.get("name")), schema.get("namespace"), space)
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
        for full in (full_name(name, None, space)[0], name):
            if full in self._known:
                found = self._known[full]
                if found is None:
                    raise ValueError(f"the Avro type {name!r} is recursive: it contains itself")
                return found
        raise ValueError(f"{name!r} is no Avro type")


def full_name(name: str, namespace: object, space: str) -> tuple[str, str]:
    """Return the full name of a type and the namespace of what is named inside it."""
    if "." in name:
        return name, name.rpartition(".")[0]
    inner = space if namespace is None else str(namespace)
    return (f"{inner}.{name}" if inner else name), inner


AvroSchema = Any

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
MAX_DIGITS = 38
"""Digits that a decimal of a Hudi table, and of Spark, has at most."""
MAX_NESTING = 50
"""Levels of structs, arrays and maps in a column; Arrow's streams carry 63, and rows travel as structs."""
_PRIMITIVES: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "null": pa.null(),
}
_LOGICAL: Mapping[tuple[str, str], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}
_NOT_READ: Mapping[Any, tuple[str, str]] = {
    "variant": ("VARIANT", "text (to_json)"),
    "vector": ("VECTOR", "an array of numbers"),
}
"""Logical types of Hudi 1.2: the SQL type of each, and what to make of it."""
_TO_AVRO: Mapping[pa.DataType, AvroSchema] = {
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.uint8(): "int",
    pa.uint16(): "int",
    pa.int64(): "long",
    pa.uint32(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "bytes",
    pa.large_binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.time32("ms"): {"type": "int", "logicalType": "time-millis"},
    pa.time64("us"): {"type": "long", "logicalType": "time-micros"},
}


def load_avro(avro: str | bytes | Mapping[str, Any]) -> dict[str, Any]:
    """Parse the JSON text of an Avro record schema; a mapping is taken as it is."""
    if isinstance(avro, Mapping):
        loaded: Any = dict(avro)
    else:
        try:
            loaded = json.loads(avro)
        except ValueError as error:
            raise SchemaError(
                f"the table schema is not valid JSON ({error}); it starts with {avro[:80]!r}"
            ) from error
    if (
        not isinstance(loaded, dict)
        or loaded.get("type") != "record"
        or not isinstance(loaded.get("fields"), list)
    ):
        raise SchemaError(f"a table schema must be an Avro record with fields, got {str(loaded)[:120]}")
    return loaded


def avro_to_arrow(avro: str | bytes | Mapping[str, Any]) -> pa.Schema:
    """Return Arrow schema of an Avro record, all fields nullable, columns in schema order."""
    return _of_text(avro) if isinstance(avro, str) else _of_record(load_avro(avro))


@lru_cache(maxsize=16)
def _of_text(avro: str) -> pa.Schema:
    # A write asks for the schema of one text many times, which takes a tenth of a second for thousands of columns.
    return _of_record(load_avro(avro))


def _of_record(record: Mapping[str, Any]) -> pa.Schema:
    names: dict[str, Any] = {}
    try:
        check_decodable(record, MAX_TABLE_TYPES)
        return pa.schema(list(_record_type(record, "", names, ())))
    except HudiError:
        raise
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError, pa.ArrowException) as error:
        raise SchemaError(f"an Avro schema of a table is malformed: {error!r}") from error


def arrow_to_avro(schema: pa.Schema, table_name: str) -> dict[str, Any]:
    """Return Avro record of a table as Hudi's Spark writers store it."""
    check_avro_names(schema)
    safe = sanitize_name(table_name)
    record, namespace = f"{safe}_record", f"hoodie.{safe}"
    return {
        "type": "record",
        "name": record,
        "namespace": namespace,
        "fields": [avro_field(field, f"{namespace}.{record}", (field.name,)) for field in schema],
    }


def sanitize_name(name: str) -> str:
    """Return ``name`` as a legal Avro name, as Hudi makes it: every illegal character, a leading digit too, becomes ``__``."""
    return re.sub(r"[^A-Za-z0-9_]", "__", re.sub(r"\A[^A-Za-z_]", "__", name))


def with_meta_fields(avro: str | bytes | Mapping[str, Any], *, operation: bool = False) -> dict[str, Any]:
    """Return the record with Hudi's five meta fields in front, and ``_hoodie_operation`` after them on request.

    Meta fields already there are not repeated.
    """
    record = without_meta_fields(avro)
    names = meta_fields(operation=operation)
    meta = [{"name": name, "type": ["null", "string"], "doc": "", "default": None} for name in names]
    return {**record, "fields": [*meta, *(field for field in record["fields"] if field["name"] not in names)]}


def without_meta_fields(avro: str | bytes | Mapping[str, Any]) -> dict[str, Any]:
    """Return the record with the table's own fields only."""
    record = load_avro(avro)
    return {**record, "fields": [field for field in record["fields"] if field["name"] not in META_FIELDS]}


def avro_of(avro: str | bytes | Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return the record with some of its fields only, in its order."""
    record = load_avro(avro)
    return {**record, "fields": [field for field in record["fields"] if field["name"] in names]}


def check_avro_names(schema: pa.Schema, next_step: str = "rename it in the query") -> None:
    """Refuse names that Avro forbids, names that differ only by case, at every level, and columns of too many levels."""
    deep = [field.name for field in schema if _depth(field.type) > MAX_NESTING]
    if deep:
        raise SchemaError(
            f"column(s) {', '.join(map(repr, deep))} nest structs, arrays and maps more than {MAX_NESTING} levels deep, which "
            "Arrow cannot carry; flatten them, or keep them as text: to_json(...)"
        )
    problems = list(_name_problems(type_parts(pa.struct(list(schema))), ""))
    if problems:
        raise SchemaError(
            "; ".join(problems)
            + f". A column name must match [A-Za-z_][A-Za-z0-9_]* and be unique without regard to case: {next_step}"
        )


def decimal_size(precision: int) -> int:
    """Return least number of bytes that hold ``precision`` decimal digits in two's complement."""
    return (int(10**precision - 1).bit_length() + 8) // 8


def _name_problems(parts: list[tuple[str, pa.DataType]], parent: str) -> Iterator[str]:
    seen: dict[str, str] = {}
    for name, kind in parts:
        path = f"{parent}{name}"
        if not _NAME.match(name):
            yield f"column name {path!r} is not allowed"
        other = seen.setdefault(name.lower(), path)
        if other is not path:
            yield f"column {path!r} appears twice (first as {other!r})"
        while is_list(kind) or pa.types.is_map(kind):
            kind = type_parts(kind)[-1][1]
        yield from _name_problems(type_parts(kind), f"{path}.")


def _depth(kind: pa.DataType) -> int:
    """Return how many levels of structs, arrays and maps a type has."""
    depth, level = 0, [kind]
    while level := [
        each.field(number).type
        for each in level
        if pa.types.is_nested(each)
        for number in range(each.num_fields)
    ]:
        depth += 1
    return depth


def avro_field(field: pa.Field, space: str, path: tuple[str, ...]) -> dict[str, Any]:
    """Return a column as Hudi's Spark writers store it: optional, null by default."""
    return {
        "name": field.name,
        "type": ["null", avro_type(field.type, field.name, space, path)],
        "default": None,
    }


def avro_type(kind: pa.DataType, name: str, space: str, path: tuple[str, ...]) -> AvroSchema:
    """Return Hudi's Avro for an Arrow type; what it cannot hold is refused with the way out."""
    simple = _TO_AVRO.get(kind)
    if simple is not None:
        return simple if isinstance(simple, str) else dict(simple)
    if pa.types.is_timestamp(kind):
        if kind.tz is None:
            raise _cannot_hold(path, kind, "use a timestamp with a time zone")
        unit = "millis" if kind.unit in ("s", "ms") else "micros"
        return {"type": "long", "logicalType": f"timestamp-{unit}"}
    if pa.types.is_decimal(kind) and kind.precision <= 38:
        return _avro_decimal(kind, f"{space}.{name}")
    if pa.types.is_dictionary(kind):
        return avro_type(kind.value_type, name, space, path)
    if is_list(kind):
        return {
            "type": "array",
            "items": ["null", avro_type(kind.value_type, name, space, (*path, "element"))],
        }
    if pa.types.is_map(kind):
        return _avro_map(kind, name, space, path)
    if pa.types.is_struct(kind):
        if kind.num_fields == 0:
            raise _cannot_hold(path, kind, "a struct needs at least one field")
        inner = f"{space}.{name}"
        fields = [avro_field(child, inner, (*path, child.name)) for child in kind]
        return {"type": "record", "name": name, "namespace": space, "fields": fields}
    raise _cannot_hold(path, kind, "cast the column to a type that Hudi stores")


def _avro_map(kind: pa.DataType, name: str, space: str, path: tuple[str, ...]) -> dict[str, Any]:
    if not (pa.types.is_string(kind.key_type) or pa.types.is_large_string(kind.key_type)):
        raise _cannot_hold((*path, "key"), kind.key_type, "map keys must be strings")
    return {"type": "map", "values": ["null", avro_type(kind.item_type, name, space, (*path, "value"))]}


def _avro_decimal(kind: pa.DataType, space: str) -> dict[str, Any]:
    return {
        "type": "fixed",
        "name": "fixed",
        "namespace": space,
        "size": decimal_size(kind.precision),
        "logicalType": "decimal",
        "precision": kind.precision,
        "scale": kind.scale,
    }


def _cannot_hold(path: tuple[str, ...], kind: object, next_step: str) -> SchemaError:
    return SchemaError(
        f"column {'.'.join(path)!r} has type {kind}, which a Hudi table cannot hold; {next_step}. "
        "Legal are boolean, int, long, float, double, decimal(<=38), string, binary, date, timestamp, array, "
        "map with string keys and struct"
    )


def _record_type(
    record: Mapping[str, Any], space: str, names: dict[str, Any], path: tuple[str, ...]
) -> pa.DataType:
    space = register_type(record, space, names)
    fields = []
    for field in record["fields"]:
        inner = (*path, str(field["name"]))
        fields.append(pa.field(field["name"], _arrow_type(field["type"], space, names, inner)))
    return pa.struct(fields)


def register_type(schema: Mapping[str, Any], space: str, names: dict[str, Any]) -> str:
    """Remember a named type under its full name; returns the namespace its children inherit."""
    full, inner = full_name(str(schema.get("name", "")), schema.get("namespace"), space)
    names[full] = (schema, inner)
    return inner


def _arrow_type(schema: AvroSchema, space: str, names: dict[str, Any], path: tuple[str, ...]) -> pa.DataType:
    if isinstance(schema, list):
        branches = [branch for branch in schema if branch != "null"]
        if len(branches) != 1:
            raise SchemaError(
                f"column {'.'.join(path)!r} is an Avro union of {len(branches)} types "
                f"({json.dumps(schema)[:120]}); "
                "only a union of null and one type can be a column"
            )
        return _arrow_type(branches[0], space, names, path)
    if isinstance(schema, str):
        return _named_type(schema, space, names, path)
    if isinstance(schema, Mapping):
        return _complex_type(schema, space, names, path)
    raise SchemaError(f"column {'.'.join(path)!r} has no legal Avro type: {schema!r}")


def _named_type(name: str, space: str, names: dict[str, Any], path: tuple[str, ...]) -> pa.DataType:
    if name in _PRIMITIVES:
        return _PRIMITIVES[name]
    found = names.get(name) or names.get(f"{space}.{name}")
    if found is None:
        raise SchemaError(
            f"column {'.'.join(path)!r} refers to the Avro type {name!r}, which is not defined before it"
        )
    if len(path) > 64:
        raise SchemaError(
            f"column {'.'.join(path[:3])!r} has the recursive Avro type {name!r}; "
            "a column cannot contain itself"
        )
    return _complex_type(found[0], found[1], names, path)


def _complex_type(
    schema: Mapping[str, Any], space: str, names: dict[str, Any], path: tuple[str, ...]
) -> pa.DataType:
    """Return the Arrow type of an Avro schema that is no plain name; named types are noted for later references."""
    kind = schema.get("type")
    logical = schema.get("logicalType")
    if kind in ("bytes", "fixed") and logical == "decimal":
        if kind == "fixed":
            register_type(schema, space, names)
        return pa.decimal128(int(schema["precision"]), int(schema.get("scale", 0)))
    if isinstance(kind, str) and (kind, logical) in _LOGICAL:
        return _LOGICAL[(kind, str(logical))]
    if logical in _NOT_READ:
        name, instead = _NOT_READ[logical]
        raise SchemaError(
            f"column {'.'.join(path)!r} is a {name} of Apache Hudi, which this engine does not read. Read the table with Apache "
            f"Hudi, or copy it there with the column as {instead}"
        )
    if kind == "record":
        return _record_type(schema, space, names, path)
    if kind == "array":
        return pa.list_(pa.field("element", _arrow_type(schema["items"], space, names, (*path, "element"))))
    if kind == "map":
        return pa.map_(pa.string(), _arrow_type(schema["values"], space, names, (*path, "value")))
    if kind == "enum":
        register_type(schema, space, names)
        return pa.string()
    if kind == "fixed":
        register_type(schema, space, names)
        return pa.binary()
    return _arrow_type(kind, space, names, path)
