"""Arrow as HiveServer2's columns: schemas, and windows of rows written without a loop over values.

Numbers, flags, texts and bytes go as they are. Everything else goes as text, as with Spark's own server: decimals, dates and
times as Spark casts them, arrays, maps, structs and variants as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from hudi_engine.server import binary

STRING_TYPE = 7
# Spark's names of types, without parameters, with Hive's numbers.
TYPE_IDS: Mapping[str, int] = {
    "boolean": 0,
    "tinyint": 1,
    "smallint": 2,
    "int": 3,
    "bigint": 4,
    "float": 5,
    "double": 6,
    "string": STRING_TYPE,
    "timestamp": 8,
    "timestamp_ntz": 8,
    "binary": 9,
    "array": 10,
    "map": 11,
    "struct": 12,
    "decimal": 15,
    "void": 16,
    "date": 17,
    "varchar": STRING_TYPE,
    "char": STRING_TYPE,
}
_AS_THEY_ARE = frozenset(
    "boolean tinyint smallint int bigint float double string varchar char binary".split()
)
_JSON = frozenset("array map struct variant".split())
_JSON_OPTIONS: Mapping[str, str] = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
# Field of TColumn, and type of its values.
_KINDS: Mapping[pa.DataType, tuple[int, int]] = {
    pa.bool_(): (1, binary.BOOL),
    pa.int8(): (2, binary.BYTE),
    pa.int16(): (3, binary.I16),
    pa.int32(): (4, binary.I32),
    pa.int64(): (5, binary.I64),
    pa.float32(): (6, binary.DOUBLE),
    pa.float64(): (6, binary.DOUBLE),
}
_BYTES: Mapping[int, str] = {
    binary.BOOL: "?",
    binary.BYTE: "i1",
    binary.I16: ">i2",
    binary.I32: ">i4",
    binary.I64: ">i8",
    binary.DOUBLE: ">f8",
}
_TEXTS, _BINARIES = 7, 8
_LENGTH_BYTES = 4


def type_name(kind: T.DataType) -> str:
    """Return the name of a Spark type without its parameters, such as ``decimal``."""
    return kind.simpleString().partition("(")[0].partition("<")[0].partition(" ")[0]


def type_id(kind: T.DataType) -> int:
    """Return Hive's number of a type; what Hive does not know is text."""
    return TYPE_IDS.get(type_name(kind), STRING_TYPE)


def as_texts(frame: DataFrame) -> DataFrame:
    """Return a frame whose columns HiveServer2 can carry; values of all other types become texts."""
    names = [type_name(field.dataType) for field in frame.schema.fields]
    if all(name in _AS_THEY_ARE for name in names):
        return frame
    # by position, since names may be there twice
    columns = [f"c{position}" for position in range(len(names))]
    shown = [
        _as_text(F.col(column), field.dataType).alias(column)
        for column, field in zip(columns, frame.schema.fields)
    ]
    return frame.toDF(*columns).select(*shown)


def _as_text(column: Column, kind: T.DataType) -> Column:
    name = type_name(kind)
    if name in _AS_THEY_ARE:
        return column
    if name in _JSON:
        wanted = _with_text_keys(kind)
        return F.to_json(column if wanted == kind else column.cast(wanted), dict(_JSON_OPTIONS))
    return column.cast("string")


def _with_text_keys(kind: T.DataType) -> T.DataType:
    """Return a type whose maps have texts as keys: ``to_json`` writes others as Spark keeps them, dates as days."""
    if isinstance(kind, T.MapType):
        return T.MapType(T.StringType(), _with_text_keys(kind.valueType), kind.valueContainsNull)
    if isinstance(kind, T.ArrayType):
        return T.ArrayType(_with_text_keys(kind.elementType), kind.containsNull)
    if isinstance(kind, T.StructType):
        return T.StructType(
            [T.StructField(each.name, _with_text_keys(each.dataType), each.nullable) for each in kind.fields]
        )
    return kind


def table_schema(field: int, schema: T.StructType) -> bytes:
    """Return a field with a TTableSchema."""
    described = [
        binary.struct_value(
            binary.text(1, column.name),
            binary.struct(2, binary.items(1, binary.STRUCT, [_type_entry(column.dataType)])),
            binary.i32(3, position),
            binary.text(4, column.metadata.get("comment", "")),
        )
        for position, column in enumerate(schema.fields, 1)
    ]
    return binary.struct(field, binary.items(1, binary.STRUCT, described))


def _type_entry(kind: T.DataType) -> bytes:
    qualifiers = []
    if isinstance(kind, T.DecimalType):
        values = {"precision": kind.precision, "scale": kind.scale}
        written = {name: binary.struct_value(binary.i32(1, value)) for name, value in values.items()}
        qualifiers = [binary.struct(2, binary.texts(1, written))]
    return binary.struct_value(binary.struct(1, binary.i32(1, type_id(kind)), *qualifiers))


def row_set(field: int, window: pa.Table, start: int) -> bytes:
    """Return a field with a TRowSet.

    Args:
        start: Number of the window's first row, from 0.
    """
    columns = [binary.struct_value(_column(each)) for each in window.itercolumns()]
    return binary.struct(
        field,
        binary.number(binary.I64, 1, start),
        binary.items(2, binary.STRUCT, ()),
        binary.items(3, binary.STRUCT, columns),
    )


def _column(values: pa.ChunkedArray) -> bytes:
    """Return the field of a TColumn that holds some values."""
    nulls = (
        np.packbits(pc.is_null(values).to_numpy(), bitorder="little").tobytes() if values.null_count else b""
    )
    count = len(values)
    kind = _KINDS.get(values.type)
    if kind is None:
        is_text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
        member, element = (_TEXTS if is_text else _BINARIES), binary.STRING
        texts = _valid(values) if is_text else values
        raw = _packed_texts(pc.fill_null(texts.cast(pa.large_binary()), b""))
    else:
        member, element = kind
        zero = pa.scalar(0, pa.int8()).cast(values.type)
        numbers = pc.fill_null(values, zero).to_numpy()
        raw = numbers.astype(_BYTES[element]).tobytes()
    return binary.struct(member, binary.packed_items(1, element, count, raw), binary.text(2, nulls))


def _valid(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return texts with U+FFFD for bytes that are no UTF-8, which Spark keeps and clients cannot read."""
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        raw = texts.cast(pa.large_binary()).to_pylist()
        shown = [None if each is None else each.decode("utf-8", "replace") for each in raw]
        return pa.chunked_array([pa.array(shown, pa.large_string())])
    return texts


def _packed_texts(values: pa.ChunkedArray) -> bytes:
    """Return texts one behind the other, each after its length."""
    written = []
    for chunk in values.chunks:
        if not len(chunk):
            continue
        _, offset_buffer, data = chunk.buffers()
        offsets = np.frombuffer(offset_buffer, np.int64)[chunk.offset : chunk.offset + len(chunk) + 1]
        lengths = np.diff(offsets)
        heads = (offsets[:-1] - offsets[0] + _LENGTH_BYTES * np.arange(len(chunk)))[:, None] + np.arange(
            _LENGTH_BYTES
        )
        out = np.empty(int(offsets[-1] - offsets[0]) + heads.size, np.uint8)
        is_text = np.ones(len(out), np.bool_)
        is_text[heads] = False
        out[heads] = lengths.astype(">i4").view(np.uint8).reshape(-1, _LENGTH_BYTES)
        if data is not None:
            out[is_text] = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]
        written.append(out.tobytes())
    return b"".join(written)
