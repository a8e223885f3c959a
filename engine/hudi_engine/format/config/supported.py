"""Which tables this engine reads, and which it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hudi_engine.errors import UnsupportedTableError

if TYPE_CHECKING:
    from hudi_engine.format.config.properties_file import PropertiesStorage
    from hudi_engine.format.config.table_config import TableConfig

LAYOUT_OF_VERSION = {4: 1, 5: 1, 6: 1, 8: 2, 9: 2}
"""Table versions that are read, and the timeline layout of each."""
_WRITTEN_VERSION = 6
_BOOTSTRAP_INDEX = "HFileBootstrapIndex"
_BOOTSTRAP_INDEX_FOLDER = ".hoodie/.aux/.bootstrap/.partitions"


def check_readable(config: TableConfig) -> None:
    """Refuse table versions and layouts that this engine cannot read.

    Raises:
        UnsupportedTableError: It names the version or feature and the way out.
    """
    legal = ", ".join(f"{version} (layout {layout})" for version, layout in LAYOUT_OF_VERSION.items())
    if LAYOUT_OF_VERSION.get(config.version) != config.layout_version:
        raise UnsupportedTableError(
            f"table {config.name!r} has version {config.version} and timeline layout {config.layout_version}; "
            f"this engine reads versions {legal}. Upgrade an older table with Apache Hudi first"
        )


def check_rows_are_inside(config: TableConfig, storage: PropertiesStorage) -> None:
    """Refuse a table whose rows lie partly in the files that it was bootstrapped from.

    After a full bootstrap (``FULL_RECORD`` for every partition) all rows are in the table, though its properties name the
    source ever after. Only partitions that took the keys alone (``METADATA_ONLY``) are named by Hudi's bootstrap index
    (HFileBootstrapIndex), so a table without one is like any other; other kinds of index are not looked into.

    Args:
        storage: Where the table lies; one folder is listed where the settings name a source.

    Raises:
        UnsupportedTableError: It names the source and the way out.
    """
    source = config.properties.get("hoodie.bootstrap.base.path", "").strip()
    if not source:
        return
    index = config.properties.get("hoodie.bootstrap.index.class", _BOOTSTRAP_INDEX).rpartition(".")[2]
    if index == _BOOTSTRAP_INDEX and not storage.list(_BOOTSTRAP_INDEX_FOLDER):
        return
    raise UnsupportedTableError(
        f"table {config.name!r} is bootstrapped from {source!r}: its rows lie partly outside the table. "
        "Bootstrap it again with hoodie.bootstrap.mode.selector.regex.mode=FULL_RECORD for every partition, or copy its "
        "rows into another table, with Apache Hudi"
    )


def check_writable(config: TableConfig) -> None:
    """Refuse tables that this engine reads but must not write.

    Raises:
        UnsupportedTableError: It names the version or feature and the way out.
    """
    if config.version != _WRITTEN_VERSION or config.layout_version != 1:
        way_out = (
            "Write to it once with Apache Hudi 0.14 or 0.15, which upgrades it to version 6"
            if config.version < _WRITTEN_VERSION
            else "Write to it with the Hudi release that upgraded it"
        )
        raise UnsupportedTableError(
            f"table {config.name!r} has version {config.version} and timeline layout {config.layout_version}; "
            f"this engine writes version 6 with layout 1. {way_out}, or rebuild it here"
        )
    features = {
        f"base file format {config.base_file_format}": config.base_file_format != "PARQUET",
        "hoodie.datasource.write.drop.partition.columns=true": config.drop_partition_columns,
        "hoodie.populate.meta.fields=false": not config.populate_meta_fields,
        "hoodie.partition.metafile.use.base.format=true": config.partition_metafile_use_base_format,
        "hoodie.datasource.write.slash.separated.date.partitioning=true": config.slashed_dates,
    }
    found = [feature for feature, present in features.items() if present]
    if found:
        raise UnsupportedTableError(
            f"table {config.name!r} has {', '.join(found)}; this engine reads such tables but does not "
            "write them. Write to it with Apache Hudi, or rebuild it here without the feature"
        )
