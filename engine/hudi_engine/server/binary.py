"""Thrift's binary protocol: messages decoded into numbers of fields, and answers written field by field.

The protocol describes itself, so that no generated code is needed: a struct becomes a dictionary by field number.
"""

from __future__ import annotations

import struct as packing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

CALL, REPLY, EXCEPTION = 1, 2, 3
BOOL, BYTE, DOUBLE, I16, I32, I64, STRING, STRUCT, MAP, SET, LIST = 2, 3, 4, 6, 8, 10, 11, 12, 13, 14, 15
VERSION = 0x80010000
_VERSION_MASK = 0xFFFF0000
_MAX_DEPTH = 32
_MAX_NAME_BYTES = 256
_NUMBERS: Mapping[int, packing.Struct] = {
    BOOL: packing.Struct("!?"),
    BYTE: packing.Struct("!b"),
    DOUBLE: packing.Struct("!d"),
    I16: packing.Struct("!h"),
    I32: packing.Struct("!i"),
    I64: packing.Struct("!q"),
}
UNKNOWN_METHOD, INTERNAL_ERROR = 1, 6
Fields = dict[int, Any]


class ProtocolError(Exception):
    """The bytes are no message of this protocol, or more than is allowed."""


@dataclass(frozen=True)
class Message:
    """A call: its name, the number that its reply repeats, and its arguments by field number."""

    name: str
    sequence: int
    arguments: Fields


class Reader:
    """Reads one message.

    Args:
        read: Returns exactly as many bytes as are wanted; EOFError when there are no more.
        limit: Most bytes that the message may have.
    """

    def __init__(self, read: Callable[[int], bytes], limit: int) -> None:
        self._source = read
        self._left = limit

    def message(self) -> Message:
        """Read a call; ProtocolError for anything else."""
        head = self._number(I32) & 0xFFFFFFFF
        if head & _VERSION_MASK != VERSION:
            raise ProtocolError(f"a message begins with {head:#010x}, which is not Thrift's binary protocol")
        if head & 0xFF != CALL:
            raise ProtocolError(f"a message of kind {head & 0xFF} where a call is expected")
        name = self._bytes(_MAX_NAME_BYTES).decode("utf-8", "replace")
        return Message(name, self._number(I32), self._struct(0))

    def _read(self, count: int) -> bytes:
        if not 0 <= count <= self._left:
            raise ProtocolError(f"{count} bytes in a message that may have {self._left} more")
        self._left -= count
        return self._source(count)

    def _number(self, kind: int) -> Any:
        packed = _NUMBERS[kind]
        return packed.unpack(self._read(packed.size))[0]

    def _bytes(self, limit: int | None = None) -> bytes:
        count = self._number(I32)
        if limit is not None and count > limit:
            raise ProtocolError(f"a name of {count} bytes; at most {limit} are allowed")
        return self._read(count)

    def _struct(self, depth: int) -> Fields:
        found: Fields = {}
        while True:
            kind = self._number(BYTE)
            if kind == 0:
                return found
            number = self._number(I16)
            found[number] = self._value(kind, depth + 1)

    def _value(self, kind: int, depth: int) -> Any:
        """Return a value: texts as bytes, a struct by field number, sets as lists."""
        if depth > _MAX_DEPTH:
            raise ProtocolError(f"values nested more than {_MAX_DEPTH} deep")
        if kind in _NUMBERS:
            return self._number(kind)
        if kind == STRING:
            return self._bytes()
        if kind == STRUCT:
            return self._struct(depth)
        if kind == MAP:
            keys, values = self._number(BYTE), self._number(BYTE)
            pairs = [
                (self._value(keys, depth + 1), self._value(values, depth + 1))
                for _ in range(self._number(I32))
            ]
            return {key: value for key, value in pairs if isinstance(key, (bytes, int, float))}
        if kind in (LIST, SET):
            items = self._number(BYTE)
            return [self._value(items, depth + 1) for _ in range(self._number(I32))]
        raise ProtocolError(f"a value of the unknown type {kind}")


def exactly(source: BinaryIO, count: int) -> bytes:
    """Return as many bytes as are wanted; EOFError when there are no more."""
    found = source.read(count)
    if found is None or len(found) < count:
        raise EOFError("the client has gone")
    return found


# --- writing: each function returns a field with its head, but for the two that return a value -------------------------


def number(kind: int, field: int, value: float) -> bytes:
    """Return a field with a number or a flag."""
    return packing.pack("!bh", kind, field) + _NUMBERS[kind].pack(value)


def i32(field: int, value: int) -> bytes:
    """Return a field with a whole number of 32 bits."""
    return number(I32, field, value)


def flag(field: int, value: bool) -> bytes:
    """Return a field with true or false."""
    return number(BOOL, field, value)


def text(field: int, value: str | bytes) -> bytes:
    """Return a field with a text or bytes."""
    return packing.pack("!bh", STRING, field) + text_value(value)


def text_value(value: str | bytes) -> bytes:
    """Return a text or bytes, as an element of a list."""
    raw = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    return packing.pack("!i", len(raw)) + raw


def struct(field: int, *fields: bytes) -> bytes:
    """Return a field with a struct."""
    return packing.pack("!bh", STRUCT, field) + struct_value(*fields)


def struct_value(*fields: bytes) -> bytes:
    """Return a struct, as an element of a list."""
    return b"".join((*fields, b"\0"))


def items(field: int, kind: int, values: Iterable[bytes]) -> bytes:
    """Return a field with a list of values that are written already."""
    written = list(values)
    return packing.pack("!bhbi", LIST, field, kind, len(written)) + b"".join(written)


def packed_items(field: int, kind: int, count: int, values: bytes) -> bytes:
    """Return a field with a list whose values are written one behind the other."""
    return packing.pack("!bhbi", LIST, field, kind, count) + values


def texts(field: int, values: Mapping[str, bytes]) -> bytes:
    """Return a field with a map of texts to structs that are written already."""
    pairs = b"".join(text_value(key) + value for key, value in values.items())
    return packing.pack("!bhbbi", MAP, field, STRING, STRUCT, len(values)) + pairs


def reply(call: Message, *fields: bytes) -> bytes:
    """Return the message that answers a call with a struct."""
    return _message(REPLY, call, struct(0, *fields) + b"\0")


def failure(call: Message, kind: int, reason: str) -> bytes:
    """Return the message that rejects a call, as Thrift's own libraries do."""
    return _message(EXCEPTION, call, struct_value(text(1, reason), i32(2, kind)))


def _message(kind: int, call: Message, body: bytes) -> bytes:
    return (
        packing.pack("!I", VERSION | kind) + text_value(call.name) + packing.pack("!i", call.sequence) + body
    )
