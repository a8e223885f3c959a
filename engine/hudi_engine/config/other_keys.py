"""Keys of Apache Hudi that are no options of this engine: without effect here, or said elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

# Keys of Apache Hudi that tune its own engine, sync or servers: taken without effect here, so that shared settings do not fail.
WITHOUT_EFFECT_PREFIXES = (
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
WITHOUT_EFFECT = frozenset(
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
        "hoodie.archive.async",
        "hoodie.archive.delete.parallelism",
        "hoodie.fail.on.timeline.archiving",
        "hoodie.write.complex.keygen.validation.enable",
        "hoodie.spark.sql.insert.into.operation",
        "hoodie.sql.insert.mode",
        "hoodie.sql.bulk.insert.enable",
        "hoodie.bootstrap.base.path",
    }
)
# Said by the call itself or by create(); a table keeps them, a write repeats them.
DEFINED_ELSEWHERE = frozenset(
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

_NO_CLUSTERING = (
    "this engine does not cluster; leave it out, and let Apache Hudi cluster the table (its result is read)"
)
_OWN_LOCK = (
    "writers of this engine exclude each other, and Apache Hudi's file system lock provider, by the file .hoodie/lock of "
    "the table, and by nothing else; leave it out, and give the other writers of the table that lock provider without a "
    "path of its own"
)
NOT_DONE: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "hoodie.clustering.inline": ("false", _NO_CLUSTERING),
        "hoodie.clustering.schedule.inline": ("false", _NO_CLUSTERING),
        "hoodie.datasource.clustering.inline.enable": ("false", _NO_CLUSTERING),
        "hoodie.write.lock.provider": (
            "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
            _OWN_LOCK,
        ),
        "hoodie.write.lock.filesystem.path": ("", _OWN_LOCK),
        "hoodie.write.lock.zookeeper.url": ("", _OWN_LOCK),
        "hoodie.write.lock.hivemetastore.database": ("", _OWN_LOCK),
        "hoodie.write.lock.dynamodb.table": ("", _OWN_LOCK),
        "hoodie.datasource.query.type": (
            "snapshot",
            "call read_optimized() for base files only, and changes() for what changed between two instants",
        ),
        "hoodie.datasource.read.begin.instanttime": ("", "call changes(start, end)"),
        "hoodie.datasource.read.end.instanttime": ("", "call changes(start, end)"),
        "hoodie.datasource.query.incremental.format": (
            "latest_state",
            "call changes(start, end), whose rows say what happened",
        ),
    }
)
"""Keys that ask for what is not done: the value that asks for nothing, and what to do instead."""
