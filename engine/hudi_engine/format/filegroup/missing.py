"""Files that a commit names and no one took out, and that are not there: readers would see older rows, or fewer.

Of the newest state only what is at hand is looked at: commits that were read anyway, and the listing of the view. Of an
earlier one every commit is. The file group of a commit keeps the commit's base file, or a newer one, until it is replaced; as
no write after the first one that counts has left the active timeline, every replacement is on it. A log counts until its group
has a base file of a later write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hudi_engine.errors import CorruptTableError, TimelineError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.base_file import parse_base_file
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.log_file import parse_log_file
from hudi_engine.format.filegroup.view import FileSystemView, is_merged
from hudi_engine.format.parallel import on_threads
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.format.timeline.instant import Instant

GONE = "was deleted since the table was listed"
"""Text for a file that was removed between the look at a table and its reading."""


def check_nothing_missing(
    storage: Storage, config: TableConfig, timeline: Timeline, view: FileSystemView, as_of: str | None = None
) -> None:
    """Refuse a view of the whole table that lacks a file; the storage is queried only when one seems to be missing."""
    if as_of is not None:
        earlier = [each for each in timeline.completed_writes if each.requested_time <= as_of]
        on_threads(timeline.commit_metadata, earlier)
    for path, instant in _missing(timeline, view, as_of):
        # Whoever wrote, cleaned or rolled back between timeline and listing has left a trace.
        if Timeline.load(storage, config).instants != timeline.instants:
            return
        if not storage.exists(path):
            raise CorruptTableError(
                f"data file {path!r} of {storage.base!r} is not there, although commit {instant} wrote it and no later one took "
                "it out: its rows would be missing, or older ones shown. Restore the file, or look at the table with validate "
                "and go back to an earlier commit"
            )


def check_slice_whole(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    found: FileSlice | None,
    files: Iterable[tuple[str, str]],
) -> None:
    """Refuse a slice that lacks a file of the writes that made it; as long as all are there, the storage is not queried.

    Args:
        found: The slice of a file group at a state, which no replace commit took out; None when there is none.
        files: Paths that writes up to that state have made in the group, each with the write's requested time.
    """
    for path, written in files:
        completed = timeline.completion_time(written) or written
        if _is_missed(found, path, written, completed) and not storage.exists(path):
            if Timeline.load(storage, config).instants != timeline.instants:
                raise TimelineError(
                    f"file {path!r} of {storage.base!r} went while it was looked for. Read again"
                )
            raise CorruptTableError(
                f"data file {path!r} of {storage.base!r} is not there, although commit {written} wrote it and no later one took "
                "it out: what it changed is unknown. Restore the file, or look at the table with validate"
            )


def _is_missed(found: FileSlice | None, path: str, written: str, completed: str) -> bool:
    """Return whether a slice should have a file of a write, or a base file that came later, and has neither."""
    partition = path.rpartition("/")[0]
    base, log = parse_base_file(path, partition), parse_log_file(path, partition)
    if base is not None:
        lost = found is not None and found.base_file is None and found.base_instant == base.instant
        return found is None or lost or found.base_instant < base.instant
    if log is None or log.is_cdc:
        return False
    if found is None:
        return True
    return not is_merged(found.base_file, log, written, completed) and all(
        log.path != each.path for each in found.log_files
    )


def _missing(timeline: Timeline, view: FileSystemView, as_of: str | None) -> Iterator[tuple[str, str]]:
    """Yield data files that commits at hand name and the view lacks, with the commits."""
    first = (timeline.first_write_time if as_of is None else _first_without_a_gap(timeline)) or ""
    for instant, metadata in timeline.known_metadata():
        written = instant.requested_time
        if written < first or (as_of is not None and written > as_of):
            continue
        for partition, stat in metadata.write_stats():
            if _counts(view, partition, stat, instant):
                yield stat.path or "", written


def _first_without_a_gap(timeline: Timeline) -> str | None:
    """Return the first write since which all are on the timeline: a saved one too, as long as none after it was archived."""
    if not timeline.completed_writes:
        return None
    oldest = timeline.completed_writes[0].requested_time
    if oldest == timeline.first_write_time:
        return oldest
    archived = timeline.archived.completed_writes
    return timeline.first_write_time if any(each.requested_time > oldest for each in archived) else oldest


def _counts(view: FileSystemView, partition: str, stat: WriteStat, write: Instant) -> bool:
    """Return whether a file of a commit belongs to the view and is not in it."""
    base = parse_base_file(stat.file_name, partition)
    if base is not None:
        key = (partition, base.file_id)
        is_there = base.instant != write.requested_time or view.has_base_file(key, base.path, base.instant)
    else:
        log = parse_log_file(stat.file_name, partition)
        if log is None or log.is_cdc:
            return False
        key = (partition, log.file_id)
        is_there = view.has_log_file(key, log, write)
    return stat.has_content and not is_there and key not in view.replaced_groups
