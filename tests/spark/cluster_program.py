"""A user's program on a cluster: the life of a table, told as JSON. Arguments: master, folder."""

from __future__ import annotations

import json
import sys

from hudi_engine import HudiTable
from pyspark.sql import SparkSession

COLUMNS = "id int, ts bigint, dt string, name string"
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
        .config("spark.executor.cores", "1")
        .config("spark.cores.max", "2")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    told: dict[str, object] = {}
    for table_type in ("cow", "mor"):
        table = HudiTable.create(
            spark,
            f"{folder}/{table_type}",
            name=table_type,
            record_key=["id", "dt"],
            precombine_field="ts",
            partition_by=["dt"],
            table_type=table_type,
        )
        rows = spark.range(1000).selectExpr(
            "cast(id as int) id", "1L ts", "concat('d', id % 3) dt", "'old' name"
        )
        table.bulk_insert(rows)
        result = table.upsert(
            rows.where("id % 10 = 0").selectExpr("id", "2L ts", "dt", "'new' name"), options=EXECUTORS
        )
        assert result.rows_updated == 100, result
        if table_type == "mor":
            assert table.compact().instant is not None
        counts = table.snapshot().groupBy("name").count().collect()
        told[table_type] = {row["name"]: row["count"] for row in counts}
    context = spark.sparkContext
    told["executors"] = sorted(set(context.parallelize(range(8), 8).map(engine_of_an_executor).collect()))
    spark.stop()
    return told


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(*sys.argv[1:])) + "\n")
