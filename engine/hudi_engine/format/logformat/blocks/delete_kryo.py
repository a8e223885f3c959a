"""Delete blocks of content versions 1 and 2, which Hudi wrote before 0.14: an array of Java objects in Kryo's bytes.

Version 1 has the keys alone, version 2 keys with ordering values. Of Kryo only the bytes of these two arrays are known here:
no class is looked up by its name, and one that such an array has no place for is refused. A class is named where it comes
first and numbered after, and so is an object, so that equal texts may be told by the number of the first one.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from hudi_engine.errors import CorruptTableError, UnsupportedTableError
from hudi_engine.format.logformat.blocks.delete_record import DeleteRecord

KEYS_VERSION, RECORDS_VERSION = 1, 2
"""Content versions of the blocks that are read here."""
_MODEL = "org.apache.hudi.common.model."
_KEY, _RECORD = f"{_MODEL}HoodieKey", f"{_MODEL}DeleteRecord"
_ELEMENT_OF_VERSION = {KEYS_VERSION: _KEY, RECORDS_VERSION: _RECORD}
_UTF8 = "Utf8"
"""The class as Hudi numbers it, with bytes of its own; before 0.12.2 it is named, and has Kryo's."""
_NAMED_UTF8 = ("org.apache.avro.util.Utf8", "org.apache.hudi.org.apache.avro.util.Utf8")
_NUMBERED = {
    0: "int", 1: "String", 2: "float", 3: "boolean", 7: "long", 8: "double",
    # Behind Kryo's own ten classes Hudi numbers its own: 0.12 this one, 0.13 seventeen others before.
    10: _UTF8, 27: _UTF8,
}  # fmt: skip
_NULL, _NEW, _NUMBERS_BEGIN = 0, 1, 2
_MOST_BYTES_OF_A_NUMBER = 5
_SEVEN_BITS_OF_A_LONG = 8  # so many bytes have seven bits each, the one behind them has eight


def decode_objects(content: memoryview, version: int) -> Iterator[DeleteRecord]:
    """Yield the deleted keys of a block, in their order.

    Raises:
        CorruptTableError: The content is truncated or not such an array.
        UnsupportedTableError: An ordering value is of a class that is not known here.
    """
    stream, element = _Stream(bytes(content)), _ELEMENT_OF_VERSION[version]
    try:
        stream.expect(f"[L{element};")
        if stream.varint() != _NEW:
            raise ValueError("the array is missing")
        stream.objects.append(None)
        for _ in range(stream.count()):
            stream.expect(element)
            record = stream.reference(stream.key if element == _KEY else stream.record)
            if record is None:
                raise ValueError("an element is missing")
            yield record
    except (ValueError, IndexError, ArithmeticError, struct.error) as error:
        raise CorruptTableError(
            f"a delete block of {len(content)} bytes is not a list of keys: {error!r}"
        ) from error


class _Stream:
    """Bytes of Kryo, read from the front."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._names: list[str | None] = []
        self.objects: list[Any] = []

    def key(self) -> DeleteRecord:
        """Read a key; fields lie by the letters of their names."""
        partition = self.reference(self.text)
        record_key = self.reference(self.text)
        return DeleteRecord(record_key or "", partition or "", None)

    def record(self) -> DeleteRecord:
        """Read a key with its ordering value."""
        self.expect(_KEY)
        key = self.reference(self.key)
        if not isinstance(key, DeleteRecord):
            raise ValueError("a record has no key")
        kind = self._class()
        if kind is None:
            return key
        if kind not in _VALUES:
            raise UnsupportedTableError(
                f"a delete block has an ordering value of the Java class {kind}, which is read in a JVM only; compact the "
                "table with the writer that made it"
            )
        wrapper, read = _VALUES[kind]
        value = read(self)
        if value is None or (wrapper == "IntWrapper" and value == 0):
            return key
        return DeleteRecord(key.record_key, key.partition_path, value, wrapper)

    def expect(self, name: str) -> None:
        """Read a class; raises ValueError where it is another one."""
        found = self._class()
        if found != name:
            raise ValueError(f"{found!r} where {name!r} belongs")

    def reference(self, read: Callable[[], Any]) -> Any:
        """Read an object, which may be missing or one that came before."""
        mark = self.varint()
        if mark == _NULL:
            return None
        if mark != _NEW:
            known = self.objects[mark - _NUMBERS_BEGIN]
            if known is None:
                raise ValueError("an object is part of itself")
            return known
        place = len(self.objects)
        self.objects.append(None)
        self.objects[place] = read()
        return self.objects[place]

    def count(self) -> int:
        """Read a number of elements, which cannot be more than the bytes that follow."""
        count = self.varint() - 1
        if not 0 <= count <= len(self._data) - self._at:
            raise ValueError(f"{count} elements in {len(self._data) - self._at} bytes")
        return count

    def varint(self) -> int:
        """Read a number of seven bits a byte, lowest first."""
        value = 0
        for place in range(_MOST_BYTES_OF_A_NUMBER):
            byte = self._byte()
            value |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                return value
        raise ValueError("a number has no end")

    def zigzag(self) -> int:
        """Read an int that may be negative."""
        value = self.varint() & 0xFFFFFFFF
        return (value >> 1) ^ -(value & 1)

    def long(self) -> int:
        """Read a long that may be negative."""
        value = 0
        for place in range(_SEVEN_BITS_OF_A_LONG):
            byte = self._byte()
            value |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                break
        else:
            value |= self._byte() << (7 * _SEVEN_BITS_OF_A_LONG)
        return (value >> 1) ^ -(value & 1)

    def take(self, size: int) -> bytes:
        """Read some bytes."""
        if size > len(self._data) - self._at:
            raise IndexError(f"{size} bytes of {len(self._data) - self._at}")
        self._at += size
        return self._data[self._at - size : self._at]

    def text(self) -> str | None:
        """Read a text: ASCII whose last byte has its highest bit, or a number of UTF-16 units, each in up to three bytes."""
        begin = self._at
        first = self._byte()
        if first < 0x80:
            while self._byte() < 0x80:
                pass
            raw = bytearray(self._data[begin : self._at])
            raw[-1] &= 0x7F
            return raw.decode("ascii")
        size = first & 0x3F
        if first & 0x40:
            size |= self.varint() << 6
        if size == 0:
            return None
        begin = self._at
        for _ in range(size - 1):
            lead = self._byte()
            self.take(0 if lead < 0x80 else 1 if lead < 0xE0 else 2)
        units = self._data[begin : self._at].decode("utf-8", "surrogatepass")
        return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le")

    def has_another_size(self) -> bool:
        """Tell whether a size of nothing and a text follow, and not the text alone, behind which is the class of an element."""
        ahead = self._data[self._at : self._at + 3]
        return len(ahead) > 1 and ahead[0] == 0 and (ahead[1] != _NEW or ahead[2:] == b"\x81")

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _class(self) -> str | None:
        mark = self.varint()
        if mark == _NULL:
            return None
        if mark != _NEW:
            number = mark - _NUMBERS_BEGIN
            return _NUMBERED.get(number, f"number {number}")
        number = self.varint()
        if number == len(self._names):
            self._names.append(self.text())
        return self._names[number]


def _utf8(stream: _Stream) -> str:
    return stream.take(stream.count()).decode("utf-8")


def _utf8_of_fields(stream: _Stream) -> str:
    """Read the fields by their letters: bytes, in newer Avro a hash, how many of the bytes count, the text once it was asked."""
    raw = stream.reference(lambda: stream.take(stream.count()))
    if raw is None:
        raise ValueError("a text has no bytes")
    size = stream.zigzag()
    if not 0 < size <= len(raw) if raw else stream.has_another_size():
        size = stream.zigzag()  # the one before was the hash, which is 0 until it is asked
    stream.reference(stream.text)
    return str(raw[:size].decode("utf-8"))


def _decimal(stream: _Stream) -> Decimal:
    unscaled = int.from_bytes(stream.take(stream.count()), "big", signed=True)
    return Decimal(f"{unscaled}E{-stream.zigzag()}")


def _date(stream: _Stream) -> datetime.date:
    year = stream.varint()
    month, day = stream.take(2)
    return datetime.date(year, month, day)


def _object(read: Callable[[_Stream], Any]) -> Callable[[_Stream], Any]:
    return lambda stream: stream.reference(lambda: read(stream))


_VALUES: dict[str, tuple[str, Callable[[_Stream], Any]]] = {
    "boolean": ("BooleanWrapper", lambda stream: stream.take(1) != b"\x00"),
    "int": ("IntWrapper", _Stream.zigzag),
    "long": ("LongWrapper", _Stream.long),
    "float": ("FloatWrapper", lambda stream: struct.unpack(">f", stream.take(4))[0]),
    "double": ("DoubleWrapper", lambda stream: struct.unpack(">d", stream.take(8))[0]),
    "String": ("StringWrapper", _object(_Stream.text)),
    _UTF8: ("StringWrapper", _object(_utf8)),
    **dict.fromkeys(_NAMED_UTF8, ("StringWrapper", _object(_utf8_of_fields))),
    "java.math.BigDecimal": ("BigDecimal", _object(_decimal)),
    "java.time.LocalDate": ("LocalDate", _object(_date)),
}
"""Kinds of ordering values by class: the name that blocks of version 3 have for the kind, and how one is read."""
