"""Keys of Apache Hudi that are no options of this engine: refused with what to do instead, or given elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from hudi_engine.format.config.enums import IndexType

# Given by arguments of the call or by create(); a table keeps them, a write may repeat them.
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

_OWN_LOCK = (
    "writers of this engine exclude each other, and Apache Hudi's file system lock provider, by the file .hoodie/lock of "
    "the table, and by nothing else; leave it out, and give the other writers of the table that lock provider without a "
    "path of its own"
)
_NO_ASYNC_CLUSTERING = (
    "nothing runs parallel to a write here; hoodie.clustering.inline runs a clustering after the commit, and "
    "hoodie.clustering.schedule.inline only plans it, for hudi-engine TABLE cluster --execute in a process of its own"
)
_BY_SESSION = (
    "the entries are made in the metastore of the Spark session, with the rights of its user; say there where it is "
    "(spark.hadoop.hive.metastore.uris), and leave this out"
)
_NOT_WRITTEN = "tables with it are read and not written; leave it out"
_OWN_FORM = "the entries have the form that Apache Hudi gives them by default; leave it out"
UNSUPPORTED: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "hoodie.index.bucket.engine": (IndexType.SIMPLE.value, _NOT_WRITTEN),
        "hoodie.populate.meta.fields": ("true", _NOT_WRITTEN),
        "hoodie.datasource.write.drop.partition.columns": ("false", _NOT_WRITTEN),
        "hoodie.archive.merge.enable": (
            "false",
            "each archiving writes one file, which stays as it is; leave it out",
        ),
        "hoodie.datasource.hive_sync.mode": ("hms", _BY_SESSION),
        "hoodie.clustering.async.enabled": ("false", _NO_ASYNC_CLUSTERING),
        "hoodie.datasource.clustering.async.enable": ("false", _NO_ASYNC_CLUSTERING),
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
        "hoodie.datasource.merge.type": (
            "payload_combine",
            "call skip_merge() for the rows of base files and logs side by side",
        ),
        "hoodie.metadata.index.expression.enable": (
            "false",
            "name the index and its expression: CREATE INDEX ... OPTIONS (expr = ...), or hudi_create_index",
        ),
        "hoodie.auto.commit": (
            "true",
            "each write commits once, when all its files are written; leave it out",
        ),
        "hoodie.merge.allow.duplicate.on.inserts": (
            "true",
            "an insert keeps its rows next to stored ones with their keys; call upsert, or set "
            "hoodie.datasource.write.insert.drop.duplicates",
        ),
        "hoodie.datasource.hive_sync.jdbcurl": ("", _BY_SESSION),
        "hoodie.datasource.hive_sync.metastore.uris": ("", _BY_SESSION),
        "hoodie.datasource.hive_sync.use_jdbc": ("false", _BY_SESSION),
        "hoodie.datasource.hive_sync.base_file_format": ("PARQUET", _OWN_FORM),
        "hoodie.datasource.hive_sync.bucket_sync": ("false", _OWN_FORM),
        "hoodie.datasource.hive_sync.create_managed_table": ("false", _OWN_FORM),
        "hoodie.datasource.hive_sync.serde_properties": ("", _OWN_FORM),
        "hoodie.datasource.hive_sync.sync_comment": ("false", _OWN_FORM),
        "hoodie.datasource.hive_sync.table_properties": ("", _OWN_FORM),
        "hoodie.datasource.hive_sync.use_pre_apache_input_format": ("false", _OWN_FORM),
    }
)
"""Keys of features that are not supported: the value that changes nothing, and what to do instead."""


_NO_INDEX_STATE = (
    "keys are found in the table's files at each write, so there is no index to load; leave it out"
)
_NO_CONNECTOR_STREAM = (
    "read changes with HudiTable.changes(start, end), or with hudi_changes() in a dbt model"
)
_BY_SPARK = "Spark decides it; leave it out"
_FLINK: Mapping[str, str] = MappingProxyType(
    {
        "path": "give the path to HudiTable, or location_root to the dbt model",
        "connector": "leave it out",
        "table.type": "hoodie.datasource.write.table.type",
        "write.operation": "hoodie.datasource.write.operation",
        "record.key.field": "hoodie.datasource.write.recordkey.field",
        "recordkey.field": "hoodie.datasource.write.recordkey.field",
        "partition.path.field": "hoodie.datasource.write.partitionpath.field",
        "write.precombine.field": "hoodie.datasource.write.precombine.field",
        "precombine.field": "hoodie.datasource.write.precombine.field",
        "ordering.fields": "hoodie.table.ordering.fields",
        "payload.class": "hoodie.datasource.write.payload.class",
        "write.payload.class": "hoodie.datasource.write.payload.class",
        "record.merge.mode": "hoodie.record.merge.mode",
        "keygenerator.class": "hoodie.datasource.write.keygenerator.class",
        "keygen.type": "hoodie.datasource.write.keygenerator.type",
        "write.partition.format": "hoodie.keygen.timebased.output.dateformat",
        "partition.default_name": "a null partition is __HIVE_DEFAULT_PARTITION__; leave it out",
        "index.type": "hoodie.index.type",
        "index.global.enabled": "use hoodie.index.type with GLOBAL_SIMPLE or GLOBAL_BLOOM",
        "index.bootstrap.enabled": _NO_INDEX_STATE,
        "index.partition.regex": _NO_INDEX_STATE,
        "index.state.ttl": _NO_INDEX_STATE,
        "write.index_bootstrap.tasks": _NO_INDEX_STATE,
        "metadata.enabled": "hoodie.metadata.enable",
        "metadata.compaction.delta_commits": "ten deltacommits of the metadata table are compacted into one; leave it out",
        "write.tasks": "hoodie.upsert.shuffle.parallelism",
        "write.bucket_assign.tasks": "hoodie.upsert.shuffle.parallelism",
        "write.task.max.size": "hoodie.engine.write.task.max.bytes",
        "write.batch.size": "hoodie.parquet.block.size",
        "write.batch.size.MB": "hoodie.parquet.block.size",
        "write.log_block.size": "hoodie.logfile.data.block.max.size",
        "write.log.max.size": "hoodie.logfile.max.size",
        "write.merge.max_memory": "hoodie.memory.merge.max.size",
        "write.parquet.max.file.size": "hoodie.parquet.max.file.size",
        "write.parquet.block.size": "hoodie.parquet.block.size",
        "write.parquet.page.size": "hoodie.parquet.page.size",
        "write.sort.memory": "Spark's sort spills by itself; leave it out",
        "write.rate.limit": "use max_rows, max_bytes or max_commits of hudi_changes()",
        "write.commit.ack.timeout": "use job_execution_timeout_seconds of the dbt model",
        "write.retry.times": "hoodie.write.num.retries.on.conflict.failures",
        "write.retry.interval.ms": "hoodie.write.num.retries.on.conflict.failures",
        "write.precombine": "hoodie.combine.before.upsert",
        "write.bulk_insert.shuffle_by_partition": "hoodie.bulkinsert.shuffle.by.partition",
        "write.bulk_insert.shuffle_input": "hoodie.bulkinsert.shuffle.by.partition",
        "write.bulk_insert.sort_by_partition": "hoodie.bulkinsert.sort.mode",
        "write.bulk_insert.sort_input": "hoodie.bulkinsert.sort.mode",
        "write.insert.cluster": "use hoodie.parquet.small.file.limit, with 0 for new files only",
        "write.insert.deduplicate": "hoodie.combine.before.insert",
        "write.insert.drop.duplicates": "hoodie.datasource.write.insert.drop.duplicates",
        "write.ignore.failed": "a row that cannot be written fails the write; leave it out",
        "read.tasks": _BY_SPARK,
        "read.start-commit": _NO_CONNECTOR_STREAM,
        "read.end-commit": _NO_CONNECTOR_STREAM,
        "read.streaming.enabled": _NO_CONNECTOR_STREAM,
        "read.streaming.start-commit": _NO_CONNECTOR_STREAM,
        "read.streaming.check-interval": _NO_CONNECTOR_STREAM,
        "read.streaming.skip_compaction": "services change no row of HudiTable.changes(); leave it out",
        "read.streaming.skip_clustering": "services change no row of HudiTable.changes(); leave it out",
        "read.data.skipping.enabled": "files are skipped by partition and by the bounds in their footers; leave it out",
        "read.utc-timezone": "use spark.sql.session.timeZone",
        "compaction.schedule.enabled": "hoodie.compact.schedule.inline",
        "compaction.async.enabled": "hoodie.compact.inline",
        "compaction.tasks": "hoodie.engine.services.parallelism",
        "compaction.trigger.strategy": "hoodie.compact.inline.trigger.strategy",
        "compaction.delta_commits": "hoodie.compact.inline.max.delta.commits",
        "compaction.delta_seconds": "hoodie.compact.inline.max.delta.seconds",
        "compaction.max_memory": "hoodie.memory.compaction.max.size",
        "compaction.target_io": "hoodie.compaction.target.io",
        "compaction.timeout.seconds": "use hoodie.client.heartbeat.interval_in_ms: a compaction without heartbeats runs again",
        "clustering.schedule.enabled": "hoodie.clustering.schedule.inline",
        "clustering.async.enabled": "hoodie.clustering.inline",
        "clustering.delta_commits": "hoodie.clustering.inline.max.commits",
        "clustering.tasks": "hoodie.engine.services.parallelism",
        "clean.async.enabled": "hoodie.clean.automatic",
        "clean.policy": "hoodie.clean.policy",
        "clean.retain_commits": "hoodie.clean.commits.retained",
        "clean.retain_hours": "hoodie.clean.hours.retained",
        "clean.retain_file_versions": "hoodie.clean.fileversions.retained",
        "archive.max_commits": "hoodie.keep.max.commits",
        "archive.min_commits": "hoodie.keep.min.commits",
        "cdc.enabled": "hoodie.table.cdc.enabled",
        "cdc.supplemental.logging.mode": "hoodie.table.cdc.supplemental.logging.mode",
        "hive_sync.enable": "hoodie.datasource.hive_sync.enable",
        "hive_sync.enabled": "hoodie.datasource.hive_sync.enable",
        "hive_sync.db": "hoodie.datasource.hive_sync.database",
        "hive_sync.table": "hoodie.datasource.hive_sync.table",
        "hive_sync.mode": "hoodie.datasource.hive_sync.mode",
        "hive_sync.metastore.uris": "hoodie.datasource.hive_sync.metastore.uris",
        "hive_sync.partition_extractor_class": "hoodie.datasource.hive_sync.partition_extractor_class",
        "hive_sync.partition_fields": "hoodie.datasource.hive_sync.partition_fields",
        "hive_sync.support_timestamp": "hoodie.datasource.hive_sync.support_timestamp",
        "hive_sync.skip_ro_suffix": "hoodie.datasource.hive_sync.skip_ro_suffix",
    }
)
"""Options of Apache Hudi's Flink connector: the key that does the same here, or what to do instead."""


def flink_problem(key: str) -> str | None:
    """Return why an option of Flink's is refused, with its counterpart; None for any other key."""
    found = _FLINK.get(key)
    if found is None:
        return None
    advice = found if " " in found else f"use {found}"
    return f"option {key!r} is of Apache Hudi's Flink connector; {advice}"
