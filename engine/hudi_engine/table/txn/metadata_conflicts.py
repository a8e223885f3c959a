"""Conflicts over what a commit sets for the whole table: schema, column ids, checkpoint and batches of streams.

Readers take the schema, and in timelines of this engine the checkpoint, from the write of the greatest requested time that has
one, not from the one that completed last. So a write that a later one has overtaken cannot change them any more. Hudi takes the
column ids of a table that ALTER TABLE changed with schema on read from the last commit that may change columns: one that lacks
them ends them, and columns that were renamed read as null from older files.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter

from hudi_engine.errors import (
    ConfigError,
    ConsumedMeanwhileError,
    WriteConflictError,
)
from hudi_engine.format.config.declared.write_options import WriteOptions
from hudi_engine.format.config.options import Options, laid_over, resolve_options
from hudi_engine.format.config.own_keys import BATCHES, CHECKPOINT
from hudi_engine.format.schema.internal_schema import SchemaHistory
from hudi_engine.format.spelling import shortened
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.active import Timeline, newest_first
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.format.timeline.instant import WRITE_ACTIONS, Instant
from hudi_engine.format.timeline.schema_commits import LATEST_SCHEMA, load_schema_history, pass_history_on
from hudi_engine.table.txn.conflict import Footprint, commits_since, is_clustering


def column_ids(history: SchemaHistory | None, instant: str) -> dict[str, str]:
    """Return what a commit of ``instant`` carries of the history, nothing for a table without one."""
    return {} if history is None else {LATEST_SCHEMA: history.text_at(instant)}


def with_column_ids(
    storage: Storage, timeline: Timeline, instant: str, metadata: CommitMetadata
) -> CommitMetadata:
    """Return what a write commits, with the column ids of the table, whose history it passes on."""
    newest = timeline.newest_metadata()
    theirs = None if newest is None else newest.extra_metadata.get(LATEST_SCHEMA)
    mine = metadata.extra_metadata.get(LATEST_SCHEMA)
    if mine is None and theirs is None:
        return metadata
    history = load_schema_history(storage, timeline)
    if history is None:
        return replace(
            metadata, extra_metadata={LATEST_SCHEMA: theirs or mine or "", **metadata.extra_metadata}
        )
    if mine != history.texts[-1]:
        raise WriteConflictError(
            f"instant {instant} cannot be committed: another writer has renamed, added or dropped columns meanwhile "
            "(schema on read). Run this write again"
        )
    pass_history_on(storage, timeline, instant)
    return metadata


def latest_checkpoint(timeline: Timeline) -> tuple[Instant, str] | None:
    """Return the current checkpoint with the write that has it, None when there is none."""
    for instant, metadata in newest_first(timeline, attrgetter("order")):
        text = metadata.extra_metadata.get(CHECKPOINT)
        if text is not None:
            return instant, text
    return None


def with_batch(options: Options, batch_id: int) -> Options:
    """Return the options of a write that notes its batch in the commit; raises ConfigError for what is no number of a batch."""
    if isinstance(batch_id, bool) or not isinstance(batch_id, int) or batch_id < 0:
        raise ConfigError(
            f"batch_id is {batch_id!r}; legal values: whole numbers from 0 on, such as those of foreachBatch"
        )
    noted = json.dumps({str(options[WriteOptions.BATCH_IDENTIFIER]): str(batch_id)})
    return resolve_options(laid_over(options.raw, {BATCHES: noted}))


def replayed_batch(timeline: Timeline, options: Options) -> str | None:
    """Return the batch of a write, in words, when the table has it or a later one of its stream; None otherwise."""
    return _replayed(timeline, options.raw.get(BATCHES))


def check_batch(mine: CommitMetadata, *, instant: str, current: Timeline) -> None:
    """Raise when another writer has committed the batch of this write meanwhile."""
    found = _replayed(current, mine.extra_metadata.get(BATCHES))
    if found is not None:
        raise ConsumedMeanwhileError(
            f"instant {instant} ({mine.operation_type}) cannot be committed: another writer has committed {found} meanwhile; the "
            "table has the rows"
        )


def _replayed(timeline: Timeline, noted: str | None) -> str | None:
    if noted is None:
        return None
    known = latest_batches(timeline)
    for stream, batch in _batches(noted).items():
        if stream in known and int(known[stream]) >= int(batch):
            return f"batch {batch} of {stream!r} (the last one is {known[stream]})"
    return None


def latest_batches(timeline: Timeline) -> dict[str, str]:
    """Return the last batch of each stream that a table has."""
    for _, metadata in newest_first(timeline, attrgetter("order")):
        if BATCHES in metadata.extra_metadata:
            return _batches(metadata.extra_metadata[BATCHES])
    return {}


def _batches(text: str) -> dict[str, str]:
    """Return noted batches by stream; what another writer notes in other words counts for nothing."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    items = found.items() if isinstance(found, dict) else ()
    return {str(stream): str(batch) for stream, batch in items if str(batch).isdecimal()}


def check_schema_and_checkpoint(mine: CommitMetadata, *, instant: str, current: Timeline) -> None:
    """Raise when a schema change or checkpoint of this write would be hidden by a write that began later."""
    younger = [each for each in current.completed_writes if each.requested_time > instant]
    if not younger:
        return
    hiding = _hiding_schema(mine, younger, current)
    if hiding is not None:
        raise WriteConflictError(_message(instant, mine, hiding, "it changes the table's columns"))
    hiding = _hiding_checkpoint(mine, younger, current)
    if hiding is not None:
        raise WriteConflictError(_message(instant, mine, hiding, "it notes what was consumed of its inputs"))
    hiding = _hiding_batch(mine, younger, current)
    if hiding is not None:
        raise WriteConflictError(_message(instant, mine, hiding, "it notes its batch"))


def check_checkpoint_parent(mine: CommitMetadata, follows: str, *, instant: str, current: Timeline) -> None:
    """Raise when the rows of a write were taken after another checkpoint than the one that the table has by now."""
    last = latest_checkpoint(current)
    noted = "{}" if last is None else last[1]
    if _same_json(noted, follows):
        return
    where = "" if last is None else f", by {last[0].action} {last[0].requested_time}"
    raise ConsumedMeanwhileError(
        f"instant {instant} ({mine.operation_type}) cannot be committed: its rows were read from the inputs after the checkpoint "
        f"{shortened(follows)}, and the table has {shortened(noted)} by now{where}. Read them again after that one; the table is "
        "as the other writer left it"
    )


def check_only_checkpoint(mine: CommitMetadata, *, instant: str, base: Timeline, current: Timeline) -> None:
    """Raise when a commit is nothing but a checkpoint, and another one was noted since it was made up."""
    if CHECKPOINT not in mine.extra_metadata or Footprint.of(mine).touched:
        return
    last = latest_checkpoint(base)
    known = None if last is None else last[1]
    for other, metadata in commits_since(base, current):
        if metadata.extra_metadata.get(CHECKPOINT) not in (None, known):
            raise WriteConflictError(
                f"instant {instant} cannot be committed: {other.action} {other.requested_time} of another writer has noted a "
                "checkpoint meanwhile. Run this again"
            )


def with_checkpoint(metadata: CommitMetadata, *, instant: str, current: Timeline) -> CommitMetadata:
    """Return commit metadata with the checkpoint of the write before it, unless it has one of its own.

    While a write that began earlier is under way none is carried on: that write may bring a newer one, which this commit
    would hide. Readers find the checkpoint further back then.
    """
    noted = metadata.extra_metadata.get(BATCHES)
    if noted is not None:
        batches = json.dumps({**latest_batches(current), **_batches(noted)})
        metadata = replace(metadata, extra_metadata={**metadata.extra_metadata, BATCHES: batches})
    if current.config.table_version.has_completion_times:
        # This commit will be the newest by completion, and the checkpoint is read from that.
        newest = max(current.completed_writes, key=attrgetter("order"), default=None)
        return metadata.carrying(None if newest is None else current.commit_metadata(newest))
    if _is_awaited(instant, current):
        return metadata
    return metadata.carrying(current.newest_metadata(before=instant))


def _is_awaited(instant: str, current: Timeline) -> bool:
    """Return whether a write that began earlier has not completed yet; a planned clustering moves rows only."""
    return any(
        each.action in WRITE_ACTIONS and not is_clustering(current, each)
        for each in current.pending
        if each.requested_time < instant
    )


def _hiding_schema(mine: CommitMetadata, younger: Sequence[Instant], current: Timeline) -> Instant | None:
    """Return the later write whose schema readers would use; some readers use a service's too."""
    if mine.schema_json is None or same_schema(mine.schema_json, current.table_schema_json()):
        return None
    return next(
        (each for each in reversed(younger) if current.commit_metadata(each).schema_json is not None), None
    )


def _hiding_checkpoint(mine: CommitMetadata, younger: Sequence[Instant], current: Timeline) -> Instant | None:
    """Return the later write whose checkpoint readers would use."""
    noted = mine.extra_metadata.get(CHECKPOINT)
    if noted is None:
        return None
    for each in reversed(younger):
        theirs = current.commit_metadata(each).extra_metadata.get(CHECKPOINT)
        if theirs is not None:
            return None if theirs == noted else each
    return None


def _hiding_batch(mine: CommitMetadata, younger: Sequence[Instant], current: Timeline) -> Instant | None:
    """Return the later write whose batches readers would use; where completion times order the writes this one is the last."""
    noted = mine.extra_metadata.get(BATCHES)
    if noted is None or current.config.table_version.has_completion_times:
        return None
    return next((each for each in younger if BATCHES in current.commit_metadata(each).extra_metadata), None)


def _same_json(one: str, other: str) -> bool:
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


def merged_schema(instant: str, mine: str | None, base: str | None, current: str | None) -> str | None:
    """Return the table schema that this write's commit must carry.

    The newest commit's schema is the table's. When another writer has added columns meanwhile, a write that
    did not change the schema takes theirs over, since its files read as null there.

    Args:
        mine: Avro schema JSON that this write wants to commit.
    """
    if mine is None or current is None or same_schema(current, base) or same_schema(mine, current):
        return current if mine is None else mine
    if same_schema(mine, base):
        return current
    own = {field["name"]: field["type"] for field in json.loads(mine)["fields"]}
    for field in json.loads(current)["fields"]:
        if own.get(field["name"]) != field["type"]:
            raise WriteConflictError(
                f"instant {instant} cannot be committed: another writer has changed the table's schema meanwhile, and column "
                f"{field['name']!r} is not the same here. Run this write again"
            )
    return mine


def same_schema(left: str | None, right: str | None) -> bool:
    """Return whether two Avro schemas (JSON, or None) have the same columns."""
    if left is None or right is None:
        return left is right
    return left == right or bool(json.loads(left)["fields"] == json.loads(right)["fields"])
