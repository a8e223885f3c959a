"""Compaction of the metadata table: the logs of every file group are merged into base files.

Source: Hudi metadata table format, compaction. It runs before a deltacommit once there are ten since the last one. Files of the
slices before the last three compactions are deleted with it, by a clean.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from hudi_engine.format.config.enums import CleanPolicy, WriteOperation
from hudi_engine.format.filegroup.base_file import parse_base_file
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.log_file import LogFile, parse_log_file
from hudi_engine.format.filegroup.view import list_partition_files
from hudi_engine.format.logformat.format import LogBlock
from hudi_engine.format.metadata.table import INITIAL, MetadataTable, has_records
from hudi_engine.format.parallel import on_threads, run_in_threads
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.avro_file import encode_avro_file
from hudi_engine.format.timeline.clock import InstantClock
from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.format.timeline.schemas import CLEAN_METADATA, CLEANER_PLAN, COMPACTION_PLAN
from hudi_engine.format.timeline.writer import TimelineWriter
from hudi_engine.table.metadata.commit import DELTACOMMIT, commit_metadata, write_base_file

logger = logging.getLogger(__name__)

INSTANT_DIGITS = 17
COMPACTION_SUFFIX, CLEAN_SUFFIX, ROLLBACK_SUFFIX = "001", "002", "006"
"""What instants of the metadata table of version 6 end with, behind the one of the table's action."""
_NEVER = "9"
KEPT_VERSIONS = 3
"""Base files of a file group that stay, for readers that have listed them."""
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
    if not table.config.table_version.has_completion_times:
        latest = deltas[-1].requested_time
        # a build has a longer instant, behind which that of a compaction would not come
        if len(latest) > INSTANT_DIGITS or any(each < latest for each in pending):
            return table
    compact(table, schema)
    compacted = table.reopened()
    return compacted.reopened() if clean(compacted) else compacted


def own_instant(table: MetadataTable, suffix: str, of: str | None = None) -> str:
    """Return the instant of an action of the metadata table itself.

    Args:
        suffix: What it ends with in version 6.
        of: The instant before the suffix; the newest deltacommit's when None.
    """
    if table.config.table_version.has_completion_times:
        return InstantClock().next(table.timeline.latest_time, table.timeline.zone)
    deltas = [each.requested_time for each in table.timeline.completed_writes if each.action == DELTACOMMIT]
    return (of or max(deltas)[:INSTANT_DIGITS]) + suffix


def kept_since(timeline: Timeline) -> str:
    """Return the compaction whose base files are the oldest that stay, "" while there are not more of them."""
    done = sorted(each.requested_time for each in timeline.completed if each.action == "commit")
    return done[-KEPT_VERSIONS] if len(done) > KEPT_VERSIONS else ""


def last_compaction(timeline: Timeline) -> str:
    """Return the instant of the newest compaction of a metadata table, "" where there was none."""
    return max((each.requested_time for each in timeline.completed if each.action == "commit"), default="")


def compact(table: MetadataTable, schema: str) -> None:
    """Write the base file of every file group whose logs have records."""
    instant = own_instant(table, COMPACTION_SUFFIX)
    groups = [(name, each, table.blocks(each)) for name in table.partitions for each in table.groups(name)]
    changed = [each for each in groups if any(map(has_records, each[2]))]

    def merge(group: tuple[str, FileSlice, list[LogBlock]]) -> tuple[str, WriteStat]:
        name, each, blocks = group
        content, records = table.compacted(name, each, blocks, schema)
        stat = replace(
            write_base_file(table, name, each.file_id, instant, content, records),
            prev_commit=each.base_instant or "null",
            total_log_files_compacted=len(each.log_files),
            total_log_size_compacted=sum(log.size for log in each.log_files),
        )
        return name, stat

    writer = TimelineWriter(table.storage, table.config)
    operations = [_operation(name, each) for name, each, _ in changed]
    plan = {"operations": operations, "extraMetadata": None, "version": 2, "preserveHoodieMetadata": True}
    writer.create_requested(instant, "compaction", encode_avro_file(COMPACTION_PLAN, plan))
    writer.to_inflight(instant, "compaction")
    stats = run_in_threads(merge, changed)
    metadata = commit_metadata(stats, schema, WriteOperation.COMPACT, compacted=True)
    writer.complete(instant, "compaction", metadata.to_bytes(table.config.table_version))
    logger.info("compacted %d file groups of the metadata table %s", len(stats), table.storage.base)


def clean(table: MetadataTable) -> bool:
    """Delete the files of slices that are older than the last compactions; return whether there were any."""
    oldest = kept_since(table.timeline)
    if not oldest:
        return False
    going = {name: _older_files(table, name) for name in table.partitions}
    if not any(going.values()):
        return False
    instant = own_instant(table, CLEAN_SUFFIX)
    writer = TimelineWriter(table.storage, table.config)
    earliest = {"timestamp": oldest, "action": "commit", "state": "COMPLETED"}
    files = {
        name: [{"filePath": table.storage.uri(path), "isBootstrapBaseFile": False} for path in paths]
        for name, paths in going.items()
    }
    plan = {
        "earliestInstantToRetain": earliest,
        "lastCompletedCommitTimestamp": oldest,
        "policy": CleanPolicy.KEEP_LATEST_FILE_VERSIONS.value,
        "filesToBeDeletedPerPartition": {},
        "version": 2,
        "filePathsToBeDeletedPerPartition": files,
        "partitionsToBeDeleted": [],
    }
    body = encode_avro_file(CLEANER_PLAN, plan)
    writer.create_requested(instant, "clean", body)
    writer.to_inflight(instant, "clean", body)
    on_threads(table.storage.remove, [path for paths in going.values() for path in paths])
    metadata = {
        "startCleanTime": instant,
        "timeTakenInMillis": 0,
        "totalFilesDeleted": sum(map(len, going.values())),
        "earliestCommitToRetain": oldest,
        "lastCompletedCommitTimestamp": oldest,
        "partitionMetadata": {
            name: {
                "partitionPath": name,
                "policy": CleanPolicy.KEEP_LATEST_FILE_VERSIONS.value,
                "deletePathPatterns": [],
                "successDeleteFiles": [path.rpartition("/")[2] for path in paths],
                "failedDeleteFiles": [],
                "isPartitionDeleted": False,
            }
            for name, paths in going.items()
        },
        "version": 2,
        "bootstrapPartitionMetadata": {},
        "extraMetadata": {},
    }
    writer.complete(instant, "clean", encode_avro_file(CLEAN_METADATA, metadata))
    return True


def _older_files(table: MetadataTable, partition: str) -> list[str]:
    """Return the files of a partition that are in newer base files of their groups, but for the last ones."""
    committed = table.timeline.committed()
    bases: dict[str, dict[str, str]] = {}
    logs: list[LogFile] = []
    for status in list_partition_files(table.storage, partition):
        base = parse_base_file(status.path, partition)
        log = parse_log_file(status.path, partition)
        if base is not None:
            bases.setdefault(base.file_id, {})[base.path] = base.instant
        elif log is not None:
            logs.append(log)
    oldest: dict[str, str] = {}
    for file_id, found in bases.items():
        done = sorted({each for each in found.values() if each.startswith(INITIAL) or committed(each)})
        oldest[file_id] = done[-KEPT_VERSIONS] if len(done) > KEPT_VERSIONS else ""
    older = [path for file_id, found in bases.items() for path, at in found.items() if at < oldest[file_id]]
    return older + [each.path for each in logs if _ended(table, each) < oldest.get(each.file_id, "")]


def _ended(table: MetadataTable, log: LogFile) -> str:
    """Return the instant after which base files have what is in a log."""
    if not table.config.table_version.names_logs_by_write:
        return log.instant
    return max(table.timeline.completion_time(log.instant) or _NEVER, log.instant)


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
