"""Change data files: what a merge did to the rows of a base file, stored next to it (``HoodieCDCLogger``, ``HoodieCDCUtils``).

A table with ``hoodie.table.cdc.enabled`` gets one file for each rewritten base file; new file groups and logs need none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.format.config.declared.write_options import FileOptions
from hudi_engine.format.config.enums import CdcLogging
from hudi_engine.format.filegroup.log_file import log_file_name
from hudi_engine.format.logformat.blocks import data_avro
from hudi_engine.format.logformat.change_records import (
    AFTER,
    BEFORE,
    KEY,
    OPERATION,
    TIME,
    Change,
    record_schema,
)
from hudi_engine.format.logformat.format import BlockType, HeaderKey
from hudi_engine.format.logformat.writer import encode_block
from hudi_engine.format.schema.avro import avro_to_arrow, without_meta_fields
from hudi_engine.format.schema.casting import cast_table
from hudi_engine.format.schema.meta_fields import RECORD_KEY
from hudi_engine.table.handles.write_task import WriteTask


@dataclass
class ChangeImages:
    """What happened to the rows of one file, collected while it is written; ``table`` is its Avro record without meta fields."""

    logging: CdcLogging
    instant: str
    table: Mapping[str, Any]
    _parts: list[pa.Table] = field(default_factory=list)

    @classmethod
    def of(cls, task: WriteTask) -> ChangeImages | None:
        """Return an empty collection, None for a table that keeps no change data."""
        context = task.context
        if not context.config.cdc_enabled or context.storage.is_planned:
            return None
        return cls(context.config.cdc_logging, context.instant, without_meta_fields(context.avro_schema))

    def write(self, task: WriteTask, partition: str, file_id: str) -> dict[str, int]:
        """Write the collected changes into a file next to the base file; returns its path and bytes, as the write stat has them."""
        context = task.context
        name = log_file_name(file_id, context.instant, 1, task.write_token) + ".cdc"
        path = f"{partition}/{name}" if partition else name
        # the file is this instant's alone, so a rollback deletes it and voids no blocks
        task.announce(partition, name, "CREATE")
        limit = context.options[FileOptions.LOG_BLOCK_SIZE]
        with context.storage.open_output(path, before_publish=task.publish_guard()) as sink:
            for block in self._blocks(limit):
                sink.write(block)
            size = sink.tell()
        return {path: size}

    def _blocks(self, limit: int) -> Iterator[bytes]:
        schema = record_schema(self.logging, self.table)
        header = [
            (HeaderKey.INSTANT_TIME, self.instant),
            (HeaderKey.SCHEMA, json.dumps(schema, separators=(",", ":"))),
        ]
        for content in data_avro.encode(pa.concat_tables(self._parts), schema, limit):
            yield encode_block(BlockType.CDC_DATA, header, content)

    def collect(self, change: str, before: pa.Table | None, after: pa.Table | None) -> None:
        """Note rows that are inserted, updated or deleted."""
        rows = before if before is not None else after
        assert rows is not None, "a change has a row before or after"
        count = rows.num_rows
        columns = {
            OPERATION: pa.repeat(pa.scalar(Change[change.upper()].value), count),
            TIME: pa.repeat(pa.scalar(self.instant), count),
            KEY: pc.cast(rows.column(RECORD_KEY), pa.string()),
            BEFORE: self._images(before, count),
            AFTER: self._images(after, count),
        }
        kept = [each["name"] for each in record_schema(self.logging, self.table)["fields"]]
        self._parts.append(pa.table({name: columns[name] for name in kept}))

    def _images(self, rows: pa.Table | None, count: int) -> pa.Array | pa.ChunkedArray:
        schema = avro_to_arrow(self.table)
        if rows is None:
            return pa.nulls(count, pa.struct(list(schema)))
        return cast_table(rows, schema).to_struct_array()
