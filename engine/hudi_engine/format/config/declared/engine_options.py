"""Options of reads, of failed writes and locks, and of this engine (see `hudi_engine.format.config.options`)."""

from __future__ import annotations

from hudi_engine.format.config.enums import ConcurrencyMode, FailedWritesPolicy, SchemaChange
from hudi_engine.format.config.option import (
    bool_option,
    choice_option,
    folder_option,
    int_option,
)

READ = "Reading and merging"
LOCKS = "Failed writes and locks"
ENGINE = "This engine"


class MergeOptions:
    """Memory of merging."""

    GROUP = READ

    MERGE_MEMORY = int_option(
        "hoodie.memory.merge.max.size",
        100 * 1024 * 1024,
        "Bytes of log records, or of a batch's rows for one file, held in memory while merging; above it they spill.",
        minimum=1,
    )
    COMPACTION_MEMORY = int_option(
        "hoodie.memory.compaction.max.size", 1024 * 1024 * 1024, "The same for compaction.", minimum=1
    )
    SPILL_FOLDER = folder_option(
        "hoodie.memory.spillable.map.path",
        "Local folder for rows that spill, made where it is missing; the system's temp folder when absent.",
    )


class ReadOptions:
    """Which files reads open."""

    GROUP = READ

    DATA_SKIPPING = bool_option(
        "hoodie.enable.data.skipping",
        True,
        "Whether reads with a filter, and look-ups of keys, leave out files by the indexes of the metadata table.",
    )


class WriterOptions:
    """Failed writes, locks and conflicts."""

    GROUP = LOCKS

    FAILED_WRITES_POLICY = choice_option(
        "hoodie.cleaner.policy.failed.writes",
        FailedWritesPolicy.EAGER,
        FailedWritesPolicy,
        "Who rolls back a dead writer's instant: the next writer, the next clean, or no writer.",
        aliases=("hoodie.clean.failed.writes.policy",),
    )
    HEARTBEAT_INTERVAL = int_option(
        "hoodie.client.heartbeat.interval_in_ms",
        60000,
        "Milliseconds between two beats of a writer.",
        minimum=1,
    )
    TOLERABLE_MISSES = int_option(
        "hoodie.client.heartbeat.tolerable.misses",
        2,
        "Missed beats after which a writer counts as dead.",
        minimum=1,
    )
    LOCK_WAIT = int_option(
        "hoodie.write.lock.wait_time_ms", 60000, "Milliseconds a writer waits for the table's lock."
    )
    LOCK_EXPIRE = int_option(
        "hoodie.write.lock.filesystem.expire",
        0,
        "Minutes after which a lock of another program, which names no process, is broken; 0 never.",
        minimum=0,
    )
    CONFLICT_RETRIES = int_option(
        "hoodie.write.num.retries.on.conflict.failures",
        0,
        "How often a write that another writer overtook begins again by itself. Only writes whose rows come from elsewhere do: "
        "rows made of the table's own (`update_where`, `delete_where`, SQL UPDATE and DELETE, match conditions) have to be "
        "made again by whoever asked.",
        minimum=0,
    )
    CONCURRENCY_MODE = choice_option(
        "hoodie.write.concurrency.mode",
        None,
        ConcurrencyMode,
        "Writers exclude each other where the storage can create a file exclusively, whatever is set here: on disks and in "
        "object stores. HDFS, and servers that ignore conditional puts, cannot: there SINGLE_WRITER declares that one writer at "
        "a time works on the table, and writes are refused without it. NON_BLOCKING_CONCURRENCY_CONTROL, of Hudi on Flink, is "
        "read, and writes are refused.",
    )


class EngineOptions:
    """What only this engine has."""

    GROUP = ENGINE

    SCHEMA_EVOLUTION = choice_option(
        "hoodie.engine.schema.evolution",
        SchemaChange.WIDEN,
        SchemaChange,
        "What a batch may do to the table's columns: bring new ones; also widen numbers, but not in key, ordering and partition "
        "columns; also turn numbers, dates and binary into text, and widen key, ordering and partition columns where stored values "
        "keep their text and their order.",
    )
    SMALL_BATCH_ROWS = int_option(
        "hoodie.engine.small.batch.rows",
        200000,
        "Batches up to this many rows are merged on the driver; 0 never.",
    )
    SMALL_BATCH_BYTES = int_option(
        "hoodie.engine.small.batch.bytes",
        64 * 1024 * 1024,
        "The same limit in bytes, measured by the tasks that send the rows; Spark's estimate saves collecting them.",
    )
    SMALL_PLAN_BYTES = int_option(
        "hoodie.engine.small.plan.bytes",
        2 * 1024 * 1024,
        "A batch whose query reads up to this many bytes by Spark's estimate counts as small, and is evaluated without "
        "generating code; 0 never.",
    )
    TASK_BYTES = int_option(
        "hoodie.engine.write.task.max.bytes",
        384 * 1024 * 1024,
        "Bytes of rows that a task of a bulk load or an overwrite holds before it writes the partition with most of them; fewer "
        "where spark.executor.pyspark.memory limits workers.",
        minimum=1,
    )
    DRIVER_MERGE_BYTES = int_option(
        "hoodie.engine.driver.merge.bytes",
        512 * 1024 * 1024,
        "A small batch is merged on the driver only while the base files it may touch are below this; above it executors do it.",
    )
    LOCAL_BATCH_BYTES = int_option(
        "hoodie.engine.local.batch.bytes",
        2 * 1024 * 1024 * 1024,
        "Bytes of rows that one write of `hudi_engine.open_table`, without Spark, holds in memory; more is refused.",
        minimum=1,
    )
    KEY_CACHE_BYTES = int_option(
        "hoodie.engine.key.cache.bytes",
        64 * 1024 * 1024,
        "Bytes of record keys of base files that the driver keeps for the next look-up of the same process; 0 none.",
        minimum=0,
    )
    CARRY_COLUMNS = bool_option(
        "hoodie.engine.carry.columns",
        True,
        "A new base file takes column chunks that do not change over from the old one without decoding them; with false every "
        "column is read and written again.",
    )
    MAX_PARTITIONS = int_option(
        "hoodie.engine.max.partitions.per.commit",
        10000,
        "Partitions one write may touch; more is refused as a mistake.",
        minimum=1,
    )
    PUBLISH_MANIFEST = bool_option(
        "hoodie.engine.publish.manifest",
        True,
        "A commit publishes the snapshot manifest that plain Spark SQL reads.",
    )
    RECEIPTS = bool_option(
        "hoodie.engine.receipts",
        True,
        "A commit notes row count and content hash of the table, where the write knows the rows that come and go.",
    )
    SKIP_UNCHANGED = bool_option(
        "hoodie.engine.skip.unchanged",
        False,
        "Rows of an upsert that equal what is stored, or are older, are left out: no file is written for them, and no reader is "
        "shown a change.",
    )
    PACKING_MAX_BYTES = int_option(
        "hoodie.engine.insert.packing.max.bytes",
        4 * 1024 * 1024,
        "Merge-on-read: largest base file that is rewritten to take a few new rows.",
        minimum=0,
    )
    WIDE_PARTITION_BYTES = int_option(
        "hoodie.engine.wide.partition.bytes",
        1024 * 1024 * 1024,
        "Keys of a partition with more bytes of base files are looked up by a task a file, instead of one a partition.",
        minimum=1,
    )
