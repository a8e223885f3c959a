"""Savepoints, whose files the cleaner keeps.

A savepoint of commit T is ``T.savepoint.inflight`` (empty) and ``T.savepoint`` with the names of the files of
the table as of T (Hudi table format, savepoint). Deleting it removes both; no data file is touched.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hudi_engine.errors import CorruptTableError, HudiError, TimelineError
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.view import FileSystemView
from hudi_engine.format.logformat.format import BlockType
from hudi_engine.format.logformat.reader import scan_blocks
from hudi_engine.format.logformat.source import FileSource
from hudi_engine.format.parallel import on_threads
from hudi_engine.format.storage.base import Storage, storage_errors
from hudi_engine.format.timeline.active import CommittedInstants, Timeline
from hudi_engine.format.timeline.avro_file import decode_avro_file, encode_avro_file
from hudi_engine.format.timeline.instant import Instant, State
from hudi_engine.format.timeline.rolled_back import check_saving
from hudi_engine.format.timeline.schemas import SAVEPOINT_METADATA
from hudi_engine.format.timeline.writer import TimelineWriter
from hudi_engine.table.txn.open_instant import OpenInstant
from hudi_engine.table.txn.publication import Publication
from hudi_engine.table.txn.recovery import recovered, table_lock


@dataclass(frozen=True)
class Savepoint:
    """A saved commit.

    Args:
        user: Who saved it, may be ``""``.
        comments: Why, may be ``""``.
        files: Partition path to the names of the base and log files that are kept.
    """

    instant: str
    user: str
    comments: str
    saved_at_ms: int
    files: dict[str, tuple[str, ...]]


def create_savepoint(
    storage: Storage,
    options: Options,
    publication: Publication,
    instant_time: str | None = None,
    *,
    user: str = "",
    comments: str = "",
) -> Savepoint:
    """Save a commit, under the table's lock. Saving one that is saved already changes nothing.

    Args:
        instant_time: Requested time of a completed write; None for the newest.
    """
    with recovered(storage, options, publication, "create a savepoint") as (config, timeline):
        saved = completed_write(storage, timeline, instant_time).requested_time
        if saved in {savepoint.requested_time for savepoint in timeline.savepoints}:
            return read_savepoint(storage, timeline, saved)
        check_not_cleaned(timeline, saved)
        check_saving(timeline, saved)
        view = FileSystemView.build(storage, config, timeline, as_of=saved)
        slices = view.latest_slices()
        others = _logs_of_others(storage, timeline, slices, saved)
        files: dict[str, list[str]] = {}
        for piece in slices:
            names = [path.rpartition("/")[2] for path in piece.paths if path not in others]
            files.setdefault(piece.partition, []).extend(names)
        savepoint = Savepoint(
            saved,
            user,
            comments,
            int(time.time() * 1000),
            {partition: tuple(names) for partition, names in sorted(files.items())},
        )
        opened = OpenInstant(storage, config, saved, "savepoint")
        opened.start()
        opened.complete(_encode(savepoint))
        return savepoint


def delete_savepoint(
    storage: Storage,
    options: Options,
    instant_time: str,
    *,
    release: Callable[[TableConfig, Timeline], None] | None = None,
) -> None:
    """Give a saved commit free to the cleaner, under the table's lock."""
    with storage_errors(storage, "delete a savepoint"), table_lock(storage, options):
        config = TableConfig.load(storage)
        config.check_writable()
        timeline = Timeline.load(storage, config)
        check_savepoint(storage, timeline, instant_time)
        if release is not None:
            release(config, timeline)
        TimelineWriter(storage, config).delete(instant_time, "savepoint", State.COMPLETED, State.INFLIGHT)


def list_savepoints(storage: Storage) -> tuple[Savepoint, ...]:
    """Return the savepoints of a table, oldest first; every table version."""
    timeline = Timeline.load(storage, TableConfig.load(storage))
    return tuple(read_savepoint(storage, timeline, instant.requested_time) for instant in timeline.savepoints)


def completed_write(storage: Storage, timeline: Timeline, instant_time: str | None) -> Instant:
    """Return a completed write of the active timeline, the newest for None."""
    writes = timeline.completed_writes
    found = [write for write in writes if instant_time in (None, write.requested_time)]
    if not found:
        if not writes:
            raise TimelineError(
                f"the table at {storage.base!r} has no completed write on its active timeline yet"
            )
        newest = ", ".join(write.requested_time for write in writes[-5:])
        raise TimelineError(
            f"there is no completed write {instant_time!r} on the active timeline of {storage.base!r}; the newest are: {newest}"
        )
    return found[-1]


def check_savepoint(storage: Storage, timeline: Timeline, instant_time: str) -> None:
    """Raise TimelineError, naming the savepoints there are, when ``instant_time`` is none."""
    saved = [savepoint.requested_time for savepoint in timeline.savepoints]
    if instant_time not in saved:
        raise TimelineError(
            f"there is no savepoint {instant_time!r} of the table at {storage.base!r}; the savepoints are: "
            f"{', '.join(saved) or 'none'}"
        )


def check_not_cleaned(timeline: Timeline, instant_time: str) -> None:
    """Raise TimelineError when files of the table as of an instant are or will be cleaned away; the newest state is whole."""
    bound, newest = timeline.cleaned_up_to, [write.requested_time for write in timeline.completed_writes[-1:]]
    if bound is not None and instant_time < bound.oldest and instant_time not in newest:
        raise TimelineError(
            f"the table as of {instant_time} is not whole any more: clean {bound.clean} keeps only what {bound.oldest} and later "
            "commits need. Choose a later commit, or one with a savepoint"
        )


def read_savepoint(storage: Storage, timeline: Timeline, saved: str) -> Savepoint:
    """Return the savepoint of a commit."""
    instant = timeline.find(saved, "savepoint")
    record = decode_avro_file(timeline.read_file(instant.file_name), f"{storage.base}/{instant.file_name}")
    files: dict[str, Any] = record.get("partitionMetadata") or {}
    return Savepoint(
        instant.requested_time,
        str(record.get("savepointedBy") or ""),
        str(record.get("comments") or ""),
        int(record.get("savepointedAt") or 0),
        {partition: tuple(entry["savepointDataFile"]) for partition, entry in sorted(files.items())},
    )


def _logs_of_others(
    storage: Storage, timeline: Timeline, slices: Iterable[FileSlice], saved: str
) -> frozenset[str]:
    """Return the logs that have nothing of the saved commit or one before: they go where their writer is rolled back."""
    logs = [log.path for piece in slices for log in (*piece.log_files, *piece.cdc_files)]
    known: set[str] = set()
    for write in timeline.completed_writes if logs else ():
        if write.requested_time <= saved:
            with suppress(CorruptTableError):
                known |= timeline.commit_metadata(write).file_paths()
    unnamed = [path for path in logs if path not in known]
    committed = timeline.committed(saved)
    counts = on_threads(lambda path: _holds_any(storage, path, committed), unnamed)
    return frozenset(path for path, is_part in zip(unnamed, counts, strict=True) if not is_part)


def _holds_any(storage: Storage, path: str, committed: CommittedInstants) -> bool:
    """Return whether a log has a block of a commit that counts, one that takes blocks back, or one that cannot be judged."""
    try:
        with storage.open_input(path) as source:
            blocks = [each for each in scan_blocks(FileSource(source)) if each.kind is not BlockType.CORRUPT]
            return any(each.is_rollback or committed(each.instant_time) for each in blocks)
    except FileNotFoundError:
        return False
    except HudiError:
        return True


def _encode(savepoint: Savepoint) -> bytes:
    return encode_avro_file(
        SAVEPOINT_METADATA,
        {
            "savepointedBy": savepoint.user,
            "savepointedAt": savepoint.saved_at_ms,
            "comments": savepoint.comments,
            "partitionMetadata": {
                partition: {"partitionPath": partition, "savepointDataFile": list(names)}
                for partition, names in savepoint.files.items()
            },
            "version": 1,
        },
    )
