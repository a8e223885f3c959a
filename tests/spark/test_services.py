"""Compaction and clean through the engine's front, on real Spark."""

from __future__ import annotations

import random
import threading

import pytest
from hudi_engine import TimelineError
from hudi_engine.spark.catalog import TableName, register_table
from hudi_engine.spark.read.collect import run_in_spark
from hudi_engine.table.services import run_compaction
from hudi_engine.table.snapshot.manifest import live_manifest_files

from tests.helpers.forms import forms
from tests.helpers.hudi_rs import rows_by_hudi_rs
from tests.helpers.keyed import keyed_table
from tests.unit.services.tables import data_files, options

COLUMNS = "id int, ts bigint, dt string, name string"
NAMES = ["id", "ts", "dt", "name"]


def make(spark, path, table_type="mor", **more):
    return keyed_table(
        spark,
        path,
        table_type,
        options={"hoodie.parquet.small.file.limit": "0", **more},
    )


def upsert(spark, table, *rows, **more):
    return table.upsert(spark.createDataFrame(list(rows), COLUMNS), options=more)


def seen(frame):
    return sorted(tuple(row) for row in frame.select(*NAMES).collect())


def test_an_update_shows_in_the_snapshot_and_after_compaction_in_the_read_optimized_view_too(spark, tmp_path):
    table = make(spark, tmp_path / "t")
    upsert(spark, table, (1, 1, "a", "build5"), (2, 1, "a", "other"))
    upsert(spark, table, (1, 2, "a", "build6"))
    assert seen(table.read_optimized()) == [(1, 1, "a", "build5"), (2, 1, "a", "other")]
    assert seen(table.snapshot()) == [(1, 2, "a", "build6"), (2, 1, "a", "other")]
    result = table.compact()
    assert (result.state, result.file_groups, result.rows) == ("completed", 1, 2)
    assert (
        seen(table.read_optimized())
        == seen(table.snapshot())
        == [(1, 2, "a", "build6"), (2, 1, "a", "other")]
    )


@pytest.mark.core
def test_a_compaction_on_executors_gives_the_same_rows(spark, tmp_path):
    table = make(spark, tmp_path / "t")
    upsert(spark, table, *((number, 1, f"p{number % 3}", "old") for number in range(9)))
    upsert(spark, table, *((number, 2, f"p{number % 3}", "new") for number in range(0, 9, 2)))
    expected = seen(table.snapshot())
    result = run_compaction(table.storage, options(), run_tasks=run_in_spark(spark))
    assert (result.file_groups, result.rows) == (3, 9)
    assert seen(table.read_optimized()) == expected
    assert rows_by_hudi_rs(str(tmp_path / "t"), NAMES) == expected


def test_inline_compaction_and_clean_keep_a_merge_on_read_table_small(spark, tmp_path):
    inline = {
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "2",
        "hoodie.clean.commits.retained": "2",
    }
    table = make(spark, tmp_path / "t")
    for step in range(1, 11):
        upsert(spark, table, (1, step, "a", f"v{step}"), (2, step, "a", f"v{step}"), **inline)
    assert seen(table.snapshot()) == [(1, 10, "a", "v10"), (2, 10, "a", "v10")]
    actions = [instant.action for instant in table.timeline()]
    assert actions.count("commit") >= 4
    assert actions.count("clean") >= 2
    assert len([name for name in data_files(table.storage) if name.endswith(".parquet")]) <= 4
    assert rows_by_hudi_rs(str(tmp_path / "t"), NAMES) == seen(table.snapshot())


def test_clean_runs_by_itself_on_copy_on_write(spark, tmp_path):
    table = make(spark, tmp_path / "t", "cow")
    for step in range(1, 7):
        upsert(spark, table, (1, step, "a", f"v{step}"), **{"hoodie.clean.commits.retained": "2"})
    assert len([name for name in data_files(table.storage) if name.endswith(".parquet")]) == 3
    retained = table.timeline()
    assert [instant.action for instant in retained].count("clean") == 3
    assert seen(table.snapshot()) == [(1, 6, "a", "v6")]


def test_a_failed_service_does_not_fail_the_write(spark, tmp_path):
    table = make(spark, tmp_path / "t")
    upsert(spark, table, (1, 1, "a", "old"))
    upsert(spark, table, (1, 2, "a", "new"))
    instant = table.schedule_compaction().instant
    (log,) = [each for each in table.storage.list("dt=a") or table.storage.list("a") if ".log." in each.name]
    saved = table.storage.read(log.path)
    table.storage.delete(log.path)
    upsert(spark, table, (3, 3, "b", "next"), **{"hoodie.compact.inline": "true"})
    assert [(each.instant, each.state) for each in table.compactions()] == [(instant, "REQUESTED")]
    table.storage.create(log.path, saved)
    assert table.compact().instant == instant
    assert seen(table.read_optimized()) == [(1, 2, "a", "new"), (3, 3, "b", "next")]


def test_readers_see_the_same_rows_while_compactions_and_cleans_run(spark, tmp_path):
    table = make(spark, tmp_path / "t", **{"hoodie.clean.automatic": "false"})
    for step in range(1, 4):
        upsert(spark, table, *((number, step, f"p{number % 2}", f"v{step}") for number in range(6)))
    expected = seen(table.snapshot())
    wrong: list[object] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            found = rows_by_hudi_rs(str(tmp_path / "t"), NAMES)
            if found != expected:
                wrong.append(found)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for _ in range(3):
            table.compact()
            table.clean(retain_commits=5)
    finally:
        stop.set()
        reader.join()
    assert wrong == []
    assert seen(table.read_optimized()) == expected


def test_a_savepoint_survives_cleans_and_the_table_goes_back_to_it(spark, tmp_path):
    table = make(spark, tmp_path / "t", **{"hoodie.clean.automatic": "false"})
    upsert(spark, table, (1, 1, "a", "v1"), (2, 1, "b", "v1"))
    saved = table.savepoint(user="ann", comments="before the correction")
    for step in (2, 3):
        upsert(spark, table, (1, step, "a", f"v{step}"))
        table.compact()
    table.clean(retain_commits=1)
    assert [each.instant for each in table.savepoints()] == [saved.instant]
    result = table.restore(saved.instant)
    assert len(result.taken_back) >= 4
    assert seen(table.snapshot()) == seen(table.read_optimized()) == [(1, 1, "a", "v1"), (2, 1, "b", "v1")]
    table.delete_savepoint(saved.instant)
    with pytest.raises(TimelineError, match="no savepoint"):
        table.delete_savepoint(saved.instant)
    upsert(spark, table, (1, 9, "a", "after"))
    assert seen(table.snapshot()) == [(1, 9, "a", "after"), (2, 1, "b", "v1")]


@pytest.mark.parametrize(
    ("service", "table_type"),
    [("cluster", "cow"), ("cluster", "mor"), ("compact", "mor")],
)
def test_a_savepoint_survives_a_service_planned_before_it_and_run_after_it(
    spark, tmp_path, service, table_type
):
    table = make(spark, tmp_path / "t", table_type, **{"hoodie.clean.automatic": "false"})
    upsert(spark, table, (1, 1, "a", "one"), (2, 1, "a", "two"))
    upsert(spark, table, (1, 2, "a", "ONE"))
    if service == "cluster":
        table.schedule_clustering(["id"])
    else:
        table.schedule_compaction()
    upsert(spark, table, (3, 3, "b", "three"))
    saved, then = table.savepoint().instant, seen(table.snapshot())
    getattr(table, service)()
    for step in range(10, 14):
        upsert(
            spark, table, *((number, step, "a" if number < 3 else "b", f"v{step}") for number in (1, 2, 3))
        )
    if table_type == "mor":
        table.compact()
    upsert(spark, table, (1, 20, "a", "z"), (3, 20, "b", "z"))
    table.clean(retain_commits=1)
    assert seen(table.as_of(saved)) == then
    table.restore(saved)
    assert seen(table.snapshot()) == then
    assert rows_by_hudi_rs(table.path, NAMES) == then
    table.delete_savepoint(saved)
    upsert(spark, table, (1, 30, "a", "on"))
    assert seen(table.snapshot()) == [(1, 30, "a", "on"), *then[1:]]


@pytest.mark.core
def test_sql_by_name_reads_on_through_compaction_and_clean(spark, tmp_path, database):
    table = make(spark, tmp_path / "t", **{"hoodie.clean.automatic": "false"})
    name = TableName(database, "t")

    def by_name(entry):
        register_table(spark, name, table.storage)
        return sorted(
            tuple(row) for row in spark.sql(f"select id, ts, dt, name from {database}.{entry}").collect()
        )

    for step in range(1, 4):
        upsert(spark, table, (1, step, "a", f"v{step}"), (2, step, "b", f"v{step}"))
    newest = [(1, 3, "a", "v3"), (2, 3, "b", "v3")]
    assert by_name("t") == newest
    assert by_name("t_ro") == [(1, 1, "a", "v1"), (2, 1, "b", "v1")]
    table.compact()
    assert by_name("t") == by_name("t_ro") == newest
    upsert(spark, table, (1, 4, "a", "v4"))
    upsert(spark, table, (1, 5, "a", "v5"))
    assert table.clean(retain_commits=1).files_deleted > 0
    assert by_name("t") == [(1, 5, "a", "v5"), (2, 3, "b", "v3")]
    assert by_name("t_ro") == newest
    assert not [each for each in live_manifest_files(table.storage) if not table.storage.exists(each)]


@pytest.mark.parametrize("seed", forms(range(4), (2,)))
def test_any_sequence_with_services_gives_the_rows_of_the_dictionary(spark, tmp_path, seed):
    random_ = random.Random(f"services-{seed}")
    path = str(tmp_path / "t")
    table = make(
        spark,
        path,
        **{
            "hoodie.clean.automatic": "false",
            "hoodie.logfile.data.block.format": ("avro", "parquet")[seed % 2],
            "hoodie.parquet.small.file.limit": ("0", "104857600")[seed % 3 == 0],
            "hoodie.index.type": ("SIMPLE", "BLOOM", "BUCKET")[seed % 3],
            "hoodie.bucket.index.num.buckets": "2",
        },
    )
    model: dict[tuple[int, str], tuple[int, int, str, str]] = {}
    for clock in range(1, 13):
        step = (
            "upsert"
            if clock == 1
            else random_.choice(
                ["upsert"] * 4 + ["delete", "overwrite", "schedule", "compact", "compact", "clean"]
            )
        )
        rows = [(random_.randrange(9), clock, random_.choice("ab"), f"v{clock}") for _ in range(4)]
        rows = list({(row[0], row[2]): row for row in rows}.values())
        if step == "upsert":
            upsert(spark, table, *rows)
            model.update({(row[0], row[2]): row for row in rows})
        elif step == "delete" and model:
            table.delete(spark.createDataFrame(rows, COLUMNS))
            for row in rows:
                model.pop((row[0], row[2]), None)
        elif step == "overwrite":
            table.insert_overwrite(spark.createDataFrame(rows, COLUMNS))
            touched = {row[2] for row in rows}
            model = {key: row for key, row in model.items() if key[1] not in touched}
            model.update({(row[0], row[2]): row for row in rows})
        elif step == "schedule":
            table.schedule_compaction()
        elif step == "compact":
            table.compact()
        elif step == "clean":
            table.clean(retain_commits=random_.choice([1, 2, 4]))
        expected = sorted(model.values())
        assert seen(table.snapshot()) == expected, f"step {clock}: {step}"
        if all(each.state == "COMPLETED" for each in table.compactions()):
            # hudi-rs leaves out logs of a pending compaction
            assert rows_by_hudi_rs(path, NAMES) == expected, f"step {clock}: {step}, by hudi-rs"
    while table.compact().instant is not None:
        pass
    assert seen(table.read_optimized()) == sorted(model.values())


def test_a_write_upgrades_the_table_when_it_may(spark, tmp_path, caplog):
    table = make(spark, tmp_path / "t")
    wanted = {"hoodie.write.table.version": "9"}
    upsert(spark, table, (1, 1, "a", "first"), (2, 1, "a", "other"))
    upsert(spark, table, (1, 2, "a", "second"), **wanted)
    assert table.config.version == 6
    table.delete_where("id = 2", options={**wanted, "hoodie.write.auto.upgrade": "true"})
    assert table.config.version == 6
    assert "keeps table version 6: the rows of this write were read of the table before" in caplog.text
    upsert(spark, table, (1, 3, "a", "third"), **wanted, **{"hoodie.write.auto.upgrade": "true"})
    assert table.config.version == 9
    assert "is upgraded from table version 6 to 9 before the write" in caplog.text
    upsert(spark, table, (3, 1, "b", "new"), **{"hoodie.write.auto.upgrade": "true"})
    assert table.config.version == 9
    assert seen(table.snapshot()) == [(1, 3, "a", "third"), (3, 1, "b", "new")]
