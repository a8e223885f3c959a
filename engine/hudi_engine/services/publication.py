"""What a service must know of the lists of files that are published to readers.

Readers hold on to the files of a published list, so a service that deletes files renews the list first and
spares what it still names. The list itself belongs to the catalog; this is the part of it that services use.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Publication:
    """The published file lists of one table.

    Args:
        publish: Brings the list up to the newest commit.
        live_files: Paths, relative to the table's base path, of all files that readers may hold on to.
        obsolete_sidecars: From partition paths and the oldest instant to keep, the paths of files that were
            made beside the data for readers and that no list needs any more.
    """

    publish: Callable[[], object]
    live_files: Callable[[], Collection[str]]
    obsolete_sidecars: Callable[[Sequence[str], str], Sequence[str]] | None = None
