"""Kinds of partition fields stored in their names, where Hudi does not read a table of version 6."""

from __future__ import annotations

from hudi_engine.format.config.key_generator import KINDS_PROPERTY, PARTITION_FIELDS
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import Storage


def has_kinds_in_names(config: TableConfig) -> bool:
    """Return whether a table of this engine names its partition fields with their kinds, as it did before."""
    stored = config.properties.get(PARTITION_FIELDS, "")
    return config.version == 6 and config.is_of_this_engine and ":" in stored


def kinds_beside_names(storage: Storage, config: TableConfig) -> TableConfig:
    """Store the kinds beside the names of the partition fields; the caller holds the table's lock.

    Returns:
        The table's settings afterwards.
    """
    if not has_kinds_in_names(config):
        return config
    names = ",".join(field.name for field in config.partition_fields)
    kinds = config.properties[PARTITION_FIELDS]
    config = config.with_properties({PARTITION_FIELDS: names, KINDS_PROPERTY: kinds})
    config.save(storage)
    return config
