"""Hudi's procedures about the timeline and table services: what was done, and doing it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Annotated, Any

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.declared.service_options import CleanOptions
from hudi_engine.format.config.enums import CleanPolicy, CleanTrigger
from hudi_engine.format.layout.layout import split_names
from hudi_engine.format.timeline.instant import Instant, State
from hudi_engine.table.inspect import instant_facts
from hudi_engine.table.operations import table_operations
from hudi_engine.table.operations.operation import Arg, Call, Row, procedure
from hudi_engine.table.services import PendingClustering
from hudi_engine.table.services.inline import clean_due
from hudi_engine.table.table_services import TableServices
from hudi_engine.table.write.metadata_only import empty_table

COMPACTIONS = "timestamp string, operation_size int, state string"
CLUSTERINGS = "timestamp string, input_group_size int, state string, involved_partitions string"

_RETAINED = {
    "retain_commits": (CleanOptions.COMMITS_RETAINED, CleanPolicy.KEEP_LATEST_COMMITS),
    "hours_retained": (CleanOptions.HOURS_RETAINED, CleanPolicy.KEEP_LATEST_BY_HOURS),
    "file_versions_retained": (CleanOptions.FILE_VERSIONS_RETAINED, CleanPolicy.KEEP_LATEST_FILE_VERSIONS),
}
CompactionOp = Annotated[str, Arg(legal=("run", "schedule", "scheduleAndExecute", "execute"))]
ClusteringOp = Annotated[str | None, Arg(legal=("schedule", "execute", "scheduleAndExecute"))]


@procedure(
    "instant_time string, action string, state string, requested_time string, inflight_time string, "
    "completed_time string, timeline_type string, rollback_info string"
)
def show_timeline(call: Call, limit: int = 20, showarchived: bool = False) -> list[Row]:
    """Return the instants of the timeline, newest first, on request those of the archive too."""
    rows: list[Row] = [
        (each.instant, each.action, each.state, _short(each.requested_at), None, _short(each.completed_at))
        for each in reversed(instant_facts(call.state))
    ]
    rows = [(*row, "ACTIVE", None) for row in rows]
    if showarchived:
        rows += [
            (each.requested_time, each.action, each.state.value, None, None, None, "ARCHIVED", None)
            for each in reversed(call.state.timeline.archived.instants)
        ]
    return rows[:limit]


@procedure("key string, value string")
def show_table_properties(call: Call, limit: int = 100) -> list[Row]:
    """Return the lines of ``hoodie.properties``."""
    return sorted(call.state.config.properties.items())[:limit]


@procedure(
    "clean_time string, state_transition_time string, action string, start_clean_time string, time_taken_in_millis long, "
    "total_files_deleted int, earliest_commit_to_retain string, last_completed_commit_timestamp string, version int"
)
def show_cleans(call: Call, limit: int = 10) -> list[Row]:
    """Return the completed cleans, newest first."""
    keys = ("startCleanTime", "timeTakenInMillis", "totalFilesDeleted", "earliestCommitToRetain")
    return [
        (*head, *(record[key] for key in keys), record.get("lastCompletedCommitTimestamp"), record["version"])
        for head, record in _done(call, "clean", limit)
    ]


@procedure(
    "clean_time string, state_transition_time string, action string, start_clean_time string, partition_path string, "
    "policy string, delete_path_patterns int, success_delete_files int, failed_delete_files int, "
    "is_partition_deleted boolean, time_taken_in_millis long, total_files_deleted int"
)
def show_cleans_metadata(call: Call, limit: int = 10) -> list[Row]:
    """Return the completed cleans, newest first, a row a partition."""
    lists = ("deletePathPatterns", "successDeleteFiles", "failedDeleteFiles")
    return [
        (
            *(*head, record["startCleanTime"], partition, each["policy"]),
            *(len(each[name]) for name in lists),
            bool(each.get("isPartitionDeleted")),
            *(record["timeTakenInMillis"], record["totalFilesDeleted"]),
        )
        for head, record in _done(call, "clean", limit)
        for partition, each in (record.get("partitionMetadata") or {}).items()
    ]


@procedure(
    "plan_time string, state string, action string, earliest_instant_to_retain string, "
    "last_completed_commit_timestamp string, policy string, version int, "
    "total_partitions_to_clean int, total_partitions_to_delete int, extra_metadata string"
)
def show_clean_plans(call: Call, limit: int = 10) -> list[Row]:
    """Return the plans of cleans, done and pending, newest first."""
    cleans = [each for each in reversed(call.state.timeline.instants) if each.action == "clean"]
    return [_plan_row(each, call.state.timeline.plan(each) or {}) for each in cleans[:limit]]


@procedure(
    "instant string, rollback_instant string, total_files_deleted int, time_taken_in_millis long, total_partitions int"
)
def show_rollbacks(call: Call, limit: int = 10) -> list[Row]:
    """Return the completed rollbacks, newest first."""
    return [
        (
            *(record["startRollbackTime"], instant, record["totalFilesDeleted"], record["timeTakenInMillis"]),
            len(record["partitionMetadata"]),
        )
        for _, record in _done(call, "rollback", limit)
        for instant in record["commitsRollback"]
    ]


@procedure(
    "instant string, rollback_instant string, partition string, deleted_file string, succeeded boolean"
)
def show_rollback_detail(call: Call, limit: int = 10, *, instant_time: str) -> list[Row]:
    """Return the files that one rollback deleted, or could not delete."""
    return [
        (instant_time, ",".join(record["commitsRollback"]), partition, name, succeeded)
        for _, record in _done(call, "rollback", limit)
        if record["startRollbackTime"] == instant_time
        for partition, each in record["partitionMetadata"].items()
        for key, succeeded in (("successDeleteFiles", True), ("failedDeleteFiles", False))
        for name in each[key]
    ][:limit]


@procedure("savepoint_time string")
def show_savepoints(call: Call) -> list[Row]:
    """Return the saved commits, newest first."""
    return [(each.instant,) for each in reversed(call.services.savepoints())]


@procedure(COMPACTIONS)
def show_compaction(call: Call, limit: int = 20) -> list[Row]:
    """Return the compactions, newest first."""
    found = call.services.compactions()[::-1][:limit]
    return [(each.instant, each.file_groups, each.state) for each in found]


@procedure(CLUSTERINGS)
def show_clustering(call: Call, limit: int = 20, show_involved_partition: bool = False) -> list[Row]:
    """Return the clusterings, newest first."""
    return _clusterings(call.services.clusterings()[::-1][:limit], show_involved_partition)


@dataclass(frozen=True)
class CleanArguments:
    """Hudi's arguments of a clean, in Hudi's order."""

    skip_locking: Annotated[bool, Arg(refused="true is refused")] = False
    schedule_in_line: Annotated[bool, Arg(refused="false is refused")] = True
    clean_policy: str | None = None
    retain_commits: int | None = None
    hours_retained: int | None = None
    file_versions_retained: int | None = None
    trigger_strategy: Annotated[str | None, Arg(legal=tuple(CleanTrigger))] = None
    trigger_max_commits: int | None = None
    options: str = ""


@procedure(
    "start_clean_time string, time_taken_in_millis long, total_files_deleted int, earliest_commit_to_retain string, "
    "bootstrap_part_metadata string, version int",
    changes=True,
)
def run_clean(call: Call, given: CleanArguments) -> list[Row]:
    """Clean, and return what the clean did; no row when there was nothing to do.

    A figure without ``clean_policy`` implies the policy, as one that the policy does not look at would have no effect.
    """
    if given.skip_locking:
        raise ConfigError(
            "run_clean has skip_locking => true; this engine cleans under the table's lock: leave it out"
        )
    if not given.schedule_in_line:
        raise ConfigError(
            "run_clean has schedule_in_line => false; this engine plans what it runs: leave it out"
        )
    policy = given.clean_policy
    figures = {name: getattr(given, name) for name in _RETAINED if getattr(given, name) is not None}
    if len(figures) > 1 and policy is None:
        raise ConfigError(
            f"run_clean has {' and '.join(figures)}; name the one, or the clean_policy that counts"
        )
    chosen: dict[str, object] = {_RETAINED[name][0].key: value for name, value in figures.items()}
    if policy is not None:
        chosen[CleanOptions.POLICY.key] = policy.upper()
    elif figures:
        chosen[CleanOptions.POLICY.key] = _RETAINED[next(iter(figures))][1]
    if given.trigger_max_commits is not None:
        chosen[CleanOptions.TRIGGER_COMMITS.key] = given.trigger_max_commits
    services = replace(call.services, options=call.options(given.options, chosen))
    if given.trigger_max_commits is not None and not clean_due(call.state.timeline, services.options):
        return []
    done = services.clean()
    if done.instant is None:
        return []
    record = _record(call, call.state.timeline.find(done.instant, "clean"))
    keys = ("startCleanTime", "timeTakenInMillis", "totalFilesDeleted", "earliestCommitToRetain")
    return [(*(record[key] for key in keys), "{}", record["version"])]


@procedure(COMPACTIONS, changes=True, table_at=1)
def run_compaction(
    call: Call,
    op: CompactionOp = "run",
    path: Annotated[str | None, Arg(refused="refused: the table goes by its name")] = None,
    timestamp: str = "",
    options: str = "",
    instants: str = "",
    limit: int | None = None,
) -> list[Row]:
    """Plan a compaction, run those that are planned, or both; the rows are of the plans that were made or run."""
    if path is not None:
        raise ConfigError(
            "run_compaction has a path; this engine finds the table by its name: leave path out"
        )
    services = replace(call.services, options=call.options(options))
    named = split_names(instants) or split_names(timestamp)
    if op == "schedule" and named:
        raise ConfigError(
            "run_compaction has op => 'schedule' and an instant; instants are run by op => 'execute'"
        )
    if named or op == "execute":
        return _run_pending(services, named, limit)
    done = services.schedule_compaction() if op == "schedule" else services.compact()
    state = {"scheduled": "REQUESTED"}.get(done.state, done.state.upper())
    return [] if done.instant is None else [(done.instant, done.file_groups, state)]


@dataclass(frozen=True)
class ClusteringArguments:
    """Hudi's arguments of a clustering, in Hudi's order."""

    predicate: str | None = None
    order: str | None = None
    show_involved_partition: bool = False
    op: ClusteringOp = None
    order_strategy: str | None = None
    options: str = ""
    instants: tuple[str, ...] = ()
    selected_partitions: tuple[str, ...] | None = None


@procedure(CLUSTERINGS, changes=True)
def run_clustering(call: Call, given: ClusteringArguments) -> list[Row]:
    """Plan or run a clustering, or both, or run those that are pending."""
    instants = given.instants
    op = given.op or ("execute" if instants else "scheduleAndExecute")
    if instants and op != "execute":
        raise ConfigError(
            f"run_clustering has instants and op => {op!r}; instants are run by op => 'execute'"
        )
    services = replace(call.services, options=call.options(given.options))
    services = services.for_clustering(
        given.order, given.order_strategy, given.selected_partitions, given.predicate
    )
    if op == "execute":
        pending = [each.instant for each in services.clusterings() if each.state != "COMPLETED"]
        touched = list(instants or pending)
    else:
        planned = services.schedule_clustering().instant
        touched = [] if planned is None else [planned]
    if op != "schedule":
        for instant in touched:
            services.cluster(instant)
    found = [each for each in services.clusterings()[::-1] if each.instant in touched]
    return _clusterings(found, given.show_involved_partition)


@procedure("result int", changes=True)
def archive_commits(
    call: Call, min_commits: int = 20, max_commits: int = 30, retain_commits: int = 10
) -> list[Row]:
    """Archive the oldest instants; the result is 0, as Hudi's."""
    options = call.services.options.merged({CleanOptions.COMMITS_RETAINED.key: retain_commits})
    replace(call.services, options=options).archive(min_commits, max_commits)
    return [(0,)]


@procedure("rollback_result boolean", changes=True)
def rollback_to_instant(call: Call, instant_time: str) -> list[Row]:
    """Undo the newest write, or a pending instant."""
    call.services.rollback(instant_time)
    return [(True,)]


@procedure("instant string, time_cost string", changes=True)
def run_rollback_inflight_tableservice(
    call: Call, pending_instant: str, delete_request_instant_file: bool = False
) -> list[Row]:
    """Roll back a compaction or clustering in flight whose process has died, on request with its plan."""
    begun = time.monotonic()
    call.services.give_up_run(pending_instant, drop_plan=delete_request_instant_file)
    return [(pending_instant, str(round((time.monotonic() - begun) * 1000)))]


@procedure("result boolean", changes=True)
def upgrade_table(call: Call, to_version: str) -> list[Row]:
    """Upgrade a table to a later version of its format, by Hudi's name of it (``NINE``) or its number."""
    call.services.upgrade(_version(to_version))
    return [(True,)]


@procedure("result boolean", changes=True)
def downgrade_table(call: Call, to_version: str) -> list[Row]:
    """Downgrade a table to an earlier version of its format, by Hudi's name of it (``SIX``) or its number."""
    call.services.downgrade(_version(to_version))
    return [(True,)]


def _version(text: str) -> int:
    legal = {"SIX": 6, "EIGHT": 8, "NINE": 9, "6": 6, "8": 8, "9": 9}
    found = legal.get(text.strip().upper())
    if found is None:
        raise ConfigError(f"to_version is {text!r}; legal values: SIX, EIGHT, NINE")
    return found


@procedure("create_savepoint_result boolean", changes=True)
def create_savepoint(call: Call, commit_time: str = "", user: str = "", comments: str = "") -> list[Row]:
    """Save a commit, the newest when none is named."""
    call.services.savepoint(commit_time or None, user=user, comments=comments)
    return [(True,)]


@procedure("delete_savepoint_result boolean", changes=True)
def delete_savepoint(call: Call, instant_time: str) -> list[Row]:
    """Release the savepoint of a commit."""
    call.services.delete_savepoint(instant_time)
    return [(True,)]


@procedure("rollback_savepoint_result boolean", changes=True)
def rollback_to_savepoint(call: Call, instant_time: str) -> list[Row]:
    """Restore the table to a saved commit; later writes are removed."""
    saved = [each.instant for each in call.services.savepoints()]
    if instant_time not in saved:
        there = ", ".join(saved) or "none"
        raise ConfigError(f"{instant_time!r} is no savepoint; the savepoints are: {there}")
    call.services.restore(instant_time)
    return [(True,)]


@procedure(
    (
        "restore_result boolean, start_restore_time string, time_taken_in_millis long, instants_rolled_back long, "
        "audit_result string"
    ),
    changes=True,
)
def restore_to_instant(call: Call, instant_time: str) -> list[Row]:
    """Restore the table to a commit, saved or not; later writes are removed."""
    begun = time.monotonic()
    done = call.services.restore(instant_time)
    if done.restore_time is None:
        return [(True, None, 0, 0, None)]
    record = call.state.timeline.record(call.state.timeline.find(done.restore_time, "restore"))
    millis = record.get("timeTakenInMillis")
    if millis is None:
        millis = round((time.monotonic() - begun) * 1000)
    return [(True, done.restore_time, millis, len(done.taken_back), None)]


def _run_pending(services: TableServices, named: tuple[str, ...], limit: int | None) -> list[Row]:
    """Run plans that are there, oldest first, and make none."""
    pending = [each.instant for each in services.compactions() if each.state != "COMPLETED"]
    done = [services.compact(instant) for instant in (named or tuple(pending)[:limit])]
    return [(each.instant, each.file_groups, each.state.upper()) for each in reversed(done) if each.instant]


def _clusterings(found: list[PendingClustering], with_partitions: bool) -> list[Row]:
    return [
        (each.instant, each.groups, each.state, ",".join(each.partitions) if with_partitions else "*")
        for each in found
    ]


def _plan_row(clean: Instant, plan: dict[str, Any]) -> Row:
    extra = ", ".join(f"{key}={value}" for key, value in (plan.get("extraMetadata") or {}).items())
    return (
        *(clean.requested_time, clean.state.value, clean.action),
        (plan.get("earliestInstantToRetain") or {}).get("timestamp"),
        *(plan.get("lastCompletedCommitTimestamp"), plan.get("policy"), plan.get("version")),
        len(plan.get("filePathsToBeDeletedPerPartition") or ()),
        len(plan.get("partitionsToBeDeleted") or ()),
        extra or None,
    )


def _done(call: Call, action: str, limit: int) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Yield (time, time of completion, action) and record of an action's completed instants that have one, newest first."""
    done = [each for each in call.state.timeline.completed if each.action == action]
    found = ((each, record) for each in reversed(done) if (record := _record(call, each)))
    for instant, record in islice(found, limit):
        yield (instant.requested_time, call.completed_at(instant) or "", action), record


def _record(call: Call, instant: Instant) -> dict[str, Any]:
    """Return the metadata of a completed instant; raises ConfigError for one that has not completed."""
    if instant.state is not State.COMPLETED:
        raise ConfigError(f"{instant.action} {instant.requested_time} has not completed")
    return call.state.timeline.record(instant)


def _short(moment: datetime | None) -> str | None:
    return None if moment is None else f"{moment:%m-%d %H:%M:%S}"


@procedure("result string", changes=True)
def drop_partition(call: Call, partition: str) -> list[Row]:
    """Delete partitions, named by their paths with commas between."""
    table_operations.delete_partitions(call, partition)
    return [("Success",)]


@procedure("result string, time_cost long", changes=True)
def truncate_table(call: Call, partitions: str | None = None) -> list[Row]:
    """Delete all rows, or those of some partitions, in one commit; earlier states stay readable until clean."""
    begun = time.monotonic()
    if partitions is not None:
        table_operations.delete_partitions(call, partitions)
    elif call.state.view().latest_slices():
        empty_table(call.services.storage, call.services.options)
        call.services.after_commit()
    return [("SUCCESS", round((time.monotonic() - begun) * 1000))]
