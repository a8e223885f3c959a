"""Delete block: keys to delete, each with the ordering value of the delete (source: Hudi table format, delete block, version 3).

An ordering value of null or int 0 is the default: the delete wins over everything before it. Content versions
1 and 2, Java objects that Hudi wrote before 0.14, are refused.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import CorruptTableError, SchemaError, UnsupportedTableError, translate_unicode_errors
from hudi_engine.format.logformat.datums.encode import encode_datums
from hudi_engine.format.logformat.datums.types import compile_schema
from hudi_engine.format.logformat.format import CONTENT_VERSION

_HEAD = struct.Struct(">ii")
_SPACE = "org.apache.hudi.avro.model"
_DECIMAL = pa.decimal128(30, 15)
_INT, _LONG = 2, 3
_MIN_RECORD_BYTES = 3
"""Bytes of a record whose three unions are null."""


@dataclass(frozen=True)
class DeleteRecord:
    """One deleted key.

    Attributes:
        ordering_value: Plain Python value, None for the default, a tuple where a table has several ordering
            fields.
        wrapper: Name of the union branch of the ordering value; None for the default and for several fields.
    """

    record_key: str
    partition_path: str
    ordering_value: Any
    wrapper: str | None = field(default=None, compare=False)


@dataclass(frozen=True)
class _Wrapper:
    """One branch of the union of ordering values."""

    name: str
    avro: Any
    arrow: pa.DataType


_WRAPPERS: tuple[_Wrapper, ...] = (
    _Wrapper("BooleanWrapper", "boolean", pa.bool_()),
    _Wrapper("IntWrapper", "int", pa.int32()),
    _Wrapper("LongWrapper", "long", pa.int64()),
    _Wrapper("FloatWrapper", "float", pa.float32()),
    _Wrapper("DoubleWrapper", "double", pa.float64()),
    _Wrapper("BytesWrapper", "bytes", pa.binary()),
    _Wrapper("StringWrapper", "string", pa.string()),
    _Wrapper("DateWrapper", "int", pa.date32()),
    _Wrapper(
        "DecimalWrapper", {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15}, _DECIMAL
    ),
    _Wrapper("TimeMicrosWrapper", "long", pa.time64("us")),
    _Wrapper("TimestampMicrosWrapper", "long", pa.timestamp("us", "UTC")),
)


def encode(
    record_keys: pa.Array, partition_paths: pa.Array, ordering_values: Sequence[pa.Array] = ()
) -> bytes:
    """Return content of a delete block.

    Args:
        ordering_values: One array for each ordering field of the table; none, or a null, represents the
            default value.
    """
    keys = pa.StructArray.from_arrays(
        [record_keys.cast(pa.string()), partition_paths.cast(pa.string())], ["recordKey", "partitionPath"]
    )
    for each in (*keys.flatten(), *ordering_values):
        _check_text(each)
    pieces = [encode_datums(keys, compile_schema(_KEY_SCHEMA)), _encode_ordering(ordering_values)]
    datums = pc.binary_join_element_wise(*pieces, pa.scalar(b"", pa.binary()))
    body = b""
    if len(keys):
        offsets = np.frombuffer(datums.buffers()[1], np.int32)
        rows = memoryview(datums.buffers()[2])[offsets[0] : offsets[len(keys)]]
        body = _zigzag(len(keys)) + bytes(rows)
    data = body + b"\x00"
    return _HEAD.pack(CONTENT_VERSION, len(data)) + data


def _check_text(values: pa.Array) -> None:
    """Refuse text of which a reader of delete blocks could make none; raises InvalidKeyError."""
    if not pa.types.is_string(values.type):
        return
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        with translate_unicode_errors():
            values.to_pylist()


def decode(content: memoryview) -> Iterator[DeleteRecord]:
    """Yield keys of a delete block, in their order; they are decoded one by one, since a block may have millions."""
    if len(content) < _HEAD.size:
        raise CorruptTableError(f"a delete block has {len(content)} bytes, at least {_HEAD.size} are needed")
    version, length = _HEAD.unpack_from(content, 0)
    if version != CONTENT_VERSION:
        raise UnsupportedTableError(
            f"a delete block has content version {version}; only {CONTENT_VERSION}, of Hudi 0.14 and later, is read. "
            "Compact the table with the Hudi release that wrote it"
        )
    if length < 0 or length > len(content) - _HEAD.size:
        raise CorruptTableError(
            f"a delete block has a length of {length} bytes, {len(content) - _HEAD.size} are there"
        )
    data = io.BytesIO(content[_HEAD.size : _HEAD.size + length])
    try:
        while count := _count(data, length):
            for _ in range(count):
                row: Any = fastavro.schemaless_reader(data, _ITEM_SCHEMA, None, return_record_name=True)
                value = _ordering_value(row["orderingVal"])
                wrapper = _wrapper_name(row["orderingVal"]) if value is not None else None
                yield DeleteRecord(row["recordKey"] or "", row["partitionPath"] or "", value, wrapper)
    except (EOFError, ValueError, IndexError, KeyError, OverflowError) as error:
        raise CorruptTableError(
            f"a delete block of {length} bytes is not a list of keys: {error!r}"
        ) from error


def _count(data: io.BytesIO, length: int) -> int:
    """Return how many records come next in the list, 0 at its end; raises ValueError for more than the bytes can be."""
    count: Any = fastavro.schemaless_reader(data, "long", None)
    if count < 0:
        # The bytes that the records take come first: who skips them needs to know.
        fastavro.schemaless_reader(data, "long", None)
    if abs(count) * _MIN_RECORD_BYTES > length - data.tell():
        raise ValueError(f"{abs(count)} records in {length - data.tell()} bytes")
    return abs(int(count))


def _ordering_value(value: Any) -> Any:
    """Return plain value of a decoded union branch; the default (null, or int 0) becomes None."""
    if value is None:
        return None
    name, record = value
    if name.endswith(".ArrayWrapper"):
        parts = tuple(_scalar(part) for part in record["wrappedValues"] or ())
        return parts or None
    if name.endswith(".IntWrapper") and record["value"] == 0:
        return None
    return _scalar(value)


def _wrapper_name(value: Any) -> str | None:
    name = str(value[0]).rsplit(".", 1)[-1]
    return name if name in _BY_NAME else None


def _scalar(value: Any) -> Any:
    if value is None:
        return None
    name, record = value
    wrapper = _BY_NAME[name.rsplit(".", 1)[-1]]
    plain = record["value"]
    if pa.types.is_temporal(wrapper.arrow):
        return (
            pa.scalar(plain, pa.int32() if wrapper.avro == "int" else pa.int64()).cast(wrapper.arrow).as_py()
        )
    return plain


def _encode_ordering(values: Sequence[pa.Array]) -> pa.Array:
    if not values:
        return pa.scalar(_default_bytes(), pa.binary())
    encoded = [_encode_wrapped(array, in_array=len(values) > 1) for array in values]
    if len(encoded) == 1:
        return encoded[0]
    missing = pc.is_null(values[0])
    for array in values[1:]:
        missing = pc.and_(missing, pc.is_null(array))
    # Several ordering fields: branch 12 (ArrayWrapper), its list in branch 1, one block of items, the end.
    head = bytes([12 << 1, 1 << 1]) + _zigzag(len(encoded))
    start = pa.scalar(head, pa.binary())
    several = pc.binary_join_element_wise(
        start, *encoded, pa.scalar(b"\x00", pa.binary()), pa.scalar(b"", pa.binary())
    )
    return pc.if_else(missing, pa.scalar(_default_bytes(), pa.binary()), several)


def _encode_wrapped(array: pa.Array, *, in_array: bool) -> pa.Array:
    missing = b"\x00" if in_array else _default_bytes()
    blank = pa.array([missing] * len(array), pa.binary())
    if array.null_count == len(array):
        # Any type can say nothing.
        return blank
    branch = _branch_of(array.type)
    wrapper = _WRAPPERS[branch - 1]
    schema = compile_schema(
        {"type": "record", "name": "w", "fields": [{"name": "value", "type": wrapper.avro}]}
    )
    plain = array.drop_null()
    stored = _decimals(plain) if pa.types.is_decimal(wrapper.arrow) else plain.view(wrapper.arrow)
    datums = encode_datums(pa.StructArray.from_arrays([stored], ["value"]), schema)
    tagged = pc.binary_join_element_wise(
        pa.scalar(bytes([branch << 1]), pa.binary()), datums, pa.scalar(b"", pa.binary())
    )
    return pc.replace_with_mask(blank, array.is_valid(), tagged) if array.null_count else tagged


def _decimals(values: pa.Array) -> pa.Array:
    """Return decimals as a delete block has them; raises SchemaError where one does not fit."""
    try:
        return values.cast(_DECIMAL)
    except pa.ArrowInvalid as error:
        raise SchemaError(
            f"a delete has an ordering value of type {values.type} that does not fit the decimal(30,15) of a delete block "
            f"({error}); delete by keys alone, or rebuild the table with the column cast to bigint or decimal(30,15)"
        ) from error


def wrapper_of(kind: pa.DataType) -> str | None:
    """Return the name of the kind of value in a delete block that has the Java class of a column's values in log records.

    Returns:
        The name; None for text and decimals, which Hudi 0.x has as `Utf8` and `Fixed` in records and otherwise in deletes.
    """
    if pa.types.is_string(kind) or pa.types.is_decimal(kind):
        return None
    return _WRAPPERS[_branch_of(kind) - 1].name


def _branch_of(kind: pa.DataType) -> int:
    # Hudi's writers keep dates and timestamps as the plain numbers of their Avro form; its readers
    # compare only
    # values of the same class, so the date and timestamp wrappers would make every delete win.
    if pa.types.is_timestamp(kind):
        return _LONG
    if pa.types.is_date32(kind):
        return _INT
    if pa.types.is_decimal(kind):
        return 9
    for index, wrapper in enumerate(_WRAPPERS):
        if wrapper.arrow == kind:
            return index + 1
    raise SchemaError(
        f"an ordering field of type {kind} cannot be kept in a delete block; legal values: boolean, int, "
        "long, float, double, binary, string, date, decimal and timestamp"
    )


def _default_bytes() -> bytes:
    return bytes([2 << 1, 0])


def _zigzag(number: int) -> bytes:
    value, out = number << 1, bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_BY_NAME = {wrapper.name: wrapper for wrapper in _WRAPPERS}
_KEY_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "HoodieDeleteKey",
    "fields": [
        {"name": "recordKey", "type": ["null", "string"]},
        {"name": "partitionPath", "type": ["null", "string"]},
    ],
}


def _item_schema() -> Any:
    records: list[Any] = [
        {"type": "record", "name": w.name, "namespace": _SPACE, "fields": [{"name": "value", "type": w.avro}]}
        for w in _WRAPPERS
    ]
    names = [f"{_SPACE}.{wrapper.name}" for wrapper in _WRAPPERS]
    several = {
        "type": "record",
        "name": "ArrayWrapper",
        "namespace": _SPACE,
        "fields": [{"name": "wrappedValues", "type": ["null", {"type": "array", "items": ["null", *names]}]}],
    }
    item = {
        "type": "record",
        "name": "HoodieDeleteRecord",
        "namespace": _SPACE,
        "fields": [
            {"name": "recordKey", "type": ["null", "string"], "default": None},
            {"name": "partitionPath", "type": ["null", "string"], "default": None},
            {"name": "orderingVal", "type": ["null", *records, several], "default": None},
        ],
    }
    return fastavro.parse_schema(item)


_ITEM_SCHEMA = _item_schema()
