"""The files in which Hudi keeps the column ids of tables that ALTER TABLE changed with schema on read.

Each holds the whole history and is named by a commit. Hudi takes the newest one whose commit is on its active
timeline, so every write passes the history on under its own instant.
"""

from __future__ import annotations

from hudi_engine.errors import CorruptTableError
from hudi_engine.schema.internal_schema import SchemaHistory, parse_history
from hudi_engine.storage.base import FileStatus, Storage
from hudi_engine.timeline.active import Timeline

LATEST_SCHEMA = "latest_schema"
"""Key of the extra metadata that says the columns and their ids as of a commit."""

SCHEMA_FOLDER = ".hoodie/.schema"
_SUFFIX = ".schemacommit"


def load_schema_history(storage: Storage, timeline: Timeline) -> SchemaHistory | None:
    """Return column ids of a table that was altered by schema on read; None for other tables.

    Args:
        storage: The table's storage.
        timeline: The table's timeline.

    Raises:
        CorruptTableError: The newest history file is damaged.
    """
    path = _newest(storage.list(SCHEMA_FOLDER), timeline)
    return None if path is None else parse_history(_content(storage, path), path, timeline.is_committed)


def pass_history_on(storage: Storage, timeline: Timeline, instant: str) -> None:
    """Store the newest history under another instant too; files of instants that left the active timeline go.

    Args:
        storage: The table's storage.
        timeline: The table's timeline.
        instant: The instant, which is about to complete.

    Raises:
        CorruptTableError: The newest history file is damaged.
    """
    files = storage.list(SCHEMA_FOLDER)
    newest = _newest(files, timeline)
    if newest is None:
        return
    path = f"{SCHEMA_FOLDER}/{instant}{_SUFFIX}"
    content = _content(storage, newest)
    for state, body in ((".requested", b""), (".inflight", b""), ("", content)):
        storage.replace(path + state, body)
    oldest = timeline.instants[0].requested_time if timeline.instants else instant
    for file in files:
        time = _instant_of(file)
        if time is not None and time < min(oldest, _time(newest)):
            storage.remove(file.path)


def _newest(files: list[FileStatus], timeline: Timeline) -> str | None:
    finished = sorted(
        (file.path for file in files if _instant_of(file) and file.name.endswith(_SUFFIX)), reverse=True
    )
    return next((path for path in finished if timeline.is_committed(_time(path))), None)


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
