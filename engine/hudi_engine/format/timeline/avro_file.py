"""Avro object container files with exactly one record: how the timeline stores plans and metadata.

The container is read here by hand and not by a library, so that a file cannot make more of itself than it is: one
record and no more, no compression but deflate, of bounded growth, and no schema that makes work out of nothing
(Avro specification, object container files).
"""

from __future__ import annotations

import io
import json
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import fastavro

from hudi_engine.errors import CorruptTableError, HudiError
from hudi_engine.format.schema.avro import decodable

if TYPE_CHECKING:
    from typing_extensions import Self

MAGIC = b"Obj\x01"

_SYNC_BYTES = 16
_INFLATED_AT_LEAST = 4 << 20
_INFLATED_TIMES = 32
"""A deflated record may grow to so many bytes, or to so many times its size. Hudi does not compress these files."""


def encode_avro_file(schema: Mapping[str, Any], record: Mapping[str, Any]) -> bytes:
    """Encode one record as an Avro container file with null codec."""
    sink = io.BytesIO()
    fastavro.writer(sink, dict(schema), [dict(record)], codec="null")
    return sink.getvalue()


def decode_avro_file(data: bytes, source: str = "an Avro file") -> dict[str, Any]:
    """Decode the single record of an Avro container file with the schema it carries."""
    try:
        return _decode(data, source)
    except (ValueError, LookupError, TypeError, ArithmeticError, AttributeError) as error:
        raise _unreadable(data, source, str(error)) from error
    except (EOFError, zlib.error, MemoryError, RecursionError) as error:
        raise _unreadable(data, source, str(error) or type(error).__name__) from error


@contextmanager
def shape_errors(source: str) -> Iterator[None]:
    """Turn what goes wrong with the fields of a decoded record into CorruptTableError, naming the file."""
    try:
        yield
    except HudiError:
        raise
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise CorruptTableError(
            f"{source} does not have the fields of its kind: {error!r}. Nothing was changed; look at the file, and "
            "remove it from the timeline if it is not Hudi's"
        ) from error


def _unreadable(data: bytes, source: str, reason: str) -> CorruptTableError:
    return CorruptTableError(
        f"{source} is no readable Avro file of {len(data)} bytes: {reason}. It was cut short or overwritten"
    )


def _decode(data: bytes, name: str) -> dict[str, Any]:
    """Read an Avro file that holds exactly one record; sync markers and lengths are checked, so a torn file is no plan."""
    source = _Source(data)
    if source.take(len(MAGIC)) != MAGIC:
        raise ValueError("it does not begin as an Avro file does")
    header = source.header()
    schema = decodable(json.loads(header["avro.schema"]))
    sync = source.take(_SYNC_BYTES)
    records = 0 if source.is_at_end else source.long()
    if records == 1:
        body = _inflated(source.take(source.long()), header.get("avro.codec", b"null"))
        if source.take(_SYNC_BYTES) != sync:
            raise ValueError("its sync markers differ")
    if records != 1 or not source.is_at_end:
        held = records if records != 1 else "more than 1"
        raise CorruptTableError(f"{name} holds {held} records; a timeline file holds exactly one")
    content = io.BytesIO(body)
    record = fastavro.schemaless_reader(content, schema, None)
    if not isinstance(record, dict) or content.tell() != len(body):
        raise ValueError("its content does not fit its schema")
    return record


def _inflated(body: bytes, codec: bytes) -> bytes:
    if codec == b"null":
        return body
    if codec != b"deflate":
        raise ValueError(f"it is compressed by {codec[:20]!r}; null and deflate are read")
    limit = max(_INFLATED_AT_LEAST, _INFLATED_TIMES * len(body))
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    found = inflater.decompress(body, limit)
    if inflater.unconsumed_tail or not inflater.eof:
        raise ValueError(f"its {len(body)} compressed bytes are cut short or make more than {limit}")
    return found


class _Source:
    """Bytes read from front to back, never beyond their end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    @property
    def is_at_end(self) -> bool:
        return self._position == len(self._data)

    def take(self, count: int) -> bytes:
        if not 0 <= count <= len(self._data) - self._position:
            raise EOFError(f"{count} bytes are wanted and {len(self._data) - self._position} are left")
        self._position += count
        return self._data[self._position - count : self._position]

    def long(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << shift
            if not byte & 0x80:
                return (value >> 1) ^ -(value & 1)
        raise ValueError("a number is longer than ten bytes")

    def header(self) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        while count := self.long():
            if count < 0:
                count = -count
                self.long()
            for _ in range(count):
                key = self.take(self.long()).decode()
                found[key] = self.take(self.long())
        return found


class StoredPlan(ABC):
    """A plan that a requested file holds: what a service or a rollback is going to do."""

    @classmethod
    def from_bytes(cls, data: bytes, source: str) -> Self:
        """Decode and check a stored plan."""
        record = decode_avro_file(data, source)
        with shape_errors(source):
            return cls._from_record(record, source)

    @classmethod
    @abstractmethod
    def _from_record(cls, record: Mapping[str, Any], source: str) -> Self: ...
