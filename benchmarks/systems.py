"""The systems measured, each with the same four verbs: load, upsert, scan, overwrite of one partition.

Table versions and codecs are each system's defaults.
"""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.workload import KEY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = ("id", "ts", "dt", "customer", "amount", "note", "status", "event_at", "payload")
MATCH = " and ".join(f"t.{name} = s.{name}" for name in KEY)


class System(ABC):
    """One system under measurement."""

    jars: tuple[str, ...] = ()
    conf: Mapping[str, str] = {}

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder

    def path(self, table: str) -> str:
        """Folder of a table."""
        return str(self.folder / table)

    @abstractmethod
    def load(self, table: str, rows: DataFrame) -> None:
        """Make the table from rows."""

    @abstractmethod
    def upsert(self, table: str, rows: DataFrame) -> None:
        """Update existing keys, insert new ones."""

    @abstractmethod
    def overwrite(self, table: str, rows: DataFrame) -> None:
        """Replace the partition that the rows are of."""

    @abstractmethod
    def read(self, table: str) -> DataFrame:
        """The table's rows."""

    def compact(self, table: str) -> None:
        """Merge-on-read only: bring logs into base files."""
        raise NotImplementedError


class PlainParquet(System):
    """Spark alone: anti-join, union, full rewrite."""

    def load(self, table: str, rows: DataFrame) -> None:
        rows.write.partitionBy("dt").mode("overwrite").parquet(self.path(table))

    def upsert(self, table: str, rows: DataFrame) -> None:
        merged = self.read(table).join(rows, list(KEY), "left_anti").unionByName(rows)
        merged.write.partitionBy("dt").mode("overwrite").parquet(self.path(table) + "_new")
        shutil.rmtree(self.path(table))
        Path(self.path(table) + "_new").rename(self.path(table))

    def overwrite(self, table: str, rows: DataFrame) -> None:
        writer = rows.write.partitionBy("dt").mode("overwrite").option("partitionOverwriteMode", "dynamic")
        writer.parquet(self.path(table))

    def read(self, table: str) -> DataFrame:
        from pyspark.sql import functions as F

        return self.spark.read.parquet(self.path(table)).withColumn("dt", F.col("dt").cast("string"))


class DbtHudi(System):
    """This engine, copy-on-write."""

    table_type = "cow"

    def _table(self, table: str) -> Any:
        from hudi_engine import HudiTable

        return HudiTable.open(self.spark, self.path(table))

    def create(self, table: str, key: list[str], partition_by: list[str]) -> Any:
        """Make an empty table."""
        from hudi_engine import HudiTable

        return HudiTable.create(
            self.spark,
            self.path(table),
            name=table,
            record_key=key,
            partition_by=partition_by,
            table_type=self.table_type,
            options={"hoodie.datasource.write.hive_style_partitioning": "true"},
        )

    def load(self, table: str, rows: DataFrame) -> None:
        shutil.rmtree(self.path(table), ignore_errors=True)
        self.create(table, list(KEY), ["dt"]).bulk_insert(rows)

    def upsert(self, table: str, rows: DataFrame) -> None:
        self._table(table).upsert(rows)

    def overwrite(self, table: str, rows: DataFrame) -> None:
        self._table(table).insert_overwrite(rows)

    def read(self, table: str) -> DataFrame:
        return self._table(table).snapshot()


class DbtHudiMor(DbtHudi):
    """This engine, merge-on-read."""

    table_type = "mor"

    def compact(self, table: str) -> None:
        self._table(table).compact()


class Delta(System):
    """Delta Lake."""

    jars = ("io.delta:delta-spark_2.12:3.3.3", "io.delta:delta-storage:3.3.3")
    conf = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }

    def load(self, table: str, rows: DataFrame) -> None:
        rows.write.format("delta").partitionBy("dt").mode("overwrite").save(self.path(table))

    def upsert(self, table: str, rows: DataFrame) -> None:
        rows.createOrReplaceTempView("s_batch")
        self.spark.sql(
            f"merge into delta.`{self.path(table)}` t using s_batch s on {MATCH} "
            "when matched then update set * when not matched then insert *"
        )

    def overwrite(self, table: str, rows: DataFrame) -> None:
        writer = rows.write.format("delta").mode("overwrite").option("partitionOverwriteMode", "dynamic")
        writer.save(self.path(table))

    def read(self, table: str) -> DataFrame:
        return self.spark.read.format("delta").load(self.path(table))


class Iceberg(System):
    """Apache Iceberg, copy-on-write."""

    mode = "copy-on-write"
    catalog = "ice"
    jars = ("org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.12.0",)
    conf = {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
    }

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        super().__init__(spark, folder)
        spark.conf.set(f"spark.sql.catalog.{self.catalog}.warehouse", str(folder))

    def load(self, table: str, rows: DataFrame) -> None:
        rows.createOrReplaceTempView("s_load")
        modes = ", ".join(f"'write.{verb}.mode'='{self.mode}'" for verb in ("merge", "update", "delete"))
        self.spark.sql(
            f"create or replace table {self.catalog}.db.{table} using iceberg partitioned by (dt) "
            f"tblproperties ('format-version'='2', {modes}) as select * from s_load order by dt"
        )

    def upsert(self, table: str, rows: DataFrame) -> None:
        rows.createOrReplaceTempView("s_batch")
        self.spark.sql(
            f"merge into {self.catalog}.db.{table} t using s_batch s on {MATCH} "
            "when matched then update set * when not matched then insert *"
        )

    def overwrite(self, table: str, rows: DataFrame) -> None:
        rows.writeTo(f"{self.catalog}.db.{table}").overwritePartitions()

    def read(self, table: str) -> DataFrame:
        return self.spark.table(f"{self.catalog}.db.{table}")


class IcebergMor(Iceberg):
    """Apache Iceberg, merge-on-read."""

    mode = "merge-on-read"
    catalog = "ice_mor"
    conf = {
        "spark.sql.extensions": Iceberg.conf["spark.sql.extensions"],
        "spark.sql.catalog.ice_mor": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice_mor.type": "hadoop",
    }


class ApacheHudi(System):
    """Apache Hudi's own Spark bundle, copy-on-write."""

    table_type = "COPY_ON_WRITE"
    jars = ("org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0",)
    conf = {
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    }

    def _options(self, table: str) -> dict[str, str]:
        return {
            "hoodie.table.name": table,
            "hoodie.datasource.write.recordkey.field": ",".join(KEY),
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": "dt",
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.datasource.write.table.type": self.table_type,
        }

    def load(self, table: str, rows: DataFrame) -> None:
        options = {**self._options(table), "hoodie.datasource.write.operation": "bulk_insert"}
        rows.write.format("hudi").options(**options).mode("overwrite").save(self.path(table))

    def upsert(self, table: str, rows: DataFrame) -> None:
        options = {**self._options(table), "hoodie.datasource.write.operation": "upsert"}
        rows.write.format("hudi").options(**options).mode("append").save(self.path(table))

    def overwrite(self, table: str, rows: DataFrame) -> None:
        options = {**self._options(table), "hoodie.datasource.write.operation": "insert_overwrite"}
        rows.write.format("hudi").options(**options).mode("append").save(self.path(table))

    def read(self, table: str) -> DataFrame:
        return self.spark.read.format("hudi").load(self.path(table))


class ApacheHudiMor(ApacheHudi):
    """Apache Hudi's own Spark bundle, merge-on-read."""

    table_type = "MERGE_ON_READ"


SYSTEMS: dict[str, type[System]] = {
    "dbt-hudi": DbtHudi,
    "dbt-hudi mor": DbtHudiMor,
    "parquet": PlainParquet,
    "delta": Delta,
    "iceberg": Iceberg,
    "iceberg mor": IcebergMor,
    "hudi": ApacheHudi,
    "hudi mor": ApacheHudiMor,
}
