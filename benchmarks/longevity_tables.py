"""The systems of the longevity benchmark: TPC-DS's tables in each, and what its data maintenance does to them.

Table versions, codecs and layouts are each system's defaults, as in `benchmarks.systems`, whose jars and settings these have.

* Fact tables are partitioned by the month of the sale or return, in every system. LST-Bench has them by day, which at the scales
  of one machine would be thousands of files of a few rows.
* Record keys of this engine and of Apache Hudi are item and ticket or order, those of TPC-DS. Other tables have their first column.
* New sales are inserted, as they have new keys. Sales and inventory are deleted by condition on day and month, returns by the keys
  of the deleted sales: with Delta and Iceberg by a MERGE, with Apache Hudi and this engine by its delete.
* Merge-on-read tables of this engine and of Apache Hudi are compacted inline, by the default trigger of five delta commits. Clean
  and archive run by their defaults. Delta and Iceberg have no such services at a write, and LST-Bench's WP1 calls none.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.systems import (
    ApacheHudi,
    ApacheHudiMor,
    DbtHudi,
    DbtHudiMor,
    Delta,
    Iceberg,
    IcebergMor,
    PlainParquet,
    System,
)
from benchmarks.tpcds import FACTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_INLINE = {"hoodie.compact.inline": "true"}


def _keys(table: str, columns: Sequence[str]) -> list[str]:
    return list(FACTS[table].key) if table in FACTS else [columns[0]]


def _partitions(table: str) -> list[str]:
    return [FACTS[table].month] if table in FACTS else []


def _in_order(table: str, rows: DataFrame) -> DataFrame:
    """Rows of a load with each month in one task, so that no system gets a file of every task in each."""
    return rows.repartition(*_partitions(table)) if table in FACTS else rows


def _match(table: str) -> str:
    return " and ".join(f"t.{name} = s.{name}" for name in [*FACTS[table].key, *_partitions(table)])


class Lake(System):
    """A system with what data maintenance needs."""

    @abstractmethod
    def insert(self, table: str, rows: DataFrame) -> None:
        """Insert rows with new keys."""

    @abstractmethod
    def delete_where(self, table: str, condition: str) -> None:
        """Delete the rows that fulfil a condition."""

    @abstractmethod
    def delete_keys(self, table: str, keys: DataFrame) -> None:
        """Delete the rows of the keys, given with their month."""

    def place(self, table: str) -> Path:
        """Folder of a table's files."""
        return Path(self.path(table))


class ParquetFiles(PlainParquet):
    """Plain Parquet: load and queries only."""

    def load(self, table: str, rows: DataFrame) -> None:
        writer = _in_order(table, rows).write.partitionBy(*_partitions(table))
        writer.mode("overwrite").parquet(self.path(table))

    def read(self, table: str) -> DataFrame:
        return self.spark.read.parquet(self.path(table))


class _Sql(Lake):
    """Deletes and upserts by SQL."""

    def target(self, table: str) -> str:
        """Name of a table in SQL."""
        raise NotImplementedError

    def delete_where(self, table: str, condition: str) -> None:
        self.spark.sql(f"delete from {self.target(table)} where {condition}")

    def _merge(self, table: str, rows: DataFrame, clauses: str) -> None:
        rows.createOrReplaceTempView("s_batch")
        self.spark.sql(f"merge into {self.target(table)} t using s_batch s on {_match(table)} {clauses}")

    def delete_keys(self, table: str, keys: DataFrame) -> None:
        self._merge(table, keys, "when matched then delete")

    def upsert(self, table: str, rows: DataFrame) -> None:
        self._merge(table, rows, "when matched then update set * when not matched then insert *")


class DeltaTables(_Sql, Delta):
    """Delta Lake."""

    def target(self, table: str) -> str:
        return f"delta.`{self.path(table)}`"

    def load(self, table: str, rows: DataFrame) -> None:
        writer = _in_order(table, rows).write.format("delta").partitionBy(*_partitions(table))
        writer.mode("overwrite").save(self.path(table))

    def insert(self, table: str, rows: DataFrame) -> None:
        rows.write.format("delta").mode("append").save(self.path(table))


class IcebergTables(_Sql, Iceberg):
    """Apache Iceberg, copy-on-write."""

    def target(self, table: str) -> str:
        return f"{self.catalog}.db.{table}"

    def place(self, table: str) -> Path:
        return self.folder / "db" / table

    def load(self, table: str, rows: DataFrame) -> None:
        _in_order(table, rows).createOrReplaceTempView("s_load")
        by = f"partitioned by ({', '.join(_partitions(table))})" if _partitions(table) else ""
        modes = ", ".join(f"'write.{verb}.mode'='{self.mode}'" for verb in ("merge", "update", "delete"))
        self.spark.sql(
            f"create or replace table {self.target(table)} using iceberg {by} "
            f"tblproperties ('format-version'='2', {modes}) as select * from s_load"
        )

    def insert(self, table: str, rows: DataFrame) -> None:
        rows.writeTo(self.target(table)).append()


class IcebergMorTables(IcebergTables, IcebergMor):
    """Apache Iceberg, merge-on-read."""


class HudiTables(_Sql, ApacheHudi):
    """Apache Hudi's own Spark bundle, copy-on-write."""

    services: dict[str, str] = {}

    def target(self, table: str) -> str:
        self.spark.sql(f"create table if not exists {table}_t using hudi location '{self.path(table)}'")
        return f"{table}_t"

    def _options(self, table: str) -> dict[str, str]:
        simple = "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
        options = {
            **super()._options(table),
            **self.services,
            "hoodie.datasource.write.recordkey.field": ",".join(self._keys_of[table]),
            "hoodie.datasource.write.partitionpath.field": ",".join(_partitions(table)),
        }
        del options["hoodie.datasource.write.precombine.field"]
        if table not in FACTS:
            options["hoodie.datasource.write.keygenerator.class"] = simple
        return options

    def _save(self, table: str, rows: DataFrame, operation: str, mode: str = "append") -> None:
        options = {**self._options(table), "hoodie.datasource.write.operation": operation}
        rows.write.format("hudi").options(**options).mode(mode).save(self.path(table))

    @property
    def _keys_of(self) -> dict[str, list[str]]:
        return self.__dict__.setdefault("known_keys", {})

    def load(self, table: str, rows: DataFrame) -> None:
        self._keys_of[table] = _keys(table, rows.columns)
        self._save(table, _in_order(table, rows), "bulk_insert", "overwrite")

    def insert(self, table: str, rows: DataFrame) -> None:
        self._save(table, rows, "insert")

    def delete_where(self, table: str, condition: str) -> None:
        target = self.target(table)
        for key, value in self.services.items():
            self.spark.conf.set(key, value)
        self.spark.sql(f"delete from {target} where {condition}")

    def delete_keys(self, table: str, keys: DataFrame) -> None:
        self._save(table, keys, "delete")

    def upsert(self, table: str, rows: DataFrame) -> None:
        self._save(table, rows, "upsert")


class HudiMorTables(HudiTables, ApacheHudiMor):
    """Apache Hudi's own Spark bundle, merge-on-read."""

    services = _INLINE


class DbtHudiTables(Lake, DbtHudi):
    """This engine, copy-on-write."""

    services: dict[str, str] = {}

    def _table(self, table: str) -> Any:
        from hudi_engine import HudiTable

        return HudiTable.open(self.spark, self.path(table), options=self.services)

    def load(self, table: str, rows: DataFrame) -> None:
        made = self.create(table, _keys(table, rows.columns), _partitions(table))
        made.bulk_insert(_in_order(table, rows))

    def insert(self, table: str, rows: DataFrame) -> None:
        self._table(table).insert(rows)

    def delete_where(self, table: str, condition: str) -> None:
        self._table(table).delete_where(condition)

    def delete_keys(self, table: str, keys: DataFrame) -> None:
        self._table(table).delete(keys)


class DbtHudiMorTables(DbtHudiTables, DbtHudiMor):
    """This engine, merge-on-read."""

    services = _INLINE


LAKES: dict[str, type[System]] = {
    "parquet": ParquetFiles,
    "dbt-hudi": DbtHudiTables,
    "dbt-hudi mor": DbtHudiMorTables,
    "delta": DeltaTables,
    "iceberg": IcebergTables,
    "iceberg mor": IcebergMorTables,
    "hudi": HudiTables,
    "hudi mor": HudiMorTables,
}
