"""Another writer's metadata table: it would hide our commits from Hudi's readers unless it goes first."""

from __future__ import annotations

import logging

from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import Storage

logger = logging.getLogger(__name__)

METADATA_TABLE = ".hoodie/metadata"
METADATA_PROPERTIES = ("hoodie.table.metadata.partitions", "hoodie.table.metadata.partitions.inflight")


def has_foreign_metadata_table(storage: Storage, config: TableConfig) -> bool:
    """Return whether there is a metadata table, or what is left of one whose removal was cut short."""
    return _is_switched_on(config) or storage.exists(METADATA_TABLE)


def drop_foreign_metadata_table(storage: Storage, config: TableConfig) -> TableConfig:
    """Switch a live metadata table off, as a Hudi writer with ``hoodie.metadata.enable=false`` does.

    The properties go first: from then on readers list files, whatever is left of the folder. The caller holds the
    table's lock and continues to write.

    Returns:
        The table's settings afterwards.
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
    return config


def _is_switched_on(config: TableConfig) -> bool:
    return bool(config.metadata_partitions) or any(key in config.properties for key in METADATA_PROPERTIES)
