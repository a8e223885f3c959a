"""The records of change data blocks, in the three ways that a table may keep them (table versions 6, 8 and 9).

Source: Hudi table format, change data capture: ``OP_KEY_ONLY`` keeps operation and key, ``DATA_BEFORE`` the row before
too, ``DATA_BEFORE_AFTER`` the rows before and after and the instant in place of the key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.config.enums import CdcLogging, Name
from hudi_engine.format.logformat.blocks import data_avro
from hudi_engine.format.logformat.format import BlockType
from hudi_engine.format.logformat.reader import read_blocks

OPERATION, KEY, TIME, BEFORE, AFTER = "op", "record_key", "ts_ms", "before", "after"


class Change(Name):
    """``op`` of a change record."""

    INSERT = "i"
    UPDATE = "u"
    DELETE = "d"


def record_schema(logging: CdcLogging, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the Avro schema of change records."""
    if logging is CdcLogging.OP_KEY_ONLY:
        fields = [{"name": name, "type": ["string", "null"]} for name in (OPERATION, KEY)]
        return {"type": "record", "name": "Record", "fields": fields}
    fields = [_field(OPERATION, "string")]
    if logging is CdcLogging.DATA_BEFORE:
        fields += [_field(KEY, "string"), _field(BEFORE, dict(table))]
    else:
        # a type is spelled out once and named after that
        fields += [_field(TIME, "string"), _field(BEFORE, dict(table)), _field(AFTER, table["name"])]
    found = {"type": "record", "name": "CDC", "fields": fields}
    space = table.get("namespace")
    return found if space is None else {**found, "namespace": space}


def _field(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "doc": "", "default": None}


def read_change_records(data: bytes, source: str) -> Iterator[pa.Table]:
    """Yield the records of a change data file, block by block."""
    for block in read_blocks(data):
        if block.kind is BlockType.CORRUPT:
            raise CorruptTableError(
                f"change data file {source} is damaged at byte {block.offset}: there is no whole block. Restore the file from a "
                "copy, or read changes from a later commit on"
            )
        if block.kind is not BlockType.CDC_DATA:
            continue
        if block.schema is None:
            raise CorruptTableError(f"the change data block at byte {block.offset} of {source} has no schema")
        rows = data_avro.decode(block.content, block.schema)
        if OPERATION not in rows.column_names:
            raise CorruptTableError(f"the change data of {source} has no column {OPERATION!r}")
        yield rows
