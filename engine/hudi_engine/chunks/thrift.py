"""Thrift's compact protocol, as far as the footer of a Parquet file needs it: structures to plain values and back.

A structure is a dictionary from field number to a pair of the field's type and its value, so that what this program does not know
stays as it was. Source: Apache Thrift, compact protocol; Apache Parquet, ``parquet.thrift``.
"""

from __future__ import annotations

import struct
from typing import Any

from hudi_engine.errors import CorruptTableError

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
_INTEGERS = frozenset({I16, I32, I64})
_LONG_LIST = 15
_DEEPEST = 32

Struct = dict[int, tuple[int, Any]]
"""Value of a field: bool, int, float, bytes, a structure, or for a list a pair of its elements' type and a list of them."""


def read_struct(data: bytes) -> Struct:
    """Return the structure that some bytes begin with.

    Raises:
        CorruptTableError: They are none, or hold a map or a set, which no footer has.
    """
    try:
        return _Reader(data).struct(0)
    except (IndexError, struct.error) as error:
        raise CorruptTableError("a footer ends within a value") from error


def write_struct(value: Struct) -> bytes:
    """Return the bytes of a structure; `read_struct` gives it back."""
    parts = bytearray()
    _put_struct(parts, value)
    return bytes(parts)


class _Reader:
    """A place in some bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def struct(self, depth: int) -> Struct:
        """Take a structure; `depth` structures and lists are around it."""
        if depth > _DEEPEST:
            raise CorruptTableError(f"a footer nests more than {_DEEPEST} structures")
        fields: Struct = {}
        number = 0
        while head := self._byte():
            kind = head & 0x0F
            number = number + (head >> 4) if head >> 4 else _from_zigzag(self._varint())
            fields[number] = (
                (TRUE, kind == TRUE) if kind in (TRUE, FALSE) else (kind, self._value(kind, depth))
            )
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in _INTEGERS:
            return _from_zigzag(self._varint())
        if kind == BINARY:
            return self._bytes(self._varint())
        if kind == STRUCT:
            return self.struct(depth + 1)
        if kind == LIST:
            return self._list(depth)
        if kind == BYTE:
            return self._byte()
        if kind == DOUBLE:
            return struct.unpack("<d", self._bytes(8))[0]
        raise CorruptTableError(
            f"a footer holds a value of the type {kind}, which Parquet's footers do not have"
        )

    def _list(self, depth: int) -> tuple[int, list[Any]]:
        head = self._byte()
        kind, count = head & 0x0F, head >> 4
        if count == _LONG_LIST:
            count = self._varint()
        if kind in (TRUE, FALSE):
            return TRUE, [self._byte() == TRUE for _ in range(count)]
        return kind, [self._value(kind, depth + 1) for _ in range(count)]

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _bytes(self, count: int) -> bytes:
        start, self._at = self._at, self._at + count
        if self._at > len(self._data):
            raise IndexError(self._at)
        return self._data[start : self._at]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7


def _put_struct(parts: bytearray, fields: Struct) -> None:
    last = 0
    for number in sorted(fields):
        kind, value = fields[number]
        written = (TRUE if value else FALSE) if kind == TRUE else kind
        if 0 < number - last <= 0x0F:
            parts.append((number - last) << 4 | written)
        else:
            parts.append(written)
            _put_varint(parts, _to_zigzag(number))
        last = number
        if kind != TRUE:
            _put(parts, kind, value)
    parts.append(0)


def _put(parts: bytearray, kind: int, value: Any) -> None:
    if kind in _INTEGERS:
        _put_varint(parts, _to_zigzag(value))
    elif kind == BINARY:
        _put_varint(parts, len(value))
        parts += value
    elif kind == STRUCT:
        _put_struct(parts, value)
    elif kind == LIST:
        _put_list(parts, *value)
    elif kind == DOUBLE:
        parts += struct.pack("<d", value)
    else:
        parts.append(value)


def _put_list(parts: bytearray, kind: int, values: list[Any]) -> None:
    if len(values) < _LONG_LIST:
        parts.append(len(values) << 4 | kind)
    else:
        parts.append(_LONG_LIST << 4 | kind)
        _put_varint(parts, len(values))
    for value in values:
        if kind == TRUE:
            parts.append(TRUE if value else FALSE)
        else:
            _put(parts, kind, value)


def _put_varint(parts: bytearray, value: int) -> None:
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)


def _to_zigzag(value: int) -> int:
    return value << 1 if value >= 0 else (-value << 1) - 1


def _from_zigzag(value: int) -> int:
    return value >> 1 if not value & 1 else -((value + 1) >> 1)
