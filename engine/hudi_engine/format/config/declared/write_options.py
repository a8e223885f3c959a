"""Options of writes: rows, index, files (see `hudi_engine.format.config.options`)."""

from __future__ import annotations

from hudi_engine.format.config.enums import (
    BloomFilterType,
    BulkSortMode,
    IndexType,
    LogBlockFormat,
    ParquetCodec,
)
from hudi_engine.format.config.option import (
    bool_option,
    choice_option,
    float_option,
    int_option,
    rate_option,
    text_option,
)

WRITE = "Writing"
INDEX = "Index"
STORAGE = "File sizes and Parquet"


class WriteOptions:
    """How rows are written."""

    GROUP = WRITE

    COMBINE_BEFORE_UPSERT = bool_option(
        "hoodie.combine.before.upsert",
        True,
        "Rows of one batch with the same key are merged into one before an upsert.",
    )
    COMBINE_BEFORE_INSERT = bool_option(
        "hoodie.combine.before.insert",
        False,
        "Rows of one batch with the same key are merged into one before an insert.",
    )
    COMBINE_BEFORE_DELETE = bool_option(
        "hoodie.combine.before.delete", True, "Keys given twice to one delete count once."
    )
    INSERT_DROP_DUPLICATES = bool_option(
        "hoodie.datasource.write.insert.drop.duplicates",
        False,
        "An insert drops the rows whose key is already in the table; a bulk_insert, which looks up no keys, is refused.",
    )
    BULK_INSERT_SHUFFLE_BY_PARTITION = bool_option(
        "hoodie.bulkinsert.shuffle.by.partition",
        None,
        "bulk_insert shuffles rows by partition first: fewer files, at the risk of skew. Not set: it does, unless the rows "
        "come straight from Parquet files, by columns and filters, in tasks so large that each gives every partition a file of "
        "8 MB or more; all rows of such files go to as few tasks as there are cores and can hold them.",
        aliases=("hoodie.bulkinsert.shuffle.by_partition",),
    )
    BULK_INSERT_SORT_MODE = choice_option(
        "hoodie.bulkinsert.sort.mode",
        BulkSortMode.NONE,
        BulkSortMode,
        "Order of the rows in a bulk_insert or overwrite, also of few rows; sorted files prune better and load slower.",
    )
    BULK_INSERT_SORT_COLUMNS = text_option(
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns",
        None,
        "Columns by which a bulk_insert or overwrite orders the rows of a partition, by hoodie.layout.optimize.strategy.",
    )
    BULK_INSERT_PARALLELISM = int_option(
        "hoodie.bulkinsert.shuffle.parallelism", 0, "Tasks of a bulk_insert; 0 lets Spark decide."
    )
    UPSERT_PARALLELISM = int_option(
        "hoodie.upsert.shuffle.parallelism",
        0,
        "Most tasks that write an upsert or merge; 0: one for each file group or partition it writes, as cores are free. The "
        "number of files does not depend on it. Small batches are written by threads of the driver.",
    )
    INSERT_PARALLELISM = int_option("hoodie.insert.shuffle.parallelism", 0, "The same for an insert.")
    DELETE_PARALLELISM = int_option("hoodie.delete.shuffle.parallelism", 0, "The same for a delete.")
    NULL_FOR_MISSING_COLUMNS = bool_option(
        "hoodie.write.set.null.for.missing.columns",
        True,
        "A column of the table that the batch lacks is written as null; false refuses such a batch.",
    )
    PARTIAL_UPDATES = bool_option(
        "hoodie.spark.sql.merge.into.partial.updates",
        True,
        "Merge-on-read tables of versions 8 and 9: where an update, a merge or merge_update_columns gives some columns only, logs "
        "have these and the ordering fields; false writes whole rows.",
    )
    SKIP_EMPTY_COMMIT = bool_option(
        "hoodie.skip.empty.commit", False, "A write of no rows makes no instant (this engine's own)."
    )
    ERROR_TABLE = bool_option(
        "hoodie.errortable.enable",
        False,
        "Models of dbt: rows that break a constraint, do not fit a column's type or lack a key go to the table <table>__errors, "
        "and the others are committed. Writes of HudiTable refuse it.",
    )
    BATCH_IDENTIFIER = text_option(
        "hoodie.datasource.write.streaming.checkpoint.identifier",
        "default_single_writer",
        "The stream, or other program, that a write with batch_id belongs to; of each one the last batch is noted in the commit.",
    )
    COMMIT_METADATA_PREFIX = text_option(
        "hoodie.datasource.write.commitmeta.key.prefix",
        "_",
        "Options whose key starts with this are copied into the commit's extra metadata.",
    )


class IndexOptions:
    """How rows find their files."""

    GROUP = INDEX

    TYPE = choice_option(
        "hoodie.index.type",
        None,
        IndexType,
        "How rows find their file group; SIMPLE when absent. Global types make a key unique over all partitions. With RECORD_INDEX "
        "or GLOBAL_RECORD_LEVEL_INDEX (two names of one index) the metadata table gets a record index; every global type uses one.",
    )
    SIMPLE_MOVES_PARTITION = bool_option(
        "hoodie.simple.index.update.partition.path",
        True,
        "GLOBAL_SIMPLE: a key that arrives with another partition moves there; false keeps it where it is, with the "
        "partition columns it has there.",
    )
    BLOOM_MOVES_PARTITION = bool_option(
        "hoodie.bloom.index.update.partition.path", True, "The same for GLOBAL_BLOOM."
    )
    RECORD_MOVES_PARTITION = bool_option(
        "hoodie.record.index.update.partition.path",
        False,
        "The same for RECORD_INDEX and GLOBAL_RECORD_LEVEL_INDEX.",
    )
    PRUNE_BY_RANGES = bool_option(
        "hoodie.bloom.index.prune.by.ranges",
        True,
        "Files whose key range excludes the batch's keys are not opened.",
    )
    BUCKETS = int_option("hoodie.bucket.index.num.buckets", 4, "Buckets of a partition.", minimum=1)
    HASH_FIELD = text_option(
        "hoodie.bucket.index.hash.field",
        None,
        "Key fields that are hashed (BUCKET); the record key when absent.",
    )
    BLOOM_IN_FOOTER = bool_option(
        "hoodie.parquet.bloom.filter.enabled",
        True,
        "Base files have a Bloom filter of their keys in the footer, 3 to 5 bytes a row, which every scan reads. With false it is "
        "left out, unless the index is BLOOM or GLOBAL_BLOOM, or hoodie.metadata.index.bloom.filter.enable is true: Apache Hudi "
        "fails where one of these finds none.",
    )
    BLOOM_ENTRIES = int_option(
        "hoodie.index.bloom.num_entries",
        None,
        "Keys a Bloom filter is sized for; sized to the file when absent (Hudi: 60000).",
        minimum=1,
    )
    BLOOM_FALSE_POSITIVES = rate_option(
        "hoodie.index.bloom.fpp",
        None,
        "False positive rate of a Bloom filter; when absent 1e-5 of one that is sized to its file, so that "
        "scans, which read it too, stay fast, and Hudi's 1e-9 of one for a given number of keys.",
    )
    BLOOM_FILTER_TYPE = choice_option(
        "hoodie.bloom.index.filter.type", BloomFilterType.DYNAMIC_V0, BloomFilterType, "Kind of Bloom filter."
    )
    BLOOM_MAX_ENTRIES = int_option(
        "hoodie.bloom.index.filter.dynamic.max.entries",
        100000,
        "Largest size of a dynamic Bloom filter.",
        minimum=1,
    )


class FileOptions:
    """Sizes and format of files."""

    GROUP = STORAGE

    MAX_FILE_SIZE = int_option(
        "hoodie.parquet.max.file.size", 120 * 1024 * 1024, "Target size of a base file in bytes.", minimum=1
    )
    SMALL_FILE_LIMIT = int_option(
        "hoodie.parquet.small.file.limit",
        104857600,
        "Base files below this many bytes take new rows first; 0 switches packing off.",
    )
    ROW_GROUP_SIZE = int_option(
        "hoodie.parquet.block.size", 120 * 1024 * 1024, "Row group size in bytes.", minimum=1
    )
    PAGE_SIZE = int_option("hoodie.parquet.page.size", 1024 * 1024, "Page size in bytes.", minimum=1024)
    CODEC = choice_option(
        "hoodie.parquet.compression.codec",
        ParquetCodec.ZSTD,
        ParquetCodec,
        "Codec of base files (Hudi's default is gzip, which writes many times slower).",
    )
    DICTIONARY = bool_option("hoodie.parquet.dictionary.enabled", True, "Parquet dictionary encoding.")
    RECORD_SIZE_ESTIMATE = int_option(
        "hoodie.copyonwrite.record.size.estimate",
        1024,
        "Bytes that a row is assumed to take until commits have counts.",
        minimum=1,
    )
    INSERT_SPLIT_SIZE = int_option(
        "hoodie.copyonwrite.insert.split.size",
        500000,
        "Rows of a new base file when sizes are not learned from commits.",
        minimum=1,
    )
    INSERT_AUTO_SPLIT = bool_option(
        "hoodie.copyonwrite.insert.auto.split",
        True,
        "Rows of a new base file are computed from the average row size.",
    )
    LOG_COMPRESSION_RATIO = float_option(
        "hoodie.logfile.to.parquet.compression.ratio",
        0.35,
        "Bytes of a base file that a byte of logs becomes, about: what logs count when a file with room for new rows is looked "
        "for, and in a clustering plan.",
    )
    LOG_FILE_SIZE = int_option(
        "hoodie.logfile.max.size", 1024 * 1024 * 1024, "Bytes after which a new log file is begun.", minimum=1
    )
    LOG_BLOCK_SIZE = int_option(
        "hoodie.logfile.data.block.max.size",
        256 * 1024 * 1024,
        "Bytes of a log data block, and about those of a delete block.",
        minimum=1,
    )
    LOG_BLOCK_FORMAT = choice_option(
        "hoodie.logfile.data.block.format",
        None,
        LogBlockFormat,
        "Format of log data blocks; by size when absent (small blocks Avro, large ones Parquet).",
    )
