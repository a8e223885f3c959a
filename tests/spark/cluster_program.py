"""A user's program on a cluster: the life of a table, told as JSON. Arguments: master, folder."""

from __future__ import annotations

import json
import sys

from hudi_engine import HudiTable
from pyspark.sql import SparkSession

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
EXECUTORS = {"hoodie.engine.small.batch.rows": "0"}


def engine_of_an_executor(_: object) -> str:
    import hudi_engine

    return str(hudi_engine.__file__)


def main(master: str, folder: str) -> dict[str, object]:
    spark = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.executor.memory", "512m")
        .config("spark.executor.extraJavaOptions", QUICK)
        .config("spark.driver.extraJavaOptions", QUICK)
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    table = HudiTable.create(
        spark,
        f"{folder}/orders",
        name="orders",
        record_key=["id", "dt"],
        precombine_field="ts",
        partition_by=["dt"],
        table_type="mor",
    )
    rows = spark.range(1000).selectExpr("cast(id as int) id", "1L ts", "concat('d', id % 2) dt", "'old' name")
    table.bulk_insert(rows)
    changes = rows.where("id % 10 = 0").selectExpr("id", "2L ts", "dt", "'new' name")
    updated = table.upsert(changes, options=EXECUTORS).rows_updated
    compacted = table.compact().instant is not None
    counts = {row["name"]: row["count"] for row in table.snapshot().groupBy("name").count().collect()}
    context = spark.sparkContext
    engines = sorted(set(context.parallelize(range(4), 2).map(engine_of_an_executor).collect()))
    spark.stop()
    return {"updated": updated, "compacted": compacted, "counts": counts, "engines": engines}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(*sys.argv[1:])) + "\n")
