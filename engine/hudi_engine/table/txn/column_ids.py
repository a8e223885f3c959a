"""What a commit contains of the column ids of a table that ALTER TABLE changed with schema on read.

Hudi takes the ids from the last commit that may change columns: one that lacks them ends them, and columns that were
renamed read as null from older files.
"""

from __future__ import annotations

from dataclasses import replace

from hudi_engine.errors import WriteConflictError
from hudi_engine.format.schema.internal_schema import SchemaHistory
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.format.timeline.schema_commits import LATEST_SCHEMA, load_schema_history, pass_history_on


def column_ids(history: SchemaHistory | None, instant: str) -> dict[str, str]:
    """Return what a commit of ``instant`` carries of the history, nothing for a table without one."""
    return {} if history is None else {LATEST_SCHEMA: history.text_at(instant)}


def with_column_ids(
    storage: Storage, timeline: Timeline, instant: str, metadata: CommitMetadata
) -> CommitMetadata:
    """Return what a write commits, with the column ids of the table, whose history it passes on.

    Args:
        timeline: The timeline now; the caller holds the table's lock.
        metadata: What it commits, with the ids that it found.

    Raises:
        WriteConflictError: Another writer changed the columns meanwhile.
    """
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
