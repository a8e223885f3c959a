"""The registry of every option the engine obeys, in Hudi's own keys.

Each option is declared once: key, type, default, legal values, unit and consequence. The configuration reference in the
docs is generated from here. Keys, defaults and meanings are Apache Hudi's (its configuration reference) unless the
description says otherwise; keys that start with ``hoodie.engine.`` are this engine's own.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from hudi_engine.config.table_config import CHANGELOG_PROPERTY, OPERATION_OPTION
from hudi_engine.config.trusted_rules import RULE_PROPERTY, trust_rules
from hudi_engine.errors import ConfigError

logger = logging.getLogger(__name__)

OptionValue = bool | int | float | str | None


@dataclass(frozen=True)
class Option:
    """One option.

    Args:
        key: The ``hoodie.*`` key.
        kind: ``bool``, ``int``, ``float``, ``text`` or ``choice``.
        default: Value used when the key is absent; None means "not set".
        doc: One sentence of consequence.
        group: Section of the configuration reference.
        choices: Legal values of a ``choice`` (compared without regard to case).
        aliases: Other keys with the same meaning.
        minimum: Smallest legal number.
    """

    key: str
    kind: str
    default: OptionValue
    doc: str
    group: str
    choices: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    minimum: float | None = None

    def parse(self, raw: object) -> OptionValue:
        """Turn a raw value into the typed one; raises ConfigError naming key, value and legal values."""
        text = str(raw).strip()
        if self.kind == "bool":
            lowered = text.lower()
            if lowered in ("true", "false"):
                return lowered == "true"
            raise self._refuse(raw, "true or false")
        if self.kind == "choice":
            for choice in self.choices:
                if choice.lower() == text.lower():
                    return choice
            raise self._refuse(raw, ", ".join(self.choices))
        if self.kind in ("int", "float"):
            return self._parse_number(raw, text)
        return text

    def _parse_number(self, raw: object, text: str) -> int | float:
        legal = "a whole number" if self.kind == "int" else "a number"
        if self.minimum is not None:
            legal += f" of at least {self.minimum:g}"
        try:
            number: int | float = int(text) if self.kind == "int" else float(text)
        except ValueError:
            raise self._refuse(raw, legal) from None
        if self.minimum is not None and number < self.minimum:
            raise self._refuse(raw, legal)
        return number

    def _refuse(self, raw: object, legal: str) -> ConfigError:
        return ConfigError(f"{self.key} is {raw!r}; legal values: {legal} (default {self.default!r})")


def _bool(key: str, default: bool | None, group: str, doc: str, aliases: tuple[str, ...] = ()) -> Option:
    return Option(key, "bool", default, doc, group, aliases=aliases)


def _int(
    key: str, default: int | None, group: str, doc: str, minimum: float = 0, aliases: tuple[str, ...] = ()
) -> Option:
    return Option(key, "int", default, doc, group, minimum=minimum, aliases=aliases)


def _float(key: str, default: float, group: str, doc: str, minimum: float = 0) -> Option:
    return Option(key, "float", default, doc, group, minimum=minimum)


def _text(key: str, default: str | None, group: str, doc: str, aliases: tuple[str, ...] = ()) -> Option:
    return Option(key, "text", default, doc, group, aliases=aliases)


def _choice(
    key: str, default: str | None, choices: Iterable[str], group: str, doc: str, aliases: tuple[str, ...] = ()
) -> Option:
    return Option(key, "choice", default, doc, group, choices=tuple(choices), aliases=aliases)


TABLE, WRITE, INDEX, STORAGE, COMPACTION, CLEAN, READ, LOCKS, ENGINE = (
    "Table",
    "Writing",
    "Index",
    "File sizes and Parquet",
    "Compaction",
    "Clean",
    "Reading and merging",
    "Failed writes and locks",
    "This engine",
)

INDEX_TYPES = ("SIMPLE", "GLOBAL_SIMPLE", "BLOOM", "GLOBAL_BLOOM", "BUCKET")
COMPACTION_TRIGGERS = (
    "NUM_COMMITS",
    "NUM_COMMITS_AFTER_LAST_REQUEST",
    "TIME_ELAPSED",
    "NUM_AND_TIME",
    "NUM_OR_TIME",
)
CLEAN_POLICIES = ("KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS", "KEEP_LATEST_BY_HOURS")

_DECLARED: tuple[Option, ...] = (
    # --- table -----------------------------------------------------------------------------------------------------
    _text(
        "hoodie.database.name",
        None,
        TABLE,
        "Database name kept in the table's properties; enters the checksum.",
    ),
    _bool(
        "hoodie.datasource.write.hive_style_partitioning",
        False,
        TABLE,
        "Partition folders are named field=value instead of value.",
    ),
    _bool(
        "hoodie.datasource.write.partitionpath.urlencode",
        False,
        TABLE,
        "Special characters of a partition value are escaped in its folder name; without it '/' makes nested folders.",
    ),
    _text(
        "hoodie.datasource.write.keygenerator.class",
        None,
        TABLE,
        "Key generator class; inferred from the number of key and partition fields when absent.",
        aliases=("hoodie.table.keygenerator.class",),
    ),
    _choice(
        "hoodie.datasource.write.keygenerator.type",
        None,
        ("SIMPLE", "COMPLEX", "TIMESTAMP", "CUSTOM", "NON_PARTITION", "GLOBAL_DELETE"),
        TABLE,
        "Key generator by short name; the class wins when both are given.",
        aliases=("hoodie.table.keygenerator.type",),
    ),
    _bool(
        "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled",
        False,
        TABLE,
        "Timestamps in keys and partition paths are written as text instead of microseconds.",
    ),
    _text(
        "hoodie.datasource.write.payload.class",
        None,
        TABLE,
        "Merge rule of the table by Hudi's payload class; default DefaultHoodieRecordPayload with an ordering field, "
        "OverwriteWithLatestAvroPayload without.",
        aliases=("hoodie.compaction.payload.class",),
    ),
    _choice(
        "hoodie.record.merge.mode",
        None,
        ("COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING", "CUSTOM"),
        TABLE,
        "Merge rule of the table by mode; written to the table as the matching payload class.",
        aliases=("hoodie.write.record.merge.mode",),
    ),
    _text(
        "hoodie.engine.merge.rule",
        None,
        TABLE,
        "A merge rule of your own, as package.module:name; Apache Hudi cannot merge the logs of such a table. The table keeps "
        "the name, but it is imported only for callers who give this option, or in sessions with spark.hudi.merge.rules.",
    ),
    _text(
        "hoodie.payload.delete.field",
        None,
        TABLE,
        "Column that marks a row as deleted (DefaultHoodieRecordPayload).",
    ),
    _text("hoodie.payload.delete.marker", None, TABLE, "Value of the delete field that deletes the row."),
    _bool(
        "hoodie.populate.meta.fields", True, TABLE, "Meta columns are written; false is refused when writing."
    ),
    _bool(
        "hoodie.datasource.write.drop.partition.columns",
        False,
        TABLE,
        "Partition columns are left out of the data files; true is refused when writing.",
    ),
    _bool(
        "hoodie.table.cdc.enabled", False, TABLE, "Change data capture files; true is refused when writing."
    ),
    _bool(
        OPERATION_OPTION,
        False,
        TABLE,
        "Changelog mode of merge-on-read tables: the meta column _hoodie_operation says I, -U, U or D of every row, and the "
        "logs keep each change with the row before it.",
        aliases=("changelog.enabled", CHANGELOG_PROPERTY),
    ),
    _int("hoodie.write.table.version", 6, TABLE, "Table version to write; only 6 is written.", minimum=1),
    _text(
        "hoodie.keygen.timebased.timestamp.type",
        None,
        TABLE,
        "Input of the timestamp key generator: UNIX_TIMESTAMP, EPOCHMILLISECONDS, EPOCHMICROSECONDS, SCALAR, DATE_STRING, MIXED.",
        aliases=("hoodie.deltastreamer.keygen.timebased.timestamp.type",),
    ),
    _text(
        "hoodie.keygen.timebased.input.dateformat",
        None,
        TABLE,
        "Pattern(s) of the input text, comma separated.",
        aliases=("hoodie.deltastreamer.keygen.timebased.input.dateformat",),
    ),
    _text(
        "hoodie.keygen.timebased.input.dateformat.list.delimiter.regex",
        None,
        TABLE,
        "Delimiter of the input patterns.",
        aliases=("hoodie.deltastreamer.keygen.timebased.input.dateformat.list.delimiter.regex",),
    ),
    _text(
        "hoodie.keygen.timebased.input.timezone",
        None,
        TABLE,
        "Zone of input text without an offset.",
        aliases=("hoodie.deltastreamer.keygen.timebased.input.timezone",),
    ),
    _text(
        "hoodie.keygen.timebased.output.dateformat",
        None,
        TABLE,
        "Pattern of the partition path.",
        aliases=("hoodie.deltastreamer.keygen.timebased.output.dateformat",),
    ),
    _text(
        "hoodie.keygen.timebased.output.timezone",
        None,
        TABLE,
        "Zone of the partition path.",
        aliases=("hoodie.deltastreamer.keygen.timebased.output.timezone",),
    ),
    _text(
        "hoodie.keygen.timebased.timezone",
        None,
        TABLE,
        "Zone used when input or output zone is not set.",
        aliases=("hoodie.deltastreamer.keygen.timebased.timezone",),
    ),
    _text(
        "hoodie.keygen.timebased.timestamp.scalar.time.unit",
        None,
        TABLE,
        "Unit of SCALAR input, e.g. DAYS.",
        aliases=("hoodie.deltastreamer.keygen.timebased.timestamp.scalar.time.unit",),
    ),
    # --- writing ---------------------------------------------------------------------------------------------------
    _bool(
        "hoodie.combine.before.upsert",
        True,
        WRITE,
        "Rows of one batch with the same key are merged into one before an upsert.",
    ),
    _bool(
        "hoodie.combine.before.insert",
        False,
        WRITE,
        "Rows of one batch with the same key are merged into one before an insert.",
    ),
    _bool("hoodie.combine.before.delete", True, WRITE, "Keys given twice to one delete count once."),
    _bool(
        "hoodie.datasource.write.insert.drop.duplicates",
        False,
        WRITE,
        "An insert drops the rows whose key is already in the table.",
    ),
    _bool(
        "hoodie.bulkinsert.shuffle.by.partition",
        True,
        WRITE,
        "bulk_insert shuffles rows by partition first: fewer files, at the risk of skew.",
        aliases=("hoodie.bulkinsert.shuffle.by_partition",),
    ),
    _choice(
        "hoodie.bulkinsert.sort.mode",
        "NONE",
        (
            "NONE",
            "PARTITION_SORT",
            "GLOBAL_SORT",
            "PARTITION_PATH_REPARTITION",
            "PARTITION_PATH_REPARTITION_AND_SORT",
        ),
        WRITE,
        "Order of the rows in a bulk_insert; sorted files prune better and load slower.",
    ),
    _int("hoodie.bulkinsert.shuffle.parallelism", 0, WRITE, "Tasks of a bulk_insert; 0 lets Spark decide."),
    _int("hoodie.upsert.shuffle.parallelism", 0, WRITE, "Tasks of an upsert's shuffle; 0 lets Spark decide."),
    _bool(
        "hoodie.write.set.null.for.missing.columns",
        True,
        WRITE,
        "A column of the table that the batch lacks is written as null; false refuses such a batch.",
    ),
    _bool(
        "hoodie.skip.empty.commit", False, WRITE, "A write of no rows makes no instant (this engine's own)."
    ),
    _text(
        "hoodie.datasource.write.commitmeta.key.prefix",
        "_",
        WRITE,
        "Options whose key starts with this are copied into the commit's extra metadata.",
    ),
    # --- index -----------------------------------------------------------------------------------------------------
    _choice(
        "hoodie.index.type",
        None,
        INDEX_TYPES,
        INDEX,
        "How rows find their file group; SIMPLE when absent. Global types make a key unique over all partitions.",
    ),
    _bool(
        "hoodie.simple.index.update.partition.path",
        True,
        INDEX,
        "GLOBAL_SIMPLE: a key that arrives with another partition moves there; false keeps it where it is.",
    ),
    _bool("hoodie.bloom.index.update.partition.path", True, INDEX, "The same for GLOBAL_BLOOM."),
    _bool(
        "hoodie.bloom.index.prune.by.ranges",
        True,
        INDEX,
        "Files whose key range excludes the batch's keys are not opened.",
    ),
    _int("hoodie.bucket.index.num.buckets", 4, INDEX, "Buckets of a partition (BUCKET).", minimum=1),
    _text(
        "hoodie.bucket.index.hash.field",
        None,
        INDEX,
        "Key fields that are hashed (BUCKET); the record key when absent.",
    ),
    _choice(
        "hoodie.index.bucket.engine",
        "SIMPLE",
        ("SIMPLE",),
        INDEX,
        "Only the simple bucket engine is written.",
    ),
    _int(
        "hoodie.index.bloom.num_entries",
        None,
        INDEX,
        "Keys a Bloom filter is sized for; sized to the file when absent (Hudi: 60000).",
        minimum=1,
    ),
    _float("hoodie.index.bloom.fpp", 1e-9, INDEX, "False positive rate of a Bloom filter."),
    _choice(
        "hoodie.bloom.index.filter.type",
        "DYNAMIC_V0",
        ("DYNAMIC_V0", "SIMPLE"),
        INDEX,
        "Kind of Bloom filter.",
    ),
    _int(
        "hoodie.bloom.index.filter.dynamic.max.entries",
        100000,
        INDEX,
        "Largest size of a dynamic Bloom filter.",
        minimum=1,
    ),
    # --- storage ---------------------------------------------------------------------------------------------------
    _int(
        "hoodie.parquet.max.file.size",
        120 * 1024 * 1024,
        STORAGE,
        "Target size of a base file in bytes.",
        minimum=1,
    ),
    _int(
        "hoodie.parquet.small.file.limit",
        104857600,
        STORAGE,
        "Base files below this many bytes take new rows first; 0 switches packing off.",
    ),
    _int("hoodie.parquet.block.size", 120 * 1024 * 1024, STORAGE, "Row group size in bytes.", minimum=1),
    _int("hoodie.parquet.page.size", 1024 * 1024, STORAGE, "Page size in bytes.", minimum=1),
    _choice(
        "hoodie.parquet.compression.codec",
        "zstd",
        ("zstd", "gzip", "snappy", "lz4", "uncompressed"),
        STORAGE,
        "Codec of base files (Hudi's default is gzip, which writes many times slower).",
    ),
    _bool("hoodie.parquet.dictionary.enabled", True, STORAGE, "Parquet dictionary encoding."),
    _int(
        "hoodie.copyonwrite.record.size.estimate",
        1024,
        STORAGE,
        "Bytes a row is assumed to take until commits tell.",
        minimum=1,
    ),
    _int(
        "hoodie.copyonwrite.insert.split.size",
        500000,
        STORAGE,
        "Rows of a new base file when sizes are not learned from commits.",
        minimum=1,
    ),
    _bool(
        "hoodie.copyonwrite.insert.auto.split",
        True,
        STORAGE,
        "Rows of a new base file are computed from the average row size.",
    ),
    _int(
        "hoodie.logfile.max.size",
        1024 * 1024 * 1024,
        STORAGE,
        "Bytes after which a new log file is begun.",
        minimum=1,
    ),
    _int(
        "hoodie.logfile.data.block.max.size",
        256 * 1024 * 1024,
        STORAGE,
        "Bytes of a log data block.",
        minimum=1,
    ),
    _choice(
        "hoodie.logfile.data.block.format",
        None,
        ("avro", "parquet"),
        STORAGE,
        "Format of log data blocks; by size when absent (small blocks Avro, large ones Parquet).",
    ),
    # --- compaction ------------------------------------------------------------------------------------------------
    _bool(
        "hoodie.compact.inline",
        False,
        COMPACTION,
        "Compaction runs after a deltacommit when its trigger fires.",
        aliases=("hoodie.compaction.inline",),
    ),
    _bool(
        "hoodie.compact.schedule.inline",
        False,
        COMPACTION,
        "Compaction is only scheduled after a deltacommit.",
    ),
    _choice(
        "hoodie.compact.inline.trigger.strategy",
        "NUM_COMMITS",
        COMPACTION_TRIGGERS,
        COMPACTION,
        "When inline compaction fires.",
    ),
    _int(
        "hoodie.compact.inline.max.delta.commits",
        5,
        COMPACTION,
        "Deltacommits after which NUM_COMMITS fires.",
        minimum=1,
    ),
    _int(
        "hoodie.compact.inline.max.delta.seconds",
        3600,
        COMPACTION,
        "Seconds after which TIME_ELAPSED fires.",
        minimum=1,
    ),
    _text(
        "hoodie.compaction.strategy",
        "org.apache.hudi.table.action.compact.strategy.LogFileSizeBasedCompactionStrategy",
        COMPACTION,
        "Order and limit of a plan: LogFileSizeBased, LogFileNumBased, BoundedIO, DayBased or UnBounded...CompactionStrategy.",
    ),
    _int(
        "hoodie.compaction.target.io",
        500 * 1024,
        COMPACTION,
        "MB read and written by one bounded plan.",
        minimum=1,
    ),
    _int(
        "hoodie.compaction.logfile.size.threshold",
        0,
        COMPACTION,
        "Bytes of logs a slice needs to be planned.",
    ),
    _int("hoodie.compaction.logfile.num.threshold", 0, COMPACTION, "Log files a slice needs to be planned."),
    _int(
        "hoodie.compaction.daybased.target.partitions",
        10,
        COMPACTION,
        "Partitions of one day-based plan.",
        minimum=1,
    ),
    _choice(
        "hoodie.compaction.order",
        "FIFO",
        ("FIFO", "LIFO"),
        COMPACTION,
        "Which pending plan runs first (this engine's own).",
    ),
    _bool(
        "hoodie.engine.services.strict",
        False,
        COMPACTION,
        "A failed table service fails the write that started it.",
    ),
    # --- clean -----------------------------------------------------------------------------------------------------
    _bool("hoodie.clean.automatic", True, CLEAN, "Clean runs after a commit when there is something to do."),
    _int(
        "hoodie.clean.trigger.max.commits",
        1,
        CLEAN,
        "Commits since the last clean after which a clean runs by itself.",
        minimum=1,
        aliases=("hoodie.clean.max.commits",),
    ),
    _choice(
        "hoodie.clean.policy",
        "KEEP_LATEST_COMMITS",
        CLEAN_POLICIES,
        CLEAN,
        "What a clean keeps.",
        aliases=("hoodie.cleaner.policy",),
    ),
    _int(
        "hoodie.clean.commits.retained",
        10,
        CLEAN,
        "Commits whose files stay (KEEP_LATEST_COMMITS).",
        minimum=1,
        aliases=("hoodie.cleaner.commits.retained",),
    ),
    _int(
        "hoodie.clean.fileversions.retained",
        3,
        CLEAN,
        "Slices kept of a file group (KEEP_LATEST_FILE_VERSIONS).",
        minimum=1,
        aliases=("hoodie.cleaner.fileversions.retained",),
    ),
    _int(
        "hoodie.clean.hours.retained",
        24,
        CLEAN,
        "Hours of commits kept (KEEP_LATEST_BY_HOURS).",
        minimum=0,
        aliases=("hoodie.cleaner.hours.retained",),
    ),
    _bool(
        "hoodie.clean.incremental.enabled",
        True,
        CLEAN,
        "Only partitions touched since the last clean are looked at.",
        aliases=("hoodie.cleaner.incremental.mode",),
    ),
    # --- reading ---------------------------------------------------------------------------------------------------
    _int(
        "hoodie.memory.merge.max.size",
        100 * 1024 * 1024,
        READ,
        "Bytes of log records held in memory while merging; above it they spill.",
        minimum=1,
    ),
    _int(
        "hoodie.memory.compaction.max.size", 1024 * 1024 * 1024, READ, "The same for compaction.", minimum=1
    ),
    _text(
        "hoodie.memory.spillable.map.path",
        None,
        READ,
        "Folder for spilled records; the system's temp folder when absent.",
    ),
    # --- failed writes, locks --------------------------------------------------------------------------------------
    _choice(
        "hoodie.cleaner.policy.failed.writes",
        "EAGER",
        ("EAGER", "LAZY", "NEVER"),
        LOCKS,
        "Who rolls back a dead writer's instant: the next writer, the next clean, nobody.",
        aliases=("hoodie.clean.failed.writes.policy",),
    ),
    _int(
        "hoodie.client.heartbeat.interval_in_ms",
        60000,
        LOCKS,
        "Milliseconds between two beats of a writer.",
        minimum=1,
    ),
    _int(
        "hoodie.client.heartbeat.tolerable.misses",
        2,
        LOCKS,
        "Missed beats after which a writer counts as dead.",
        minimum=1,
    ),
    _int("hoodie.write.lock.wait_time_ms", 60000, LOCKS, "Milliseconds a writer waits for the table's lock."),
    _int(
        "hoodie.write.lock.filesystem.expire",
        0,
        LOCKS,
        "Minutes after which a lock of another program, which names no process, is broken; 0 never.",
        minimum=0,
    ),
    _choice(
        "hoodie.write.concurrency.mode",
        None,
        ("SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL"),
        LOCKS,
        "Writers exclude each other where the storage can create a file exclusively, whatever is said here. An object store "
        "cannot: there SINGLE_WRITER says that one writer at a time works on the table, and writes are refused without it.",
    ),
    # --- this engine -----------------------------------------------------------------------------------------------
    _int(
        "hoodie.engine.small.batch.rows",
        200000,
        ENGINE,
        "Batches up to this many rows are merged on the driver; 0 never.",
    ),
    _int(
        "hoodie.engine.small.batch.bytes",
        64 * 1024 * 1024,
        ENGINE,
        "The same limit in bytes (Spark's estimate of the batch).",
    ),
    _int(
        "hoodie.engine.driver.merge.bytes",
        512 * 1024 * 1024,
        ENGINE,
        "A small batch is merged on the driver only while the base files it may touch are below this; above it executors do it.",
    ),
    _int(
        "hoodie.engine.max.partitions.per.commit",
        10000,
        ENGINE,
        "Partitions one write may touch; more is refused as a mistake.",
        minimum=1,
    ),
    _bool(
        "hoodie.engine.publish.manifest",
        True,
        ENGINE,
        "A commit publishes the snapshot manifest that plain Spark SQL reads.",
    ),
    _int(
        "hoodie.engine.insert.packing.max.bytes",
        4 * 1024 * 1024,
        ENGINE,
        "Merge-on-read: largest base file that is rewritten to take a few new rows.",
        minimum=0,
    ),
    _int(
        "hoodie.engine.wide.partition.bytes",
        1024 * 1024 * 1024,
        ENGINE,
        "Partitions with more bytes of base files are tagged by a Spark join instead of inside one task.",
        minimum=1,
    ),
)

# Keys of Apache Hudi that tune its own engine, sync or servers: taken without effect here, so that shared settings do not fail.
_WITHOUT_EFFECT_PREFIXES = (
    "hoodie.metadata.",
    "hoodie.datasource.hive_sync.",
    "hoodie.datasource.meta.sync.",
    "hoodie.meta.sync.",
    "hoodie.embed.",
    "hoodie.filesystem.view.",
    "hoodie.metrics.",
    "hoodie.write.lock.",
    "hoodie.datasource.query.",
    "hoodie.datasource.read.",
    "hoodie.datasource.meta_sync.",
    "hoodie.write.markers.",
    "hoodie.markers.",
    "hoodie.rollback.",
    "hoodie.archive.",
    "hoodie.keep.",
    "hoodie.clustering.",
    "hoodie.layout.",
    "hoodie.storage.",
    "hoodie.memory.",
    "hoodie.client.",
    "hoodie.timeline.",
    "hoodie.datasource.write.row.writer",
    "hoodie.avro.",
    "hoodie.schema.",
    "hoodie.consistency.",
    "hoodie.aws.",
    "hoodie.write.commit.callback.",
    "hoodie.write.status.",
    "hoodie.write.executor.",
    "hoodie.optimistic.",
)
_WITHOUT_EFFECT = frozenset(
    {
        "hoodie.insert.shuffle.parallelism",
        "hoodie.datasource.write.reconcile.schema",
        "hoodie.logfile.to.parquet.compression.ratio",
        "hoodie.delete.shuffle.parallelism",
        "hoodie.finalize.write.parallelism",
        "hoodie.auto.commit",
        "hoodie.write.auto.upgrade",
        "hoodie.table.services.enabled",
        "hoodie.table.services.incremental.enabled",
        "hoodie.clean.async",
        "hoodie.clean.async.enabled",
        "hoodie.clean.parallelism",
        "hoodie.cleaner.parallelism",
        "hoodie.bloom.index.parallelism",
        "hoodie.simple.index.parallelism",
        "hoodie.bloom.index.use.caching",
        "hoodie.simple.index.use.caching",
        "hoodie.bloom.index.use.treebased.filter",
        "hoodie.bloom.index.bucketized.checking",
        "hoodie.bloom.index.keys.per.bucket",
        "hoodie.parquet.compression.ratio",
        "hoodie.parquet.writelegacyformat.enabled",
        "hoodie.parquet.outputtimestamptype",
        "hoodie.parquet.field_id.write.enabled",
        "hoodie.datasource.compaction.async.enable",
        "hoodie.merge.allow.duplicate.on.inserts",
        "hoodie.datasource.write.streaming.ignore.failed.batch",
        "hoodie.write.buffer.limit.bytes",
        "hoodie.merge.data.validation.enabled",
        "hoodie.fail.on.timeline.archiving",
        "hoodie.write.complex.keygen.validation.enable",
        "hoodie.write.num.retries.on.conflict.failures",
        "hoodie.spark.sql.insert.into.operation",
        "hoodie.sql.insert.mode",
        "hoodie.sql.bulk.insert.enable",
        "hoodie.bootstrap.base.path",
    }
)
# Said by the call itself or by create(); a table keeps them, a write repeats them.
_DEFINED_ELSEWHERE = frozenset(
    {
        "hoodie.table.name",
        "hoodie.datasource.write.table.name",
        "hoodie.datasource.write.recordkey.field",
        "hoodie.table.recordkey.fields",
        "hoodie.datasource.write.precombine.field",
        "hoodie.table.precombine.field",
        "hoodie.table.ordering.fields",
        "hoodie.datasource.write.ordering.fields",
        "hoodie.datasource.write.partitionpath.field",
        "hoodie.table.partition.fields",
        "hoodie.datasource.write.table.type",
        "hoodie.table.type",
        "hoodie.datasource.write.operation",
        "hoodie.base.path",
        "hoodie.table.base.file.format",
        "hoodie.payload.ordering.field",
        "hoodie.payload.event.time.field",
    }
)
DEFINED_ELSEWHERE = _DEFINED_ELSEWHERE

OPTIONS: Mapping[str, Option] = MappingProxyType({option.key: option for option in _DECLARED})
_ALIASES: Mapping[str, str] = MappingProxyType(
    {alias: option.key for option in _DECLARED for alias in option.aliases}
)


class Options:
    """Resolved, typed options: what the caller gave over the registry's defaults. Immutable."""

    def __init__(self, given: Mapping[str, OptionValue], raw: Mapping[str, str]) -> None:
        self._given = dict(given)
        self.raw: Mapping[str, str] = dict(raw)

    def is_set(self, key: str) -> bool:
        """Whether the caller gave the option."""
        return OPTIONS[key].key in self._given

    def value(self, key: str) -> OptionValue:
        """The typed value, or the default."""
        option = OPTIONS[key]
        return self._given.get(option.key, option.default)

    def bool(self, key: str) -> bool:
        """A boolean option."""
        return bool(self.value(key))

    def int(self, key: str) -> int:
        """A whole number; raises ConfigError when the option has no default and was not given."""
        value = self.value(key)
        if not isinstance(value, int):
            raise ConfigError(f"{key} is not set; give a whole number")
        return value

    def float(self, key: str) -> float:
        """A number."""
        value = self.value(key)
        if not isinstance(value, (float, int)):
            raise ConfigError(f"{key} is not set; give a number")
        return float(value)

    def text(self, key: str) -> str | None:
        """A text or choice option, None when neither given nor defaulted."""
        value = self.value(key)
        return None if value is None else str(value)

    def merged(self, raw: Mapping[str, object]) -> Options:
        """These options with ``raw`` on top."""
        return resolve_options({**self.raw, **raw})


def canonical_key(key: str) -> str:
    """The key an alias stands for; other keys as they are."""
    return _ALIASES.get(key, key)


def resolve_options(raw: Mapping[str, object] | None) -> Options:
    """Check and type raw options.

    Args:
        raw: ``hoodie.*`` keys with values as text, bool or number; None is the same as empty.

    Raises:
        ConfigError: All problems in one message: bad values, and keys that look like a misspelling of a known one.
            Other keys that are not known are logged as having no effect, as Apache Hudi ignores them.
    """
    given: dict[str, OptionValue] = {}
    texts: dict[str, str] = {}
    problems: list[str] = []
    if raw is not None and not isinstance(raw, Mapping):
        raise ConfigError(
            f"options is {raw!r}; it must be a dictionary such as {{'hoodie.index.type': 'BLOOM'}}"
        )
    for key, value in (raw or {}).items():
        if not isinstance(key, str):
            problems.append(f"option {key!r} is not a text; option keys are hoodie.* names")
            continue
        if value is None:
            continue
        texts[key] = str(value).lower() if isinstance(value, bool) else str(value)
        option = OPTIONS.get(_ALIASES.get(key, key))
        if option is None:
            problem = _unknown(key)
            if problem:
                problems.append(problem)
            continue
        try:
            given[option.key] = option.parse(value)
        except ConfigError as error:
            problems.append(str(error))
    if problems:
        raise ConfigError("; ".join(problems), tuple(problems))
    trust_rules(texts.get(RULE_PROPERTY))
    return Options(given, texts)


def _unknown(key: str) -> str | None:
    if key in _DEFINED_ELSEWHERE or key in _WITHOUT_EFFECT or key.startswith(_WITHOUT_EFFECT_PREFIXES):
        return None
    if not key.startswith("hoodie."):
        return (
            None
            if key.startswith("_")
            else f"option {key!r} is not a hoodie.* key; see the configuration reference"
        )
    near = difflib.get_close_matches(key, [*OPTIONS, *_ALIASES, *_DEFINED_ELSEWHERE], n=1, cutoff=0.93)
    if near:
        return f"option {key!r} is not known; did you mean {near[0]!r}?"
    logger.warning("option %s is not known to this engine and has no effect", key)
    return None
