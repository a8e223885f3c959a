"""Arrow columns to Avro datums, column by column.

Each column becomes one or more Arrow binary arrays of the bytes it contributes to every row; one element-wise
join then lays the rows out. So no Python code runs for a row, and strings are copied once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import SchemaError
from hudi_engine.format.logformat.datums.types import AvroType
from hudi_engine.format.schema.avro import decimal_size

Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
Longs = npt.NDArray[np.int64]
# Bytes, not Arrow scalars: making one imports pandas, which costs every process half a second.
_NOTHING, _END = b"", b"\x00"


def encode_datums(rows: pa.StructArray, schema: AvroType) -> pa.BinaryArray:
    """Return one Avro datum a row.

    Args:
        rows: The columns as one struct array without nulls, typed as ``schema.arrow``.
    """
    return _join(_record_pieces(rows, schema, ""))


def frame_datums(datums: pa.BinaryArray) -> pa.BinaryArray:
    """Return every datum with its length, a big-endian int, before it."""
    lengths = pc.binary_length(datums).to_numpy(zero_copy_only=False).astype(">i4")
    prefix = _binary(lengths.view(np.uint8), np.full(len(datums), 4, np.int64))
    return _join([prefix, datums])


def _join(pieces: list[Any]) -> pa.BinaryArray:
    if len(pieces) == 1:
        return pieces[0]
    return pc.binary_join_element_wise(*pieces, pa.scalar(_NOTHING, pa.binary()))


def _binary(flat: Bytes, lengths: Longs) -> pa.BinaryArray:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if offsets[-1] >= 2**31:
        raise SchemaError(f"{offsets[-1]} bytes in one column of one log block; lower the size of log blocks")
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(np.ascontiguousarray(flat))]
    return pa.Array.from_buffers(pa.binary(), len(lengths), buffers)


def _from_matrix(matrix: Bytes, lengths: Longs) -> pa.BinaryArray:
    """Return rows of ``matrix``, each cut to its length."""
    if len(lengths) and lengths.min() == matrix.shape[1]:
        return _binary(matrix.reshape(-1), lengths)
    return _binary(matrix[np.arange(matrix.shape[1]) < lengths[:, None]], lengths)


def _varint(values: Longs) -> tuple[Bytes, Longs]:
    """Return Zigzag varints of ``values``, left-aligned in a matrix, and their lengths."""
    zigzag = ((values << 1) ^ (values >> 63)).view(np.uint64)
    lengths = np.ones(len(values), np.int64)
    top = int(zigzag.max()) if len(values) else 0
    width = 1
    while width < 10 and top >= 1 << (7 * width):
        lengths += zigzag >= np.uint64(1 << (7 * width))
        width += 1
    matrix = np.empty((len(values), width), np.uint8)
    for column in range(width):
        low = (zigzag >> np.uint64(7 * column)).astype(np.uint8) & 0x7F
        matrix[:, column] = low | ((lengths - 1 > column).astype(np.uint8) << 7)
    return matrix, lengths


def _pieces(array: pa.Array, schema: AvroType, name: str) -> list[Any]:
    """Return bytes that ``array`` adds to each row, as one or more binary arrays to be joined."""
    valid = None
    if array.null_count:
        if schema.null_index is None and schema.kind != "null":
            raise SchemaError(f"column {name!r} holds a null, but the Avro schema does not allow one there")
        valid = array.is_valid().to_numpy(zero_copy_only=False)
    if schema.kind in ("record", "array", "map"):
        return _nested(array, schema, name, valid)
    if schema.kind == "null":
        return [_binary(np.empty(0, np.uint8), np.zeros(len(array), np.int64))]
    return _leaf(array, schema, valid)


def _nested(array: pa.Array, schema: AvroType, name: str, valid: Mask | None) -> list[Any]:
    """Encode records, arrays and maps: the bytes of the values that are there, spread over all rows, after the union branch."""
    values = array if valid is None else array.filter(array.is_valid())
    if schema.kind == "record":
        body = _record_pieces(values, schema, f"{name}.")
    else:
        body = _block_pieces(values, schema, name)
    if schema.branch is None:
        return body
    branches = np.full(len(array), schema.branch << 1, np.uint8)
    if valid is None:
        return [_binary(branches, np.ones(len(array), np.int64)), *body]
    branches[~valid] = (schema.null_index or 0) << 1
    return [_binary(branches, np.ones(len(array), np.int64)), _spread(_join(body), valid)]


def _spread(values: pa.BinaryArray, valid: Mask) -> pa.BinaryArray:
    """Return ``values`` at the valid rows, nothing at the others; the bytes are shared."""
    lengths = np.zeros(len(valid), np.int64)
    lengths[valid] = pc.binary_length(values).to_numpy(zero_copy_only=False)
    start = int(np.frombuffer(values.buffers()[1], np.int32)[values.offset])
    offsets = np.full(len(valid) + 1, start, np.int64)
    offsets[1:] += np.cumsum(lengths)
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), values.buffers()[2]]
    return pa.Array.from_buffers(pa.binary(), len(valid), buffers)


def _record_pieces(array: pa.StructArray, schema: AvroType, parent: str) -> list[Any]:
    pieces: list[Any] = []
    # flatten() and not field(): the latter ignores the offset of a slice.
    for label, child, values in zip(schema.names, schema.children, array.flatten(), strict=True):
        pieces.extend(_pieces(values, child, f"{parent}{label}"))
    return pieces or [_binary(np.empty(0, np.uint8), np.zeros(len(array), np.int64))]


def _block_pieces(array: pa.Array, schema: AvroType, name: str) -> list[Any]:
    """Arrays and maps: item count, the items, a zero; only the zero when there are no items."""
    item = schema.children[0]
    if schema.kind == "map":
        entries = array.cast(pa.list_(pa.struct([("key", pa.string()), ("value", item.arrow)])))
        flat = entries.flatten()
        keys, values = flat.flatten()
        pairs = [*_leaf(keys, AvroType("string", pa.string()), None), *_pieces(values, item, f"{name}.value")]
        items = _join(pairs)
    else:
        entries = array
        items = _join(_pieces(array.flatten(), item, f"{name}.element"))
    counts = pc.list_value_length(entries).to_numpy(zero_copy_only=False).astype(np.int64)
    matrix, lengths = _varint(counts)
    head = _from_matrix(matrix, np.where(counts > 0, lengths, 0))
    return [head, _group(items, counts), pa.scalar(_END, pa.binary())]


def _group(items: pa.BinaryArray, counts: Longs) -> pa.BinaryArray:
    """Join consecutive items, ``counts`` of them for each row; the bytes are shared."""
    ends = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=ends[1:])
    item_offsets = np.frombuffer(items.buffers()[1], np.int32)[items.offset : items.offset + len(items) + 1]
    buffers = [None, pa.py_buffer(np.ascontiguousarray(item_offsets[ends])), items.buffers()[2]]
    return pa.Array.from_buffers(pa.binary(), len(counts), buffers)


def _leaf(array: pa.Array, schema: AvroType, valid: Mask | None) -> list[Any]:
    if schema.kind == "string" or (schema.kind == "bytes" and not schema.is_decimal):
        raw = array.cast(pa.binary())
        if valid is not None:
            raw = pc.fill_null(raw, b"")
        matrix, lengths = _varint(pc.binary_length(raw).to_numpy(zero_copy_only=False).astype(np.int64))
        return [_with_branch(matrix, lengths, schema, valid), raw]
    if schema.kind in ("float", "double", "boolean") or schema.kind == "fixed" or schema.is_decimal:
        matrix = _fixed_matrix(array, schema)
        return [_with_branch(matrix, np.full(len(array), matrix.shape[1], np.int64), schema, valid)]
    matrix, lengths = _varint(_longs(array, schema))
    return [_with_branch(matrix, lengths, schema, valid)]


def _with_branch(matrix: Bytes, lengths: Longs, schema: AvroType, valid: Mask | None) -> pa.BinaryArray:
    """Put the union branch before each value; a null is its branch alone."""
    if schema.branch is None:
        return _from_matrix(matrix, lengths)
    wide = np.empty((len(lengths), matrix.shape[1] + 1), np.uint8)
    wide[:, 0] = schema.branch << 1
    wide[:, 1:] = matrix
    total = lengths + 1
    if valid is not None:
        wide[~valid, 0] = (schema.null_index or 0) << 1
        total = np.where(valid, total, 1)
    return _from_matrix(wide, total)


def _longs(array: pa.Array, schema: AvroType) -> Longs:
    if schema.kind == "enum":
        codes = pc.index_in(array, value_set=pa.array(schema.symbols, pa.string()))
        if codes.null_count > array.null_count:
            raise SchemaError(f"a value is none of the symbols of its enum: {', '.join(schema.symbols)}")
        return _long_values(pc.fill_null(codes, 0))
    width = pa.int32() if array.type.bit_width == 32 else pa.int64()
    return _long_values(pc.fill_null(array.view(width), 0))


def _long_values(array: pa.Array) -> Longs:
    values: Longs = array.to_numpy(zero_copy_only=False).astype(np.int64)
    return values


def _fixed_matrix(array: pa.Array, schema: AvroType) -> Bytes:
    if schema.is_decimal:
        return _decimal_matrix(array, schema)
    if schema.kind == "fixed":
        lengths = pc.binary_length(array.drop_null())
        if len(lengths) and (
            pc.min(lengths).as_py() != schema.size or pc.max(lengths).as_py() != schema.size
        ):
            raise SchemaError(f"a value of a fixed column does not have its {schema.size} bytes")
        filled = pc.fill_null(array.cast(pa.binary()), b"\x00" * schema.size)
        flat = np.frombuffer(b"".join(filled.to_pylist()), np.uint8)
        return flat.reshape(len(array), schema.size)
    if schema.kind == "boolean":
        numbers = pc.fill_null(array, False).cast(pa.uint8()).to_numpy(zero_copy_only=False)
    else:
        numbers = pc.fill_null(array, 0.0).to_numpy(zero_copy_only=False)
    width = {"boolean": 1, "float": 4, "double": 8}[schema.kind]
    matrix: Bytes = np.ascontiguousarray(numbers).view(np.uint8).reshape(len(array), width)
    return matrix


def _decimal_matrix(array: pa.Array, schema: AvroType) -> Bytes:
    """Return unscaled values in big-endian two's complement, in ``bytes`` with their length before them."""
    data = array.buffers()[1]
    if data is None or len(array) == 0:
        little = np.zeros((len(array), 16), np.uint8)
    else:
        values = np.frombuffer(data, np.uint8, count=16 * len(array), offset=16 * array.offset)
        little = values.reshape(-1, 16)
    size = schema.size if schema.kind == "fixed" else decimal_size(schema.arrow.precision)
    big = np.empty((len(array), size), np.uint8)
    used = min(size, 16)
    big[:, size - used :] = little[:, :used][:, ::-1]
    if size > 16:
        big[:, : size - 16] = np.where(little[:, 15:16] >= 128, 255, 0)
    if schema.kind == "fixed":
        return big
    prefixed = np.empty((len(array), size + 1), np.uint8)
    prefixed[:, 0] = size << 1
    prefixed[:, 1:] = big
    return prefixed
