"""What other readers go by: the file lists that are published to them, and another writer's metadata table.

Readers hold on to the files of a published list, so a writer that deletes files brings the list past them first and
spares what it still names. A metadata table would hide our commits from Hudi's readers unless it goes first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import FileStatus, Storage

logger = logging.getLogger(__name__)

METADATA_TABLE = ".hoodie/metadata"
METADATA_PROPERTIES = (
    "hoodie.table.metadata.partitions",
    "hoodie.table.metadata.partitions.inflight",
    "hoodie.table.index.defs.path",
)
_INDEX_DEFINITIONS = ".hoodie/.index_defs"


def has_foreign_metadata_table(storage: Storage, config: TableConfig) -> bool:
    """Return whether there is a metadata table, or what is left of one whose removal was cut short."""
    return _is_switched_on(config) or storage.exists(METADATA_TABLE)


def drop_foreign_metadata_table(storage: Storage, config: TableConfig) -> TableConfig:
    """Switch a live metadata table off, as a Hudi writer with ``hoodie.metadata.enable=false`` does.

    The properties go first: from then on readers list files, whatever is left of the folder. The caller holds the
    table's lock and continues to write.
    """
    if not has_foreign_metadata_table(storage, config):
        return config
    config.check_writable()
    if _is_switched_on(config):
        logger.warning(
            "%s: dropping the metadata table (%s) another writer built; Hudi builds it again when it writes next",
            storage.base,
            ", ".join(config.metadata_partitions) or "empty",
        )
        config = config.with_properties(removals=METADATA_PROPERTIES)
        config.save(storage)
    storage.delete_tree(METADATA_TABLE)
    storage.delete_tree(_INDEX_DEFINITIONS)
    return config


def _is_switched_on(config: TableConfig) -> bool:
    return bool(config.metadata_partitions) or any(key in config.properties for key in METADATA_PROPERTIES)


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
