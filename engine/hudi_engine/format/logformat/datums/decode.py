"""Avro datums to Arrow columns, field by field over all rows at once.

The position of every row is kept in one vector. A field is read for all rows together and moves the positions
on, so the work in Python is one step a field, not one a value. Every length is checked against the bytes that
are left before anything is allocated.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.logformat.datums.types import AvroType

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
_ANY_TEXT = pc.CastOptions(pa.string(), allow_invalid_utf8=True)


class DatumDecoder:
    """Decodes fields of many datums that lie in one buffer."""

    def __init__(self, data: pa.Buffer) -> None:
        self._buffer = data
        self._bytes: Bytes = np.frombuffer(data, np.uint8)

    def decode(self, schema: AvroType, positions: Longs) -> tuple[pa.Array, Longs]:
        """Read one value at each position.

        Returns:
            The values, and the positions behind them.
        """
        if schema.branch is None:
            return self._value(schema, positions)
        branches, after = self._varint(positions)
        valid = branches == schema.branch
        if valid.all():
            return self._value(schema, after)
        if schema.null_index is None or not (valid | (branches == schema.null_index)).all():
            raise CorruptTableError("an Avro datum names a union branch that its schema does not have")
        values, ends = self._value(schema, after[valid])
        after[valid] = ends
        where = np.cumsum(valid) - 1
        return values.take(pa.array(where, pa.int64(), mask=~valid)), after

    def _value(self, schema: AvroType, positions: Longs) -> tuple[pa.Array, Longs]:
        kind = schema.kind
        if kind in ("string", "bytes"):
            return self._blobs(schema, positions)
        if kind in ("int", "long", "enum"):
            return self._integers(schema, positions)
        if kind in ("float", "double", "boolean", "fixed"):
            return self._fixed(schema, positions)
        if kind == "record":
            return self._record(schema, positions)
        if kind in ("array", "map"):
            return self._collection(schema, positions)
        if kind == "null":
            return pa.nulls(len(positions), schema.arrow), positions
        raise CorruptTableError(f"the Avro type {kind!r} is not known")

    def _need(self, positions: Longs, count: int) -> None:
        if len(positions) and int(positions.max()) + count > len(self._bytes):
            raise CorruptTableError(f"an Avro datum ends after the {len(self._bytes)} bytes of its block")

    def _varint(self, positions: Longs) -> tuple[Longs, Longs]:
        self._need(positions, 1)
        first = self._bytes[positions]
        value = (first & 0x7F).astype(np.uint64)
        after = positions + 1
        rows = np.flatnonzero(first & 0x80)
        shift = 7
        while len(rows):
            if shift > 63:
                raise CorruptTableError("an Avro number is longer than ten bytes")
            self._need(after[rows], 1)
            part = self._bytes[after[rows]]
            value[rows] |= (part & 0x7F).astype(np.uint64) << np.uint64(shift)
            after[rows] += 1
            rows = rows[(part & 0x80) != 0]
            shift += 7
        return (value >> np.uint64(1)).view(np.int64) ^ -((value & np.uint64(1)).view(np.int64)), after

    def _lengths(self, positions: Longs) -> tuple[Longs, Longs]:
        lengths, starts = self._varint(positions)
        if len(lengths):
            if int(lengths.min()) < 0 or int(lengths.max()) > len(self._bytes):
                raise CorruptTableError("an Avro text or byte value has an impossible length")
            self._need(starts + lengths, 0)
        return lengths, starts

    def _blobs(self, schema: AvroType, positions: Longs) -> tuple[pa.Array, Longs]:
        lengths, starts = self._lengths(positions)
        if schema.is_decimal:
            return self._decimals(schema, starts, lengths), starts + lengths
        values = self._slices(starts, lengths)
        if schema.kind == "string":
            # Spark writes any bytes as a text, and a base file gives them back as they are.
            values = values.cast(options=_ANY_TEXT)
        return values, starts + lengths

    def _slices(self, starts: Longs, lengths: Longs) -> pa.Array:
        """Return the byte ranges as a binary array.

        Values and the gaps between them are taken for one array over the whole buffer; every other entry is
        then copied out.
        """
        count = len(starts)
        if count == 0:
            return pa.array([], pa.binary())
        offsets = np.empty(2 * count, np.int64)
        offsets[0::2] = starts
        offsets[1::2] = starts + lengths
        if (np.diff(offsets) < 0).any():
            raise CorruptTableError("Avro datums of one block overlap")
        large = len(self._bytes) >= 2**31
        kind, width = (pa.large_binary(), np.int64) if large else (pa.binary(), np.int32)
        buffers = [None, pa.py_buffer(offsets.astype(width)), self._buffer]
        both = pa.Array.from_buffers(kind, 2 * count - 1, buffers)
        return both.take(pa.array(np.arange(0, 2 * count - 1, 2))).cast(pa.binary())

    def _integers(self, schema: AvroType, positions: Longs) -> tuple[pa.Array, Longs]:
        """Decode zigzag numbers; an enum's are symbol numbers, and 32 bits are checked before they wrap."""
        numbers, after = self._varint(positions)
        if schema.kind == "enum":
            if len(numbers) and not (0 <= int(numbers.min()) and int(numbers.max()) < len(schema.symbols)):
                raise CorruptTableError("an Avro enum has an unknown symbol number")
            return pa.array(schema.symbols, pa.string()).take(pa.array(numbers)), after
        if schema.kind == "int":
            if len(numbers) and (int(numbers.min()) < -(2**31) or int(numbers.max()) >= 2**31):
                raise CorruptTableError("an Avro int does not fit into 32 bits")
            return pa.array(numbers.astype(np.int32)).view(schema.arrow), after
        return pa.array(numbers).view(schema.arrow), after

    def _matrix(self, positions: Longs, width: int) -> Bytes:
        self._need(positions, width)
        matrix: Bytes = self._bytes[positions[:, None] + np.arange(width)]
        return matrix

    def _fixed(self, schema: AvroType, positions: Longs) -> tuple[pa.Array, Longs]:
        if schema.kind == "boolean":
            return pa.array(self._matrix(positions, 1)[:, 0] != 0), positions + 1
        if schema.kind == "fixed":
            lengths = np.full(len(positions), schema.size, np.int64)
            self._need(positions, schema.size)
            if schema.is_decimal:
                return self._decimals(schema, positions, lengths), positions + lengths
            return self._slices(positions, lengths), positions + lengths
        width, kind = (4, "<f4") if schema.kind == "float" else (8, "<f8")
        numbers = self._matrix(positions, width).reshape(-1).view(kind)
        return pa.array(numbers), positions + width

    def _decimals(self, schema: AvroType, starts: Longs, lengths: Longs) -> pa.Array:
        """Big-endian two's complement of any width to Arrow's sixteen little-endian bytes."""
        widest = int(lengths.max()) if len(lengths) else 0
        signs = np.zeros(len(starts), np.uint8)
        filled = lengths > 0
        signs[filled] = np.where(self._bytes[starts[filled]] >= 128, 255, 0)
        little = np.repeat(signs[:, None], 16, axis=1)
        for column in range(min(widest, 16)):
            rows = lengths > column
            little[rows, column] = self._bytes[(starts + lengths - 1 - column)[rows]]
        for column in range(16, widest):
            rows = lengths > column
            if (self._bytes[(starts + lengths - 1 - column)[rows]] != signs[rows]).any():
                raise CorruptTableError("an Avro decimal has more than 38 digits")
        buffers = [None, pa.py_buffer(np.ascontiguousarray(little))]
        return pa.Array.from_buffers(schema.arrow, len(starts), buffers)

    def _record(self, schema: AvroType, positions: Longs) -> tuple[pa.Array, Longs]:
        children = []
        for child in schema.children:
            values, positions = self.decode(child, positions)
            children.append(values)
        if not children:
            return pa.array([{}] * len(positions), schema.arrow), positions
        return pa.StructArray.from_arrays(children, fields=list(schema.arrow)), positions

    def _collection(self, schema: AvroType, positions: Longs) -> tuple[pa.Array, Longs]:
        """Decode the items of all rows in step, the n-th of each at once, and sort them back by row afterwards."""
        after = positions.copy()
        item = _entry_type(schema)
        parts: list[pa.Array] = []
        owners: list[Longs] = []
        rows: Longs = np.arange(len(positions))
        while len(rows):
            counts, after[rows] = self._block_counts(after[rows])
            rows, counts = rows[counts > 0], counts[counts > 0]
            step = 0
            current = rows
            while len(current):
                values, after[current] = self.decode(item, after[current])
                parts.append(values)
                owners.append(current)
                step += 1
                current = rows[counts > step]
        if not parts:
            parts.append(self.decode(item, positions[:0])[0])
            owners.append(rows)
        owner = np.concatenate(owners)
        flat = pa.concat_arrays(parts).take(pa.array(np.argsort(owner, kind="stable")))
        offsets = np.zeros(len(positions) + 1, np.int32)
        np.cumsum(np.bincount(owner, minlength=len(positions)), out=offsets[1:])
        if schema.kind == "array":
            return pa.ListArray.from_arrays(pa.array(offsets), flat, type=schema.arrow), after
        return pa.MapArray.from_arrays(pa.array(offsets), *flat.flatten(), type=schema.arrow), after

    def _block_counts(self, positions: Longs) -> tuple[Longs, Longs]:
        """Return item counts of the next array blocks; a negative count is followed by the block's size in bytes."""
        counts, after = self._varint(positions)
        sized = np.flatnonzero(counts < 0)
        if len(sized):
            after[sized] = self._varint(after[sized])[1]
            counts[sized] = -counts[sized]
        if len(counts) and int(counts.max()) > len(self._bytes):
            raise CorruptTableError("an Avro array has an impossible number of items")
        return counts, after


def _entry_type(schema: AvroType) -> AvroType:
    item = schema.children[0]
    if schema.kind == "array":
        return item
    entry = pa.struct([pa.field("key", pa.string()), pa.field("value", item.arrow)])
    key = AvroType("string", pa.string())
    return AvroType("record", entry, names=("key", "value"), children=(key, item))
