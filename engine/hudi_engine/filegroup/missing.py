"""Base files that a commit names and nobody took out, and that are not there: readers would see older rows, or fewer.

Only what is at hand is looked at: commits that were read anyway, and the listing of the view. The file group of a commit
keeps the commit's base file, or a newer one, until it is replaced; as no write after the first one that counts has left
the active timeline, every replacement is on it.
"""

from __future__ import annotations

from collections.abc import Iterator

from hudi_engine.config.table_config import TableConfig
from hudi_engine.errors import CorruptTableError
from hudi_engine.filegroup.base_file import parse_base_file
from hudi_engine.filegroup.view import FileSystemView
from hudi_engine.storage.base import Storage
from hudi_engine.timeline.active import Timeline


def check_nothing_missing(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    view: FileSystemView,
    as_of: str | None = None,
) -> None:
    """Refuse a view of the whole table that lacks a file; as long as all are there, the storage is not asked.

    Args:
        storage: The table's storage.
        config: The table's settings.
        timeline: The timeline that the view was made by.
        view: The table at ``as_of``.
        as_of: Newest requested time that counts, from which on no clean has deleted files; None for now.

    Raises:
        CorruptTableError: Naming file and commit.
    """
    for path, instant in _missing(timeline, view, as_of):
        # Whoever wrote, cleaned or rolled back between timeline and listing has left a trace.
        if Timeline.load(storage, config).instants != timeline.instants:
            return
        if not storage.exists(path):
            raise CorruptTableError(
                f"base file {path!r} of {storage.base!r} is not there, although commit {instant} wrote it and no later one took "
                "it out: its rows would be missing, or older ones shown. Restore the file, or look at the table with validate "
                "and go back to an earlier commit"
            )


def _missing(timeline: Timeline, view: FileSystemView, as_of: str | None) -> Iterator[tuple[str, str]]:
    """Yield base files that commits at hand name and the listing lacks, with the commits."""
    first = timeline.first_write_time or ""
    for instant, metadata in timeline.known_metadata():
        if instant.requested_time < first or (as_of is not None and instant.requested_time > as_of):
            continue
        for partition, stat in metadata.write_stats():
            base = parse_base_file(stat.file_name, partition)
            if base is None or base.instant != instant.requested_time or not stat.num_writes:
                continue
            key = (partition, base.file_id)
            if key not in view.replaced_groups and not view.has_base_file(key, base.path, base.instant):
                yield base.path, instant.requested_time
