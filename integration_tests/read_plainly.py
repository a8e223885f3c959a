"""A fresh process that selects the demo's tables by name and writes what it got as Parquet.

Arguments: warehouse folder, schema, folder for the results, table names. dbt is not involved: the names come
from the directory catalog, every row from Spark's own Parquet reader.
"""

from __future__ import annotations

import sys

from hudi_engine.spark.catalog import DirectoryCatalog, session_conf
from pyspark.sql import SparkSession

_QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def main() -> None:
    """Select each table in full."""
    warehouse, schema, results, *tables = sys.argv[1:]
    builder = SparkSession.builder.master("local[2]").appName("plain Spark")
    builder = builder.config("spark.ui.enabled", "false").config("spark.sql.session.timeZone", "UTC")
    builder = builder.config("spark.sql.shuffle.partitions", "4").config(
        "spark.driver.extraJavaOptions", _QUICK_START
    )
    for key, value in session_conf().items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    DirectoryCatalog(warehouse).load(spark)
    for table in tables:
        spark.sql(f"select * from {schema}.{table}").write.parquet(f"{results}/{table}")
    spark.stop()


if __name__ == "__main__":
    main()
