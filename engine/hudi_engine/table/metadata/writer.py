"""Writing the metadata table of a table of version 8 or 9: what an action changed is in it before the action completes.

Source: Hudi metadata table format, life cycle and commit protocol. All of it happens under the table's lock. A deltacommit of the
metadata table has the instant of the action; while that is pending on the table, readers leave its records out.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from hudi_engine.errors import CorruptTableError, RepeatedKeyError, TableNotFoundError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.base_file import parse_base_file
from hudi_engine.format.filegroup.log_file import parse_log_file
from hudi_engine.format.filegroup.view import list_partition_files
from hudi_engine.format.logformat.format import BlockType
from hudi_engine.format.logformat.reader import read_blocks
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
from hudi_engine.format.storage.below import StorageBelow
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.avro_file import decode_avro_file, encode_avro_file
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.format.timeline.instant import COMPLETED_ACTION, WRITE_ACTIONS, Instant
from hudi_engine.format.timeline.schemas import (
    RESTORE_METADATA,
    RESTORE_PLAN,
    ROLLBACK_METADATA,
    ROLLBACK_PLAN,
)
from hudi_engine.format.timeline.writer import TimelineWriter
from hudi_engine.table.metadata.changes import changes_of_clean, changes_of_rollback, changes_of_write
from hudi_engine.table.metadata.commit import DELTACOMMIT, write_deltacommit
from hudi_engine.table.metadata.compaction import ROLLBACK_SUFFIX, compact_if_due, kept_since, own_instant
from hudi_engine.table.metadata.index_build import INFLIGHT_PROPERTY, end_dead_builds, names_of_building
from hudi_engine.table.metadata.statistics import lost_expressions
from hudi_engine.table.metadata.written import Changes, Written

logger = logging.getLogger(__name__)

PARTITIONS_PROPERTY = "hoodie.table.metadata.partitions"
METADATA_PROPERTIES = (PARTITIONS_PROPERTY, INFLIGHT_PROPERTY, DEFINITIONS_PROPERTY)
KEPT = (
    MetadataPartition.FILES,
    MetadataPartition.COLUMN_STATS,
    MetadataPartition.PARTITION_STATS,
    MetadataPartition.BLOOM_FILTERS,
    MetadataPartition.RECORD_INDEX,
    MetadataPartition.SECONDARY_INDEX,
    MetadataPartition.EXPRESSION_INDEX,
)
"""Partitions that are kept; others that a table has are dropped by the next write."""
_TAKING_BACK = ("rollback", "restore")
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

    One that another writer is building is dropped whole.
    """
    if not has_metadata_table(storage, config):
        return config
    if names_of_building(config):
        config = end_dead_builds(storage, Timeline.load(storage, config)).config
    is_being_built = bool(names_of_building(config))
    has_files = MetadataPartition.FILES.value in config.metadata_partitions
    if (
        not config.table_version.keeps_metadata_table
        or is_being_built
        or not has_files
        or not _is_whole(storage)
    ):
        return drop_metadata_table(storage, config)
    definitions = IndexDefinitions.load(storage, config)
    names = [each for each in config.metadata_partitions if not _is_kept(each, config, definitions)]
    return drop_metadata_partitions(storage, config, definitions, names) if names else config


def _is_whole(storage: Storage) -> bool:
    """Return whether the metadata table has properties that can be read."""
    try:
        TableConfig.load(StorageBelow(storage, METADATA_FOLDER))
    except (TableNotFoundError, CorruptTableError):
        return False
    return True


def _is_kept(name: str, config: TableConfig, definitions: IndexDefinitions) -> bool:
    partition = MetadataPartition.of(name)
    needed = _NEEDED.get(partition) if partition is not None else None
    if needed is not None and needed.value not in config.metadata_partitions:
        return False
    if needed is MetadataPartition.RECORD_INDEX and definitions.partitioned_record_index:
        return False
    if partition is MetadataPartition.SECONDARY_INDEX:
        return name in definitions.secondary_columns
    if partition is MetadataPartition.EXPRESSION_INDEX:
        return name in definitions.expressions
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
    takes_back = done in _TAKING_BACK and not config.table_version.names_logs_by_write
    if done not in WRITE_ACTIONS and done != "clean" and not takes_back:
        return
    if (takes_back and not config.metadata_partitions) or not has_metadata_table(storage, config):
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
    before = table.table_timeline.table_schema_json()
    if takes_back:
        changes = changes_of_rollback(table, records, decode_avro_file(body), is_restore=done == "restore")
    elif done == "clean":
        changes = changes_of_clean(table, definitions, records, decode_avro_file(body), before)
    else:
        metadata = CommitMetadata.from_bytes(body)
        after = before if metadata.is_of_service else metadata.schema_json or before
        definitions = _with_new_columns(storage, definitions, before, after)
        schema = {"fields": []} if after is None else without_meta_fields(after)
        timeline = table.table_timeline
        lost = _lost_indexes(table, definitions, before, after)
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


def _lost_indexes(
    table: MetadataTable, definitions: IndexDefinitions, before: str | None, after: str | None
) -> list[str]:
    """Return the indexes whose column is gone after a write, or has a type that they are not kept of, or other texts."""
    columns = {name: each for name, each in definitions.secondary_columns.items() if name in table.partitions}
    if before is None or after is None:
        return []
    lost = [each for each in lost_expressions(definitions, after) if each in table.partitions]
    if not columns:
        return lost
    old, new = avro_to_arrow(before), avro_to_arrow(after)
    return lost + [
        name
        for name, each in columns.items()
        if new.get_field_index(each) < 0
        or not is_indexed_type(new.field(each).type)
        or (old.get_field_index(each) >= 0 and not has_same_texts(old.field(each).type, new.field(each).type))
    ]


def _with_new_columns(
    storage: Storage, definitions: IndexDefinitions, before: str | None, after: str | None
) -> IndexDefinitions:
    """Return the definitions with the columns that a table has got, where they are not a list that a user gave."""
    partition = MetadataPartition.COLUMN_STATS
    fields = definitions.source_fields(partition)
    if fields is None or before is None or after is None or after == before:
        return definitions
    was, now = (
        list(indexed_columns(without_meta_fields(each), None, is_v2=definitions.is_v2(partition)))
        for each in (before, after)
    )
    if list(fields) != was:
        return definitions
    if now != list(fields):
        definitions = definitions.with_index(partition, now)
        definitions.save(storage)
    return definitions


def _without(table: MetadataTable, instant: str) -> MetadataTable:
    """Take back what an earlier attempt of an action has left, and a compaction that was cut short."""
    left = [each for each in table.timeline.pending if each.action == "compaction"]
    for each in left:
        _delete_files(table, [each.requested_time])
        TimelineWriter(table.storage, table.config).delete(each.requested_time, each.action)
    earlier = [each for each in table.timeline.instants if each.requested_time == instant]
    if earlier:
        _roll_back(table, [instant], own_instant(table, ROLLBACK_SUFFIX, instant))
    return table.reopened() if left or earlier else table


def roll_back_metadata_table(
    storage: Storage, gone: Mapping[str, Collection[str]], at: str, action: str
) -> TableConfig:
    """Take the records of actions that are rolled back out of the metadata table; return the settings.

    The actions are no longer completed on the table, and still pending there. What a build or a compaction of the metadata table
    has put into base files cannot be taken out: then `set_aside` takes it off, and it is to be built again.

    Args:
        gone: Instants of the actions, with the files that they have written.
        at: Instant of the rollback, or of the restore, on the table.
        action: ``rollback`` or ``restore``.
    """
    if is_set_aside(config := TableConfig.load(storage)):
        return config
    config = drop_unsupported_partitions(storage, config)
    table = MetadataTable.open(storage, config, Timeline.load(storage, config))
    if table is None:
        return config
    if any(_is_in_base_files(table, time, paths) for time, paths in gone.items()):
        return set_aside(storage, config)
    own = table.timeline.instants
    found = [
        each.requested_time for each in own if each.requested_time in gone and each.action == DELTACOMMIT
    ]
    if not config.table_version.names_logs_by_write:
        # what completed is in logs with the records of others
        return set_aside(storage, config) if found else config
    if found or any(each.requested_time == at and not each.is_completed for each in own):
        _roll_back(table, found, at, action)
    return config


def _is_in_base_files(table: MetadataTable, instant: str, paths: Collection[str]) -> bool:
    """Return whether a build or a compaction of the metadata table was later than an action, so that base files show it.

    Args:
        paths: The files that the action has written.
    """
    slices = [each for name in table.partitions for each in table.groups(name) if each.base_file is not None]
    bases = {each.base_instant for each in slices}
    built = max((table.timeline.completion_time(each) or each for each in bases), default="")
    for each in table.timeline.instants:
        if each.requested_time == instant and each.action == DELTACOMMIT:
            return each.is_completed and each.order <= built
    if built < instant:
        return False
    folders = {path.rpartition("/")[0] for path in paths}
    listed = {each.path for files in table.table_files(folders).values() for each in files}
    return not paths or not listed.isdisjoint(paths)


def is_set_aside(config: TableConfig) -> bool:
    """Return whether the metadata table of a table is to be built again, by the rollback or restore that has taken it off."""
    return not config.metadata_partitions and MetadataPartition.FILES.value in names_of_building(config)


def set_aside(storage: Storage, config: TableConfig) -> TableConfig:
    """Take a metadata table off that is to be built again, and keep the definitions of its indexes; return the settings."""
    logger.warning(
        "%s: the metadata table is built again, as its base files hold what is rolled back", storage.base
    )
    building = {INFLIGHT_PROPERTY: ",".join(config.metadata_partitions)}
    config = config.with_properties(building, (PARTITIONS_PROPERTY,))
    config.save(storage)
    storage.delete_tree(METADATA_FOLDER)
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


def _roll_back(table: MetadataTable, instants: Sequence[str], at: str, action: str = "rollback") -> None:
    """Take deltacommits back under an instant; goes on with a rollback or restore that was cut short.

    Args:
        action: ``rollback``, which takes back one, or ``restore``.
    """
    writer = TimelineWriter(table.storage, table.config)
    known = {each.requested_time: each for each in table.timeline.instants if each.action == action}
    infos = [{"commitTime": each, "action": DELTACOMMIT} for each in instants]
    if at not in known:
        plan = {"instantsToRollback": infos, "version": 2, "savepointToRestoreTimestamp": None}
        if action == "rollback":
            plan = {"instantToRollback": infos[0], "RollbackRequests": [], "version": 1}
        schema = ROLLBACK_PLAN if action == "rollback" else RESTORE_PLAN
        writer.create_requested(at, action, encode_avro_file(schema, plan))
        writer.to_inflight(at, action)
    elif not table.storage.exists(f"{table.config.timeline_path}/{at}.{action}.inflight"):
        writer.to_inflight(at, action)
    for each in instants:
        writer.delete_completed(each, DELTACOMMIT)
    removed = _delete_files(table, instants)
    for each in instants:
        writer.delete(each, DELTACOMMIT)
    if at in known and known[at].is_completed:
        return
    outcomes = {each: _outcome(table, at, each, removed.get(each, {})) for each in instants}
    if action == "restore":
        restored = {
            "startRestoreTime": at,
            "timeTakenInMillis": 0,
            "instantsToRollback": list(instants),
            "hoodieRestoreMetadata": {each: [outcome] for each, outcome in outcomes.items()},
            "version": 1,
            "restoreInstantInfo": infos,
        }
        writer.complete(at, action, encode_avro_file(RESTORE_METADATA, restored))
    else:
        (outcome,) = outcomes.values() or [_outcome(table, at, None, {})]
        writer.complete(at, action, encode_avro_file(ROLLBACK_METADATA, outcome))


def _outcome(
    table: MetadataTable, at: str, instant: str | None, removed: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Return the metadata of the rollback of one deltacommit; None for one of which nothing was left."""
    times = [] if instant is None else [instant]
    return {
        "startRollbackTime": at,
        "timeTakenInMillis": 0,
        "totalFilesDeleted": sum(map(len, removed.values())),
        "commitsRollback": times,
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
        "instantsRollback": [{"commitTime": each, "action": DELTACOMMIT} for each in times],
    }


def _delete_files(table: MetadataTable, instants: Collection[str]) -> dict[str, dict[str, list[str]]]:
    """Delete the files that instants of the metadata table have written; return their paths by instant and partition."""
    removed: dict[str, dict[str, list[str]]] = {}
    by_name = table.config.table_version.names_logs_by_write
    for partition in table.partitions:
        for status in list_partition_files(table.storage, partition):
            log = parse_log_file(status.path, partition)
            found = parse_base_file(status.path, partition) or log
            if found is None:
                continue
            written_at = (
                found.instant if by_name or log is None else _only_instant(table.storage, status.path)
            )
            if written_at in instants:
                table.storage.remove(status.path)
                removed.setdefault(written_at, {}).setdefault(partition, []).append(status.path)
    return removed


def _only_instant(storage: Storage, path: str) -> str:
    """Return the instant whose blocks a log has, "" for one with blocks of several."""
    instants = {
        each.instant_time for each in read_blocks(storage.read(path)) if each.kind is not BlockType.CORRUPT
    }
    return instants.pop() if len(instants) == 1 else ""
