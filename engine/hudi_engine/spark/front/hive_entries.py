"""Entries of the table in a Hive metastore, for other engines."""

from __future__ import annotations

from hudi_engine.spark.front.base import RawOptions, TableBase
from hudi_engine.spark.hive_sync import SyncedEntry, sync_hive


class HiveEntries(TableBase):
    """Showing the table to engines that find tables in a Hive metastore."""

    def sync_hive(self, *, options: RawOptions | None = None) -> list[SyncedEntry]:
        """Make the entries of Hudi's form in the session's Hive metastore equal to the table.

        Args:
            options: ``hoodie.datasource.hive_sync.*``: database, table, partition extractor and which entries there are; whether
                sync is enabled does not count here.

        Raises:
            ConfigError: The session has no Hive metastore, or the options do not fit the table.
            TableExistsError: A name belongs to something else, such as the entry by which Spark reads the table.
            ServiceError: The metastore failed.
        """
        return sync_hive(self.spark, self.storage, self._resolved(options))
