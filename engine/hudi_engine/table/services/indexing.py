"""Building and dropping indexes of the metadata table while writes go on.

The table's lock is held while an index is built: writers that come meanwhile wait for it as long as their options let them.
"""

from __future__ import annotations

from collections.abc import Sequence

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.declared.metadata_options import MetadataOptions
from hudi_engine.format.config.option import Option
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.metadata.definitions import IndexDefinitions
from hudi_engine.format.metadata.records import MetadataPartition
from hudi_engine.format.metadata.statistics import indexed_columns
from hudi_engine.format.schema.avro import without_meta_fields
from hudi_engine.format.storage.base import Storage
from hudi_engine.table.metadata.build import build, check_metadata_options, wanted_partitions
from hudi_engine.table.metadata.writer import (
    drop_metadata_partitions,
    drop_metadata_table,
    drop_unsupported_partitions,
)
from hudi_engine.table.txn.publication import Publication
from hudi_engine.table.txn.recovery import recovered

_BUILT_BY: dict[MetadataPartition, Option[bool]] = {
    MetadataPartition.COLUMN_STATS: MetadataOptions.COLUMN_STATS,
    MetadataPartition.BLOOM_FILTERS: MetadataOptions.BLOOM_FILTERS,
    MetadataPartition.RECORD_INDEX: MetadataOptions.RECORD_INDEX,
}
_NAMED = (MetadataPartition.SECONDARY_INDEX, MetadataPartition.EXPRESSION_INDEX)
INDEXES = (MetadataPartition.FILES.value, *(each.value for each in _BUILT_BY))
"""Names of indexes; statistics of partitions come and go with those of columns."""


def create_index(
    storage: Storage, options: Options, publication: Publication, name: str, columns: Sequence[str] = ()
) -> tuple[str, ...]:
    """Build an index over the table as it is, and ``files`` where it is not there yet; writes keep it from then on.

    Args:
        name: One of `INDEXES`.
        columns: Columns of ``column_stats``; the first 32 without any.

    Returns:
        The partitions of the metadata table that were built; none when the index was there.

    Raises:
        ConfigError: The name is no legal one, columns are given for another index or can have no statistics, or the table has
            version 6.
        RepeatedKeyError: The record index is to be built, and keys are stored in several file groups.
    """
    partition = _index(name)
    given: dict[str, object] = {MetadataOptions.ENABLED.key: True}
    if partition in _BUILT_BY:
        given[_BUILT_BY[partition].key] = True
    if columns and partition is not MetadataPartition.COLUMN_STATS:
        raise ConfigError(f"columns {', '.join(columns)} are given for {name}; only column_stats has columns")
    if columns:
        given[MetadataOptions.COLUMN_STATS_COLUMNS.key] = ",".join(columns)
    wanted = options.merged(given)
    with recovered(storage, options, publication, f"build the index {name}") as (config, timeline):
        config.check_writable()
        check_metadata_options(config, wanted)
        schema = timeline.table_schema_json()
        if schema is None:
            raise ConfigError(
                f"table {config.name!r} has no columns yet; write to it first, then build {name}"
            )
        _check_columns(columns, config, schema)
        before = set(config.metadata_partitions)
        config = drop_unsupported_partitions(storage, config)
        missing = [each for each in wanted_partitions(config, wanted) if each.value not in before]
        after = build(storage, config, wanted, schema, missing)
        return tuple(each for each in after.metadata_partitions if each not in before)


def drop_index(storage: Storage, options: Options, publication: Publication, name: str) -> tuple[str, ...]:
    """Drop an index; ``files`` drops the whole metadata table.

    Returns:
        The partitions of the metadata table that went; none when the index was not there.

    Raises:
        ConfigError: The name is no legal one.
    """
    partition = _index(name)
    with recovered(storage, options, publication, f"drop the index {name}") as (config, _):
        there = config.metadata_partitions
        if partition is MetadataPartition.FILES:
            drop_metadata_table(storage, config)
            return there
        going = [partition.value]
        if partition is MetadataPartition.COLUMN_STATS:
            going.append(MetadataPartition.PARTITION_STATS.value)
        removed = [each for each in going if each in there]
        if removed:
            drop_metadata_partitions(storage, config, IndexDefinitions.load(storage, config), removed)
        return tuple(removed)


def index_facts(storage: Storage, config: TableConfig) -> list[tuple[str, str, str]]:
    """Return name, type and columns of each index, as ``SHOW INDEXES`` of Hudi has them; only named ones state their columns."""
    entries, facts = IndexDefinitions.load(storage, config).entries, []
    for name in sorted(config.metadata_partitions):
        if name in entries and MetadataPartition.of(name) in _NAMED:
            fields = ",".join(entries[name].get("sourceFields") or ())
            facts.append((name, str(entries[name].get("indexType", "")).lower(), fields))
        elif name != MetadataPartition.FILES.value:
            facts.append((name, name, ""))
    return facts


def _check_columns(columns: Sequence[str], config: TableConfig, schema: str) -> None:
    known = indexed_columns(without_meta_fields(schema), columns, is_v2=config.version >= 9)
    unknown = [each for each in columns if each not in known]
    if unknown:
        raise ConfigError(
            f"columns has {', '.join(unknown)}, of which table {config.name!r} can have no statistics; name columns of the table "
            "that are no struct, array or map"
        )


def _index(name: str) -> MetadataPartition:
    if name not in INDEXES:
        raise ConfigError(f"index is {name!r}; legal values: {', '.join(INDEXES)}")
    return MetadataPartition(name)
