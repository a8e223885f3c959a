"""What a commit says of the table as a whole: its columns, and how far the table has consumed its inputs.

Readers take columns from the write of the greatest requested time that tells them, not from the one that completed last; a
checkpoint too, in the timelines that this engine writes. So a write that others which began later have overtaken cannot change
them any more, and nobody may speak for a write that is under way.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from operator import attrgetter

from hudi_engine.errors import ConsumedMeanwhileError, WriteConflictError
from hudi_engine.format.config.other_keys import CHECKPOINT
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.format.timeline.instant import WRITE_ACTIONS, Instant
from hudi_engine.format.timeline.newest_first import newest_first
from hudi_engine.table.txn.clustered import is_clustering
from hudi_engine.table.txn.conflict import same_schema
from hudi_engine.table.txn.footprint import Footprint
from hudi_engine.table.txn.since import committed_since


def noted_last(timeline: Timeline) -> tuple[Instant, str] | None:
    """Return the checkpoint that counts with the write that has it, None when there is none.

    It is in the newest completed write that has one; other writers do not carry it on.
    """
    for instant, metadata in newest_first(timeline, attrgetter("order")):
        text = metadata.extra_metadata.get(CHECKPOINT)
        if text is not None:
            return instant, text
    return None


def check_last_word(mine: CommitMetadata, *, instant: str, current: Timeline) -> None:
    """Raise when columns or a checkpoint that this write brings would be hidden by a write that began later.

    Args:
        mine: Metadata this write is about to commit, with the schema that it would carry.
        current: Timeline now, read under the table's lock.

    Raises:
        WriteConflictError: naming both instants; begun anew, the write is the later one.
    """
    younger = [each for each in current.completed_writes if each.requested_time > instant]
    if not younger:
        return
    hiding = _other_columns(mine, younger, current)
    if hiding is not None:
        raise WriteConflictError(_message(instant, mine, hiding, "it changes the table's columns"))
    hiding = _other_checkpoint(mine, younger, current)
    if hiding is not None:
        raise WriteConflictError(_message(instant, mine, hiding, "it notes what was consumed of its inputs"))


def check_follows(mine: CommitMetadata, follows: str, *, instant: str, current: Timeline) -> None:
    """Raise when the rows of a write were taken after another checkpoint than the one that the table has by now.

    Args:
        mine: Metadata this write is about to commit.
        follows: The checkpoint that they were taken after.
        current: Timeline now, read under the table's lock.

    Raises:
        ConsumedMeanwhileError: naming both checkpoints.
    """
    last = noted_last(current)
    noted = "{}" if last is None else last[1]
    if _says_the_same(noted, follows):
        return
    where = "" if last is None else f", by {last[0].action} {last[0].requested_time}"
    raise ConsumedMeanwhileError(
        f"instant {instant} ({mine.operation_type}) cannot be committed: its rows were taken of the inputs after the checkpoint "
        f"{follows}, and the table has {noted} by now{where}. They are to be taken anew after that one; the table is as the other "
        "writer left it"
    )


def check_noted(mine: CommitMetadata, *, instant: str, base: Timeline, current: Timeline) -> None:
    """Raise when a commit is nothing but a checkpoint, and another one was noted since it was made up.

    Args:
        mine: Metadata this write is about to commit.
        current: Timeline now, read under the table's lock.

    Raises:
        WriteConflictError: naming both instants.
    """
    if CHECKPOINT not in mine.extra_metadata or Footprint.of(mine).touched:
        return
    last = noted_last(base)
    known = None if last is None else last[1]
    for other, metadata in committed_since(base, current):
        if metadata.extra_metadata.get(CHECKPOINT) not in (None, known):
            raise WriteConflictError(
                f"instant {instant} cannot be committed: {other.action} {other.requested_time} of another writer has noted a "
                "checkpoint meanwhile. Run this again"
            )


def with_checkpoint(metadata: CommitMetadata, *, instant: str, current: Timeline) -> CommitMetadata:
    """Return what a commit says with the checkpoint of the write before it, unless it has one of its own.

    While a write that began earlier is under way none is carried on: that write may bring a newer one, which this commit
    would hide. Readers find the checkpoint further back then.

    Args:
        instant: Its instant time; a later write's checkpoint would stay when that write is taken back.
        current: Timeline now, read under the table's lock.
    """
    if _is_awaited(instant, current):
        return metadata
    return metadata.carrying(current.newest_metadata(before=instant))


def _is_awaited(instant: str, current: Timeline) -> bool:
    """Tell whether a write that began earlier has not completed yet; a planned clustering moves rows only."""
    return any(
        each.action in WRITE_ACTIONS and not (each.action == "replacecommit" and is_clustering(current, each))
        for each in current.pending
        if each.requested_time < instant
    )


def _other_columns(mine: CommitMetadata, younger: Sequence[Instant], current: Timeline) -> Instant | None:
    """Return the later write by whose columns readers would go; those that do not tell services apart, by a service's too."""
    if mine.schema_json is None or same_schema(mine.schema_json, current.table_schema_json()):
        return None
    return next(
        (each for each in reversed(younger) if current.commit_metadata(each).schema_json is not None), None
    )


def _other_checkpoint(mine: CommitMetadata, younger: Sequence[Instant], current: Timeline) -> Instant | None:
    """Return the later write whose checkpoint would count."""
    noted = mine.extra_metadata.get(CHECKPOINT)
    if noted is None:
        return None
    for each in reversed(younger):
        theirs = current.commit_metadata(each).extra_metadata.get(CHECKPOINT)
        if theirs is not None:
            return None if theirs == noted else each
    return None


def _says_the_same(one: str, other: str) -> bool:
    try:
        return bool(json.loads(one) == json.loads(other))
    except ValueError:
        return one == other


def _message(instant: str, mine: CommitMetadata, other: Instant, reason: str) -> str:
    return (
        f"instant {instant} ({mine.operation_type}) cannot be committed: {reason}, and {other.action} {other.requested_time} "
        "of another writer, which began later and came first, would hide that. The table is as the other writer left it; run "
        "this write again"
    )
