"""A Hive metastore (Derby): entries made by one process are read by another that has no engine at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from tests.helpers.handmade import HandmadeTable

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = pa.schema([("id", pa.int64()), ("dt", pa.string()), ("v", pa.string())])

SESSION = """
import json, os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
spark = (
    SparkSession.builder.master("local[2]").enableHiveSupport()
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.sql.warehouse.dir", "warehouse")
    .config("spark.hadoop.javax.jdo.option.ConnectionURL", "jdbc:derby:;databaseName=metastore;create=true")
    .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -Dderby.system.durability=test")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
def read(query):
    return sorted([str(value) for value in row] for row in spark.sql(query).collect())
"""

WRITER = (
    SESSION
    + """
from hudi_engine.catalog import TableName, register_table, session_conf, list_entries, drop_table
from hudi_engine.storage import open_storage
for key, value in session_conf().items():
    spark.conf.set(key, value)
spark.sql("create database if not exists lake")
for name in sys.argv[1:]:
    storage = open_storage(os.path.abspath(name))
    register_table(spark, TableName("lake", name), storage, comment="it's " + name)
spark.sql("create view if not exists lake.v as select dt, count(*) as n from lake.cow group by dt")
print(json.dumps([[each.name.name, each.kind, each.comment] for each in list_entries(spark, "lake")]))
"""
)

READER = (
    SESSION
    + """
try:
    import hudi_engine
    raise SystemExit("the engine is on the path of a process that must not have it")
except ImportError:
    pass
plan = spark.sql("select id from lake.cow where dt = '01'")._jdf.queryExecution().executedPlan().toString()
print(json.dumps({
    "cow": read("select * from lake.cow"),
    "types": spark.table("lake.cow").dtypes,
    "pruned": "dt#" in plan.split("PartitionFilters: [")[1].split("]")[0],
    "view": read("select * from lake.v"),
    "mor": read("select * from lake.mor"),
    "mor_ro": read("select * from lake.mor_ro"),
    "retyped": read("select * from lake.retyped"),
}))
"""
)


def run(folder, script, *arguments, engine=True):
    """Run a script in a process of its own and return the JSON it prints last."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    if engine:
        environment["PYTHONPATH"] = str(ROOT / "engine")
    else:
        script = (
            f"import sys\nsys.path[:] = [p for p in sys.path if p not in ({str(ROOT)!r}, {str(ROOT / 'engine')!r})]\n"
            + BLOCK
            + script
        )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().split("\n")[-1])


# An editable install finds the engine through an import hook, which is taken out as well.
BLOCK = """
def is_editable(finder):
    return any("editable" in getattr(finder, name, "").lower() for name in ("__module__", "__name__"))
sys.meta_path[:] = [each for each in sys.meta_path if not is_editable(each)]
"""


def rows(*ids, dt="01", v="a"):
    return pa.table({"id": list(ids), "dt": [dt] * len(ids), "v": [v] * len(ids)}, schema=SCHEMA)


@pytest.mark.core
def test_a_process_without_the_engine_reads_tables_and_views_of_a_hive_metastore(tmp_path):
    cow = HandmadeTable(tmp_path / "cow", SCHEMA, ("dt",))
    cow.commit({"dt=01": {"f-0": rows(1, 2)}, "dt=a b": {"g-0": rows(3, dt="a b")}})
    mor = HandmadeTable(tmp_path / "mor", SCHEMA, ("dt",), merge_on_read=True)
    first = mor.commit({"dt=01": {"f-0": rows(1, 2)}})
    instant = mor.next_instant()
    blocks = mor.data_blocks("dt=01", "f-0", rows(2, v="log"), instant)
    mor.complete(instant, [mor.append_log("dt=01", "f-0", first, blocks, instant)])
    retyped = HandmadeTable(tmp_path / "retyped", SCHEMA, ("dt",))
    retyped.commit({"dt=01": {"f-0": rows(1, v="text")}})

    entries = run(tmp_path, WRITER, "cow", "mor", "retyped")
    assert sorted(entries) == [
        ["cow", "table", "it's cow"],
        ["mor", "snapshot", "it's mor"],
        ["mor__hudi_files", "files", "it's mor"],
        ["mor_ro", "read_optimized", "it's mor"],
        ["mor_rt", "realtime", "it's mor"],
        ["retyped", "table", "it's retyped"],
        ["v", "view", None],
    ]
    expected = {
        "cow": [["1", "01", "a"], ["2", "01", "a"], ["3", "a b", "a"]],
        "types": [["id", "bigint"], ["dt", "string"], ["v", "string"]],
        "pruned": True,
        "view": [["01", "2"], ["a b", "1"]],
        "mor": [["1", "01", "a"], ["2", "01", "log"]],
        "mor_ro": [["1", "01", "a"], ["2", "01", "a"]],
        "retyped": [["1", "01", "text"]],
    }
    assert run(tmp_path, READER, engine=False) == expected

    cow.schema = SCHEMA.append(pa.field("n", pa.int32()))
    wider = pa.table({"id": [1, 2], "dt": ["01"] * 2, "v": ["b"] * 2, "n": [7, 8]}, schema=cow.schema)
    cow.commit({"dt=01": {"f-0": wider}})
    mor.schema = cow.schema
    instant = mor.next_instant()
    blocks = mor.data_blocks("dt=01", "f-0", wider.slice(1), instant)
    mor.complete(instant, [mor.append_log("dt=01", "f-0", first, blocks, instant)])
    retyped.schema = pa.schema([("id", pa.int64()), ("dt", pa.string()), ("n", pa.int32())])
    retyped.commit({"dt=01": {"f-0": wider.select(["id", "dt", "n"])}})
    run(tmp_path, WRITER, "cow", "mor", "retyped")
    again = run(tmp_path, READER, engine=False)
    assert again["cow"] == [["1", "01", "b", "7"], ["2", "01", "b", "8"], ["3", "a b", "a", "None"]]
    assert again["types"] == [*expected["types"], ["n", "int"]]
    assert again["mor"] == [["1", "01", "a", "None"], ["2", "01", "b", "8"]]
    assert again["retyped"] == [["1", "01", "7"], ["2", "01", "8"]], "a metastore refuses to alter the type"
