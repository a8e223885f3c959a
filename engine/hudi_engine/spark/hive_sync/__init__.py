"""Entries of a table in a Hive metastore, by which engines with a reader of Hudi's own find it."""

from hudi_engine.spark.hive_sync.sync import SyncedEntry, check_sync, sync_after_commit, sync_hive

__all__ = ["SyncedEntry", "check_sync", "sync_after_commit", "sync_hive"]
