"""Delete and insert in one instant, on both table types, every index and both ways of spreading the work."""

from __future__ import annotations

import threading
from datetime import datetime, timezone

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_engine import ConfigError, DataError, HudiTable, InvalidKeyError, WriteConflictError
from hudi_engine.spark.write.rows.replacement import EventWindow

from tests.helpers.forms import forms, in_turn
from tests.helpers.hudi_rs import rows_by_hudi_rs

pytestmark = pytest.mark.sampled

COLUMNS = "id int, ts bigint, dt string, name string, at timestamp"
NAMES = ["id", "ts", "dt", "name", "at"]


def day(number):
    return datetime(2026, 1, number, tzinfo=timezone.utc)


def row(key, ts, dt, name, at=1):
    return (key, ts, dt, name, datetime(2026, 1, at, 12))


def batch(spark, rows):
    return spark.createDataFrame(rows, COLUMNS)


FIRST = [
    row(1, 50, "a", "one"),
    row(2, 50, "a", "two", 2),
    row(2, 50, "b", "two too", 2),
    row(3, 50, "b", "three", 3),
    row(4, 50, "b", "four", 3),
]
TABLES = {
    "cow-simple": ("cow", "SIMPLE", None, ["dt"]),
    "cow-executors-simple": ("cow", "SIMPLE", "0", ["dt"]),
    "cow-global": ("cow", "GLOBAL_BLOOM", None, ["dt"]),
    "cow-bucket": ("cow", "BUCKET", None, ["dt"]),
    "cow-unpartitioned": ("cow", "SIMPLE", None, None),
    "mor-simple": ("mor", "SIMPLE", None, ["dt"]),
    "mor-executors-global": ("mor", "GLOBAL_SIMPLE", "0", ["dt"]),
    "mor-bucket": ("mor", "BUCKET", None, ["dt"]),
    "mor-executors-bucket": ("mor", "BUCKET", "0", None),
    "mor-unpartitioned": ("mor", "BLOOM", None, None),
}


def make(spark, path, table_type, index, small_rows, partitions):
    """A table with two rows of one key in one file, and rows in logs where it has logs."""
    options = {"hoodie.index.type": index}
    if small_rows is not None:
        options["hoodie.engine.small.batch.rows"] = small_rows
    made = HudiTable.create(
        spark,
        str(path),
        name="t",
        record_key=["id"],
        precombine_field="ts",
        table_type=table_type,
        partition_by=partitions,
        options=options,
    )
    made.bulk_insert(batch(spark, [*FIRST[:3], row(3, 40, "b", "old three", 3), FIRST[4]]))
    made.upsert(batch(spark, FIRST[3:4]))
    return made


def rows_of(table):
    return sorted(tuple(each) for each in table.snapshot().select(*NAMES).collect())


def check(table, expected):
    assert rows_of(table) == sorted(expected)
    judged = rows_by_hudi_rs(table.path, NAMES[:4])
    assert judged == sorted(each[:4] for each in expected)


# What the write is told, which rows go (of a stored row and those that come), and the rows that come.
STEPS = [
    (
        {"keys": ["id"]},
        lambda old, new: old[0] in {each[0] for each in new},
        [row(2, 10, "a", "second"), row(2, 11, "a", "second too"), row(9, 1, "b", "nine")],
    ),
    (
        {"keys": ["id"]},
        lambda old, new: old[0] in {each[0] for each in new},
        [row(2, 9, "a", "once"), row(9, 1, "b", "nine again")],
    ),
    (
        {"keys": "dt", "where": "DBT_INTERNAL_DEST.id > 3"},
        lambda old, new: old[2] == "b" and old[0] > 3,
        [row(7, 1, "b", "seven", 2)],
    ),
    (
        {"where": "id >= 3 and id < 9"},
        lambda old, _: 3 <= old[0] < 9,
        [row(4, 1, "b", "four anew"), row(3, 1, "a", "three moved", 2), row(8, 1, "b", "eight", 3)],
    ),
    (
        {"window": EventWindow("at", day(2), day(3))},
        lambda old, _: old[4].day == 2,
        [row(2, 1, "a", "again", 2), row(8, 1, "b", "eight too", 2)],
    ),
    ({"where": "dt = 'a'"}, lambda old, _: old[2] == "a", []),
]


# Each type and index once; the other pairs of them are for the long tier.
SHORT = {"cow-executors-simple", "cow-global", "mor-bucket"}


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(shape, id=name, marks=() if name in SHORT else pytest.mark.long)
        for name, shape in TABLES.items()
    ],
)
def test_after_every_step_the_rows_are_those_that_did_not_go_and_those_that_came(spark, tmp_path, shape):
    table = make(spark, tmp_path / "t", *shape)
    expected = list(FIRST)
    for told, goes, new in STEPS:
        stays = [each for each in expected if not goes(each, new)]
        done = len([each for each in table.timeline() if each.state.name == "COMPLETED"])
        result = table.replace(batch(spark, new), **told)
        assert len([each for each in table.timeline() if each.state.name == "COMPLETED"]) == done + 1
        assert (result.rows_deleted, result.rows_inserted, result.rows_updated) == (
            len(expected) - len(stays),
            len(new),
            0,
        )
        expected = [*stays, *new]
        check(table, expected)
    table.upsert(batch(spark, [row(9, 60, "b", "last")]))
    check(table, [*(each for each in expected if each[0] != 9), row(9, 60, "b", "last")])


@pytest.mark.parametrize("table_type", forms(("cow", "mor"), ("mor",)))
def test_rows_that_the_same_write_would_not_take_out_again_are_refused(spark, tmp_path, table_type):
    table = make(spark, tmp_path / "t", table_type, "SIMPLE", None, ["dt"])
    with pytest.raises(DataError, match=r"not among those that the write replaces: id >= 3\. The same write"):
        table.replace(batch(spark, [row(2, 1, "a", "out")]), where="id >= 3")
    window = EventWindow("at", day(2), day(3), "the input's rows")
    with pytest.raises(DataError, match=r"at from 2026-01-02.* \(the usual cause: the input's rows\)\. The"):
        table.replace(batch(spark, [row(2, 1, "a", "late", 3)]), window=window)
    check(table, FIRST)


@pytest.mark.parametrize("table_type", forms(("cow", "mor"), ("mor",)))
def test_partitions_are_replaced_whole_also_without_rows(spark, tmp_path, table_type):
    table = make(spark, tmp_path / "t", table_type, "SIMPLE", None, ["dt"])
    table.replace(batch(spark, []), partitions=["b"])
    check(table, FIRST[:2])
    with pytest.raises(DataError, match="rows of partition 'a'"):
        table.replace(batch(spark, [row(1, 1, "a", "x")]), partitions=["b"])
    check(table, FIRST[:2])


def test_what_makes_no_sense_is_refused(spark, tmp_path):
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"])
    table.insert(batch(spark, FIRST))
    with pytest.raises(ConfigError, match="give partitions, or keys, where and window"):
        table.replace(batch(spark, FIRST))
    with pytest.raises(ConfigError, match="leave keys, where and window out"):
        table.replace(batch(spark, FIRST), keys="id", partitions=["a"])
    with pytest.raises(ConfigError, match="nix"):
        table.replace(batch(spark, FIRST), keys="nix")
    with pytest.raises(ConfigError, match="nix"):
        table.replace(batch(spark, FIRST), where="nix = 1")
    for small in ("0", "100"):
        with pytest.raises(InvalidKeyError):
            table.replace(
                batch(spark, [row(None, 1, "a", "x")]),
                keys="dt",
                options={"hoodie.engine.small.batch.rows": small},
            )
    assert len(rows_of(table)) == len(FIRST)


@pytest.mark.parametrize(("table_type", "small_rows"), in_turn(("cow", "mor"), ("0", "1000")))
def test_a_table_that_generates_its_keys_has_its_rows_replaced(spark, tmp_path, table_type, small_rows):
    options = {"hoodie.engine.small.batch.rows": small_rows}
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", table_type=table_type, options=options)
    table.insert(batch(spark, FIRST))
    new = [row(2, 1, "c", "new"), row(2, 1, "c", "new")]
    table.replace(batch(spark, new), keys="id")
    check(table, [FIRST[0], FIRST[3], FIRST[4], *new])
    keys = [each[0] for each in table.snapshot().select("_hoodie_record_key").collect()]
    assert len(set(keys)) == len(keys) and all(keys)


def by_day(spark, tmp_path, table_type="cow"):
    made = HudiTable.create(
        spark, str(tmp_path / "t"), name="t", table_type=table_type, partition_by=["dt"], record_key=["id"]
    )
    made.insert(batch(spark, [row(1, 1, "1", "x", 1), row(2, 1, "2", "x", 2)]))
    return made


def one_day(spark, table, number, name, dt=None, **options):
    rows = [
        row(number, 1, dt or str(number), name, number),
        row(number + 10, 1, dt or str(number), name, number),
    ]
    window = EventWindow("at", day(number), day(number + 1))
    return table.replace(batch(spark, rows), window=window, options=options)


@pytest.mark.parametrize("table_type", forms(("cow", "mor"), ("mor",)))
def test_windows_of_different_partitions_commit_beside_each_other(spark, tmp_path, overtaken, table_type):
    table = by_day(spark, tmp_path, table_type)
    overtaken(lambda: one_day(spark, table, 2, "second"))
    one_day(spark, table, 1, "first")
    assert [(each[0], each[3]) for each in rows_of(table)] == [
        (1, "first"),
        (2, "second"),
        (11, "first"),
        (12, "second"),
    ]


def test_the_same_window_twice_is_a_conflict_even_in_other_partitions_and_a_retry_leaves_one(
    spark, tmp_path, overtaken
):
    table = by_day(spark, tmp_path)
    overtaken(lambda: one_day(spark, table, 3, "theirs", "x"))
    with pytest.raises(WriteConflictError, match="this write had read"):
        one_day(spark, table, 3, "mine", "y")
    overtaken(lambda: one_day(spark, table, 3, "theirs", "x"))
    one_day(spark, table, 3, "mine", "y", **{"hoodie.write.num.retries.on.conflict.failures": 2})
    assert [each[3] for each in rows_of(table) if each[0] in (3, 13)] == ["mine", "mine"]


def test_four_windows_in_four_threads_all_commit(spark, tmp_path):
    table = by_day(spark, tmp_path)
    errors = []

    def run(number):
        try:
            one_day(spark, HudiTable.open(spark, table.path), number, "again")
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in (1, 2, 3, 4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert errors == []
    assert sorted((each[0], each[3]) for each in rows_of(table)) == sorted(
        (number + more, "again") for number in (1, 2, 3, 4) for more in (0, 10)
    )


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_a_predicate_finds_rows_with_nan_as_spark_orders_it(spark, tmp_path, table_type):
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"], table_type=table_type)
    table.upsert(spark.createDataFrame([(1, 1.5), (2, float("nan"))], "id int, d double"))
    assert [row.id for row in table.snapshot().where("d > 2.0").collect()] == [2]
    for _ in range(2):
        table.replace(spark.createDataFrame([(2, float("nan"))], "id int, d double"), where="d > 2.0")
        assert sorted(row.id for row in table.snapshot().collect()) == [1, 2]


@pytest.mark.parametrize(("stored", "asked"), [("-0.0", "0.0"), ("0.0", "-0.0")])
def test_both_zeros_are_one_number_for_conditions(spark, tmp_path, table_type, stored, asked):
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"], table_type=table_type)
    numbers = f"cast('{stored}' as double) d, cast('{stored}' as float) f"
    table.upsert(spark.sql(f"select id, {numbers} from range(4)"))
    table.upsert(spark.sql(f"select 0L id, {numbers}"))
    for name, kind in (("d", "double"), ("f", "float")):
        zero = f"cast('{asked}' as {kind})"
        for condition in (f"{name} = {zero}", f"{name} >= {zero}", f"{name} in ({zero}, cast(5 as {kind}))"):
            assert table.snapshot().where(condition).count() == 4, condition
    assert table.delete_where(f"d = cast('{asked}' as double)").rows_deleted == 4


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("ts >= 50", [40]),
        ("ts >= 50 and DBT_INTERNAL_SOURCE.name = 'new'", [40]),
        ("DBT_INTERNAL_DEST.ts < DBT_INTERNAL_SOURCE.ts", []),
        ("name = 'young' or ts > DBT_INTERNAL_SOURCE.ts", [40]),
    ],
)
def test_beside_keys_a_column_without_a_qualifier_is_the_tables(spark, tmp_path, kind, where, left):
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"], table_type=kind)
    table.insert(batch(spark, [row(1, 40, "a", "old"), row(2, 50, "a", "young"), row(3, 60, "b", "other")]))
    table.replace(batch(spark, [row(1, 45, "a", "new"), row(2, 55, "a", "new")]), keys=["id"], where=where)
    found = sorted((each[0], each[1]) for each in rows_of(table))
    assert found == sorted([*((1, ts) for ts in left), (1, 45), (2, 55), (3, 60)])


@pytest.mark.parametrize("small", ["0", "100"], ids=["executors", "driver"])
def test_a_refused_replacement_leaves_nothing_of_its_rows_in_the_session(spark, tmp_path, small):
    """Rows that stayed cached would be those of the next run too, though their files hold others by then."""
    options = {"hoodie.engine.small.batch.rows": small}
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"], options=options)
    table.insert(spark.createDataFrame([(1, "a"), (2, "b")], "id int, g string"))
    (tmp_path / "rows").mkdir()

    def source(*keys):
        rows = pa.table({"id": pa.array(keys, pa.int32()), "g": pa.array(["a"] * len(keys))})
        pq.write_table(rows, tmp_path / "rows" / "one.parquet")
        return spark.read.parquet(str(tmp_path / "rows"))

    before = set(spark.sparkContext._jsc.getPersistentRDDs())
    with pytest.raises(InvalidKeyError):
        table.replace(source(None, 3), keys="g")
    with pytest.raises(ConfigError, match="nix"):
        table.replace(source(5, 6), keys="g", where="nix = 1")
    assert set(spark.sparkContext._jsc.getPersistentRDDs()) == before
    table.replace(source(7, 8), keys="g")
    found = sorted((row.id, row.g) for row in table.snapshot().collect())
    assert found == [(2, "b"), (7, "a"), (8, "a")]
    assert set(spark.sparkContext._jsc.getPersistentRDDs()) == before
