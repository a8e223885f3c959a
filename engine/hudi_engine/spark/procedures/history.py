"""Procedures that tell what became of a file group, and how far one table is behind another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hudi_engine.format.config.enums import WriteOperation
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.format.timeline.instant import Instant
from hudi_engine.spark.procedures.procedure import Call, Row
from hudi_engine.table.state import TableState

HISTORY = (
    "instant_time string, completion_time string, action string, timeline_type string, state string, "
    "partition_path string, file_name string, operation_type string, num_writes long, num_inserts long, "
    "num_updates long, num_deletes long, file_size_bytes long, total_write_bytes long, prev_commit string, "
    "was_deleted boolean, delete_action string, delete_instant string, was_replaced boolean, replace_action string, "
    "replace_instant string, total_write_errors long, total_scan_time_ms long, total_upsert_time_ms long, "
    "total_create_time_ms long, prev_base_file string, column_stats_available boolean"
)
HISTORY_ARGUMENTS = ("table", "file_group_id", "partition", "limit")
CLEAN_PLANS = (
    "plan_time string, state string, action string, earliest_instant_to_retain string, "
    "last_completed_commit_timestamp string, policy string, version int, "
    "total_partitions_to_clean int, total_partitions_to_delete int, extra_metadata string"
)

_UPSERT, _DELETE, _NOTHING = WriteOperation.UPSERT, WriteOperation.DELETE, WriteOperation.UNKNOWN
# By whether a file has inserts, updates and deletes; Hudi's word for updates alone is no operation of a commit.
_KINDS = {
    "000": _NOTHING.value,
    "001": _DELETE.value,
    "010": "UPDATE",
    "011": "UPDATE",
    "100": WriteOperation.INSERT.value,
    "101": WriteOperation.INSERT.value,
    "110": _UPSERT.value,
    "111": _UPSERT.value,
}


def show_file_group_history(call: Call) -> list[Row]:
    """Return what the commits of the active timeline wrote to a file group, newest first, and what became of it."""
    wanted, group = call.given.get("partition"), call.text("file_group_id")
    deleted = dict(_deleted(call))
    replaced = call.state.timeline.replaced_file_groups()
    rows: list[Row] = []
    for write in reversed(call.state.timeline.completed_writes):
        told = (write.requested_time, call.completed_at(write), write.action)
        for partition, stat in call.state.timeline.commit_metadata(write).write_stats():
            if stat.file_id == group and wanted in (None, partition):
                gone = deleted.get(stat.file_name)
                by = replaced.get((partition, group))
                rows.append(
                    (*told, "ACTIVE", "COMPLETED", partition, *_counts(stat), *_fate(gone, by), *_rest(stat))
                )
    return rows[: call.number("limit", 20)]


def commits_compare(call: Call) -> list[Row]:
    """Return the commits by which the table is ahead of the one at another path, or behind it."""
    other = TableState.load(open_storage(call.text("path")))
    own = [each.requested_time for each in call.state.timeline.completed_writes]
    theirs = [each.requested_time for each in other.timeline.completed_writes]
    newest, their_newest = own[-1] if own else "0", theirs[-1] if theirs else "0"
    behind = their_newest > newest
    missing = (
        [each for each in theirs if each > newest]
        if behind
        else [each for each in own if each > their_newest]
    )
    where = "behind" if behind else "ahead"
    said = f"Source {call.state.config.name} is {where} by {len(missing)} commits. "
    return [(f"{said}Commits to catch up - [{', '.join(missing)}]",)]


def show_clean_plans(call: Call) -> list[Row]:
    """Return the plans of cleans, done and pending, newest first."""
    cleans = [each for each in call.state.timeline.instants if each.action == "clean"]
    return [
        _plan_row(each, call.state.timeline.plan(each) or {})
        for each in reversed(cleans[-call.number("limit", 10) :])
    ]


def _plan_row(clean: Instant, plan: dict[str, Any]) -> Row:
    extra = plan.get("extraMetadata") or {}
    return (
        clean.requested_time,
        clean.state.value,
        clean.action,
        (plan.get("earliestInstantToRetain") or {}).get("timestamp"),
        plan.get("lastCompletedCommitTimestamp"),
        plan.get("policy"),
        plan.get("version"),
        len(plan.get("filePathsToBeDeletedPerPartition") or ()),
        len(plan.get("partitionsToBeDeleted") or ()),
        ", ".join(f"{key}={value}" for key, value in extra.items()) or None,
    )


def _deleted(call: Call) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the names of files that cleans and rollbacks deleted, with action and instant."""
    timeline = call.state.timeline
    for instant in timeline.completed:
        if instant.action in ("clean", "rollback"):
            for each in (timeline.record(instant).get("partitionMetadata") or {}).values():
                for path in each["successDeleteFiles"]:
                    yield path.rpartition("/")[2], (instant.action, instant.requested_time)


def _counts(stat: WriteStat) -> Row:
    inserts, updates = stat.num_inserts or 0, stat.num_update_writes or 0
    kind = f"{inserts > 0:d}{updates > 0:d}{bool(stat.num_deletes):d}"
    return (
        stat.file_name,
        _KINDS[kind],
        stat.num_writes or 0,
        inserts,
        updates,
        stat.num_deletes or 0,
        stat.file_size_in_bytes or 0,
        stat.total_write_bytes or 0,
        stat.prev_commit,
    )


def _fate(gone: tuple[str, str] | None, replaced_by: str | None) -> Row:
    replaced = (False, None, None) if replaced_by is None else (True, "replacecommit", replaced_by)
    return (gone is not None, *(gone or (None, None)), *replaced)


def _rest(stat: WriteStat) -> Row:
    times = stat.runtime_stats or {}
    spent = (times.get(name) or 0 for name in ("totalScanTime", "totalUpsertTime", "totalCreateTime"))
    return (stat.total_write_errors or 0, *spent, stat.prev_base_file, False)
