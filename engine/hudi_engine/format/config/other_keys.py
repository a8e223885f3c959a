"""Keys of Apache Hudi that are no options of this engine: without effect here, or stated elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from hudi_engine.format.config.enums import IndexType

CHECKPOINT = "dbt_hudi.checkpoint"
"""Key of the extra metadata that states, as JSON, up to which instant of each input a table was made; every later commit
carries it on."""

CHECKPOINT_BEFORE = "dbt_hudi.checkpoint.before"
"""Option of a write that notes a checkpoint: the one that its rows were taken after; without it the one that the table has
when the write begins; a write that replaces all rows follows none then."""

BATCHES = "_hudi_streaming_sink_checkpoint"
"""Key of the extra metadata with the last batch of each stream that writes to a table, as JSON, under Apache Hudi's name for its
streaming sink; every later commit carries it on."""

CLONE_REPLACED = "dbt_hudi.clone.replaced"
"""Property of a clone that took the place of another table: the newest instant of that one. Up to it an instant that the clone
does not know may have been noted by a reader of what was there before."""

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

_OWN_LOCK = (
    "writers of this engine exclude each other, and Apache Hudi's file system lock provider, by the file .hoodie/lock of "
    "the table, and by nothing else; leave it out, and give the other writers of the table that lock provider without a "
    "path of its own"
)
_NO_METADATA_TABLE = (
    "this engine keeps no metadata table, and drops the one that Apache Hudi keeps when it writes; leave it out, and let "
    "Apache Hudi build it again when it writes next"
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
NOT_DONE: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "hoodie.metadata.enable": ("false", _NO_METADATA_TABLE),
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
        "hoodie.datasource.hive_sync.jdbcurl": ("", _BY_SESSION),
        "hoodie.datasource.hive_sync.metastore.uris": ("", _BY_SESSION),
        "hoodie.datasource.hive_sync.use_jdbc": ("false", _BY_SESSION),
        "hoodie.datasource.hive_sync.base_file_format": ("PARQUET", _OWN_FORM),
        "hoodie.datasource.hive_sync.bucket_sync": ("false", _OWN_FORM),
        "hoodie.datasource.hive_sync.create_managed_table": ("false", _OWN_FORM),
        "hoodie.datasource.hive_sync.serde_properties": ("", _OWN_FORM),
        "hoodie.datasource.hive_sync.support_timestamp": ("true", _OWN_FORM),
        "hoodie.datasource.hive_sync.sync_comment": ("false", _OWN_FORM),
        "hoodie.datasource.hive_sync.table_properties": ("", _OWN_FORM),
        "hoodie.datasource.hive_sync.use_pre_apache_input_format": ("false", _OWN_FORM),
    }
)
"""Keys of features that are not supported: the value that changes nothing, and what to do instead."""
