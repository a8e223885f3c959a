"""Conflicts between the file groups, partitions and keys of concurrent commits.

A write reads the table as of its begin. Before its completed file is made, under the table's lock, everything
that completed since is compared with what it did, by file group, by overwritten partition and by new keys:

==================  ========================================================================================
this write          conflicts with, when the other one completed first
==================  ========================================================================================
insert              a change of a file group that it packed rows into; an overwrite of the table
upsert, delete,     a change of the same file group; new keys from both in one partition (global index: any
insert of new keys  partition); an overwrite of the table, or of a partition that it wrote into; clustering of
                    its file groups; a compaction, planned after it began, of a group that it changed
overwrite of        anything but compaction in one of its partitions; an overwrite of the table
partitions
overwrite of table  anything but compaction
clustering          a change or replacement of one of its input file groups, except by compaction
compaction          a new base file of one of its file groups
==================  ========================================================================================

A write whose rows were made from the table's own (update and delete by condition, match conditions) conflicts with
whatever changed rows in the partitions they were read from since before they were read, however long that took.
A write that skips rows because of stored ones (inserts of new keys only, upserts of what changed) and a delete conflict in a
common partition; and rows that were compared and left unchanged count as written, for the write itself.

Clean, archive, savepoint and rollback of failed instants never conflict. A compaction keeps rows and file
group ids, so an overwrite that replaces its file group still replaces the same rows. When a commit that this
write has read was rolled back or restored away, every write conflicts.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum

from hudi_engine.errors import ConfigError, CorruptTableError, PlannedMeanwhileError, WriteConflictError
from hudi_engine.format.config.declared.clustering_options import ClusteringOptions
from hudi_engine.format.config.enums import WriteOperation
from hudi_engine.format.config.options import Options
from hudi_engine.format.filegroup.log_file import parse_log_file
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.commit_metadata import (
    NO_COMMIT,
    NO_PREVIOUS_COMMIT,
    CommitMetadata,
)
from hudi_engine.format.timeline.instant import WRITE_ACTIONS, Instant, State
from hudi_engine.table.txn.owner import Liveness

FileGroup = tuple[str, str]
"""Partition path and file id."""


class Kind(Enum):
    """Kinds of commits as the conflict rules know them."""

    APPEND = "append"
    UPSERT = "upsert"
    OVERWRITE_PARTITION = "overwrite of partitions"
    OVERWRITE_TABLE = "overwrite of the table"
    COMPACTION = "compaction"
    CLUSTERING = "clustering"
    SCHEMA = "schema change"


NEW_KEYS_ONLY = "dbt_hudi.new_keys_only"
"""Key in the extra metadata of an insert that left out the rows whose key was there."""

ROWS_LEFT = "dbt_hudi.rows_left"
"""Key in the extra metadata of an upsert that left stored rows as they were, having compared them with what came."""

_ROWS_KEPT = frozenset({Kind.COMPACTION, Kind.CLUSTERING})
OVERWRITES = frozenset({Kind.OVERWRITE_PARTITION, Kind.OVERWRITE_TABLE})

_KINDS: Mapping[str, Kind] = {
    WriteOperation.INSERT: Kind.APPEND,
    WriteOperation.INSERT_PREPPED: Kind.APPEND,
    WriteOperation.BULK_INSERT: Kind.APPEND,
    WriteOperation.BULK_INSERT_PREPPED: Kind.APPEND,
    WriteOperation.BOOTSTRAP: Kind.APPEND,
    WriteOperation.UPSERT: Kind.UPSERT,
    WriteOperation.UPSERT_PREPPED: Kind.UPSERT,
    WriteOperation.DELETE: Kind.UPSERT,
    WriteOperation.DELETE_PREPPED: Kind.UPSERT,
    WriteOperation.INSERT_OVERWRITE: Kind.OVERWRITE_PARTITION,
    WriteOperation.DELETE_PARTITION: Kind.OVERWRITE_PARTITION,
    WriteOperation.INSERT_OVERWRITE_TABLE: Kind.OVERWRITE_TABLE,
    WriteOperation.COMPACT: Kind.COMPACTION,
    WriteOperation.LOG_COMPACT: Kind.COMPACTION,
    WriteOperation.CLUSTER: Kind.CLUSTERING,
    WriteOperation.ALTER_SCHEMA: Kind.SCHEMA,
}


REPLACED = "dbt_hudi.replaced"
"""Key in the extra metadata of a commit."""


@dataclass(frozen=True)
class Replaced:
    """The rows that a commit replaced by delete and insert.

    Two such commits are compatible in different partitions only when neither could have deleted what the other inserted, which is
    known of windows of one column: the inserted rows lie in the window too.

    Args:
        column: Column of the window; None when the rows are selected otherwise.
        start: First moment of the window in UTC.
    """

    column: str | None = None
    start: str | None = None
    end: str | None = None

    @classmethod
    def within(cls, column: str, start: datetime, end: datetime) -> Replaced:
        """Return the rows whose ``column`` lies in a window, the end not included."""
        return cls(column.lower(), _text(start), _text(end))

    @classmethod
    def of(cls, extra: Mapping[str, str | None]) -> Replaced | None:
        """Read it from a commit's extra metadata; None when it replaced nothing in this way."""
        text = extra.get(REPLACED)
        if text is None:
            return None
        try:
            found = json.loads(text)
            return cls(found.get("column"), found.get("start"), found.get("end"))
        except (ValueError, AttributeError):
            return cls()

    def to_text(self) -> str:
        """Return the value for the extra metadata."""
        return json.dumps({"column": self.column, "start": self.start, "end": self.end})

    def is_apart_from(self, other: Replaced) -> bool:
        """Return whether no row can be in both."""
        if self.column is None or self.column != other.column:
            return False
        if None in (self.start, self.end, other.start, other.end):
            return False
        return str(self.end) <= str(other.start) or str(other.end) <= str(self.start)


def _text(moment: datetime) -> str:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)
    return aware.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")


@dataclass(frozen=True)
class ReadsOfWrite:
    """What of the table a write's rows were made from.

    Args:
        partitions: Partitions that the rows depend on; None for the whole table.
        replaced: The rows that the write replaces; None when it replaces none.
    """

    base: Timeline
    partitions: frozenset[str] | None = None
    replaced: Replaced | None = None

    def depend_on(self, theirs: Footprint) -> frozenset[str]:
        """Return the partitions of another commit in which it may have changed what was read."""
        if self.partitions is None:
            return theirs.partitions
        if self.replaced is not None and theirs.replaces is not None:
            # Each would have deleted what the other inserted, in any partition, unless their windows are apart.
            if not self.replaced.is_apart_from(theirs.replaces):
                return theirs.partitions
        return theirs.partitions & self.partitions


@dataclass(frozen=True)
class Footprint:
    """What a commit touched.

    Args:
        base_written: Those of ``written`` that got a base file, with the instant of the slice it replaces.
        appended: Those of ``written`` that got log blocks, with the base instant of the log file.
        replaced: File groups that readers skip from this commit on.
        left_rows: Whether incoming rows were skipped because of stored ones.
    """

    kind: Kind
    written: frozenset[FileGroup]
    base_written: Mapping[FileGroup, str]
    appended: Mapping[FileGroup, str]
    replaced: frozenset[FileGroup]
    created: frozenset[FileGroup]
    partitions: frozenset[str]
    with_inserts: frozenset[str]
    with_deletes: frozenset[str] = frozenset()
    left_rows: bool = False
    replaces: Replaced | None = None

    @classmethod
    def of(cls, metadata: CommitMetadata) -> Footprint:
        """Read the footprint of a commit from its metadata."""
        stats = [
            (partition, stat, (partition, stat.file_id or "")) for partition, stat in metadata.write_stats()
        ]
        base_written: dict[FileGroup, str] = {}
        appended: dict[FileGroup, str] = {}
        for partition, stat, group in stats:
            log = parse_log_file((stat.path or "").rpartition("/")[2], partition)
            if log is None:
                base_written[group] = stat.prev_commit or NO_PREVIOUS_COMMIT
            else:
                appended[group] = min(log.instant, appended.get(group, log.instant))
        return cls(
            kind=kind_of(metadata),
            written=frozenset(group for _, _, group in stats),
            base_written=base_written,
            appended=appended,
            replaced=frozenset(metadata.replaced),
            created=frozenset(group for _, stat, group in stats if stat.prev_commit in NO_COMMIT),
            partitions=frozenset(partition for partition, _, _ in stats)
            | frozenset(metadata.partition_to_replace_file_ids or ()),
            with_inserts=frozenset(partition for partition, stat, _ in stats if stat.num_inserts),
            with_deletes=frozenset(partition for partition, stat, _ in stats if stat.num_deletes),
            left_rows=not {NEW_KEYS_ONLY, ROWS_LEFT}.isdisjoint(metadata.extra_metadata),
            replaces=Replaced.of(metadata.extra_metadata),
        )

    @property
    def touched(self) -> frozenset[FileGroup]:
        """File groups written or replaced."""
        return self.written | self.replaced


def kind_of(metadata: CommitMetadata) -> Kind:
    """Return the kind of a commit."""
    known = _KINDS.get(metadata.operation_type or "")
    if known is Kind.APPEND and NEW_KEYS_ONLY in metadata.extra_metadata:
        # it has looked its keys up, so it depends on other keys as an upsert does
        return Kind.UPSERT
    if known is not None:
        return known
    if metadata.compacted:
        return Kind.COMPACTION
    return Kind.OVERWRITE_PARTITION if metadata.partition_to_replace_file_ids else Kind.UPSERT


class KeyScope(str, Enum):
    """Where a record key must be unique."""

    TABLE = "table"
    """Global index."""
    PARTITION = "partition"
    NONE = "none"
    """The table has no record keys of its own."""


def check_conflicts(
    mine: CommitMetadata,
    *,
    instant: str,
    base: Timeline,
    current: Timeline,
    key_scope: KeyScope = KeyScope.PARTITION,
    left: frozenset[FileGroup] = frozenset(),
    into_planned_clusterings: bool = False,
) -> None:
    """Raise when this write must not be committed on top of what completed since it began."""
    _check_base_is_current(instant, base, current)
    footprint = Footprint.of(mine)
    for other, their_metadata in commits_since(base, current):
        theirs = Footprint.of(their_metadata)
        reason = conflict_reason(footprint, theirs, other.requested_time, key_scope)
        if reason is None and theirs.kind not in _ROWS_KEPT:
            reason = _both("it changed rows that this write had left as they were, in", left & theirs.touched)
        if reason is not None:
            raise WriteConflictError(
                _message(instant, mine, f"{other.action} {other.requested_time}", reason)
            )
    _check_planned_compactions(instant, mine, footprint, current)
    if not into_planned_clusterings:
        _check_planned_clusterings(instant, mine, footprint, current)
    _check_open_slices(instant, mine, footprint, base, current)


def check_reads(mine: CommitMetadata, *, instant: str, reads: ReadsOfWrite, current: Timeline) -> None:
    """Raise when rows that this write was made from have changed since they were read."""
    _check_base_is_current(instant, reads.base, current)
    for other, theirs in commits_since(reads.base, current):
        reason = _outdated_reads(reads, Footprint.of(theirs))
        if reason is not None:
            raise WriteConflictError(
                _message(instant, mine, f"{other.action} {other.requested_time}", reason)
            )


def _outdated_reads(reads: ReadsOfWrite, theirs: Footprint) -> str | None:
    if theirs.kind in _ROWS_KEPT:
        return None
    if theirs.kind is Kind.SCHEMA:
        return "it changed the columns of rows that this write had read"
    if theirs.kind is Kind.OVERWRITE_TABLE:
        return "it overwrote the whole table, which this write had read"
    changed = reads.depend_on(theirs)
    return _both("it changed rows that this write had read before, in partition", changed)


def check_unnamed_writers(
    mine: CommitMetadata,
    others: Iterable[Instant],
    *,
    instant: str,
    current: Timeline,
    key_scope: KeyScope = KeyScope.PARTITION,
) -> None:
    """Raise when a writer that has no owner file, and so may still be at work, could conflict with this write."""
    footprint = Footprint.of(mine)
    for other in others:
        try:
            planned = current.planned_metadata(other)
        except CorruptTableError:
            planned = None
        if planned is None or not planned.partition_to_write_stats:
            reason = _anything(footprint, key_scope)
        else:
            reason = conflict_reason(footprint, Footprint.of(planned), other.requested_time, key_scope)
        if reason is not None:
            raise WriteConflictError(
                f"instant {instant} ({mine.operation_type}) cannot be committed: {other.action} {other.requested_time} of "
                f"another program, which keeps no heartbeat, may still be at work, and {reason}. Wait until it has "
                "committed, or until it counts as dead (hoodie.client.heartbeat.interval_in_ms times "
                "hoodie.client.heartbeat.tolerable.misses after its last file), and run this write again"
            )


def _anything(mine: Footprint, key_scope: KeyScope) -> str | None:
    """Return why this write conflicts with one of unknown file groups."""
    if mine.kind in (Kind.COMPACTION, Kind.SCHEMA):
        return None
    new_keys = mine.kind is Kind.UPSERT and key_scope is not KeyScope.NONE and mine.with_inserts
    if mine.touched - mine.created or new_keys:
        return "it does not tell which file groups it changes"
    return None


def conflict_reason(
    mine: Footprint, theirs: Footprint, their_instant: str, key_scope: KeyScope = KeyScope.PARTITION
) -> str | None:
    """Return why ``mine`` cannot be committed after ``theirs``, None when it can."""
    if mine.kind is Kind.SCHEMA:
        return None
    if mine.kind is Kind.COMPACTION:
        return _both("both wrote a base file of file group", mine.written & theirs.base_written.keys())
    if mine.kind in (Kind.APPEND, Kind.UPSERT):
        return _append_or_upsert(mine, theirs, their_instant, key_scope)
    if theirs.kind is Kind.COMPACTION:
        return None
    if mine.kind is Kind.OVERWRITE_TABLE:
        return "this write overwrites the whole table"
    if mine.kind is Kind.CLUSTERING:
        return _both("it changed or replaced a file group being clustered:", mine.replaced & theirs.touched)
    if theirs.kind is Kind.OVERWRITE_TABLE:
        return "it overwrote the whole table"
    return _both("both work in partition", mine.partitions & theirs.partitions)


def _append_or_upsert(
    mine: Footprint, theirs: Footprint, their_instant: str, key_scope: KeyScope
) -> str | None:
    """Return why rows added or changed by key conflict with another commit."""
    if theirs.kind is Kind.OVERWRITE_TABLE:
        return "it overwrote the whole table"
    if theirs.kind is Kind.COMPACTION:
        return _outdated_slices(mine, theirs.written, their_instant)
    if theirs.kind is Kind.OVERWRITE_PARTITION and mine.kind is Kind.UPSERT:
        reason = _both("it overwrote partition", mine.partitions & theirs.partitions)
        if reason is not None:
            return reason
    return (
        _both("both changed file group", mine.touched & theirs.touched)
        or _same_bucket(mine, theirs)
        or _new_keys(mine, theirs, key_scope)
        or _left_out_and_deleted(mine, theirs, key_scope)
    )


def _outdated_slices(mine: Footprint, compacted: Iterable[FileGroup], compaction_time: str) -> str | None:
    """Detect log blocks in a slice that the compaction has closed; they would be lost (v6 log file names)."""
    for group in compacted:
        slice_instant = mine.appended.get(group, mine.base_written.get(group))
        if slice_instant is None or (group in mine.created and group not in mine.appended):
            continue
        if slice_instant < compaction_time:
            return f"it compacts file group {group[1]!r} of partition {group[0]!r}, which this write changed"
    return None


def _same_bucket(mine: Footprint, theirs: Footprint) -> str | None:
    """Find two new file groups of one bucket, whose number in eight digits starts their ids (bucket index)."""
    buckets = {(partition, file_id[:8]) for partition, file_id in theirs.created if file_id[:8].isdigit()}
    shared = {(partition, file_id[:8]) for partition, file_id in mine.created} & buckets
    return _both("both opened bucket", shared)


def _new_keys(mine: Footprint, theirs: Footprint, key_scope: KeyScope) -> str | None:
    if mine.kind is not Kind.UPSERT or key_scope is KeyScope.NONE or not mine.with_inserts:
        return None
    if key_scope is KeyScope.TABLE:
        if theirs.with_inserts and theirs.kind not in (Kind.APPEND, Kind.CLUSTERING):
            return "both added new keys, and keys are unique in the whole table"
        return None
    if theirs.kind is not Kind.UPSERT:
        return None
    return _both("both added new keys to partition", mine.with_inserts & theirs.with_inserts)


def _left_out_and_deleted(mine: Footprint, theirs: Footprint, key_scope: KeyScope) -> str | None:
    """Find a partition in which one write skipped a row as stored that the other one deleted."""
    for adding, deleting in ((mine, theirs), (theirs, mine)):
        if not adding.left_rows:
            continue
        shared = adding.with_inserts & deleting.with_deletes
        if key_scope is KeyScope.TABLE and adding.with_inserts:
            shared = deleting.with_deletes
        if shared:
            return _both(
                "one left out what it found and added what it did not, and the other deleted rows of partition",
                shared,
            )
    return None


def _both(reason: str, shared: Iterable[object]) -> str | None:
    found = sorted(shared, key=str)
    return f"{reason} {_shown(found[0])}" if found else None


def _shown(key: object) -> str:
    """Return a file group, given with its partition, in words; other keys as they are."""
    if isinstance(key, tuple) and len(key) == 2:
        partition, file_id = key
        return f"{file_id!r} of partition {partition!r}" if partition else repr(file_id)
    return repr(key)


def _check_base_is_current(instant: str, base: Timeline, current: Timeline) -> None:
    """Refuse when a commit that was read is neither on the timeline nor in its archive."""
    now = {(done.requested_time, done.action) for done in current.completed_writes}
    first = current.first_write_time
    missing = [done for done in base.completed_writes if (done.requested_time, done.action) not in now]
    if not missing:
        return
    # What is older than the first write was archived, unless it was itself the first and was taken back.
    undone = current.undone_since(base)
    archived = {done.requested_time for done in current.archived.completed_writes}
    for done in missing:
        older = first is not None and done.requested_time < first and done.requested_time not in undone
        if older and done.requested_time in archived:
            continue
        what = "is of a table that another one has replaced" if older else "was rolled back meanwhile"
        raise WriteConflictError(
            f"instant {instant} cannot be committed: {done.action} {done.requested_time}, which it has read, {what}. The table "
            "is as the other writer left it; run this write again"
        )


def _check_planned_compactions(
    instant: str, mine: CommitMetadata, footprint: Footprint, current: Timeline
) -> None:
    if footprint.kind in (Kind.APPEND, Kind.UPSERT):
        for group, time in current.pending_compaction_file_groups().items():
            reason = _outdated_slices(footprint, (group,), time)
            if reason is not None:
                raise WriteConflictError(_message(instant, mine, f"compaction {time} (planned)", reason))


def _check_planned_clusterings(
    instant: str, mine: CommitMetadata, footprint: Footprint, current: Timeline
) -> None:
    if footprint.kind in (Kind.COMPACTION, Kind.CLUSTERING, Kind.SCHEMA):
        return
    planned = current.pending_clustering_file_groups()
    being_clustered = footprint.touched & set(planned)
    if being_clustered:
        partition, file_id = group = min(being_clustered)
        raise WriteConflictError(
            f"instant {instant} ({mine.operation_type}) cannot be committed: clustering {planned[group]} is planned, and file "
            f"group {file_id!r} of partition {partition!r} must not change until it is done. Run that clustering or roll it "
            "back, and run this write again"
        )


def _check_open_slices(
    instant: str, mine: CommitMetadata, footprint: Footprint, base: Timeline, current: Timeline
) -> None:
    """Refuse log blocks in slices that a planned compaction had opened, when the plan was dropped since."""
    planned = {pending.requested_time for pending in base.pending if pending.action == "compaction"}
    known = {found.requested_time for found in current.instants if found.action in ("compaction", "commit")}
    for (partition, file_id), slice_instant in footprint.appended.items():
        if slice_instant in planned - known:
            reason = f"it was dropped with the slice of file group {file_id!r} in partition {partition!r}"
            raise WriteConflictError(_message(instant, mine, f"compaction {slice_instant}", reason))


def _message(instant: str, mine: CommitMetadata, other: str, reason: str) -> str:
    return (
        f"instant {instant} ({mine.operation_type}) cannot be committed: {other} of another writer came first and {reason}. The "
        "table is as the other writer left it; run this write again"
    )


def commits_since(base: Timeline, current: Timeline) -> Iterator[tuple[Instant, CommitMetadata]]:
    """Yield the writes that completed after ``base`` was read, with what they wrote.

    Archiving takes the oldest writes, so one that completed and was archived since then has taken with it something
    that ``base`` shows; only then the archive is read.
    """
    known = {(done.requested_time, done.action) for done in base.completed_writes}
    if _archived_meanwhile(base, current):
        oldest = min(
            (each.requested_time for each in base.instants if each.action in WRITE_ACTIONS), default=""
        )
        for done in current.archived.instants:
            if done.action in WRITE_ACTIONS and done.is_completed and done.requested_time >= oldest:
                if (done.requested_time, done.action) not in known:
                    yield done, current.archived.commit_metadata(done)
    for done in current.completed_writes:
        if (done.requested_time, done.action) not in known:
            yield done, current.commit_metadata(done)


def _archived_meanwhile(base: Timeline, current: Timeline) -> bool:
    now = {each.requested_time for each in current.instants}
    saved = {each.requested_time for each in base.savepoints}
    shown = {each.requested_time for each in base.instants if each.action in WRITE_ACTIONS} - saved
    return bool(shown - now) if shown else bool(current.completed_writes)


@dataclass(frozen=True)
class PlannedBy:
    """A clustering that holds file groups.

    Args:
        awaited: Whether it is being carried out, or so newly planned that its planner may be about to.
    """

    instant: str
    running: bool = False
    awaited: bool = False


_ALLOW = {"SparkRejectUpdateStrategy": False, "SparkAllowUpdateStrategy": True}


def is_clustering(timeline: Timeline, instant: Instant) -> bool:
    """Return whether a pending instant is a clustering plan; a replacecommit may be an overwrite that is under way."""
    if instant.action != "replacecommit":
        return instant.action == "clustering"
    try:
        plan = timeline.plan(instant)
    except CorruptTableError:
        plan = None
    if plan is not None:
        return plan.get("operationType") == WriteOperation.CLUSTER or bool(plan.get("clusteringPlan"))
    if instant.state is State.REQUESTED:
        return False
    try:
        return timeline.planned_metadata(instant) is None
    except CorruptTableError:
        return False


def updates_allowed(options: Options) -> bool:
    """Return whether file groups of a planned clustering may be written to."""
    given = options[ClusteringOptions.UPDATES_STRATEGY]
    name = given.rpartition(".")[2]
    if name not in _ALLOW:
        legal = ", ".join(_ALLOW)
        raise ConfigError(
            f"{ClusteringOptions.UPDATES_STRATEGY} is {given!r}; legal values: {legal}, with or without their package"
        )
    return _ALLOW[name]


def rolls_back_plans(options: Options) -> bool:
    """Return whether a plan whose file groups have changed is rolled back."""
    return options[ClusteringOptions.ROLLBACK_ON_CONFLICT]


def yields_to_overwrites(options: Options) -> bool:
    """Return whether an overwrite of planned file groups rolls the plan back."""
    return rolls_back_plans(options) or not options.is_set(ClusteringOptions.ROLLBACK_ON_CONFLICT)


def planned_groups(timeline: Timeline, options: Options, liveness: Liveness) -> Mapping[FileGroup, PlannedBy]:
    """Return the file groups that a write must leave alone, with the clustering that has planned them."""
    planned = {} if updates_allowed(options) else timeline.pending_clustering_file_groups()
    holding = set(planned.values())
    at_work = {each: liveness.is_at_work(each) for each in timeline.pending if each.requested_time in holding}
    holders = {
        each.requested_time: PlannedBy(each.requested_time, each.state is State.INFLIGHT and lives, lives)
        for each, lives in at_work.items()
    }
    return {group: holders[instant] for group, instant in planned.items()}


def reject_planned_groups(touched: Collection[FileGroup], closed: Mapping[FileGroup, PlannedBy]) -> None:
    """Refuse a write that would change a file group of a planned clustering."""
    found = sorted(group for group in touched if group in closed)
    if not found:
        return
    (partition, file_id), holder = found[0], closed[found[0]]
    what = f"file group {file_id!r} of partition {partition!r} is part of clustering {holder.instant}"
    if holder.running:
        raise WriteConflictError(
            f"{what}, which another process is running now, and must not change until it is done; nothing was written. Wait "
            "until it is done, and run this write again"
        )
    kind = WriteConflictError if holder.awaited else PlannedMeanwhileError
    raise kind(
        f"{what}, which is planned and not done, and must not change until then; nothing was written. Run that clustering "
        f"or roll it back, and run this write again, or set {ClusteringOptions.UPDATES_STRATEGY} to SparkAllowUpdateStrategy"
    )
