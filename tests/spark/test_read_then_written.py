"""What a write reads of the table before its instant begins: another writer that commits in between is never overruled."""

from __future__ import annotations

import pytest
from hudi_engine import HudiTable, WriteConflictError
from hudi_engine.spark.front import reads
from hudi_engine.spark.read.published import ListMovedError
from hudi_engine.spark.write.rows.clauses import MergeClauses
from hudi_engine.spark.write.rows.replacement import Replacement
from hudi_engine.table.state import TableState
from hudi_engine.table.write.operation import UPSERT

from tests.helpers.forms import forms

pytestmark = pytest.mark.sampled


@pytest.fixture(params=forms(("cow", "mor"), ("mor",)))
def table_type(request):
    return request.param


@pytest.fixture
def make(spark, tmp_path, table_type):
    """A function that makes table ``t`` with rows."""

    def made(rows, columns, **definition):
        table = HudiTable.create(
            spark, str(tmp_path / "t"), name="t", record_key=["id"], table_type=table_type, **definition
        )
        table.upsert(spark.createDataFrame(rows, columns))
        return table

    return made


def values(table, *columns):
    return sorted(tuple(row) for row in table.snapshot().select(*columns).collect())


def test_an_update_of_a_row_that_changed_since_it_was_read_is_a_conflict(make, overtaken):
    table = make([(1, 10)], "id int, n int")
    overtaken(lambda: table.update_where("id = 1", {"n": "n + 5"}))
    with pytest.raises(WriteConflictError, match="[Rr]un this write again"):
        table.update_where("id = 1", {"n": "n + 1"})
    assert values(table, "n") == [(15,)]
    table.update_where("id = 1", {"n": "n + 1"})
    assert values(table, "n") == [(16,)]


def test_an_update_of_values_that_were_read_in_another_partition_is_a_conflict_when_they_changed(
    make, overtaken
):
    table = make([(1, 1, "a"), (2, 10, "b")], "id int, n int, d string", partition_by=["d"])
    overtaken(lambda: table.update_where("id = 2", {"n": "1000"}))
    read = table.as_read(TableState.load(table.storage))
    with pytest.raises(WriteConflictError, match="it changed rows that this write had read before"):
        read.update_where("id = 1", {"n": "11"})
    table.as_read(TableState.load(table.storage)).update_where("id = 1", {"n": "1001"})
    assert values(table, "n") == [(1000,), (1001,)]


def test_a_row_that_no_longer_fulfils_the_condition_is_not_deleted(make, overtaken):
    table = make([(1, "open"), (2, "closed")], "id int, st string")
    overtaken(lambda: table.update_where("id = 2", {"st": "'open'"}))
    with pytest.raises(WriteConflictError):
        table.delete_where("st = 'closed'")
    assert values(table, "id", "st") == [(1, "open"), (2, "open")]


def test_a_match_condition_that_was_asked_too_early_inserts_no_second_row_of_a_key(spark, make, overtaken):
    table = make([(1, 10)], "id int, n int")
    overtaken(lambda: table.insert(spark.createDataFrame([(7, 70)], "id int, n int")))
    with pytest.raises(WriteConflictError):
        table.upsert(
            spark.createDataFrame([(7, 71)], "id int, n int"),
            match_condition="DBT_INTERNAL_SOURCE.n >= DBT_INTERNAL_DEST.n",
        )
    assert values(table, "id", "n") == [(1, 10), (7, 70)]


@pytest.mark.parametrize("small_rows", ["1000", "0"], ids=["driver", "executors"])
def test_values_of_a_column_that_came_meanwhile_stay(spark, make, overtaken, small_rows):
    table = make([(1, 10), (2, 20)], "id int, n int")
    more = spark.createDataFrame([(1, 10, "precious")], "id int, n int, Note string")
    overtaken(lambda: table.upsert(more))
    rows = spark.createDataFrame([(2, 21, "mine"), (3, 30, "mine")], "id int, n int, extra string")
    table.upsert(rows, options={"hoodie.engine.small.batch.rows": small_rows})
    assert values(table, "id", "n", "Note", "extra") == [
        (1, 10, "precious", None),
        (2, 21, None, "mine"),
        (3, 30, None, "mine"),
    ]


def with_other_columns(spark, table, columns):
    """Another writer, whose batch has no row and other columns than the table."""
    HudiTable.open(spark, table.path).with_schema(columns).upsert(spark.createDataFrame([], columns))


@pytest.mark.parametrize("small_rows", ["1000", "0"], ids=["driver", "executors"])
def test_a_merge_keeps_what_its_batch_lacks_when_another_writer_changes_the_columns(
    spark, make, overtaken, small_rows
):
    stored = "id int, n int, note string, old string"
    table = make([(1, 10, "precious", "x"), (2, 20, "too", "y")], stored)
    overtaken(lambda: with_other_columns(spark, table, "id int, n bigint, note string, theirs int"))
    rows = spark.createDataFrame([(2, 21), (3, 30)], "id int, n int")
    clauses = MergeClauses(update_columns=("n",), by_source={"n": "DBT_INTERNAL_DEST.n + 1"})
    table.merge(rows, clauses, options={"hoodie.engine.small.batch.rows": small_rows})
    assert table.schema.names == ["id", "n", "note", "theirs"]
    assert values(table, *table.schema.names) == [
        (1, 11, "precious", None),
        (2, 21, "too", None),
        (3, 30, None, None),
    ]


def test_rows_that_a_replacement_brings_back_keep_their_values_when_another_writer_adds_a_column(
    spark, make, overtaken, monkeypatch
):
    table = make([(1, 10, "goes")], "id int, n int, note string")
    table.insert(spark.createDataFrame([(1, 20, "precious")], "id int, n int, note string"))
    slower = Replacement.for_repeated_keys

    def late(replacement):
        """Before the attempt that brings rows back, which begins anew where a key is found to be stored twice."""
        monkeypatch.undo()
        overtaken(lambda: with_other_columns(spark, table, "id int, n int, note string, theirs int"))
        return slower(replacement)

    monkeypatch.setattr(Replacement, "for_repeated_keys", late)
    table.replace(spark.createDataFrame([(2, 10)], "id int, n int"), where="n = 10")
    assert values(table, "id", "n", "note", "theirs") == [(1, 20, "precious", None), (2, 10, None, None)]


def test_changes_of_other_partitions_are_no_conflict(spark, make, overtaken):
    table = make([(1, 10, "a"), (2, 20, "b")], "id int, n int, dt string", partition_by=["dt"])
    overtaken(lambda: table.update_where("dt = 'b'", {"n": "n + 5"}))
    table.update_where("dt = 'a'", {"n": "n + 1"})
    table.delete(spark.createDataFrame([(9, "a")], "id int, dt string"))
    assert values(table, "id", "n") == [(1, 11), (2, 25)]


def test_a_table_that_was_cleared_after_its_rows_were_read_stays_cleared(spark, make, overtaken):
    table = make([(1, 10)], "id int, n int")
    empty = spark.createDataFrame([], "id int, n int")
    overtaken(lambda: table.insert_overwrite_table(empty))
    with pytest.raises(WriteConflictError):
        table.update_where("id = 1", {"n": "n + 1"})
    assert values(table, "id") == []


def test_rows_made_of_the_tables_own_depend_on_them(spark, make):
    table = make([(1, 10), (2, 20)], "id int, n int")
    rows, base = table.rows_to_change()
    table.update_where("id = 1", {"n": "0"})
    with pytest.raises(WriteConflictError):
        table.write(UPSERT, rows.selectExpr("id", "n + 1 as n"), None, base=base)
    assert values(table, "id", "n") == [(1, 0), (2, 20)]


RETRY = {"hoodie.write.num.retries.on.conflict.failures": 2}


@pytest.mark.parametrize("rows_on_driver", [200_000, 0], ids=["driver", "distributed"])
def test_a_batch_from_elsewhere_begins_again_after_a_conflict(spark, make, beaten, rows_on_driver):
    table = make([(1, 10), (2, 10)], "id int, n int")
    others = [
        lambda n=n: table.upsert(spark.createDataFrame([(1, n), (2, n)], "id int, n int")) for n in (11, 12)
    ]
    beaten(*others)
    options = {**RETRY, "hoodie.engine.small.batch.rows": rows_on_driver}
    result = table.upsert(spark.createDataFrame([(2, 20), (3, 30)], "id int, n int"), options=options)
    assert values(table, "id", "n") == [(1, 12), (2, 20), (3, 30)]
    assert all(each.is_completed or each.action == "rollback" for each in table.timeline())
    assert result.instant == max(
        each.requested_time for each in table.timeline() if each.action.endswith("commit")
    )


def test_a_batch_from_elsewhere_that_is_overtaken_too_often_is_a_conflict(spark, make, beaten):
    table = make([(1, 10)], "id int, n int")
    others = [
        lambda n=n: table.upsert(spark.createDataFrame([(1, n)], "id int, n int")) for n in (11, 12, 13)
    ]
    beaten(*others)
    with pytest.raises(WriteConflictError):
        table.upsert(spark.createDataFrame([(1, 20)], "id int, n int"), options=RETRY)
    assert values(table, "id", "n") == [(1, 13)]


def test_rows_made_of_the_tables_own_do_not_begin_again(spark, make, beaten):
    table = make([(1, 10)], "id int, n int")
    beaten(lambda: table.upsert(spark.createDataFrame([(1, 11)], "id int, n int")))
    with pytest.raises(WriteConflictError):
        table.update_where("id = 1", {"n": "n + 1"}, options=RETRY)
    assert values(table, "id", "n") == [(1, 11)]


def test_statements_go_on_where_the_list_of_files_moves_while_spark_reads_it(make, monkeypatch):
    table = make([(1, "one"), (2, "two"), (3, "three")], "id int, name string")

    def moved(*_):
        raise ListMovedError("another writer has committed")

    monkeypatch.setattr(reads, "published_snapshot", moved)
    table.update_where("id = 1", {"name": "'ONE'"})
    table.delete_where("id = 2")
    assert sorted((row.id, row.name) for row in table.snapshot().collect()) == [(1, "ONE"), (3, "three")]
