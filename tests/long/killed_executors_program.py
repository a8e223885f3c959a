"""A user's program on a cluster whose executors are killed while it writes. Arguments: master, URI, table type, rounds.

Prints a line as each write begins, and at last what each row must be after all writes that were acknowledged, as JSON.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from hudi_engine import HudiTable
from pyspark.sql import DataFrame, SparkSession

ROWS, SLICES = 400, 6
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": QUICK,
    "spark.driver.extraJavaOptions": QUICK,
    "spark.driver.host": "127.0.0.1",
    "spark.task.maxFailures": "20",
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.3",
    "spark.speculation.minTaskRuntime": "50ms",
}
OPTIONS = {
    "hoodie.engine.small.batch.rows": "0",
    "hoodie.clean.commits.retained": "2",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "5",
}
SCHEMA = "id long, ts long, dt string, name string"


def slowly(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Let some tasks stand still, so that others are begun for them."""
    for batch in batches:
        time.sleep(random.choice((0, 0, 0.1, 1.5)))
        yield batch


def rows_of(spark: SparkSession, turn: int, step: int) -> DataFrame:
    """Return each so manieth row, with the turn's values."""
    chosen = spark.range(0, ROWS, 1, SLICES).where(f"id % {step} = {turn % step}")
    made = chosen.selectExpr("id", f"{turn}L ts", "concat('d', id % 5) dt", f"'turn {turn}' name")
    return made.mapInArrow(slowly, SCHEMA)


def main(master: str, uri: str, table_type: str, rounds: int) -> dict[str, Any]:
    """Write and keep a ledger."""
    spark = SparkSession.builder.master(master).config(map=SETTINGS).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    table = HudiTable.create(
        spark,
        uri,
        name="t",
        record_key=["id"],
        precombine_field="ts",
        partition_by=["dt"],
        table_type=table_type,
        options=OPTIONS,
    )
    chance, ledger, failed = random.Random(rounds), dict[int, int](), 0
    for turn in range(rounds):
        step = chance.choice((1, 2, 3, 7))
        keys = [number for number in range(ROWS) if number % step == turn % step]
        kind = chance.choice(("upsert", "upsert", "delete", "insert_overwrite_table")) if turn else "upsert"
        sys.stdout.write(f"turn {turn}\n")
        sys.stdout.flush()
        try:
            getattr(table, kind)(rows_of(spark, turn, step), options=OPTIONS)
        except Exception as error:  # whatever Spark says of lost executors: the write did not happen
            failed += 1
            sys.stderr.write(f"turn {turn}: {type(error).__name__}: {str(error)[:300]}\n")
            continue
        if kind == "insert_overwrite_table":
            ledger.clear()
        for key in keys:
            ledger[key] = turn
            if kind == "delete":
                del ledger[key]
    spark.stop()
    return {"rows": sorted(ledger.items()), "failed": failed}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(*sys.argv[1:4], int(sys.argv[4]))) + "\n")
