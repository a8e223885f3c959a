"""Building a table anew: in one replace instant while its definition stays, by a swap of folders when it changes."""

from __future__ import annotations

from hudi_engine.config.declared.write_options import IndexOptions
from hudi_engine.config.enums import IndexType
from hudi_engine.config.properties_file import PROPERTIES_PATH
from hudi_engine.config.table_config import TableConfig
from hudi_engine.storage.base import Storage
from hudi_engine.write.define.table_options import STICKY_INDEX


def same_definition(stored: TableConfig, wanted: TableConfig) -> bool:
    """Tell whether a table can be rebuilt in place: key, ordering, partitioning, type, merge rule and buckets are equal."""
    return (
        all(
            getattr(stored, name) == getattr(wanted, name)
            for name in (
                "table_type",
                "key_generator",
                "hive_style",
                "url_encode",
                "merge_mode",
                "delete_marker",
                "name",
            )
        )
        and _columns(stored) == _columns(wanted)
        and _buckets(stored) == _buckets(wanted)
        and stored.version == wanted.version
        and stored.timestamp_keygen == wanted.timestamp_keygen
    )


def _columns(config: TableConfig) -> list[list[str]]:
    """Return key, ordering and partition columns; a rebuild in place keeps the table's spelling of them."""
    partitions = [f"{field.name}:{field.kind}" for field in config.partition_fields]
    roles = (config.record_key_fields, config.ordering_fields, partitions)
    return [[name.lower() for name in names] for names in roles]


def _buckets(config: TableConfig) -> list[str | None] | None:
    """Return settings of the bucket index, which decide where rows are; None for the others."""
    if config.properties.get(IndexOptions.TYPE.key, "").upper() != IndexType.BUCKET:
        return None
    return [config.properties.get(option.key) for option in STICKY_INDEX]


def exists(storage: Storage) -> bool:
    """Tell whether a table's properties are at the storage's base."""
    return storage.exists(PROPERTIES_PATH)
