"""The files in which Hudi keeps the column ids of tables that ALTER TABLE changed with schema on read.

Each holds the whole history and is named by a commit. Hudi takes the newest one whose commit is on its active
timeline, so every write passes the history on under its own instant. One that is older than the timeline counts here too, unless
its commit was taken back: Apache Hudi leaves the file where it rolls a commit back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.schema.internal_schema import SchemaHistory, parse_history
from hudi_engine.format.storage.base import FileStatus, Storage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.rolled_back import rolled_back_by

LATEST_SCHEMA = "latest_schema"
"""Key of the extra metadata that states the columns and their ids as of a commit."""

SCHEMA_FOLDER = ".hoodie/.schema"
_SUFFIX = ".schemacommit"


def load_schema_history(storage: Storage, timeline: Timeline) -> SchemaHistory | None:
    """Return column ids of a table that was altered by schema on read; None for other tables."""
    path = _newest(storage.list(SCHEMA_FOLDER), timeline)
    if path is None:
        return None
    return parse_history(_content(storage, path), path, partial(_counts, timeline, by_archive=False))


def pass_history_on(storage: Storage, timeline: Timeline, instant: str) -> None:
    """Store the newest history under another instant too; files of instants that left the active timeline go."""
    files = storage.list(SCHEMA_FOLDER)
    newest = _newest(files, timeline)
    if newest is None:
        return
    path = f"{SCHEMA_FOLDER}/{instant}{_SUFFIX}"
    content = _without_undone(_content(storage, newest), newest, timeline)
    for state, body in ((".requested", b""), (".inflight", b""), ("", content)):
        storage.replace(path + state, body)
    oldest = timeline.instants[0].requested_time if timeline.instants else instant
    for file in files:
        time = _instant_of(file)
        if time is not None and time < min(oldest, _time(newest)):
            storage.remove(file.path)


def histories_of(storage: Storage, timeline: Timeline, as_of: str | None = None) -> Iterator[str]:
    """Yield the paths of the files of those commits that belong to a table."""
    for file in storage.list(SCHEMA_FOLDER):
        time = _instant_of(file)
        if time is not None and (as_of is None or time <= as_of) and _counts(timeline, time):
            yield file.path


def drop_history(storage: Storage, instant: str) -> None:
    """Remove the files of an instant that is taken back: once archiving has passed it, they would count again."""
    for file in storage.list(SCHEMA_FOLDER):
        if _instant_of(file) == instant:
            storage.remove(file.path)


def _newest(files: list[FileStatus], timeline: Timeline) -> str | None:
    finished = sorted(
        (file.path for file in files if _instant_of(file) and file.name.endswith(_SUFFIX)), reverse=True
    )
    return next((path for path in finished if _counts(timeline, _time(path))), None)


def _counts(timeline: Timeline, time: str, *, by_archive: bool = True) -> bool:
    """Return whether a commit of a version belongs to the table.

    Within a file the archive is not queried, which would be read whole for every version that is older than the timeline: the
    commit of the file had made sure of them.
    """
    return timeline.is_committed(time) and rolled_back_by(timeline, time, by_archive=by_archive) is None


def _without_undone(content: bytes, path: str, timeline: Timeline) -> bytes:
    """Return a history without versions that were taken back, which no one could know once that is archived."""
    parse_history(content, path)
    whole = json.loads(content)
    kept = [
        each
        for each in whole["schemas"]
        if int(each["version_id"]) == 0
        or rolled_back_by(timeline, str(each["version_id"]), by_archive=False) is None
    ]
    return content if len(kept) == len(whole["schemas"]) else json.dumps({**whole, "schemas": kept}).encode()


def _instant_of(file: FileStatus) -> str | None:
    known = not file.is_dir and _SUFFIX in file.name and file.name[:1].isdigit()
    return _time(file.path) if known else None


def _time(path: str) -> str:
    return path.rpartition("/")[2].partition(_SUFFIX)[0].partition("_")[0]


def _content(storage: Storage, path: str) -> bytes:
    data = storage.read(path)
    if not data:
        raise CorruptTableError(f"the schema history {path!r} is empty")
    return data
