"""The Hive metastore of a session, by its own interface.

Spark's catalog cannot make these entries: it loads the class of an input format, which only a session with Apache Hudi's
bundle has, and keeps the properties that start with ``spark.sql.`` to itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from hudi_engine.errors import ConfigError
from hudi_engine.spark.hive_sync.entry import OUTPUT_FORMAT, SERDE, HiveEntry
from hudi_engine.spark.jvm.catalog import has_hive_catalog, hive_settings
from hudi_engine.spark.jvm.session import gateway

_BATCH = 1000
_MADE_BY = "automatically created by hoodie"


class Metastore:
    """The metastore behind a session's Hive catalog."""

    def __init__(self, spark: SparkSession) -> None:
        check_hive(spark)
        jvm = gateway(spark)
        self._java = jvm.java.util
        self._text = jvm.java.lang.String
        self._owner = str(spark.sparkContext.sparkUser())
        package = jvm.org.apache.hadoop.hive.metastore
        self._api = package.api
        self._client = package.HiveMetaStoreClient(hive_settings(spark))

    def close(self) -> None:
        """End the connection."""
        self._client.close()

    def has_database(self, name: str) -> bool:
        """Tell whether a database is there."""
        return bool(self._client.getAllDatabases().contains(name))

    def create_database(self, name: str) -> None:
        """Make a database at the metastore's own place."""
        self._client.createDatabase(self._api.Database(name, _MADE_BY, None, None))

    def tables(self, database: str, names: Sequence[str]) -> dict[str, Any]:
        """Return the tables of some names of a database, in one call; a name without a table is left out."""
        found = self._client.getTableObjectsByName(database, self._java.ArrayList(list(names)))
        return {str(each.getTableName()): each for each in found}

    def create(self, entry: HiveEntry) -> None:
        """Make an entry."""
        table = self._api.Table()
        table.setDbName(entry.database)
        table.setTableName(entry.name)
        table.setOwner(self._owner)
        table.setTableType("EXTERNAL_TABLE")
        table.setPartitionKeys(self._fields(entry.keys))
        table.setSd(self._descriptor(entry))
        table.setParameters(self._map(entry.properties))
        self._client.createTable(table)

    def alter(self, entry: HiveEntry, table: Any) -> None:
        """Make an entry that is there equal to what it has to be; properties of others stay."""
        descriptor = table.getSd()
        descriptor.setCols(self._fields(entry.columns))
        descriptor.setInputFormat(entry.input_format)
        descriptor.getSerdeInfo().getParameters().putAll(self._map(entry.serde_properties))
        table.getParameters().putAll(self._map(entry.properties))
        how = self._api.EnvironmentContext()
        for key in ("CASCADE", "DO_NOT_UPDATE_STATS"):
            how.putToProperties(key, "true")
        self._client.alter_table_with_environmentContext(entry.database, entry.name, table, how)

    def drop(self, entry: HiveEntry) -> None:
        """Drop an entry; no file is touched."""
        self._client.dropTable(entry.database, entry.name, False, True)

    def keys_of(self, table: Any) -> list[tuple[str, str]]:
        """Return name and type of the partition keys of a table."""
        fields = table.getPartitionKeys()
        return [(str(each.getName()), str(each.getType())) for each in fields]

    def partitions(self, entry: HiveEntry) -> set[str]:
        """Return the names of an entry's partitions, as the metastore forms them."""
        names = self._client.listPartitionNames(entry.database, entry.name, -1)
        return set(filter(None, str(self._text.join("\n", names)).split("\n")))

    def partition(self, entry: HiveEntry, name: str) -> tuple[str, str]:
        """Return the place and the input format of a partition, which it has from when it was added."""
        stored = self._client.getPartition(entry.database, entry.name, name).getSd()
        return str(stored.getLocation()), str(stored.getInputFormat())

    def name_of(self, keys: Sequence[str], values: Sequence[str]) -> str:
        """Return the metastore's name of a partition."""
        return "/".join(f"{_escaped(key)}={_escaped(value)}" for key, value in zip(keys, values, strict=True))

    def add_partitions(self, entry: HiveEntry, found: Mapping[str, Sequence[str]]) -> None:
        """Add partitions."""
        pattern = self._descriptor(entry)
        paths = sorted(found)
        for start in range(0, len(paths), _BATCH):
            batch = []
            for path in paths[start : start + _BATCH]:
                own = pattern.deepCopy()
                own.setLocation(f"{entry.location}/{path}")
                values = self._java.ArrayList(list(found[path]))
                batch.append(
                    self._api.Partition(values, entry.database, entry.name, 0, 0, own, self._java.HashMap())
                )
            self._client.add_partitions(self._java.ArrayList(batch), True, False)

    def drop_partition(self, entry: HiveEntry, name: str) -> None:
        """Drop a partition; its files stay."""
        self._client.dropPartition(entry.database, entry.name, name, False)

    def _descriptor(self, entry: HiveEntry) -> Any:
        serde = self._api.SerDeInfo()
        serde.setSerializationLib(SERDE)
        serde.setParameters(self._map(entry.serde_properties))
        descriptor = self._api.StorageDescriptor()
        descriptor.setCols(self._fields(entry.columns))
        descriptor.setLocation(entry.location)
        descriptor.setInputFormat(entry.input_format)
        descriptor.setOutputFormat(OUTPUT_FORMAT)
        descriptor.setNumBuckets(-1)
        descriptor.setBucketCols(self._java.ArrayList())
        descriptor.setSortCols(self._java.ArrayList())
        descriptor.setParameters(self._java.HashMap())
        descriptor.setSerdeInfo(serde)
        return descriptor

    def _fields(self, columns: Sequence[tuple[str, str]]) -> Any:
        return self._java.ArrayList([self._api.FieldSchema(name, kind, "") for name, kind in columns])

    def _map(self, values: Mapping[str, str]) -> Any:
        return self._java.HashMap(dict(values))


def check_hive(spark: SparkSession) -> None:
    """Raise ConfigError when a session has no Hive catalog."""
    if not has_hive_catalog(spark):
        raise ConfigError(
            "an entry in a Hive metastore was asked for (sync_hive, or hoodie.datasource.hive_sync.enable), and this Spark session "
            "has none; start it with enableHiveSupport(), in dbt with catalog: hive in the profile, or do not ask"
        )


_SPECIAL = frozenset("\"#%'*/:=?\\{[]^\x7f") | {chr(code) for code in range(32)}


def _escaped(text: str) -> str:
    """Escape a part of a partition's name as Hive's FileUtils.escapePathName does."""
    return "".join(f"%{ord(each):02X}" if each in _SPECIAL else each for each in text)
