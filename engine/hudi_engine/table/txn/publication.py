"""What other readers go by: the file lists that are published to them.

Readers hold on to the files of a published list, so a writer that deletes files brings the list past them first and
spares what it still names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import FileStatus


@dataclass(frozen=True)
class Publication:
    """The published file lists of one table.

    Args:
        publish: Brings the list up to the newest commit; both this and ``renew`` get the table's settings, this also the
            timeline right after a commit of the caller, which saves reading it.
        live_files: Paths, relative to the table's base path, of all files that readers may hold on to.
        obsolete_sidecars: From what lies in partitions, by their paths, and the oldest instant to keep, the paths of files
            that were made next to the data for readers and that no list needs any more.
        renew: Rebuilds the list, if there is one, so that a slow publisher cannot win with an older state.
        shows: Whether the newest list shows one of the instants.
    """

    publish: Callable[..., object]
    live_files: Callable[[], Collection[str]]
    obsolete_sidecars: Callable[[Mapping[str, Sequence[FileStatus]], str], Sequence[str]] | None = None
    renew: Callable[[TableConfig], object] = lambda _: None
    shows: Callable[[Collection[str]], bool] = lambda _: False


UNPUBLISHED = Publication(lambda _: None, frozenset)
"""Of a table that no list was published for."""
