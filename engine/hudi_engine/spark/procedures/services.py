"""Procedures of cleans, rollbacks, compactions, savepoints and the archive, and what they have left on the timeline."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.declared.service_options import CleanOptions
from hudi_engine.format.timeline.instant import Instant, State
from hudi_engine.spark.procedures.procedure import Call, Row
from hudi_engine.table.inspect import instant_facts

TIMELINE = (
    "instant_time string, action string, state string, requested_time string, inflight_time string, "
    "completed_time string, timeline_type string, rollback_info string"
)
PROPERTIES = "key string, value string"
CLEANS = (
    "clean_time string, state_transition_time string, action string, start_clean_time string, time_taken_in_millis long, "
    "total_files_deleted int, earliest_commit_to_retain string, last_completed_commit_timestamp string, version int"
)
CLEANS_METADATA = (
    "clean_time string, state_transition_time string, action string, start_clean_time string, partition_path string, "
    "policy string, delete_path_patterns int, success_delete_files int, failed_delete_files int, "
    "is_partition_deleted boolean, time_taken_in_millis long, total_files_deleted int"
)
ROLLBACKS = "instant string, rollback_instant string, total_files_deleted int, time_taken_in_millis long, total_partitions int"
ROLLBACK_DETAIL = (
    "instant string, rollback_instant string, partition string, deleted_file string, succeeded boolean"
)
COMPACTIONS = "timestamp string, operation_size int, state string"


def show_timeline(call: Call) -> list[Row]:
    """Return the instants of the timeline, newest first, those of the archive on request."""
    rows: list[Row] = [
        (
            each.instant,
            each.action,
            each.state,
            _short(each.requested_at),
            None,
            _short(each.completed_at),
            "ACTIVE",
            None,
        )
        for each in reversed(instant_facts(call.state))
    ]
    if call.truth("showarchived", False):
        rows += [
            (each.requested_time, each.action, each.state.value, None, None, None, "ARCHIVED", None)
            for each in reversed(call.state.timeline.archived.instants)
        ]
    return rows[: call.number("limit", 20)]


def show_table_properties(call: Call) -> list[Row]:
    """Return the lines of ``hoodie.properties``."""
    return sorted(call.state.config.properties.items())[: call.number("limit", 100)]


def show_cleans(call: Call) -> list[Row]:
    """Return the completed cleans, newest first."""
    return [
        (
            *told,
            record["startCleanTime"],
            record["timeTakenInMillis"],
            record["totalFilesDeleted"],
            record["earliestCommitToRetain"],
            record.get("lastCompletedCommitTimestamp"),
            record["version"],
        )
        for told, record in _done(call, "clean")
    ]


def show_cleans_metadata(call: Call) -> list[Row]:
    """Return the completed cleans, newest first, a row a partition."""
    return [
        (
            *told,
            record["startCleanTime"],
            partition,
            each["policy"],
            len(each["deletePathPatterns"]),
            len(each["successDeleteFiles"]),
            len(each["failedDeleteFiles"]),
            bool(each.get("isPartitionDeleted")),
            record["timeTakenInMillis"],
            record["totalFilesDeleted"],
        )
        for told, record in _done(call, "clean")
        for partition, each in (record.get("partitionMetadata") or {}).items()
    ]


def show_rollbacks(call: Call) -> list[Row]:
    """Return the completed rollbacks, newest first."""
    return [
        (
            record["startRollbackTime"],
            instant,
            record["totalFilesDeleted"],
            record["timeTakenInMillis"],
            len(record["partitionMetadata"]),
        )
        for _, record in _done(call, "rollback")
        for instant in record["commitsRollback"]
    ]


def show_rollback_detail(call: Call) -> list[Row]:
    """Return the files that one rollback deleted, or could not delete."""
    rows: list[Row] = []
    for _, record in _done(call, "rollback"):
        if record["startRollbackTime"] != call.text("instant_time"):
            continue
        undone = ",".join(record["commitsRollback"])
        for partition, each in record["partitionMetadata"].items():
            for key, succeeded in (("successDeleteFiles", True), ("failedDeleteFiles", False)):
                rows += [
                    (record["startRollbackTime"], undone, partition, name, succeeded) for name in each[key]
                ]
    return rows[: call.number("limit", 10)]


def rollback_to_instant(call: Call) -> list[Row]:
    """Undo the newest write, or a pending instant."""
    call.services.rollback(call.text("instant_time"))
    return [(True,)]


def save_commit(call: Call) -> list[Row]:
    """Save a commit, the newest when none is named."""
    instant = call.text("commit_time") or None
    call.services.savepoint(instant, user=call.text("user"), comments=call.text("comments"))
    return [(True,)]


def give_commit_free(call: Call) -> list[Row]:
    """Give a saved commit free."""
    call.services.delete_savepoint(call.text("instant_time"))
    return [(True,)]


def rollback_to_savepoint(call: Call) -> list[Row]:
    """Take the table back to a saved commit; every later write goes."""
    instant = call.text("instant_time")
    saved = [each.instant for each in call.services.savepoints()]
    if instant not in saved:
        raise ConfigError(f"{instant!r} is no savepoint; the savepoints are: {', '.join(saved) or 'none'}")
    call.services.restore(instant)
    return [(True,)]


def show_savepoints(call: Call) -> list[Row]:
    """Return the saved commits, newest first."""
    return [(each.instant,) for each in reversed(call.services.savepoints())]


def show_compaction(call: Call) -> list[Row]:
    """Return the compactions, newest first."""
    found = [(each.instant, each.file_groups, each.state) for each in reversed(call.services.compactions())]
    return found[: call.number("limit", 20)]


def archive_commits(call: Call) -> list[Row]:
    """Archive the oldest instants; the result is 0, as Hudi's."""
    retain = call.number("retain_commits", 10)
    services = call.services
    options = services.options.merged({CleanOptions.COMMITS_RETAINED.key: retain})
    asked = type(services)(services.storage, options, services.run_tasks, services.run_sidecars)
    asked.archive(call.number("min_commits", 20), call.number("max_commits", 30))
    return [(0,)]


def _done(call: Call, action: str) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Yield (time, time of completion, action) and record of an action's completed instants that have one, newest first."""
    done = [each for each in call.state.timeline.completed if each.action == action]
    told = ((each, record) for each in reversed(done) if (record := record_of(call, each)))
    for instant, record in islice(told, call.number("limit", 10)):
        yield (instant.requested_time, call.completed_at(instant) or "", action), record


def record_of(call: Call, instant: Instant) -> dict[str, Any]:
    """Return what a completed instant says of itself; raises ConfigError for one that has not completed."""
    if instant.state is not State.COMPLETED:
        raise ConfigError(f"{instant.action} {instant.requested_time} has not completed")
    return call.state.timeline.record(instant)


def _short(moment: Any) -> str | None:
    return None if moment is None else f"{moment:%m-%d %H:%M:%S}"


def run_rollback_inflight_tableservice(call: Call) -> list[Row]:
    """Take back a compaction or clustering in flight whose process is gone, and its plan on request."""
    begun, instant = time.monotonic(), call.text("pending_instant")
    call.services.give_up_run(instant, drop_plan=call.truth("delete_request_instant_file", False))
    return [(instant, str(round((time.monotonic() - begun) * 1000)))]
