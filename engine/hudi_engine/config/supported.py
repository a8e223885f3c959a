"""Which tables this engine reads, and which it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hudi_engine.errors import UnsupportedTableError

if TYPE_CHECKING:
    from hudi_engine.config.table_config import TableConfig

LAYOUT_OF_VERSION = {6: 1, 8: 2, 9: 2}
"""Table versions that are read, and the timeline layout of each."""


def check_readable(config: TableConfig) -> None:
    """Refuse table versions, layouts and bootstrapped tables that this engine cannot read.

    Raises:
        UnsupportedTableError: It names the version or feature and the way out.
    """
    legal = ", ".join(f"{version} (layout {layout})" for version, layout in LAYOUT_OF_VERSION.items())
    if LAYOUT_OF_VERSION.get(config.version) != config.layout_version:
        raise UnsupportedTableError(
            f"table {config.name!r} has version {config.version} and timeline layout {config.layout_version}; "
            f"this engine reads versions {legal}. Upgrade an older table with Apache Hudi first"
        )
    base = config.properties.get("hoodie.bootstrap.base.path", "").strip()
    if base:
        raise UnsupportedTableError(
            f"table {config.name!r} is bootstrapped from {base!r}: "
            "its rows lie partly outside the table. Run a full bootstrap or rewrite it with Apache Hudi "
            "first"
        )


def check_writable(config: TableConfig) -> None:
    """Refuse tables that this engine reads but must not write.

    Raises:
        UnsupportedTableError: It names the version or feature and the way out.
    """
    if config.version != 6 or config.layout_version != 1:
        raise UnsupportedTableError(
            f"table {config.name!r} has version {config.version} and timeline layout {config.layout_version}; "
            "this engine writes version 6 with layout 1. Write to it with the Hudi release that "
            "upgraded it, or rebuild it here"
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
