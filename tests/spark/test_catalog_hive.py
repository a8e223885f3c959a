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
from hudi_engine.spark.catalog import TableName, register_table, session_conf, list_entries, drop_table
from hudi_engine.format.storage import open_storage
for key, value in session_conf().items():
    spark.conf.set(key, value)
spark.sql("create database if not exists lake")
def register(names):
    for name in names:
        storage = open_storage(os.path.abspath(name))
        register_table(spark, TableName("lake", name), storage, comment="it's " + name)
register(sys.argv[1:])
print("registered", flush=True)
register(sys.stdin.readline().split())
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
    "grown_cow": read("select * from lake.grown_cow"),
    "grown_types": spark.table("lake.grown_cow").dtypes,
    "grown_mor": read("select * from lake.grown_mor"),
    "grown_retyped": read("select * from lake.grown_retyped"),
}))
"""
)


def start(folder, script, *arguments, engine=True):
    """Start a script in a process of its own."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    if engine:
        environment["PYTHONPATH"] = str(ROOT / "engine")
    else:
        script = (
            f"import sys\nsys.path[:] = [p for p in sys.path if p not in ({str(ROOT)!r}, {str(ROOT / 'engine')!r})]\n"
            + BLOCK
            + script
        )
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def answer(process, said=""):
    """Say a last thing to a process and give the JSON that it prints last."""
    out, errors = process.communicate(said, timeout=300)
    assert process.returncode == 0, errors[-3000:]
    return json.loads(out.strip().split("\n")[-1])


# An editable install finds the engine through an import hook, which is taken out as well.
BLOCK = """
def is_editable(finder):
    return any("editable" in getattr(finder, name, "").lower() for name in ("__module__", "__name__"))
sys.meta_path[:] = [each for each in sys.meta_path if not is_editable(each)]
"""


def rows(*ids, dt="01", v="a"):
    return pa.table({"id": list(ids), "dt": [dt] * len(ids), "v": [v] * len(ids)}, schema=SCHEMA)


def young_tables(folder, prefix=""):
    """A copy-on-write table, a merge-on-read one with a log, and one whose column will change its type."""
    cow = HandmadeTable(folder / f"{prefix}cow", SCHEMA, ("dt",))
    cow.commit({"dt=01": {"f-0": rows(1, 2)}, "dt=a b": {"g-0": rows(3, dt="a b")}})
    mor = HandmadeTable(folder / f"{prefix}mor", SCHEMA, ("dt",), merge_on_read=True)
    first = mor.commit({"dt=01": {"f-0": rows(1, 2)}})
    log(mor, first, rows(2, v="log"))
    retyped = HandmadeTable(folder / f"{prefix}retyped", SCHEMA, ("dt",))
    retyped.commit({"dt=01": {"f-0": rows(1, v="text")}})
    return cow, mor, retyped, first


def log(mor, first, changed):
    instant = mor.next_instant()
    blocks = mor.data_blocks("dt=01", "f-0", changed, instant)
    mor.complete(instant, [mor.append_log("dt=01", "f-0", first, blocks, instant)])


def grow(cow, mor, retyped, first):
    """Add a column, and make a number of a text."""
    cow.schema = SCHEMA.append(pa.field("n", pa.int32()))
    wider = pa.table({"id": [1, 2], "dt": ["01"] * 2, "v": ["b"] * 2, "n": [7, 8]}, schema=cow.schema)
    cow.commit({"dt=01": {"f-0": wider}})
    mor.schema = cow.schema
    log(mor, first, wider.slice(1))
    retyped.schema = pa.schema([("id", pa.int64()), ("dt", pa.string()), ("n", pa.int32())])
    retyped.commit({"dt=01": {"f-0": wider.select(["id", "dt", "n"])}})


@pytest.mark.core
def test_a_process_without_the_engine_reads_tables_and_views_of_a_hive_metastore(tmp_path):
    young_tables(tmp_path)
    growing = young_tables(tmp_path, "grown_")
    grown = ["grown_cow", "grown_mor", "grown_retyped"]
    writer = start(tmp_path, WRITER, "cow", "mor", "retyped", *grown)
    if writer.stdout.readline().strip() == "registered":
        grow(*growing)
    entries = answer(writer, " ".join(grown) + "\n")
    assert sorted(each for each in entries if not each[0].startswith("grown_")) == [
        ["cow", "table", "it's cow"],
        ["mor", "snapshot", "it's mor"],
        ["mor__hudi_files", "files", "it's mor"],
        ["mor_ro", "read_optimized", "it's mor"],
        ["mor_rt", "realtime", "it's mor"],
        ["retyped", "table", "it's retyped"],
        ["v", "view", None],
    ]
    types = [["id", "bigint"], ["dt", "string"], ["v", "string"]]
    assert answer(start(tmp_path, READER, engine=False)) == {
        "cow": [["1", "01", "a"], ["2", "01", "a"], ["3", "a b", "a"]],
        "types": types,
        "pruned": True,
        "view": [["01", "2"], ["a b", "1"]],
        "mor": [["1", "01", "a"], ["2", "01", "log"]],
        "mor_ro": [["1", "01", "a"], ["2", "01", "a"]],
        "retyped": [["1", "01", "text"]],
        "grown_cow": [["1", "01", "b", "7"], ["2", "01", "b", "8"], ["3", "a b", "a", "None"]],
        "grown_types": [*types, ["n", "int"]],
        "grown_mor": [["1", "01", "a", "None"], ["2", "01", "b", "8"]],
        # a metastore refuses to alter the type
        "grown_retyped": [["1", "01", "7"], ["2", "01", "8"]],
    }
