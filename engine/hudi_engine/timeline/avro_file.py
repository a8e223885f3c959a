"""Avro object container files with exactly one record: how the timeline stores plans and metadata."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import fastavro

from hudi_engine.errors import CorruptTableError

MAGIC = b"Obj\x01"


def encode_avro_file(schema: Mapping[str, Any], record: Mapping[str, Any]) -> bytes:
    """Encode one record as an Avro container file with null codec.

    Args:
        schema: Avro schema as parsed by fastavro.
        record: The record; absent fields take their default.
    """
    sink = io.BytesIO()
    fastavro.writer(sink, dict(schema), [dict(record)], codec="null")
    return sink.getvalue()


def decode_avro_file(data: bytes, source: str = "an Avro file") -> dict[str, Any]:
    """Decode the single record of an Avro container file with the schema it carries.

    Args:
        data: Whole file.
        source: Where the bytes come from, for the message.

    Raises:
        CorruptTableError: when the file is truncated, not Avro, or does not hold exactly one record.
    """
    try:
        records = list(fastavro.reader(io.BytesIO(data)))
    except (ValueError, EOFError, IndexError, KeyError, TypeError, OverflowError, MemoryError) as error:
        raise CorruptTableError(
            f"{source} is no readable Avro file of {len(data)} bytes: {error}. It was cut short or "
            "overwritten"
        ) from error
    if len(records) != 1 or not isinstance(records[0], dict):
        raise CorruptTableError(f"{source} holds {len(records)} records; a timeline file holds exactly one")
    return records[0]
