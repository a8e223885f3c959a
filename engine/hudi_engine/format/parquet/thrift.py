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
    """Return the structure that some bytes begin with."""
    try:
        return _struct(data, 0, 0)[0]
    except (IndexError, struct.error) as error:
        raise CorruptTableError("a footer ends within a value") from error


def write_struct(value: Struct) -> bytes:
    """Return the bytes of a structure; `read_struct` gives it back."""
    parts = bytearray()
    _put_struct(parts, value)
    return bytes(parts)


def _struct(data: bytes, at: int, depth: int) -> tuple[Struct, int]:
    """Return the structure at a place, and the place behind it; `depth` structures and lists are around it."""
    if depth > _DEEPEST:
        raise CorruptTableError(f"a footer nests more than {_DEEPEST} structures")
    fields: Struct = {}
    number = 0
    while head := data[at]:
        at += 1
        kind = head & 0x0F
        if head >> 4:
            number += head >> 4
        else:
            number, at = _integer(data, at)
        if kind in (TRUE, FALSE):
            fields[number] = TRUE, kind == TRUE
        else:
            value, at = _value(data, at, kind, depth)
            fields[number] = kind, value
    return fields, at + 1


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in _INTEGERS:
        return _integer(data, at)
    if kind == BINARY:
        length, at = _varint(data, at)
        return _bytes(data, at, length), at + length
    if kind == STRUCT:
        return _struct(data, at, depth + 1)
    if kind == LIST:
        return _list(data, at, depth)
    if kind == BYTE:
        return data[at], at + 1
    if kind == DOUBLE:
        return struct.unpack("<d", _bytes(data, at, 8))[0], at + 8
    raise CorruptTableError(f"a footer holds a value of the type {kind}, which Parquet's footers do not have")


def _list(data: bytes, at: int, depth: int) -> tuple[tuple[int, list[Any]], int]:
    head = data[at]
    at += 1
    kind, count = head & 0x0F, head >> 4
    if count == _LONG_LIST:
        count, at = _varint(data, at)
    if kind in (TRUE, FALSE):
        flags = _bytes(data, at, count)
        return (TRUE, [each == TRUE for each in flags]), at + count
    values = []
    for _ in range(count):
        value, at = _value(data, at, kind, depth + 1)
        values.append(value)
    return (kind, values), at


def _bytes(data: bytes, at: int, count: int) -> bytes:
    if at + count > len(data):
        raise IndexError(at + count)
    return data[at : at + count]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = data[at]
    at += 1
    if value < 0x80:
        return value, at
    value &= 0x7F
    shift = 7
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _integer(data: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return (value >> 1) ^ -(value & 1), at


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
