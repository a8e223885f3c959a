"""A planned write gives the figures that the write then has, and leaves no trace."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hudi_engine import (
    ConfigError,
    HudiError,
    HudiTable,
    MergeClauses,
    build_table,
    planned_writes,
    rebuild_table,
)
from hudi_engine.format.telemetry.figures import replaces_file

from tests.helpers.keyed import keyed_table

RETAINED = {"hoodie.clean.commits.retained": "10"}
COLUMNS = "id int, ts bigint, dt string, name string"
MORE = f"{COLUMNS}, city string"


def files(path):
    """Every file and folder below a path, with its bytes and its time."""
    found = {}
    for folder, _, names in os.walk(path):
        for each in (Path(folder), *(Path(folder) / name for name in names)):
            status = each.stat()
            content = each.read_bytes() if each.is_file() else b""
            found[str(each.relative_to(path))] = (status.st_mtime_ns, content)
    return found


def groups_of(done):
    metadata = done.metadata
    found = {(stat.partition_path, stat.file_id) for _, stat in metadata.write_stats()}
    replaced = metadata.partition_to_replace_file_ids or {}
    return found | {(partition, each) for partition, ids in replaced.items() for each in ids}


def bytes_replaced(before, done):
    """Bytes of the base files that those of a commit follow, by the names of the files that were there."""
    sizes = {}
    for path, (_, content) in before.items():
        name = path.rpartition("/")[2]
        if name.endswith(".parquet") and not name.startswith("."):
            file_id, _, instant = name.removesuffix(".parquet").split("_")
            sizes[file_id, instant] = len(content)
    stats = [stat for _, stat in done.metadata.write_stats() if replaces_file(stat)]
    return sum(sizes[stat.file_id, stat.prev_commit] for stat in stats)


def check_plan(path, call):
    """Plan a write, make it, and compare; returns both results."""
    before = files(path)
    try:
        with planned_writes(examples=2):
            planned = call()
    except HudiError as refused:
        assert files(path) == before
        with pytest.raises(type(refused)):
            call()
        return None
    assert files(path) == before
    done = call()
    assert planned.instant is None
    counts = ("operation", "rows_inserted", "rows_updated", "rows_deleted", "partitions_written")
    assert {each: getattr(planned, each) for each in counts} == {each: getattr(done, each) for each in counts}
    if done.metadata is None:
        assert planned.plan.file_groups == 0
        return planned, done
    assert planned.path_taken == done.path_taken
    assert planned.plan.partitions == done.partitions_written
    assert planned.plan.file_groups == len(groups_of(done))
    assert planned.plan.bytes_to_rewrite == bytes_replaced(before, done)
    if done.figures is not None:
        same = ("rows_in", "rows_shuffled", "rows_written")
        assert {each: getattr(planned.figures, each) for each in same} == {
            each: getattr(done.figures, each) for each in same
        }
    words = {"compacted": "compaction", "cleaned": "clean", "archived": "archive"}
    ran = {words[each.split()[0]] for each in done.services}
    if "compaction" in planned.plan.services:  # what follows it goes by its instant too
        ran &= {*planned.plan.services}
    assert ran == {*planned.plan.services}
    return planned, done


def frame(spark, rows, columns=COLUMNS):
    return spark.createDataFrame(rows, columns)


WAYS = (
    "upsert", "upsert", "upsert", "update_columns", "match", "skip_unchanged", "insert", "insert_new", "bulk_insert",
    "insert_overwrite", "insert_overwrite_table", "delete", "delete_where", "update_where", "replace_keys",
    "replace_where", "merge", "columns",
)  # fmt: skip


def a_call(spark, random_, path, clock, options, partitioned):
    """A random write, which can be made again on the same state."""
    way = random_.choice(WAYS)
    size = random_.randrange(1, 9)
    rows = {}
    for _ in range(size):
        number = random_.randrange(14)
        rows[number] = (
            number,
            clock + random_.choice((-3, 0, 0)),
            random_.choice("abc"),
            f"v{random_.randrange(3)}",
        )
    columns = COLUMNS
    known = HudiTable.open(spark, path).schema
    if known is not None and "city" in known.names:
        columns, rows = MORE, {key: (*row, "x") for key, row in rows.items()}
    df = frame(spark, list(rows.values()), columns)

    def call():
        table = HudiTable.open(spark, path, options=options)
        if table.schema is None or way == "upsert":
            return table.upsert(df)
        if way == "update_columns":
            return table.upsert(df, update_columns=["ts", "name"])
        if way == "match":
            condition = "DBT_INTERNAL_SOURCE.id = DBT_INTERNAL_DEST.id and DBT_INTERNAL_DEST.name <> 'v1'"
            return table.upsert(df, match_condition=condition)
        if way == "skip_unchanged":
            return table.upsert(df, options={"hoodie.engine.skip.unchanged": "true"})
        if way == "insert_new":
            return table.insert(df, options={"hoodie.datasource.write.insert.drop.duplicates": "true"})
        if way == "delete_where":
            return table.delete_where("name = 'v1'")
        if way == "update_where":
            return table.update_where("id < 5", {"name": "concat(name, '!')"})
        if way == "replace_keys":
            return table.replace(df, keys=["id"])
        if way == "replace_where":
            return table.replace(df.where("name = 'v0'"), where="name = 'v0'")
        if way == "merge":
            clauses = MergeClauses(by_source="delete") if clock % 2 else MergeClauses()
            return table.merge(df, clauses)
        if way == "columns":
            return table.upsert(
                df.selectExpr("*", "cast(null as string) as city") if columns == COLUMNS else df
            )
        return getattr(table, way)(df)

    return way, call


def check_history(spark, tmp_path, seed, batches):
    random_ = random.Random(seed)
    path = str(tmp_path / f"t{seed}")
    partitioned = random_.random() < 0.7
    kind = random_.choice(("cow", "mor"))
    HudiTable.create(
        spark, path, name="t", record_key=["id"], precombine_field="ts", table_type=kind,
        partition_by=["dt"] if partitioned else None,
        options={
            "hoodie.write.table.version": random_.choice(("6", "9")),
            "hoodie.index.type": random_.choice(("BLOOM", "SIMPLE", "GLOBAL_SIMPLE", "BUCKET")),
            "hoodie.bucket.index.num.buckets": "3",
        },
    )  # fmt: skip
    for clock in range(10, 10 + batches):
        options = {
            "hoodie.engine.small.batch.rows": random_.choice(("0", "1000", "1000")),
            "hoodie.parquet.small.file.limit": random_.choice(("0", "104857600")),
            "hoodie.compact.inline": "true",
            "hoodie.compact.inline.max.delta.commits": "4",
            "hoodie.clean.commits.retained": "3",
        }
        way, call = a_call(spark, random_, path, clock, options, partitioned)
        try:
            check_plan(path, call)
        except AssertionError as error:
            raise AssertionError(
                f"{kind}, partitioned {partitioned}, step {clock} {way} {options}: {error}"
            ) from error


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(each, marks=pytest.mark.long) for each in range(2, 50))]
)
def test_a_plan_of_any_write_has_its_figures(spark, tmp_path, seed):
    check_history(spark, tmp_path, seed, 10 if seed > 1 else 6)


def test_a_plan_shows_rows_before_and_after(spark, tmp_path, table_type):
    table = keyed_table(spark, tmp_path / "t", table_type, options=RETAINED)
    table.upsert(frame(spark, [(1, 1, "a", "one"), (2, 1, "a", "two"), (3, 1, "b", "three")]))
    rows = frame(spark, [(1, 2, "a", "ONE"), (4, 2, "a", "four"), (3, 1, "b", "three")])

    planned, _ = check_plan(table.path, lambda: table.upsert(rows))
    found = {(each.change, (each.after or {}).get("id")): each for each in planned.plan.examples}
    assert found["update", 1].before == {"id": 1, "ts": 1, "dt": "a", "name": "one"}
    assert found["update", 1].after == {"id": 1, "ts": 2, "dt": "a", "name": "ONE"}
    assert found["insert", 4].before is None
    planned, _ = check_plan(table.path, lambda: table.delete_where("id = 2"))
    assert [(each.change, each.before["name"], each.after) for each in planned.plan.examples] == [
        ("delete", "two", None)
    ]


def test_rows_that_change_nothing_are_counted(spark, tmp_path, table_type):
    table = keyed_table(spark, tmp_path / "t", table_type, options={"hoodie.engine.skip.unchanged": "true"})
    table.upsert(frame(spark, [(1, 1, "a", "one"), (2, 1, "a", "two")]))
    rows = frame(spark, [(1, 1, "a", "one"), (2, 0, "a", "old"), (3, 1, "a", "new")])
    planned, _ = check_plan(table.path, lambda: table.upsert(rows))

    assert (planned.rows_inserted, planned.rows_updated) == (1, 0)
    assert (planned.plan.rows_read, planned.plan.rows_unchanged) == (3, 2)


def test_a_plan_of_a_build_makes_no_folder(spark, tmp_path, table_type):
    definition = {"name": "t", "record_key": ["id"], "partition_by": ["dt"], "table_type": table_type}
    path, rows = str(tmp_path / "t"), frame(spark, [(1, 1, "a", "one"), (2, 1, "b", "two")])
    for build in (build_table, rebuild_table, rebuild_table):
        planned, _ = check_plan(path, lambda build=build: build(spark, path, rows, **definition))
        assert planned.plan.partitions == ("a", "b")
    planned, _ = check_plan(
        path, lambda: rebuild_table(spark, path, rows, **{**definition, "partition_by": None})
    )
    assert planned.plan.partitions == ("",)


def test_a_plan_names_changed_columns_and_a_guess_of_the_time(spark, tmp_path):
    table = keyed_table(spark, tmp_path / "t")
    first, _ = check_plan(table.path, lambda: table.upsert(frame(spark, [(1, 1, "a", "one")])))
    assert (first.plan.columns, first.plan.seconds) == ((), None)
    wider = table.with_schema("id bigint, ts bigint, dt string, city string")
    rows = spark.createDataFrame([(1, 2, "a", "x")], "id int, ts bigint, dt string, city string")
    planned, _ = check_plan(table.path, lambda: wider.upsert(rows))

    assert planned.plan.columns == ("+ city string", "- name", "~ id int32 to int64")
    assert planned.plan.seconds > 0


def test_dropped_partitions_are_planned_and_services_are_refused(spark, tmp_path):
    table = keyed_table(spark, tmp_path / "t")
    table.upsert(frame(spark, [(1, 1, "a", "one"), (2, 1, "b", "two")]))
    with planned_writes(), pytest.raises(ConfigError, match=r"in planned_writes\(\) nothing is changed"):
        table.savepoint()
    planned, _ = check_plan(table.path, lambda: table.delete_partitions(["b"]))

    assert (planned.rows_deleted, planned.plan.partitions) == (1, ("b",))
