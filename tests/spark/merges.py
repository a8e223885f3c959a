"""Tables and rows of the tests of merges."""

from __future__ import annotations

from hudi_engine import HudiTable

COLUMNS = "id int, n int, dt string"
STORED = [(1, 10, "a"), (2, 20, "a"), (3, 30, "b"), (4, 40, "b")]
BATCH = [(2, 200, "a"), (3, 300, "a"), (5, 500, "b"), (6, 600, "b")]
TABLES = {
    "cow": ("cow", None, "GLOBAL_SIMPLE", "1000"),
    "cow-partitioned-executors": ("cow", ["dt"], "GLOBAL_BLOOM", "0"),
    "mor-partitioned": ("mor", ["dt"], "GLOBAL_SIMPLE", "1000"),
    "mor-bucket": ("mor", None, "BUCKET", "1000"),
}


def make(spark, path, shape="cow"):
    table_type, partitions, index, small_rows = TABLES[shape]
    options = {"hoodie.index.type": index, "hoodie.engine.small.batch.rows": small_rows}
    if index.startswith("GLOBAL"):
        options[f"hoodie.{index[7:].lower()}.index.update.partition.path"] = "true"
    return HudiTable.create(
        spark,
        str(path),
        name="t",
        record_key=["id"],
        partition_by=partitions,
        table_type=table_type,
        options=options,
    )


def frame(spark, rows):
    return spark.createDataFrame(rows, COLUMNS)
