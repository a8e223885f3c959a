"""A table that is built anew, or removed and made again, while somebody is about to write to it."""

from __future__ import annotations

import shutil

import pytest
from hudi_engine import HudiTable, WriteConflictError, rebuild_table
from hudi_engine.spark.front import rebuild as rebuild_module
from hudi_engine.table.services.planned import PlanRun

from tests.helpers.forms import forms

pytestmark = pytest.mark.sampled

OLD = [(1, "a", "old", 10)]
REBUILT = [(1, "a", "rebuilt", 10)]
DEFINITION = {"name": "t", "record_key": ["id"], "partition_by": ["dt"]}
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
DISTRIBUTED = {"hoodie.engine.small.batch.rows": "0"}
RETRY = {"hoodie.write.num.retries.on.conflict.failures": 1}


def rows(spark, given):
    return spark.createDataFrame(given, "id int, dt string, v string, n int")


def create(spark, tmp_path, **more):
    table = HudiTable.create(spark, str(tmp_path / "t"), **{**DEFINITION, **more})
    table.upsert(rows(spark, OLD))
    return table


def rebuild(table, **more):
    rebuild_table(table.spark, table.path, rows(table.spark, REBUILT), **{**DEFINITION, **more})


def content(table):
    found = HudiTable.open(table.spark, table.path).snapshot()
    return sorted(tuple(row) for row in found.select("id", "dt", "v", "n").collect())


def check_refused(table, tmp_path, write):
    """The write is refused and the rebuilt table stands; said again it is written to that one."""
    with pytest.raises(WriteConflictError, match="[Rr]un (this|the) write again"):
        write(table)
    assert content(table) == REBUILT
    assert [entry.name for entry in tmp_path.iterdir()] == ["t"]


NEW = [(1, "a", "new", 11), (2, "b", "new", 12)]
WRITES = {
    "upsert": lambda table, new: table.upsert(new),
    "upsert on executors": lambda table, new: table.upsert(new, options=DISTRIBUTED),
    "upsert that may begin again": lambda table, new: table.upsert(new, options=RETRY),
    "insert": lambda table, new: table.insert(new),
    "bulk insert": lambda table, new: table.bulk_insert(new),
    "overwrite": lambda table, new: table.insert_overwrite(new),
    "overwrite of the table": lambda table, new: table.insert_overwrite_table(new),
    "delete": lambda table, new: table.delete(new.select("id", "dt")),
    "delete and insert": lambda table, new: table.replace(new, keys="id"),
    "update": lambda table, new: table.update_where("id = 1", {"v": "'new'"}),
    "drop of a partition": lambda table, new: table.delete_partitions(["a"]),
    "other columns": lambda table, new: table.alter_schema("id int, dt string, v string, n int, more int"),
}


@pytest.mark.parametrize(
    "write",
    forms(WRITES, ("upsert", "upsert on executors", "update", "drop of a partition", "other columns")),
)
def test_a_write_whose_table_gets_other_folders_before_it_begins_is_refused(
    spark, tmp_path, overtaken, write
):
    table = create(spark, tmp_path)
    overtaken(lambda: rebuild(table, options=HIVE))
    check_refused(table, tmp_path, lambda table: WRITES[write](table, rows(spark, NEW)))


NEWEST = {"precombine_field": "n", "table_type": "mor"}
DEFINITIONS = {
    "escaped values in folders": (
        {},
        {"options": {"hoodie.datasource.write.partitionpath.urlencode": "true"}},
    ),
    "a bucket index": (
        {},
        {"options": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}},
    ),
    "another merge mode": (
        {**NEWEST, "options": {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}},
        NEWEST,
    ),
    "a marker of deletes": (
        NEWEST,
        {
            **NEWEST,
            "options": {"hoodie.payload.delete.field": "v", "hoodie.payload.delete.marker": "new"},
        },
    ),
    "another key": ({}, {"record_key": ["id", "n"]}),
}


@pytest.mark.parametrize("change", forms(DEFINITIONS, list(DEFINITIONS)[:4]))
def test_a_write_is_refused_whatever_of_the_definition_changed_before_it_began(
    spark, tmp_path, overtaken, change
):
    before, after = DEFINITIONS[change]
    table = create(spark, tmp_path, **before)
    overtaken(lambda: rebuild(table, **after))
    check_refused(table, tmp_path, lambda table: table.upsert(rows(spark, NEW)))
    table = HudiTable.open(spark, table.path)
    table.upsert(rows(spark, [(3, "a", "later", 11)]))
    assert content(table) == [*REBUILT, (3, "a", "later", 11)]


def test_a_write_is_refused_when_times_become_other_folders_before_it_begins(spark, tmp_path, overtaken):
    def by(pattern):
        return {
            "record_key": ["id"],
            "partition_by": ["n:timestamp"],
            "options": {
                "hoodie.keygen.timebased.timestamp.type": "UNIX_TIMESTAMP",
                "hoodie.keygen.timebased.output.dateformat": pattern,
            },
        }

    table = create(spark, tmp_path, **by("yyyy"))
    overtaken(lambda: rebuild(table, **by("yyyy-MM")))
    check_refused(table, tmp_path, lambda table: table.upsert(rows(spark, NEW)))


@pytest.mark.parametrize("table_type", forms(("cow", "mor"), ("mor",)))
def test_a_write_that_has_begun_when_the_table_is_replaced_is_refused_and_leaves_no_file(
    spark, tmp_path, beaten, table_type
):
    table = create(spark, tmp_path, table_type=table_type)
    beaten(lambda: rebuild(table, table_type=table_type, options=HIVE))
    check_refused(table, tmp_path, lambda table: table.upsert(rows(spark, NEW)))
    assert not (tmp_path / "t" / "a").exists()


@pytest.mark.parametrize("service", ["compaction", "clustering"])
def test_a_service_that_has_begun_when_the_table_is_replaced_is_refused(
    spark, tmp_path, monkeypatch, service
):
    table = create(spark, tmp_path, table_type="mor")
    table.upsert(rows(spark, NEW))
    commit = PlanRun.commit

    def late(*given):
        monkeypatch.undo()
        rebuild(table, options=HIVE)
        return commit(*given)

    monkeypatch.setattr(PlanRun, "commit", late)
    run = table.compact if service == "compaction" else lambda: table.cluster("v")
    with pytest.raises(WriteConflictError):
        run()
    assert content(table) == REBUILT


def test_rows_of_a_table_that_was_removed_and_made_again_do_not_come_back(spark, tmp_path, overtaken):
    table = create(spark, tmp_path)

    def made_again():
        shutil.rmtree(table.path)
        HudiTable.create(spark, table.path, **DEFINITION).upsert(rows(spark, [(7, "g", "other", 7)]))

    overtaken(made_again)
    with pytest.raises(WriteConflictError, match="run this write again"):
        table.update_where("id = 1", {"v": "'new'"})
    assert content(table) == [(7, "g", "other", 7)]


def test_a_table_is_not_replaced_when_rows_came_while_its_successor_was_built(spark, tmp_path, monkeypatch):
    table = create(spark, tmp_path)
    mark = rebuild_module.mark_builder

    def late(side):
        table.upsert(rows(spark, [(5, "e", "theirs", 5)]))
        mark(side)

    monkeypatch.setattr(rebuild_module, "mark_builder", late)
    with pytest.raises(WriteConflictError, match="run this write again"):
        rebuild(table, options=HIVE)
    assert content(table) == [*OLD, (5, "e", "theirs", 5)]
    assert [entry.name for entry in tmp_path.iterdir()] == ["t"]


def test_columns_that_another_writer_gives_the_table_meanwhile_are_not_lost(spark, tmp_path, overtaken):
    table = create(spark, tmp_path)
    overtaken(lambda: table.alter_schema("id int, dt string, v string, n int, theirs int"))
    mine = "id int, dt string, v string, n int, mine int"
    with pytest.raises(WriteConflictError, match="changed the columns"):
        table.alter_schema(mine)
    assert "theirs" in HudiTable.open(spark, table.path).snapshot().columns
