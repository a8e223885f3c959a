"""A look at what a write leaves: it sees the state to be, nobody else does, and raising leaves the table as it was."""

from __future__ import annotations

import pytest
from hudi_engine import HudiTable, WriteConflictError, rebuild_table
from hudi_engine.spark.write.rows.clauses import MergeClauses
from hudi_engine.table.write.inspection import before_commit

from tests.helpers.hudi_rs import rows_by_hudi_rs

COLUMNS = "id int, ts bigint, dt string, name string"
NAMES = ["id", "ts", "dt", "name"]
FIRST = [(1, 5, "a", "one"), (2, 5, "a", "two"), (3, 5, "b", "three"), (4, 5, "b", "four")]
NEW = [(2, 9, "a", "two again"), (5, 9, "b", "five")]
# operation, and what the table holds after it
WRITES = {
    "upsert": (lambda table, rows: table.upsert(rows), [FIRST[0], NEW[0], FIRST[2], FIRST[3], NEW[1]]),
    "insert": (lambda table, rows: table.insert(rows), [*FIRST, *NEW]),
    "delete": (lambda table, rows: table.delete(rows), [FIRST[0], FIRST[2], FIRST[3]]),
    "delete_where": (lambda table, _: table.delete_where("id > 2"), FIRST[:2]),
    "insert_overwrite": (
        lambda table, rows: table.insert_overwrite(rows.where("dt = 'a'")),
        [NEW[0], *FIRST[2:]],
    ),
    "insert_overwrite_table": (lambda table, rows: table.insert_overwrite_table(rows), NEW),
    "replace": (lambda table, rows: table.replace(rows, keys=["id"]), [FIRST[0], NEW[0], *FIRST[2:], NEW[1]]),
    "merge": (
        lambda table, rows: table.merge(rows, MergeClauses(by_source="delete")),
        NEW,
    ),
}


class Refused(Exception):
    """What a look raises."""


def batch(spark, rows):
    return spark.createDataFrame(rows, COLUMNS)


def make(spark, path, table_type, partitions, small_rows="10000"):
    options = {
        "hoodie.engine.small.batch.rows": small_rows,
        "hoodie.datasource.write.insert.drop.duplicates": "false",
    }
    definition = {"name": "t", "record_key": ["id"], "precombine_field": "ts", "partition_by": partitions}
    made = HudiTable.create(spark, str(path), table_type=table_type, options=options, **definition)
    made.insert(batch(spark, [(*row[:3], "old " + row[3]) for row in FIRST]))
    made.upsert(batch(spark, [(row[0], 5, *row[2:]) for row in FIRST]))
    return made


def rows_of(frame):
    return sorted(tuple(row) for row in frame.select(*NAMES).collect())


COW, MOR, WHOLE = ("cow", ["dt"], "10000"), ("mor", ["dt"], "0"), ("mor", None, "10000")


@pytest.mark.parametrize(
    ("shape", "names"),
    [
        pytest.param(COW, ("upsert", "delete_where", "insert_overwrite", "replace"), id="cow"),
        pytest.param(MOR, ("upsert", "delete", "merge"), id="mor-executors"),
        pytest.param(COW, tuple(WRITES), id="cow-all", marks=pytest.mark.long),
        pytest.param(MOR, tuple(WRITES), id="mor-executors-all", marks=pytest.mark.long),
        pytest.param(WHOLE, tuple(WRITES), id="mor-unpartitioned-all", marks=pytest.mark.long),
    ],
)
def test_a_look_sees_what_the_write_leaves_and_can_stop_it(spark, tmp_path, shape, names):
    table_type, partitions, small_rows = shape
    for name in names:
        write, after = WRITES[name]
        if name == "insert_overwrite" and partitions is None:
            after = NEW[:1]
        table = make(spark, tmp_path / name, table_type, partitions, small_rows)
        seen, others = [], []

        def refuse(rows, seen=seen, others=others, table=table):
            seen.append(rows_of(rows))
            others.append(rows_of(table.snapshot()))
            others.append(rows_by_hudi_rs(table.path, NAMES))
            raise Refused

        commits = [each for each in table.timeline() if each.is_completed]
        with pytest.raises(Refused), before_commit(refuse):
            write(table, batch(spark, NEW))
        assert seen == [sorted(after)], name
        assert others == [sorted(FIRST)] * 2, f"{name}: a reader saw a write that was not committed"
        left = [each for each in table.timeline() if each.action != "rollback"]
        assert left == commits, f"{name}: only the rollback may be left"
        assert rows_of(table.snapshot()) == rows_by_hudi_rs(table.path, NAMES) == sorted(FIRST), name

        passed = []
        with before_commit(lambda rows, passed=passed: passed.append(rows_of(rows))):
            write(table, batch(spark, NEW))
        assert passed == [sorted(after)], name
        assert rows_of(table.snapshot()) == rows_by_hudi_rs(table.path, NAMES) == sorted(after), name


def test_a_rebuild_is_looked_at_in_place_and_beside(spark, tmp_path):
    def refuse(_):
        raise Refused

    path = str(tmp_path / "t")
    definition = {"name": "t", "record_key": ["id"], "precombine_field": "ts"}
    with pytest.raises(Refused), before_commit(refuse):
        rebuild_table(spark, path, batch(spark, FIRST), **definition)
    assert HudiTable.open(spark, path).schema is None, "a first build that was stopped shows no columns"
    rebuild_table(spark, path, batch(spark, FIRST), **definition)
    for changed in ({}, {"table_type": "mor"}):
        with pytest.raises(Refused), before_commit(refuse):
            rebuild_table(spark, path, batch(spark, NEW), **definition, **changed)
        assert rows_of(HudiTable.open(spark, path).snapshot()) == sorted(FIRST)
    assert [each.name for each in tmp_path.iterdir()] == ["t"], "nothing is left beside the table"
    seen = []
    with before_commit(lambda rows: seen.append(rows_of(rows))):
        rebuild_table(spark, path, batch(spark, NEW), **definition, table_type="mor")
    assert seen == [sorted(NEW)] and rows_by_hudi_rs(path, NAMES) == sorted(NEW)


def test_what_another_writer_commits_during_the_look_is_a_conflict(spark, tmp_path):
    table = make(spark, tmp_path / "t", "cow", ["dt"])
    other = HudiTable.open(spark, table.path)

    def look(_):
        other.insert(batch(spark, [(7, 1, "c", "elsewhere")]))

    with pytest.raises(WriteConflictError), before_commit(look):
        table.upsert(batch(spark, NEW))
    assert rows_of(table.snapshot()) == sorted([*FIRST, (7, 1, "c", "elsewhere")])


def test_columns_that_come_with_the_rows_are_seen_and_go_with_them(spark, tmp_path):
    table = make(spark, tmp_path / "t", "cow", ["dt"])
    wider = spark.createDataFrame([(2, 9, "a", "two", 1.5)], f"{COLUMNS}, price double")

    def refuse(rows):
        assert rows.where("price = 1.5").count() == 1
        raise Refused

    with pytest.raises(Refused), before_commit(refuse):
        table.upsert(wider)
    assert table.schema.names == NAMES
