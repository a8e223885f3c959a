"""Which commits of other writers a write can stand beside.

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
A write that leaves out rows for what is stored (inserts of new keys only, upserts of what changed) and a delete conflict where
both were at work in one partition; and rows that were compared and left as they are count as written, for the write itself.

Clean, archive, savepoint and rollback of failed instants never conflict. A compaction keeps rows and file
group ids, so an overwrite that replaces its file group still replaces the same rows. When a commit that this
write has read was rolled back or restored away, every write conflicts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import Enum

from hudi_engine.errors import CorruptTableError, WriteConflictError
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.format.timeline.instant import Instant
from hudi_engine.table.txn.footprint import FileGroup, Footprint, Kind, ReadsOfWrite
from hudi_engine.table.txn.since import committed_since


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
    """Raise when this write must not be committed on top of what completed since it began.

    Args:
        mine: Metadata this write is about to commit.
        current: Timeline now, read under the table's lock.
        key_scope: Where a record key must be unique.
        left: File groups with rows that this write has compared with what came, and left as they are.
        into_planned_clusterings: Whether file groups of a planned clustering may be changed.

    Raises:
        WriteConflictError: naming both instants and the reason.
    """
    _check_base_still_stands(instant, base, current)
    footprint = Footprint.of(mine)
    for other, theirs_told in committed_since(base, current):
        theirs = Footprint.of(theirs_told)
        reason = conflict_reason(footprint, theirs, other.requested_time, key_scope)
        if reason is None and theirs.kind not in (Kind.COMPACTION, Kind.CLUSTERING):
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
    """Raise when rows that this write was made from have changed since they were read.

    Args:
        mine: Metadata this write is about to commit.
        current: Timeline now, read under the table's lock.

    Raises:
        WriteConflictError: naming both instants and the reason.
    """
    _check_base_still_stands(instant, reads.base, current)
    for other, theirs in committed_since(reads.base, current):
        reason = _outdated_reads(reads, Footprint.of(theirs))
        if reason is not None:
            raise WriteConflictError(
                _message(instant, mine, f"{other.action} {other.requested_time}", reason)
            )


def _outdated_reads(reads: ReadsOfWrite, theirs: Footprint) -> str | None:
    if theirs.kind in (Kind.COMPACTION, Kind.CLUSTERING):
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
    """Raise when a writer that has no owner file, and so may still be at work, could do what stands against this write.

    Such a writer does not look for others before its commit, as Apache Hudi with a single writer and Flink do not.

    Args:
        mine: Metadata this write is about to commit.
        current: Timeline now, read under the table's lock.
        key_scope: Where a record key must be unique.

    Raises:
        WriteConflictError: naming whose instant it is, and how long it will be respected.
    """
    footprint = Footprint.of(mine)
    for other in others:
        planned = _planned(current, other)
        if planned is None:
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


def _planned(current: Timeline, other: Instant) -> CommitMetadata | None:
    """Return the workload of a pending write, None when it does not tell one."""
    try:
        planned = current.planned_metadata(other)
    except CorruptTableError:
        return None
    return planned if planned is not None and planned.partition_to_write_stats else None


def _anything(mine: Footprint, key_scope: KeyScope) -> str | None:
    """Say why this write cannot stand beside one that may do anything."""
    if mine.kind in (Kind.COMPACTION, Kind.SCHEMA):
        return None
    new_keys = mine.kind is Kind.UPSERT and key_scope is not KeyScope.NONE and mine.with_inserts
    if mine.touched - mine.created or new_keys:
        return "it does not tell which file groups it changes"
    return None


def conflict_reason(
    mine: Footprint, theirs: Footprint, their_instant: str, key_scope: KeyScope = KeyScope.PARTITION
) -> str | None:
    """Return why ``mine`` cannot be committed after ``theirs``, None when it can.

    Args:
        their_instant: Requested time of the commit that was first.
    """
    rules = {
        Kind.OVERWRITE_TABLE: _overwrite_table,
        Kind.OVERWRITE_PARTITION: _overwrite_partition,
        Kind.CLUSTERING: _clustering,
        Kind.COMPACTION: _compaction,
        Kind.SCHEMA: _no_conflict,
    }
    rule = rules.get(mine.kind)
    if rule is not None:
        return rule(mine, theirs)
    return _append_or_upsert(mine, theirs, their_instant, key_scope)


def _overwrite_table(_mine: Footprint, theirs: Footprint) -> str | None:
    return None if theirs.kind is Kind.COMPACTION else "this write overwrites the whole table"


def _overwrite_partition(mine: Footprint, theirs: Footprint) -> str | None:
    if theirs.kind is Kind.COMPACTION:
        return None
    if theirs.kind is Kind.OVERWRITE_TABLE:
        return "it overwrote the whole table"
    return _both("both work in partition", mine.partitions & theirs.partitions)


def _clustering(mine: Footprint, theirs: Footprint) -> str | None:
    if theirs.kind is Kind.COMPACTION:
        return None
    return _both("it changed or replaced a file group being clustered:", mine.replaced & theirs.touched)


def _compaction(mine: Footprint, theirs: Footprint) -> str | None:
    return _both("both wrote a base file of file group", mine.written & theirs.base_written.keys())


def _no_conflict(_mine: Footprint, _theirs: Footprint) -> str | None:
    return None


def _append_or_upsert(
    mine: Footprint, theirs: Footprint, their_instant: str, key_scope: KeyScope
) -> str | None:
    """Say why rows that were added or changed by key cannot stand beside another commit."""
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
    """Rows that this write put into a slice that the compaction has closed would be lost (v6 log file names)."""
    for group in compacted:
        slice_instant = mine.appended.get(group, mine.base_written.get(group))
        if slice_instant is None or (group in mine.created and group not in mine.appended):
            continue
        if slice_instant < compaction_time:
            return f"it compacts file group {group[1]!r} of partition {group[0]!r}, which this write changed"
    return None


def _same_bucket(mine: Footprint, theirs: Footprint) -> str | None:
    """Say why two new file groups are one bucket, whose number in eight digits their ids start with (bucket index)."""
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
    """Say why a row can be gone that one write left out as being there, while the other did not find what that one added."""
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
    return f"{reason} {found[0]!r}" if found else None


def _check_base_still_stands(instant: str, base: Timeline, current: Timeline) -> None:
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
            reason = (
                f"took away the slice of file group {file_id!r} in partition {partition!r} by dropping it"
            )
            raise WriteConflictError(_message(instant, mine, f"compaction {slice_instant}", reason))


def merged_schema(instant: str, mine: str | None, base: str | None, current: str | None) -> str | None:
    """Return the table schema that this write's commit must carry.

    The newest commit's schema is the table's. When another writer has added columns meanwhile, a write that
    did not change the schema takes theirs over, since its files read as null there.

    Args:
        mine: Avro schema JSON that this write wants to commit.

    Raises:
        WriteConflictError: when both changed it and this write's lacks, or differs in, a column of the other.
    """
    if mine is None or current is None or same_schema(current, base) or same_schema(mine, current):
        return current if mine is None else mine
    if same_schema(mine, base):
        return current
    own = {field["name"]: field["type"] for field in json.loads(mine)["fields"]}
    for field in json.loads(current)["fields"]:
        if own.get(field["name"]) != field["type"]:
            raise WriteConflictError(
                f"instant {instant} cannot be committed: another writer has changed the table's schema "
                "meanwhile, "
                f"and column {field['name']!r} is not the same here. Run this write again"
            )
    return mine


def same_schema(left: str | None, right: str | None) -> bool:
    """Tell whether two Avro schemas (JSON, or None) have the same columns."""
    if left is None or right is None:
        return left is right
    return left == right or bool(json.loads(left)["fields"] == json.loads(right)["fields"])


def _message(instant: str, mine: CommitMetadata, other: str, reason: str) -> str:
    return (
        f"instant {instant} ({mine.operation_type}) cannot be committed: {other} of another writer came "
        "first and "
        f"{reason}. The table is as the other writer left it; run this write again"
    )
