"""Writing the metadata table of a table of version 8 or 9: what an action changed is in it before the action completes.

Source: Hudi metadata table format, life cycle and commit protocol. All of it happens under the table's lock. A deltacommit of the
metadata table has the instant of the action; while that is pending on the table, readers leave its records out.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import takewhile
from typing import Any

from hudi_engine.errors import RepeatedKeyError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.base_file import parse_base_file
from hudi_engine.format.filegroup.log_file import parse_log_file
from hudi_engine.format.filegroup.view import list_partition_files
from hudi_engine.format.metadata.definitions import (
    DEFINITIONS_PATH,
    DEFINITIONS_PROPERTY,
    IndexDefinitions,
)
from hudi_engine.format.metadata.records import MetadataPartition
from hudi_engine.format.metadata.secondary_index import has_same_texts, is_indexed_type
from hudi_engine.format.metadata.statistics import indexed_columns
from hudi_engine.format.metadata.table import METADATA_FOLDER, MetadataTable
from hudi_engine.format.schema.avro import avro_to_arrow, without_meta_fields
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.avro_file import decode_avro_file, encode_avro_file
from hudi_engine.format.timeline.clock import InstantClock
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.format.timeline.instant import COMPLETED_ACTION, WRITE_ACTIONS, Instant
from hudi_engine.format.timeline.schemas import ROLLBACK_METADATA, ROLLBACK_PLAN
from hudi_engine.format.timeline.writer import TimelineWriter
from hudi_engine.table.metadata.changes import Changes, Written, changes_of_clean, changes_of_write
from hudi_engine.table.metadata.commit import DELTACOMMIT, write_deltacommit
from hudi_engine.table.metadata.compaction import compact_if_due, kept_since, last_compaction

logger = logging.getLogger(__name__)

PARTITIONS_PROPERTY = "hoodie.table.metadata.partitions"
INFLIGHT_PROPERTY = "hoodie.table.metadata.partitions.inflight"
METADATA_PROPERTIES = (PARTITIONS_PROPERTY, INFLIGHT_PROPERTY, DEFINITIONS_PROPERTY)
KEPT = (
    MetadataPartition.FILES,
    MetadataPartition.COLUMN_STATS,
    MetadataPartition.PARTITION_STATS,
    MetadataPartition.BLOOM_FILTERS,
    MetadataPartition.RECORD_INDEX,
    MetadataPartition.SECONDARY_INDEX,
)
"""Partitions that are kept; others that a table has are dropped by the next write."""
_NEEDED = {
    MetadataPartition.PARTITION_STATS: MetadataPartition.COLUMN_STATS,
    MetadataPartition.SECONDARY_INDEX: MetadataPartition.RECORD_INDEX,
}
"""Partitions that go with another one."""


def has_metadata_table(storage: Storage, config: TableConfig) -> bool:
    """Return whether there is a metadata table, or what is left of one whose removal was cut short."""
    return any(key in config.properties for key in METADATA_PROPERTIES) or storage.exists(METADATA_FOLDER)


def drop_metadata_table(storage: Storage, config: TableConfig) -> TableConfig:
    """Switch a metadata table off and delete it, as a Hudi writer with ``hoodie.metadata.enable=false`` does.

    The properties go first: from then on readers list files, whatever is left of the folder. The caller holds the
    table's lock.
    """
    if not has_metadata_table(storage, config):
        return config
    config.check_writable()
    if any(key in config.properties for key in METADATA_PROPERTIES):
        logger.warning(
            "%s: dropping the metadata table (%s)",
            storage.base,
            ", ".join(config.metadata_partitions) or "empty",
        )
        config = config.with_properties(removals=METADATA_PROPERTIES)
        config.save(storage)
    storage.delete_tree(METADATA_FOLDER)
    storage.delete_tree(DEFINITIONS_PATH.rpartition("/")[0])
    return config


def drop_unsupported_partitions(storage: Storage, config: TableConfig) -> TableConfig:
    """Drop the partitions of a metadata table that this engine does not keep up to date, or all of it; return the settings.

    Of tables of version 6 it is dropped whole, and so is one that another writer is building.
    """
    if not has_metadata_table(storage, config):
        return config
    is_whole = storage.exists(f"{METADATA_FOLDER}/.hoodie/hoodie.properties")
    is_being_built = bool(config.properties.get(INFLIGHT_PROPERTY, "").strip())
    has_files = MetadataPartition.FILES.value in config.metadata_partitions
    if not config.table_version.keeps_metadata_table or is_being_built or not has_files or not is_whole:
        return drop_metadata_table(storage, config)
    definitions = IndexDefinitions.load(storage, config)
    names = [each for each in config.metadata_partitions if not _is_kept(each, config, definitions)]
    return drop_metadata_partitions(storage, config, definitions, names) if names else config


def _is_kept(name: str, config: TableConfig, definitions: IndexDefinitions) -> bool:
    partition = MetadataPartition.of(name)
    needed = _NEEDED.get(partition) if partition is not None else None
    if needed is not None and needed.value not in config.metadata_partitions:
        return False
    if MetadataPartition.RECORD_INDEX in (partition, needed) and definitions.partitioned_record_index:
        return False
    if partition is MetadataPartition.SECONDARY_INDEX:
        return name in definitions.secondary_columns
    return partition in KEPT


def with_dependent(config: TableConfig, partition: MetadataPartition) -> list[str]:
    """Return a partition, where a metadata table has it, and those that cannot be kept or used without it."""
    kinds = [partition, *(each for each, needed in _NEEDED.items() if needed is partition)]
    return [each for each in config.metadata_partitions if MetadataPartition.of(each) in kinds]


def drop_metadata_partitions(
    storage: Storage, config: TableConfig, definitions: IndexDefinitions, names: Collection[str]
) -> TableConfig:
    """Drop some partitions of a metadata table: from the properties first, then their files; return the settings."""
    config.check_writable()
    logger.warning("%s: dropping %s of the metadata table", storage.base, ", ".join(names))
    kept = [each for each in config.metadata_partitions if each not in names]
    config = config.with_properties({PARTITIONS_PROPERTY: ",".join(kept)})
    config.save(storage)
    if any(each in definitions.entries for each in names):
        definitions.without(names).save(storage)
    for each in names:
        storage.delete_tree(f"{METADATA_FOLDER}/{storage.checked(each)}")
    return config


def write_table_metadata(
    storage: Storage, config: TableConfig, instant: str, action: str, body: bytes
) -> None:
    """Write what an action changed to the metadata table, right before the action completes; nothing where there is none.

    Args:
        action: Action of the pending instant, such as ``compaction``.
        body: Content of its completed file.
    """
    done = COMPLETED_ACTION.get(action, action)
    if (done not in WRITE_ACTIONS and done != "clean") or not has_metadata_table(storage, config):
        return
    config = drop_unsupported_partitions(storage, TableConfig.load(storage))
    table = MetadataTable.open(storage, config, Timeline.load(storage, config))
    if table is None:
        return
    table = _without(table, instant)
    records = table.schema()
    table = compact_if_due(table, records)
    definitions = IndexDefinitions.load(storage, config)
    changes: Mapping[str, Changes]
    if done == "clean":
        before = table.table_timeline.table_schema_json()
        changes = changes_of_clean(table, definitions, records, decode_avro_file(body), before)
    else:
        metadata = CommitMetadata.from_bytes(body)
        definitions, schema = _with_schema(storage, definitions, table.table_timeline, metadata)
        timeline = table.table_timeline
        lost = _lost_indexes(table, definitions, metadata)
        if lost:
            config = drop_metadata_partitions(storage, config, definitions, lost)
            table, definitions = table.without(lost), definitions.without(lost)
        written = Written(storage, config, timeline, table, definitions, instant, done, metadata, schema)
        try:
            changes = changes_of_write(written, records)
        except RepeatedKeyError as error:
            logger.warning("%s: the record index is dropped: %s", storage.base, error)
            lost = with_dependent(config, MetadataPartition.RECORD_INDEX)
            drop_metadata_partitions(storage, config, definitions, lost)
            table = table.without(lost)
            changes = changes_of_write(replace(written, table=table), records)
    write_deltacommit(table, instant, changes, records)


def _with_schema(
    storage: Storage, definitions: IndexDefinitions, timeline: Timeline, metadata: CommitMetadata
) -> tuple[IndexDefinitions, Mapping[str, Any]]:
    """Return the index definitions and the Avro schema of the table as of a write."""
    before = timeline.table_schema_json()
    after = before if metadata.is_of_service else metadata.schema_json or before
    if after is None:
        return definitions, {"fields": []}
    schema = without_meta_fields(after)
    if before is not None and after != before:
        definitions = _with_new_columns(storage, definitions, without_meta_fields(before), schema)
    return definitions, schema


def _lost_indexes(table: MetadataTable, definitions: IndexDefinitions, metadata: CommitMetadata) -> list[str]:
    """Return the secondary indexes whose column is gone after a write, or has other texts than before, or none that is known."""
    before = table.table_timeline.table_schema_json()
    after = before if metadata.is_of_service else metadata.schema_json or before
    columns = {name: each for name, each in definitions.secondary_columns.items() if name in table.partitions}
    if not columns or before is None or after is None:
        return []
    old, new = avro_to_arrow(before), avro_to_arrow(after)
    return [
        name
        for name, each in columns.items()
        if new.get_field_index(each) < 0
        or not is_indexed_type(new.field(each).type)
        or (old.get_field_index(each) >= 0 and not has_same_texts(old.field(each).type, new.field(each).type))
    ]


def _with_new_columns(
    storage: Storage, definitions: IndexDefinitions, before: Mapping[str, Any], after: Mapping[str, Any]
) -> IndexDefinitions:
    """Return the definitions with the columns that a table has got, where they are not a list that a user gave."""
    partition = MetadataPartition.COLUMN_STATS
    fields = definitions.source_fields(partition)
    is_v2 = definitions.is_v2(partition)
    if fields is None or list(fields) != list(indexed_columns(before, None, is_v2=is_v2)):
        return definitions
    now = list(indexed_columns(after, None, is_v2=is_v2))
    if now != list(fields):
        definitions = definitions.with_index(partition, now)
        definitions.save(storage)
    return definitions


def _without(table: MetadataTable, instant: str) -> MetadataTable:
    """Take back what an earlier attempt of an action has left, and a compaction that was cut short."""
    left = [each for each in table.timeline.pending if each.action == "compaction"]
    for each in left:
        _delete_files(table, each.requested_time)
        TimelineWriter(table.storage, table.config).delete(each.requested_time, each.action)
    earlier = [each for each in table.timeline.instants if each.requested_time == instant]
    if earlier:
        rollback = InstantClock().next(table.timeline.latest_time, table.timeline.zone)
        _roll_back(table, instant, rollback)
    return table.reopened() if left or earlier else table


def roll_back_metadata_table(
    storage: Storage, config: TableConfig, instants: Collection[str], rollback: str
) -> TableConfig:
    """Take the records of actions that are rolled back out of the metadata table; return the settings.

    The actions are no longer completed on the table, and still pending there. One that a compaction of the metadata table has
    put into base files cannot be taken out, so the metadata table is dropped.

    Args:
        rollback: Instant of the rollback on the table.
    """
    config = drop_unsupported_partitions(storage, TableConfig.load(storage))
    table = MetadataTable.open(storage, config, Timeline.load(storage, config))
    if table is None:
        return config
    compacted = last_compaction(table.timeline)
    for each in table.timeline.instants:
        if each.requested_time not in instants or each.action != DELTACOMMIT:
            continue
        if each.is_completed and each.order <= compacted:
            return drop_metadata_table(storage, config)
        _roll_back(table, each.requested_time, rollback)
    return config


def archivable_instants(table: MetadataTable) -> list[Instant]:
    """Return the oldest instants of a metadata table that may be archived.

    They are from before its oldest base files, and no longer on the active timeline of the table.
    """
    begun = [each.requested_time for each in table.timeline.pending]
    bound = min([kept_since(table.timeline), *begun])
    active = {each.requested_time for each in table.table_timeline.instants}
    return list(
        takewhile(
            lambda each: each.requested_time < bound and each.requested_time not in active,
            table.timeline.completed,
        )
    )


def _roll_back(table: MetadataTable, instant: str, rollback: str) -> None:
    """Roll a deltacommit back under an instant; goes on with a rollback that was cut short."""
    writer = TimelineWriter(table.storage, table.config)
    known = {each.requested_time: each for each in table.timeline.instants if each.action == "rollback"}
    info = {"commitTime": instant, "action": DELTACOMMIT}
    if rollback not in known:
        plan = {"instantToRollback": info, "RollbackRequests": [], "version": 1}
        writer.create_requested(rollback, "rollback", encode_avro_file(ROLLBACK_PLAN, plan))
        writer.to_inflight(rollback, "rollback")
    elif not table.storage.exists(f"{table.config.timeline_path}/{rollback}.rollback.inflight"):
        writer.to_inflight(rollback, "rollback")
    writer.delete_completed(instant, DELTACOMMIT)
    removed = _delete_files(table, instant)
    writer.delete(instant, DELTACOMMIT)
    if rollback in known and known[rollback].is_completed:
        return
    metadata = {
        "startRollbackTime": rollback,
        "timeTakenInMillis": 0,
        "totalFilesDeleted": sum(map(len, removed.values())),
        "commitsRollback": [instant],
        "partitionMetadata": {
            partition: {
                "partitionPath": partition,
                "successDeleteFiles": [table.storage.uri(path) for path in paths],
                "failedDeleteFiles": [],
                "rollbackLogFiles": {},
                "logFilesFromFailedCommit": {},
            }
            for partition, paths in removed.items()
        },
        "version": 1,
        "instantsRollback": [info],
    }
    writer.complete(rollback, "rollback", encode_avro_file(ROLLBACK_METADATA, metadata))


def _delete_files(table: MetadataTable, instant: str) -> dict[str, list[str]]:
    """Delete the files that an instant of the metadata table has written; return their paths by partition."""
    removed: dict[str, list[str]] = {}
    for partition in table.partitions:
        for status in list_partition_files(table.storage, partition):
            found = parse_base_file(status.path, partition) or parse_log_file(status.path, partition)
            if found is not None and found.instant == instant:
                table.storage.remove(status.path)
                removed.setdefault(partition, []).append(status.path)
    return removed
