"""Columns of vectors: bytes in Avro and Parquet, lists of numbers for who reads them.

Releases of Apache Hudi since 1.2 have ``VECTOR(n)``, ``VECTOR(n, DOUBLE)`` and ``VECTOR(n, INT8)``. In the table's Avro schema
such a column is a ``fixed`` of the logical type ``vector`` that names its ``elementType``; its bytes, in base files and logs
alike, are the numbers one after the other, the lowest byte of each first (source: tables of Apache Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_engine.errors import SchemaError

VECTOR = "vector"
"""The logical type."""
_BACKING = "FIXED_BYTES"
_ELEMENTS: Mapping[str, tuple[pa.DataType, str]] = {
    "FLOAT": (pa.float32(), "<f4"),
    "DOUBLE": (pa.float64(), "<f8"),
    "INT8": (pa.int8(), "i1"),
}
_IN_BYTES = {kind: np.dtype(numbers) for kind, numbers in _ELEMENTS.values()}


def is_vector(schema: object) -> bool:
    """Tell whether an Avro type is that of a vector."""
    return isinstance(schema, Mapping) and schema.get("logicalType") == VECTOR


def vector_type(schema: Mapping[str, Any], column: str) -> pa.DataType:
    """Return the Arrow type of a vector: a list of its numbers.

    Raises:
        SchemaError: The numbers are of a kind, or stored in a way, that is not known; or they do not fill the bytes.
    """
    element, backing = str(schema.get("elementType")), schema.get("storageBacking", _BACKING)
    if element not in _ELEMENTS or backing != _BACKING or schema.get("type") != "fixed":
        raise SchemaError(
            f"column {column!r} is a vector of {element!r} stored as {backing!r}; known are "
            f"{', '.join(_ELEMENTS)} in {_BACKING}. Read the table with the Hudi release that wrote it"
        )
    kind, numbers = _ELEMENTS[element]
    size, dimension = int(schema["size"]), int(schema["dimension"])
    if size != dimension * np.dtype(numbers).itemsize:
        raise SchemaError(
            f"column {column!r} is a vector of {dimension} {element} in {size} bytes, which do not fit"
        )
    return pa.list_(pa.field("element", kind))


def is_of_vectors(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Tell whether stored bytes are the vectors that are wanted: Hudi makes lists of no others."""
    return bool(
        pa.types.is_fixed_size_binary(stored) and pa.types.is_list(wanted) and wanted.value_type in _IN_BYTES
    )


def vectors_of(array: pa.FixedSizeBinaryArray, kind: pa.ListType) -> pa.ListArray:
    """Return vectors that a Parquet file holds as bytes; what is null stays null.

    Args:
        array: The bytes.

    Raises:
        SchemaError: The bytes are no whole number of numbers.
    """
    width, item = array.type.byte_width, _IN_BYTES[kind.value_type].itemsize
    if width % item:
        raise SchemaError(f"{width} bytes of a vector are no whole number of {kind.value_type}")
    there = array.drop_null() if array.null_count else array
    data = there.buffers()[1]
    start = there.offset * width
    flat = np.frombuffer(data, np.uint8, len(there) * width, start) if data else np.empty(0, np.uint8)
    mask = array.is_null() if array.null_count else None
    lengths = np.full(len(array), width // item, np.int64)
    if mask is not None:
        lengths[mask.to_numpy(zero_copy_only=False)] = 0
    return _lists(flat, lengths, kind, mask)


def vectors_in_rows(matrix: npt.NDArray[np.uint8], kind: pa.ListType) -> pa.ListArray:
    """Return the vectors of which each row of a matrix is the bytes of one.

    Args:
        matrix: The bytes.
    """
    count = matrix.shape[1] // _IN_BYTES[kind.value_type].itemsize
    return _lists(matrix.reshape(-1), np.full(len(matrix), count, np.int64), kind, None)


def _lists(
    flat: npt.NDArray[np.uint8], lengths: npt.NDArray[np.int64], kind: pa.ListType, mask: pa.Array | None
) -> pa.ListArray:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    numbers = np.ascontiguousarray(flat).view(_IN_BYTES[kind.value_type])
    values = pa.array(numbers.astype(numbers.dtype.newbyteorder("="), copy=False), kind.value_type)
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values, type=kind, mask=mask)
