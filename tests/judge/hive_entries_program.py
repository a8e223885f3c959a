"""Makes tables and their entries in a Hive metastore (Derby), and prints what is in them; arguments: none, in a folder of its own."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from hudi_engine import HudiTable, rebuild_table
from hudi_engine.errors import ConfigError, ServiceError, TableExistsError
from hudi_engine.format.config.declared.sync_options import SyncOptions
from hudi_engine.spark.hive_sync.entry import LAST_COMMIT, HiveEntry
from hudi_engine.spark.hive_sync.metastore import Metastore
from pyspark.sql import SparkSession

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rows import plain  # noqa: E402 - lies beside this program

SYNC = {"hoodie.datasource.hive_sync.enable": "true", "hoodie.datasource.hive_sync.database": "lake"}
HIVE_STYLE = {"hoodie.datasource.write.hive_style_partitioning": "true"}


def start() -> SparkSession:
    """A session with a Hive metastore in this folder."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").enableHiveSupport()
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": os.path.abspath("warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:;databaseName=metastore;create=true",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dderby.system.durability=test",
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def told(frame: Any) -> list[dict[str, Any]]:
    """Rows in plain form, without Hudi's columns."""
    names = [name for name in frame.columns if not name.startswith("_hoodie_")]
    rows = frame.select(names).collect()
    return [{name: plain(value) for name, value in row.asDict().items()} for row in rows]


def partitions(spark: SparkSession, name: str) -> list[str]:
    """Partitions of an entry, as the metastore has them."""
    metastore = Metastore(spark)
    try:
        return sorted(metastore.partitions(HiveEntry("lake", name, "", (), (), "", {}, {})))
    finally:
        metastore.close()


def make(spark: SparkSession) -> dict[str, Any]:
    """Make the tables; each entry's rows as the engine reads them."""
    found: dict[str, Any] = {}
    columns = "id long, ts long, dt string, amount decimal(10,2), at timestamp"

    def rows(*values: tuple[int, int, str, str], more: str = "") -> Any:
        cells = [
            f"({i}L, {t}L, '{d}', cast({a} as decimal(10,2)), timestamp'2024-01-0{t} 03:04:05')"
            for i, t, d, a in values
        ]
        names = (
            columns.replace(" long", "")
            .replace(" string", "")
            .replace(" decimal(10,2)", "")
            .replace(" timestamp", "")
        )
        return spark.sql(f"select *{more} from values {', '.join(cells)} as rows({names})")

    definition = {"record_key": ["id"], "precombine_field": "ts", "partition_by": ["dt"]}
    cow = HudiTable.create(spark, os.path.abspath("cow"), name="Cow", **definition, options={**HIVE_STYLE})
    cow.upsert(rows((1, 1, "a", "1.5"), (2, 1, "b", "2"), (3, 1, "x y", "3")), options=SYNC)
    found["first"] = partitions(spark, "cow")
    cow.upsert(rows((1, 2, "a", "9"), (4, 2, "c", "4"), more=", 'new' as note"), options=SYNC)
    cow.delete_partitions(["dt=b"], options=SYNC)
    found["cow"], found["partitions"] = told(cow.snapshot()), partitions(spark, "cow")

    mor = HudiTable.create(spark, os.path.abspath("mor"), name="mor", table_type="mor", **definition)
    mor.upsert(rows((1, 1, "a", "1"), (2, 1, "b", "2")), options=SYNC)
    mor.upsert(rows((1, 2, "a", "7")), options=SYNC)
    found["mor"] = found["mor_rt"] = told(mor.snapshot())
    found["mor_ro"] = told(mor.read_optimized())
    found["mor_partitions"] = partitions(spark, "mor_rt")

    day = "org.apache.hudi.hive.SlashEncodedDayPartitionValueExtractor"
    extractor = {SyncOptions.EXTRACTOR.key: day, "hoodie.datasource.hive_sync.table": "by_day"}
    days = HudiTable.create(spark, os.path.abspath("days"), name="days", **definition)
    days.upsert(rows((1, 1, "2024/01/02", "1")), options={**SYNC, **extractor})
    found["by_day"], found["day_partitions"] = told(days.snapshot()), partitions(spark, "by_day")

    flat = HudiTable.create(
        spark, os.path.abspath("flat"), name="flat", record_key=["id"], precombine_field="ts"
    )
    flat.upsert(rows((1, 1, "a", "1"), (2, 1, "b", "2")), options=SYNC)
    found["flat"] = told(flat.snapshot())
    return found


def refused(spark: SparkSession) -> list[Any]:
    """What is refused, each in its own words."""
    table = HudiTable.open(spark, os.path.abspath("flat"))
    spark.sql("create table lake.taken (id long) using parquet")
    said: list[Any] = []
    nowhere = {
        "hoodie.datasource.hive_sync.database": "nowhere",
        "hoodie.datasource.hive_sync.auto_create_database": "false",
    }
    for options in (
        {"hoodie.datasource.hive_sync.database": "lake", "hoodie.datasource.hive_sync.table": "taken"},
        {"hoodie.datasource.hive_sync.database": "lake", "hoodie.datasource.hive_sync.table": "cow"},
        nowhere,
    ):
        try:
            table.sync_hive(options=options)
        except (ConfigError, TableExistsError) as error:
            said.append(str(error))
    before = len(table.commits())
    for options in (
        {**SYNC, "hoodie.datasource.hive_sync.table": "taken"},
        {**SYNC, **nowhere},
    ):
        try:
            table.delete_where("id = 1", options=options)
        except (ConfigError, TableExistsError) as error:
            said.append(str(error))
    said.append(len(table.commits()) - before)
    return said


def halves(spark: SparkSession) -> dict[str, Any]:
    """Syncs that end on the way: a name of three that is taken, and partitions that cannot be added."""
    spark.sql("create table lake.half_rt (id long) using parquet")
    table = HudiTable.open(spark, os.path.abspath("mor"))
    half = {"hoodie.datasource.hive_sync.database": "lake", "hoodie.datasource.hive_sync.table": "half"}
    try:
        table.sync_hive(options=half)
    except TableExistsError as error:
        said = str(error)
    names = [row[1] for row in spark.sql("show tables in lake like 'half*'").collect()]
    metastore, add = Metastore(spark), Metastore.add_partitions
    died = {**half, "hoodie.datasource.hive_sync.table": "died"}
    Metastore.add_partitions = die  # type: ignore[method-assign]
    times = []
    try:
        table.sync_hive(options=died)
    except ServiceError:
        times.append(metastore.tables("lake", ["died_rt", "died_ro"]))
    Metastore.add_partitions = add  # type: ignore[method-assign]
    table.sync_hive(options=died)
    times.append(metastore.tables("lake", ["died_ro"]))
    known = [[str(each.getParameters().get(LAST_COMMIT)) for each in found.values()] for found in times]
    metastore.close()
    return {"said": said, "names": names, "known": known, "newest": table.commits()[0].instant}


def rebuilt(spark: SparkSession) -> list[list[str]]:
    """Place and input format of a partition of a table that is built anew, with other folders, and then of the other type."""
    rows = spark.sql("select 1 as id, 1 as ts, 'a' as dt")
    folder, found = os.path.abspath("rebuilt"), []
    for table_type, more in (("cow", {}), ("cow", HIVE_STYLE), ("mor", HIVE_STYLE)):
        definition = {"table_type": table_type, "options": {**SYNC, **more}}
        rebuild_table(
            spark, folder, rows, name="rebuilt", record_key=["id"], partition_by=["dt"], **definition
        )
        metastore = Metastore(spark)
        entry = HiveEntry("lake", "rebuilt", "", (), (), "", {}, {})
        place, form = metastore.partition(entry, "dt=a")
        found.append([place.rpartition("/")[2], form.rpartition(".")[2]])
        metastore.close()
    return found


def outlived(spark: SparkSession) -> list[list[str]]:
    """Names before and after another strategy, and beside a name of something else that only looks like one."""
    table = HudiTable.open(spark, os.path.abspath("mor"))
    spark.sql("create table lake.other_ro (id long) using parquet")
    found = []
    for name, strategy in (("aged", "ALL"), ("aged", "RT"), ("other", "RT")):
        key = "hoodie.datasource.hive_sync."
        table.sync_hive(
            options={f"{key}database": "lake", f"{key}table": name, f"{key}table.strategy": strategy}
        )
        found.append(sorted(row[1] for row in spark.sql(f"show tables in lake like '{name}*'").collect()))
    return found


def die(*_: object) -> None:
    """End a sync where its partitions come."""
    raise ServiceError("killed")


if __name__ == "__main__":
    session = start()
    answer = make(session)
    answer["refused"] = refused(session)
    answer["halves"] = halves(session)
    answer["outlived"] = outlived(session)
    answer["rebuilt"] = rebuilt(session)
    sys.stdout.write(json.dumps(answer) + "\n")
