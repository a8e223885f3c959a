"""Options of the metadata table (see `hudi_engine.format.config.options`)."""

from __future__ import annotations

from hudi_engine.format.config.option import bool_option, int_option, text_option

METADATA = "Metadata table"


class MetadataOptions:
    """The metadata table and its indexes."""

    GROUP = METADATA

    ENABLED = bool_option(
        "hoodie.metadata.enable",
        None,
        "true: a write builds the metadata table, with the indexes of the options below, where the table has none. false: a write "
        "drops it. Not set: true on tables of versions 8 and 9; on version 6 one that is there is kept.",
    )
    COLUMN_STATS = bool_option(
        "hoodie.metadata.index.column.stats.enable",
        False,
        "Statistics of columns by file, and by partition, are part of a metadata table that is built.",
    )
    COLUMN_STATS_COLUMNS = text_option(
        "hoodie.metadata.index.column.stats.column.list",
        None,
        "Columns of the statistics, separated by commas, nested ones with dots. Not set: the first 32 columns.",
    )
    BLOOM_FILTERS = bool_option(
        "hoodie.metadata.index.bloom.filter.enable",
        False,
        "The Bloom filters of base files are part of a metadata table that is built.",
    )
    RECORD_INDEX = bool_option(
        "hoodie.metadata.global.record.level.index.enable",
        False,
        "The file group of each record key is part of a metadata table that is built.",
        aliases=("hoodie.metadata.record.index.enable",),
    )
    PARTITIONED_RECORD_INDEX = bool_option(
        "hoodie.metadata.record.level.index.enable",
        False,
        "The same by partition of the table: a key may be in several partitions. On tables of version 9 with partitions.",
    )
    RECORD_INDEX_GROUPS = int_option(
        "hoodie.metadata.record.index.min.filegroup.count",
        10,
        "File groups of a record index that is built, at least; one more for each GiB of 48 bytes a key, doubled for growth.",
        minimum=1,
    )
