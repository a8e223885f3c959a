"""Compaction of the metadata table: the logs of every file group are merged into base files.

Source: Hudi metadata table format, compaction. It runs before a deltacommit once there are ten since the last one. Files of the
slices before the last two compactions are deleted with it.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from hudi_engine.format.config.enums import WriteOperation
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.metadata.table import MetadataTable
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.avro_file import encode_avro_file
from hudi_engine.format.timeline.clock import InstantClock
from hudi_engine.format.timeline.schemas import COMPACTION_PLAN
from hudi_engine.format.timeline.writer import TimelineWriter
from hudi_engine.table.metadata.commit import DELTACOMMIT, commit_metadata, write_base_file

logger = logging.getLogger(__name__)

MOST_DELTACOMMITS = 10
"""Hudi's default of ``hoodie.metadata.compact.max.delta.commits``."""


def compact_if_due(table: MetadataTable, schema: str) -> MetadataTable:
    """Compact a metadata table with ten deltacommits since the last compaction; return it as it is then.

    It waits while a deltacommit is there whose action on the table is pending: base files would make its records valid.
    """
    newest = last_compaction(table.timeline)
    deltas = [
        each for each in table.timeline.completed_writes if each.action == DELTACOMMIT and each.order > newest
    ]
    pending = {each.requested_time for each in table.table_timeline.pending}
    unsafe = any(each.requested_time in pending for each in deltas)
    if len(deltas) < MOST_DELTACOMMITS or unsafe or table.timeline.pending:
        return table
    compact(table, schema)
    return table.reopened()


def last_compaction(timeline: Timeline) -> str:
    """Return the instant of the newest compaction of a metadata table, "" where there was none."""
    return max((each.requested_time for each in timeline.completed if each.action == "commit"), default="")


def compact(table: MetadataTable, schema: str) -> None:
    """Write the base file of every file group."""
    instant = InstantClock().next(table.timeline.latest_time, table.timeline.zone)
    slices = {name: table.groups(name) for name in table.partitions}
    writer = TimelineWriter(table.storage, table.config)
    operations = [_operation(name, each) for name, groups in slices.items() for each in groups]
    plan = {"operations": operations, "extraMetadata": None, "version": 2, "preserveHoodieMetadata": True}
    writer.create_requested(instant, "compaction", encode_avro_file(COMPACTION_PLAN, plan))
    writer.to_inflight(instant, "compaction")
    stats = []
    for name, groups in slices.items():
        for each in groups:
            keys, values = table.encoded(name, each, schema)
            stat = write_base_file(table, name, each.file_id, instant, keys, values, schema)
            merged = replace(
                stat,
                prev_commit=each.base_instant or "null",
                total_log_files_compacted=len(each.log_files),
                total_log_size_compacted=sum(log.size for log in each.log_files),
            )
            stats.append((name, merged))
    metadata = commit_metadata(stats, schema, WriteOperation.COMPACT, compacted=True)
    writer.complete(instant, "compaction", metadata.to_bytes(table.config.table_version))
    logger.info("compacted %d file groups of the metadata table %s", len(stats), table.storage.base)


def _operation(partition: str, file_slice: FileSlice) -> dict[str, object]:
    base = file_slice.base_file
    return {
        "baseInstantTime": file_slice.base_instant or None,
        "deltaFilePaths": [log.name for log in file_slice.log_files],
        "dataFilePath": None if base is None else base.name,
        "fileId": file_slice.file_id,
        "partitionPath": partition,
        "metrics": {"TOTAL_LOG_FILES": float(len(file_slice.log_files))},
        "bootstrapFilePath": None,
    }
