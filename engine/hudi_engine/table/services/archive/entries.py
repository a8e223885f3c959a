"""Entries of the archive: one for every timeline file of an instant, with what the file holds.

Source: Hudi table format, archived timeline (``HoodieArchivedMetaEntry``); which payload goes into which
field is what Apache Hudi 0.15 does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone, tzinfo
from typing import Any

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.archive_files import EntryKey, encode_archive
from hudi_engine.format.timeline.avro_file import decode_avro_file
from hudi_engine.format.timeline.clock import format_instant
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.format.timeline.history import ArchivedInstant
from hudi_engine.format.timeline.instant import (
    COMPLETED_ACTION,
    WRITE_ACTIONS,
    Instant,
    State,
    parse_instant,
)

_PLANNED, _BEGUN = (State.REQUESTED, State.INFLIGHT), (State.INFLIGHT, State.COMPLETED)


def _in_states(action: str, states: Iterable[State], entry_field: str) -> dict[tuple[str, State], str]:
    return {(action, state): entry_field for state in states}


_AVRO_FIELDS: Mapping[tuple[str, State], str] = {
    **_in_states("clean", _PLANNED, "hoodieCleanerPlan"),
    ("clean", State.COMPLETED): "hoodieCleanMetadata",
    ("rollback", State.COMPLETED): "hoodieRollbackMetadata",
    **_in_states("compaction", _PLANNED, "hoodieCompactionPlan"),
    **_in_states("logcompaction", _PLANNED, "hoodieCompactionPlan"),
    ("replacecommit", State.REQUESTED): "hoodieRequestedReplaceMetadata",
}
_COMMIT_FIELDS: Mapping[tuple[str, State], str] = {
    **_in_states("commit", _BEGUN, "hoodieCommitMetadata"),
    **_in_states("deltacommit", _BEGUN, "hoodieCommitMetadata"),
    ("replacecommit", State.INFLIGHT): "HoodieInflightReplaceMetadata",
    ("replacecommit", State.COMPLETED): "hoodieReplaceCommitMetadata",
}


@dataclass(frozen=True)
class TimelineFile:
    """One file of the active timeline.

    Args:
        instant: The state that the file stands for.
        modified_ms: When it was written, in epoch milliseconds.
    """

    instant: Instant
    path: str
    modified_ms: int

    @property
    def key(self) -> EntryKey:
        """What the entry of the file is known by."""
        return self.instant.requested_time, self.instant.action, self.instant.state.value


def files_of(storage: Storage, config: TableConfig, instants: Iterable[Instant]) -> list[TimelineFile]:
    """Return the timeline files of completed instants in the order of the instants and their states.

    A completed compaction has its plan under the action ``compaction``, and so on.
    """
    wanted = {(instant.requested_time, instant.action) for instant in instants}
    found = []
    for status in storage.list(config.timeline_path):
        instant = None if status.is_dir else parse_instant(status.name, config.layout_version)
        if instant is None:
            continue
        done = COMPLETED_ACTION.get(instant.action, instant.action)
        if (instant.requested_time, done) in wanted:
            found.append(TimelineFile(instant, status.path, status.modified_ms))
    return sorted(found, key=lambda file: (file.instant.requested_time, file.instant.state.rank))


def history_rows(
    storage: Storage, completed: Iterable[TimelineFile], files: Iterable[TimelineFile]
) -> Iterator[ArchivedInstant]:
    """Yield the rows of completed instants.

    Args:
        files: All of their timeline files.

    Raises:
        CorruptTableError: The file of a commit cannot be read.
    """
    plans = {file.instant.requested_time: file for file in files if file.instant.state is State.REQUESTED}
    for file in completed:
        instant = file.instant
        body, source = storage.read(file.path), f"{storage.base}/{file.path}"
        if instant.action in WRITE_ACTIONS:
            CommitMetadata.from_bytes(body, source)
        planned = plans.get(instant.requested_time)
        plan = storage.read(planned.path) if planned is not None else b""
        completion_time = instant.completion_time or instant.requested_time
        yield ArchivedInstant(instant.requested_time, completion_time, instant.action, body, plan or None)


def encode_entries(storage: Storage, files: Iterable[TimelineFile], batch: int, zone: tzinfo | None) -> bytes:
    """Return the content of an archive file.

    Raises:
        CorruptTableError: when the file of a completed instant cannot be read.
    """
    return encode_archive(list(_entries(storage, files, zone)), batch)


def _entries(
    storage: Storage, files: Iterable[TimelineFile], zone: tzinfo | None
) -> Iterator[dict[str, Any]]:
    for file in files:
        changed = format_instant(datetime.fromtimestamp(file.modified_ms / 1000, timezone.utc), zone)
        yield archive_entry(file.instant, storage.read(file.path), changed, f"{storage.base}/{file.path}")


def archive_entry(instant: Instant, body: bytes, changed: str, source: str = "the archive") -> dict[str, Any]:
    """Return the entry of one timeline file.

    Args:
        changed: When the instant came into its state, in the digits of the timeline.
        source: Name of the file, for the message.
    """
    return {
        "commitTime": instant.requested_time,
        "actionType": instant.action,
        "actionState": instant.state.value,
        "version": None,
        "stateTransitionTime": changed,
        **_payload(instant, body, source),
    }


def _payload(instant: Instant, body: bytes, source: str) -> dict[str, Any]:
    """Return the field that holds what the file contains; a plan that nobody needs any more may be unreadable."""
    kind = instant.action, instant.state
    if not body:
        return {}
    try:
        if kind in _AVRO_FIELDS:
            return {_AVRO_FIELDS[kind]: decode_avro_file(body, source)}
        if kind in _COMMIT_FIELDS:
            return {_COMMIT_FIELDS[kind]: _commit_record(CommitMetadata.from_bytes(body, source))}
    except CorruptTableError:
        if instant.is_completed:
            raise
    return {}


def _commit_record(metadata: CommitMetadata) -> dict[str, Any]:
    record = metadata.to_dict()
    record["extraMetadata"] = {key: str(value) for key, value in metadata.extra_metadata.items()}
    return record
