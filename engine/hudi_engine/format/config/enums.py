"""Closed sets of values in Hudi's own spelling.

Each value is the text in ``hoodie.properties``, commit metadata or an option. Adding a kind
means adding it here and to the registry of the room that implements it.
"""

from __future__ import annotations

from enum import Enum


class Name(str, Enum):
    """A text of a closed set; in messages and files it is the text alone."""

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, format_spec: str) -> str:
        return format(str(self.value), format_spec)


class WrittenVersion(Name):
    """``hoodie.write.table.version``: the versions of tables that can be made."""

    SIX = "6"
    """What Athena, Trino and Apache Hudi before 1.0 read at most."""
    EIGHT = "8"
    """Apache Hudi 1.0."""
    NINE = "9"
    """Apache Hudi 1.1 and 1.2."""


class TableType(Name):
    """``hoodie.table.type``."""

    COPY_ON_WRITE = "COPY_ON_WRITE"
    MERGE_ON_READ = "MERGE_ON_READ"


class KeyGeneratorType(Name):
    """``hoodie.table.keygenerator.type``; older tables name a class, see :mod:`hudi_engine.format.config.table_config`."""

    SIMPLE = "SIMPLE"
    COMPLEX = "COMPLEX"
    TIMESTAMP = "TIMESTAMP"
    NON_PARTITION = "NON_PARTITION"
    CUSTOM = "CUSTOM"
    GLOBAL_DELETE = "GLOBAL_DELETE"


class MergeMode(Name):
    """How an older and a newer record of one key become one.

    The first two and CUSTOM are values of ``hoodie.record.merge.mode``; the others are what well-known
    payload classes do.
    """

    COMMIT_TIME_ORDERING = "COMMIT_TIME_ORDERING"
    """The newer write wins."""
    EVENT_TIME_ORDERING = "EVENT_TIME_ORDERING"
    """The greater ordering value wins, the newer write on a tie."""
    PARTIAL_UPDATE = "PARTIAL_UPDATE"
    """As event time, and null columns of the winner are filled from the loser (PartialUpdateAvroPayload)."""
    FILL_UNAVAILABLE = "FILL_UNAVAILABLE"
    """As event time, and columns of the winner with the text for an unavailable value are filled from the loser."""
    OVERWRITE_NON_DEFAULTS = "OVERWRITE_NON_DEFAULTS"
    """The newer write wins column by column where it is not null
    (OverwriteNonDefaultsWithLatestAvroPayload).
    """
    AWS_DMS = "AWS_DMS"
    """The newer write wins, and ``D`` or ``d`` in ``Op`` deletes (AWSDmsAvroPayload)."""
    CUSTOM = "CUSTOM"
    """A payload or merger class that this engine does not know."""


DECLARED_MERGE_MODES = (MergeMode.COMMIT_TIME_ORDERING, MergeMode.EVENT_TIME_ORDERING, MergeMode.CUSTOM)
"""``hoodie.record.merge.mode``."""


class WriteOperation(Name):
    """``operationType`` of commit metadata."""

    INSERT = "INSERT"
    INSERT_PREPPED = "INSERT_PREPPED"
    UPSERT = "UPSERT"
    UPSERT_PREPPED = "UPSERT_PREPPED"
    BULK_INSERT = "BULK_INSERT"
    BULK_INSERT_PREPPED = "BULK_INSERT_PREPPED"
    DELETE = "DELETE"
    DELETE_PREPPED = "DELETE_PREPPED"
    BOOTSTRAP = "BOOTSTRAP"
    INSERT_OVERWRITE = "INSERT_OVERWRITE"
    INSERT_OVERWRITE_TABLE = "INSERT_OVERWRITE_TABLE"
    CLUSTER = "CLUSTER"
    DELETE_PARTITION = "DELETE_PARTITION"
    COMPACT = "COMPACT"
    LOG_COMPACT = "LOG_COMPACT"
    INDEX = "INDEX"
    ALTER_SCHEMA = "ALTER_SCHEMA"
    UNKNOWN = "UNKNOWN"


SERVICE_OPERATIONS = frozenset(
    {WriteOperation.COMPACT, WriteOperation.LOG_COMPACT, WriteOperation.CLUSTER, WriteOperation.INDEX}
)
"""Operations of table services, which change neither rows nor columns."""


class IndexType(Name):
    """``hoodie.index.type``: how a write finds the file group of a key."""

    SIMPLE = "SIMPLE"
    BLOOM = "BLOOM"
    BUCKET = "BUCKET"
    GLOBAL_SIMPLE = "GLOBAL_SIMPLE"
    GLOBAL_BLOOM = "GLOBAL_BLOOM"
    RECORD_INDEX = "RECORD_INDEX"
    GLOBAL_RECORD_LEVEL_INDEX = "GLOBAL_RECORD_LEVEL_INDEX"


BLOOM_INDEXES = (IndexType.BLOOM, IndexType.GLOBAL_BLOOM)
RECORD_INDEXES = (IndexType.RECORD_INDEX, IndexType.GLOBAL_RECORD_LEVEL_INDEX)
"""Two names of one index: of Hudi up to 1.1, and since."""


class BloomFilterType(Name):
    """Values of the footer key ``hoodie_bloom_filter_type_code``; an absent key means ``SIMPLE``."""

    SIMPLE = "SIMPLE"
    DYNAMIC_V0 = "DYNAMIC_V0"


class BulkSortMode(Name):
    """``hoodie.bulkinsert.sort.mode``."""

    NONE = "NONE"
    PARTITION_SORT = "PARTITION_SORT"
    GLOBAL_SORT = "GLOBAL_SORT"
    PARTITION_PATH_REPARTITION = "PARTITION_PATH_REPARTITION"
    PARTITION_PATH_REPARTITION_AND_SORT = "PARTITION_PATH_REPARTITION_AND_SORT"


class ParquetCodec(Name):
    """``hoodie.parquet.compression.codec``."""

    ZSTD = "zstd"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    UNCOMPRESSED = "uncompressed"

    @property
    def arrow_name(self) -> str:
        """The codec by pyarrow's name."""
        return "none" if self is ParquetCodec.UNCOMPRESSED else self.value


class CdcLogging(Name):
    """``hoodie.table.cdc.supplemental.logging.mode``: what change data files keep of a change."""

    OP_KEY_ONLY = "OP_KEY_ONLY"
    DATA_BEFORE = "DATA_BEFORE"
    DATA_BEFORE_AFTER = "DATA_BEFORE_AFTER"


class LogBlockFormat(Name):
    """``hoodie.logfile.data.block.format``."""

    AVRO = "avro"
    PARQUET = "parquet"


class CompactionTrigger(Name):
    """``hoodie.compact.inline.trigger.strategy``."""

    NUM_COMMITS = "NUM_COMMITS"
    NUM_COMMITS_AFTER_LAST_REQUEST = "NUM_COMMITS_AFTER_LAST_REQUEST"
    TIME_ELAPSED = "TIME_ELAPSED"
    NUM_AND_TIME = "NUM_AND_TIME"
    NUM_OR_TIME = "NUM_OR_TIME"


class CompactionOrder(Name):
    """``hoodie.compaction.order``: which pending plan runs first."""

    FIFO = "FIFO"
    LIFO = "LIFO"


class CleanPolicy(Name):
    """``hoodie.clean.policy``: what a clean keeps."""

    KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
    KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"
    KEEP_LATEST_BY_HOURS = "KEEP_LATEST_BY_HOURS"


class CleanTrigger(Name):
    """``hoodie.clean.trigger.strategy``; the one there is."""

    NUM_COMMITS = "NUM_COMMITS"


class FailedWritesPolicy(Name):
    """``hoodie.cleaner.policy.failed.writes``: who rolls back a dead writer's instant."""

    EAGER = "EAGER"
    LAZY = "LAZY"
    NEVER = "NEVER"


class ConcurrencyMode(Name):
    """``hoodie.write.concurrency.mode``."""

    SINGLE_WRITER = "SINGLE_WRITER"
    OPTIMISTIC_CONCURRENCY_CONTROL = "OPTIMISTIC_CONCURRENCY_CONTROL"
    NON_BLOCKING_CONCURRENCY_CONTROL = "NON_BLOCKING_CONCURRENCY_CONTROL"
    """Several writers append to one file group at once (Flink); read, and refused by writes."""


class SchemaChange(Name):
    """``hoodie.engine.schema.evolution``: what a batch may do to the table's columns; new columns may always come."""

    COLUMNS = "columns"
    """No column changes its type."""
    WIDEN = "widen"
    """Numbers widen to numbers, but not in key, ordering and partition columns."""
    ANY = "any"
    """Whatever Hudi allows: numbers, dates and binary also become text, for good, in every column."""


class LayoutStrategy(Name):
    """``hoodie.layout.optimize.strategy``: how rows are ordered when they are clustered by columns."""

    LINEAR = "linear"
    """By the first column, then the second, and so on."""
    Z_ORDER = "z-order"
    """Along a Z-order curve, in which every column counts alike."""
    HILBERT = "hilbert"
    """Along a Hilbert curve, whose neighbours are neighbours in every column."""


class CurveBuild(Name):
    """``hoodie.layout.optimize.curve.build.method``: how values become coordinates of a curve."""

    DIRECT = "DIRECT"
    """By their distance from the smallest value."""
    SAMPLE = "SAMPLE"
    """By their rank in a sample, which evens out skewed values."""


class PartitionFilter(Name):
    """``hoodie.clustering.plan.partition.filter.mode``: which partitions a clustering plan looks at."""

    NONE = "NONE"
    RECENT_DAYS = "RECENT_DAYS"
    SELECTED_PARTITIONS = "SELECTED_PARTITIONS"


class MetricsReporter(Name):
    """``hoodie.metrics.reporter.type``."""

    INMEMORY = "INMEMORY"
    """No receiver: figures are in results and commits, and in the files that other options name."""
    PROMETHEUS = "PROMETHEUS"
    """A text file for the collector of the node exporter."""
    PROMETHEUS_PUSHGATEWAY = "PROMETHEUS_PUSHGATEWAY"
    DATADOG = "DATADOG"
    """Datagrams of statsd, with Datadog's tags, to an agent."""


class SyncStrategy(Name):
    """``hoodie.datasource.hive_sync.table.strategy``: which entries a merge-on-read table gets."""

    ALL = "ALL"
    """The table's name and ``_rt`` for the snapshot, ``_ro`` for the base files."""
    RO = "RO"
    """The table's name for the base files."""
    RT = "RT"
    """The table's name for the snapshot."""
