"""Options of the entries in a Hive metastore that other engines read by (see `hudi_engine.format.config.options`)."""

from __future__ import annotations

from hudi_engine.format.config.enums import SyncStrategy
from hudi_engine.format.config.option import bool_option, choice_option, int_option, text_option

SYNC = "Entries for other engines in a Hive metastore"


class SyncOptions:
    """Entries with Hudi's input formats, in the form of Apache Hudi's HiveSyncTool."""

    GROUP = SYNC

    ENABLED = bool_option(
        "hoodie.datasource.hive_sync.enable",
        False,
        "After each commit the Hive metastore of the session gets entries by which Hive, Trino and Apache Hudi read the table.",
        aliases=("hoodie.datasource.meta.sync.enable",),
    )
    DATABASE = text_option("hoodie.datasource.hive_sync.database", "default", "Database of the entries.")
    TABLE = text_option(
        "hoodie.datasource.hive_sync.table", None, "Name of the entries; the table's own name without it."
    )
    AUTO_CREATE = bool_option(
        "hoodie.datasource.hive_sync.auto_create_database",
        True,
        "A database that is not there is made; with false it is an error.",
    )
    EXTRACTOR = text_option(
        "hoodie.datasource.hive_sync.partition_extractor_class",
        None,
        "How a partition path becomes values: NonPartitionedExtractor, MultiPartKeysValueExtractor, "
        "HiveStylePartitionValueExtractor, SinglePartPartitionValueExtractor, SlashEncodedDayPartitionValueExtractor or "
        "SlashEncodedHourPartitionValueExtractor of `org.apache.hudi.hive`, or a Python function as package.module:name, which "
        "gets a path and returns its values (not in a dbt model); without it by the table's partitioning.",
        aliases=("hoodie.datasource.partition_extractor_class",),
    )
    PARTITION_FIELDS = text_option(
        "hoodie.datasource.hive_sync.partition_fields",
        None,
        "Names of the partition columns in the entries, separated by commas, for an extractor that gives other values than the "
        "table's partition columns have, such as year,month,day; without it the table's own.",
    )
    SUPPORT_TIMESTAMP = bool_option(
        "hoodie.datasource.hive_sync.support_timestamp",
        True,
        "Timestamps are timestamps in the entries; with false they are bigint, as for readers that take them from Parquet so.",
    )
    DECODE = bool_option(
        "hoodie.meta.sync.decode_partition",
        False,
        "Escaped characters of partition folders are decoded in the values of partitions.",
    )
    SKIP_RO_SUFFIX = bool_option(
        "hoodie.datasource.hive_sync.skip_ro_suffix",
        False,
        "The read-optimized entry of a merge-on-read table has the table's name, without _ro.",
    )
    STRATEGY = choice_option(
        "hoodie.datasource.hive_sync.table.strategy",
        SyncStrategy.ALL,
        SyncStrategy,
        "Which entries a merge-on-read table gets: all, or one that is read-optimized or a snapshot.",
    )
    OMIT_META = bool_option(
        "hoodie.datasource.hive_sync.omit_metadata_fields",
        False,
        "The entries leave Hudi's five meta columns out.",
    )
    AS_DATASOURCE = bool_option(
        "hoodie.datasource.hive_sync.sync_as_datasource",
        True,
        "The entries say to Spark that their provider is hudi; Hive and Trino need only the input format.",
    )
    SCHEMA_PART = int_option(
        "hoodie.datasource.hive_sync.schema_string_length_thresh",
        4000,
        "Characters of one table property with a part of the schema.",
        minimum=1,
    )
    IGNORE_ERRORS = bool_option(
        "hoodie.datasource.hive_sync.ignore_exceptions",
        False,
        "A failure to make entries is a warning. Without this option the call fails, although its commit is kept.",
    )
