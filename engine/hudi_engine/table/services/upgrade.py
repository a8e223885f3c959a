"""Upgrade and downgrade of a table between versions 6, 8 and 9, in the steps of Apache Hudi's ``UpgradeDowngrade``.

A table keeps its data files; its timeline, its archive and its properties change. Where the layout of the timeline changes, the
new timeline is written next to the old one, then ``hoodie.properties`` is changed to it in one step, then the old one is removed.
A kill before that step leaves the table as it was, one after it the new table. Files of the other timeline that are left are
never read, and the next change of version removes them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial
from itertools import pairwise
from typing import Any

from hudi_engine.errors import ConfigError, ServiceError, WriteConflictError
from hudi_engine.format.config.declared.service_options import CompactionOptions
from hudi_engine.format.config.enums import TableType, WrittenVersion
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.properties_file import HOODIE_FOLDER
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.config.table_version import TABLE_VERSIONS
from hudi_engine.format.config.version_properties import in_version
from hudi_engine.format.parallel import RunTasks, on_threads, run_in_threads
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.telemetry.services import Done, measured
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.archive_files import (
    create_archive_file,
    encode_archive,
    list_archive_files,
    read_archive_log,
)
from hudi_engine.format.timeline.avro_file import encode_avro_file
from hudi_engine.format.timeline.clock import format_instant, parse_instant_time
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.format.timeline.history import ArchivedInstant, History
from hudi_engine.format.timeline.instant import (
    WRITE_ACTIONS,
    Instant,
    State,
    parse_instant,
    timeline_file_name,
)
from hudi_engine.format.timeline.schemas import (
    CLEAN_METADATA,
    CLEANER_PLAN,
    COMPACTION_PLAN,
    REQUESTED_REPLACE_METADATA,
    ROLLBACK_METADATA,
)
from hudi_engine.table.metadata.writer import drop_metadata_table
from hudi_engine.table.services.archive.execute import TimelineFile, archive_entry, files_of
from hudi_engine.table.services.compaction.execute import run_compaction
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.conflict import is_clustering
from hudi_engine.table.txn.publication import Publication
from hudi_engine.table.txn.recovery import recovered

logger = logging.getLogger(__name__)

_BATCH = 10
_PENDING = (".requested", ".inflight")
_UNBOUNDED = "org.apache.hudi.table.action.compact.strategy.UnBoundedCompactionStrategy"
_METADATA = {
    "clean": ("hoodieCleanMetadata", CLEAN_METADATA),
    "rollback": ("hoodieRollbackMetadata", ROLLBACK_METADATA),
}
_PLANS = {
    "hoodieCompactionPlan": COMPACTION_PLAN,
    "hoodieCleanerPlan": CLEANER_PLAN,
    "hoodieRequestedReplaceMetadata": REQUESTED_REPLACE_METADATA,
}


@dataclass(frozen=True)
class VersionChange:
    """What an upgrade or downgrade did.

    Args:
        before: Table version before.
        after: Table version now.
        compactions: Instants of the compactions that came first.
        instants: How many instants of the active timeline were moved to the other layout.
        reason: Why nothing was done; ``""`` when something was.
    """

    before: int
    after: int
    compactions: tuple[str, ...] = ()
    instants: int = 0
    reason: str = ""


def _done(result: VersionChange) -> Done | None:
    return None if result.reason else Done("upgrade", {"toVersion": result.after})


@measured(_done)
def change_version(
    storage: Storage,
    options: Options,
    publication: Publication,
    version: int,
    *,
    run_tasks: RunTasks = run_in_threads,
) -> VersionChange:
    """Upgrade or downgrade a table; the rows, and what the active timeline can tell, stay the same.

    Logs of merge-on-read tables are merged first where the layout of the timeline changes, as they are named otherwise.

    Args:
        version: 6, 8 or 9.

    Raises:
        ConfigError: Another version, or one that cannot store what the table is.
        ServiceError: A writer or a service is at work on the table.
        UnsupportedTableError: The table is not written by this engine.
    """
    legal = [int(each) for each in WrittenVersion]
    if version not in legal:
        raise ConfigError(f"table version is {version}; legal values: {', '.join(map(str, legal))}")
    state = TableState.load(storage)
    config = state.config
    config.check_writable()
    in_version(config.properties, version)
    compactions: tuple[str, ...] = ()
    if _changes_layout(config, version):
        if config.table_version.has_completion_times:
            _check_downgrade(storage, config, state.timeline)  # before a compaction, and again under the lock
        if config.table_type is TableType.MERGE_ON_READ:
            compactions = _merge_logs(storage, options, publication, run_tasks)
    with recovered(storage, options, publication, "change the table version") as (config, timeline):
        before = config.version
        _remove_leftovers(storage, config)
        if before == version:
            return VersionChange(before, version, reason=f"the table has version {version} already")
        _check_quiet(storage, config, timeline, version)
        config = drop_metadata_table(storage, config)
        changed = TableConfig.from_properties(in_version(config.properties, version)).with_properties()
        moved = _move_timeline(TableState(storage, config, timeline), changed)
        changed.save(storage)
        _remove_leftovers(storage, changed)
        publication.renew(changed)
    logger.info("%s has table version %d now, it had %d", storage.base, version, before)
    return VersionChange(before, version, compactions, moved)


def _changes_layout(config: TableConfig, version: int) -> bool:
    return TABLE_VERSIONS[version].timeline_layout != config.layout_version


def _merge_logs(
    storage: Storage, options: Options, publication: Publication, run_tasks: RunTasks
) -> tuple[str, ...]:
    """Compact until no slice has logs; return the instants."""
    everything = {
        CompactionOptions.STRATEGY.key: _UNBOUNDED,
        CompactionOptions.LOG_SIZE_THRESHOLD.key: 0,
        CompactionOptions.LOG_COUNT_THRESHOLD.key: 0,
    }
    done: list[str] = []
    while True:
        found = run_compaction(storage, options.merged(everything), run_tasks=run_tasks, publish=publication)
        if found.instant is None:
            return tuple(done)
        done.append(found.instant)


def _check_quiet(storage: Storage, config: TableConfig, timeline: Timeline, version: int) -> None:
    """Refuse while something is under way that would end by the rules of the old version."""
    busy = [
        each
        for each in timeline.pending
        if each.action != "clean" and not (each.state is State.REQUESTED and is_clustering(timeline, each))
    ]
    if busy:
        first = busy[0]
        raise ServiceError(
            f"the table at {storage.base!r} cannot get version {version} now: {first.action} {first.requested_time} is under "
            "way. Wait for its end, or roll it back, and try again"
        )
    if not _changes_layout(config, version):
        return
    if config.table_version.has_completion_times:
        _check_downgrade(storage, config, timeline)
    if config.table_type is TableType.COPY_ON_WRITE:
        return
    logs = [each for each in TableState(storage, config, timeline).view().latest_slices() if each.log_files]
    if logs:
        raise WriteConflictError(
            f"the table at {storage.base!r} cannot get version {version} now: another writer has appended to file group "
            f"{logs[0].file_id!r} after the compaction, and logs are named otherwise there. Try again"
        )


def _check_downgrade(storage: Storage, config: TableConfig, timeline: Timeline) -> None:
    """Refuse what a table without completion times cannot tell, or could not go back to."""
    orders = [each.order for each in timeline.completed_writes]
    if orders != sorted(orders):
        raise ServiceError(
            f"writes of the table at {storage.base!r} have completed in another order than they began, which version 6 cannot "
            "tell: readers of changes would miss some. Archive them first"
        )
    if config.table_type is TableType.MERGE_ON_READ and timeline.savepoints:
        raise ServiceError(
            f"the table at {storage.base!r} has savepoints, and logs of saved commits cannot be continued in version 6. Delete "
            "the savepoints first"
        )
    if storage.sets_times or config.table_type is TableType.COPY_ON_WRITE:
        return
    if any(each.log_files for each in TableState(storage, config, timeline).view().every_slice()):
        raise ServiceError(
            f"earlier file slices of the table at {storage.base!r} have logs, and Hudi 1.x would add them to the newest slice: in "
            "version 6 it goes by the times of the timeline's files, which this store does not set. Compact and clean the table "
            "first, with hoodie.clean.policy KEEP_LATEST_FILE_VERSIONS and hoodie.clean.fileversions.retained 1"
        )


def _move_timeline(state: TableState, changed: TableConfig) -> int:
    """Write the timeline and the archive in the layout of the changed table; return how many instants there are."""
    old, new = state.config, changed
    if old.layout_version == new.layout_version:
        return 0
    files = files_of(state.storage, old, state.timeline.instants)
    times = _completion_times(state, files) if new.table_version.has_completion_times else {}
    clusterings = frozenset(
        each.requested_time for each in state.timeline.pending if is_clustering(state.timeline, each)
    )
    on_threads(partial(_move_file, state.storage, new, times, clusterings), files)
    if new.table_version.keeps_history:
        rows = list(_rows_of_log_archive(state, new))
        if rows:
            History(state.storage, new.archive_folder).add(rows)
    else:
        entries = list(_entries_of_history(state))
        if entries:
            create_archive_file(state.storage, new.archive_folder, 1, encode_archive(entries, _BATCH))
    return len(state.timeline.instants)


def _completion_times(state: TableState, files: list[TimelineFile]) -> Mapping[str, str]:
    """Return when instants completed: when their files were made, but before the next write began.

    In layout 1 writes count in the order in which they began, which decides to which slice a log belongs. Files of a copied table
    are all as old as the copy, and writes may have overlapped: completion times in another order would move logs to other slices.
    """
    zone = state.timeline.zone
    made = {
        file.instant.requested_time: format_instant(
            datetime.fromtimestamp(file.modified_ms / 1000, timezone.utc), zone
        )
        for file in files
        if file.instant.is_completed
    }
    return {time: _before(following, time, made[time]) for time, following in pairwise([*sorted(made), ""])}


def _before(following: str, time: str, completed: str) -> str:
    """Return a time of completion after the instant's own time and before the next instant, ``""`` where there is none."""
    first = _later(time, 1)
    completed = max(completed, first)
    return min(completed, max(_later(following, -1), first)) if following else completed


def _later(time: str, milliseconds: int) -> str:
    """Return the digits of a time some milliseconds later."""
    return format_instant(parse_instant_time(time) + timedelta(milliseconds=milliseconds))


def _move_file(
    storage: Storage,
    new: TableConfig,
    times: Mapping[str, str],
    clusterings: frozenset[str],
    file: TimelineFile,
) -> None:
    """Write a timeline file with its new name and body.

    Args:
        times: Completion times by requested time; empty for a layout without them.
        clusterings: Requested times of the clusterings that have not completed.
    """
    instant, body = file.instant, storage.read(file.path)
    action = instant.action
    if instant.requested_time in clusterings or action == "clustering":
        action = new.table_version.clustering_action
    if body and instant.action in WRITE_ACTIONS and instant.state is not State.REQUESTED:
        body = CommitMetadata.from_bytes(body, file.path).to_bytes(new.table_version)
    completed_at = times.get(instant.requested_time) if instant.is_completed else None
    name = timeline_file_name(instant.requested_time, action, instant.state, completed_at)
    path = f"{new.timeline_path}/{name}"
    storage.replace(path, body)
    if instant.completion_time is not None and storage.sets_times:
        # what Hudi 1.x takes for the completion time in layout 1, and sorts logs into slices by
        completed = parse_instant_time(instant.completion_time, new.timeline_zone)
        storage.set_modified(path, round(completed.timestamp() * 1000))


def _rows_of_log_archive(state: TableState, new: TableConfig) -> Iterator[ArchivedInstant]:
    """Yield the instants of an archive of log files as rows of a history."""
    storage, active = state.storage, {each.requested_time for each in state.timeline.completed}
    completed: dict[str, tuple[str, Mapping[str, Any]]] = {}
    plans: dict[str, bytes] = {}
    for file in list_archive_files(storage, state.config.archive_folder):
        for entry in read_archive_log(storage.read(file.path), file.path):
            time = str(entry["commitTime"])
            if (entry.get("actionState") or State.COMPLETED.value) == State.COMPLETED.value:
                completed[time] = str(entry["actionType"]), entry
            for name, schema in _PLANS.items():
                if entry.get(name) is not None:
                    plans[time] = encode_avro_file(schema, entry[name])
    for time, following in pairwise([*sorted({*completed, *active}), ""]):
        if time not in completed:
            continue
        action, done = completed[time]
        body = _archived_body(action, done, new)
        if body is None or time in active:
            continue
        ended = _before(following, time, str(done.get("stateTransitionTime") or ""))
        yield ArchivedInstant(time, ended, action, body, plans.get(time))


def _archived_body(action: str, entry: Mapping[str, Any], new: TableConfig) -> bytes | None:
    if action in _METADATA:
        name, schema = _METADATA[action]
        return encode_avro_file(schema, entry[name]) if entry.get(name) is not None else None
    if action not in WRITE_ACTIONS:
        return None
    found = entry.get("hoodieCommitMetadata") or entry.get("hoodieReplaceCommitMetadata")
    record: Mapping[str, Any] = found or {}
    return CommitMetadata.from_dict(record).to_bytes(new.table_version)


def _entries_of_history(state: TableState) -> Iterator[Mapping[str, Any]]:
    """Yield the instants of a history as entries of an archive of log files."""
    active = {each.requested_time for each in state.timeline.completed}
    for row in History(state.storage, state.config.archive_folder).rows():
        if row.requested_time in active:
            continue
        if row.plan:
            action = "compaction" if row.action == "commit" else row.action
            yield archive_entry(Instant(row.requested_time, action, State.REQUESTED), row.plan, "")
        done = Instant(row.requested_time, row.action, State.COMPLETED)
        yield archive_entry(done, row.metadata, row.completion_time)


def _remove_leftovers(storage: Storage, config: TableConfig) -> None:
    """Remove the timeline and archive of the other layout, which are not read any more."""
    if config.table_version.timeline_layout == 1:
        storage.delete_tree(f"{HOODIE_FOLDER}/timeline")
        return
    stale = [
        each.path
        for each in storage.list(HOODIE_FOLDER)
        if not each.is_dir and parse_instant(each.name, 1) is not None
    ]
    if stale:
        # Pending ones first, then from the oldest on: a reader of the old timeline takes what is older for committed.
        for path in sorted(stale, key=lambda each: (not each.endswith(_PENDING), each)):
            storage.remove(path)
        storage.delete_tree(f"{HOODIE_FOLDER}/archived")
