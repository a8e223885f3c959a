"""Changelog mode of merge-on-read tables: every change is told, and the rows are those of any other table."""

from __future__ import annotations

import logging

import hudi_engine
import pytest
from hudi_engine import ConfigError, DataError, HudiTable, UnsupportedTableError

from tests.helpers.forms import forms
from tests.helpers.hudi_rs import rows_by_hudi_rs
from tests.helpers.keyed import keyed_table

pytestmark = pytest.mark.sampled

COLUMNS = "id int, ts bigint, dt string, name string"
CHANGELOG = {"changelog.enabled": "true", "hoodie.clean.automatic": "false"}


def create(spark, tmp_path, **options):
    return keyed_table(spark, tmp_path / "orders", "mor", name="orders", options={**CHANGELOG, **options})


def frame(spark, *rows):
    return spark.createDataFrame(list(rows), COLUMNS)


def named(spark, *rows):
    return spark.createDataFrame(list(rows), f"{COLUMNS}, _hoodie_operation string")


def told(changes):
    return [tuple(row) for row in changes.select("_hoodie_operation", "id", "ts", "name").collect()]


def check_rows(table, expected):
    """Our reader and hudi-rs give these rows."""
    names = ["id", "ts", "dt", "name"]
    assert sorted(tuple(row) for row in table.snapshot().select(*names).collect()) == sorted(expected)
    assert rows_by_hudi_rs(table.path, names) == sorted(expected)


# The driver, the executors and the bucket index write the same changes.
WAYS = {
    "driver": {},
    "executors": {"hoodie.engine.small.batch.rows": "0"},
    "bucket": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"},
}


@pytest.mark.parametrize("way", forms(WAYS, ("driver", "bucket")))
def test_changes_are_told_in_order_and_compaction_keeps_the_rows(spark, tmp_path, way):
    options = WAYS[way]
    table = create(spark, tmp_path, **options)
    table.upsert(frame(spark, (1, 10, "a", "one"), (2, 10, "a", "two")))
    second = table.upsert(frame(spark, (1, 20, "a", "ONE"), (2, 5, "a", "late"), (3, 20, "a", "three")))
    table.delete(frame(spark, (2, 0, "a", "")).select("id", "dt"))
    expected = [(1, 20, "a", "ONE"), (3, 20, "a", "three")]
    changes = [
        ("-U", 1, 10, "one"),
        ("U", 1, 20, "ONE"),
        ("I", 3, 20, "three"),
        ("D", 2, 10, "two"),
    ]

    assert (second.rows_inserted, second.rows_updated) == (1, 1)
    assert sorted(told(table.changelog())[:2]) == [("I", 1, 10, "one"), ("I", 2, 10, "two")]
    after_first = told(table.changelog(start=table.timeline()[0].requested_time))
    assert sorted(after_first) == sorted(changes)
    assert after_first.index(changes[0]) < after_first.index(changes[1])
    assert after_first[-1] == changes[-1]
    assert set(told(table.log_only(merge=False))) >= set(changes) - {("I", 3, 20, "three")}
    check_rows(table, expected)

    table.compact()

    check_rows(table, expected)
    assert {row["_hoodie_operation"] for row in table.snapshot().collect()} <= {"I", "U"}
    assert table.snapshot().columns[5] == "_hoodie_operation"
    rows = hudi_engine.read(tmp_path / "orders")
    assert rows.schema.names == ["id", "ts", "dt", "name"]
    asked = hudi_engine.read(tmp_path / "orders", columns=["_hoodie_operation", "id"]).to_arrow()
    assert asked.column_names == ["_hoodie_operation", "id"]
    assert table.schema.names == ["id", "ts", "dt", "name"]
    assert sorted(told(table.changelog(start=second.instant))) == [("D", 2, 10, "two")]


def test_changes_that_the_rows_name_are_kept_and_others_refused(spark, tmp_path):
    table = create(spark, tmp_path)
    first = table.upsert(frame(spark, (1, 10, "a", "one"), (2, 10, "a", "two")))
    changes = [
        (1, 10, "a", "one", "-U"),
        (1, 20, "a", "ONE", "U"),
        (1, 20, "a", "ONE", "-U"),
        (1, 30, "a", "One", "U"),
        (2, 10, "a", "two", "D"),
    ]
    table.upsert(named(spark, *changes))

    assert told(table.changelog(start=first.instant)) == [(row[4], row[0], row[1], row[3]) for row in changes]
    check_rows(table, [(1, 30, "a", "One")])
    with pytest.raises(DataError, match="'INSERT'; legal values: I, -U, U, D"):
        table.upsert(named(spark, (1, 40, "a", "x", "INSERT")))
    with pytest.raises(ConfigError, match="_hoodie_operation"):
        table.upsert(named(spark, *changes), options={"hoodie.engine.small.batch.rows": "0"})


@pytest.mark.parametrize("limit", ["1000", "0"], ids=["small", "distributed"])
@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
def test_a_key_that_moves_is_a_delete_and_an_insert(spark, tmp_path, index, limit):
    table = create(spark, tmp_path, **{"hoodie.index.type": index, "hoodie.engine.small.batch.rows": limit})
    first = table.upsert(frame(spark, (1, 10, "a", "one"), (2, 10, "a", "two"), (3, 30, "a", "newer")))
    table.upsert(frame(spark, (1, 20, "b", "moved"), (2, 20, "a", "TWO"), (3, 20, "b", "late")))

    moved = [("D", 1, 10, "one"), ("I", 1, 20, "moved"), ("-U", 2, 10, "two"), ("U", 2, 20, "TWO")]
    assert sorted(told(table.changelog(start=first.instant))) == sorted(moved)
    check_rows(table, [(1, 20, "b", "moved"), (2, 20, "a", "TWO"), (3, 30, "a", "newer")])

    table.upsert(frame(spark, (1, 25, "c", "partly")), update_columns=["name", "ts"])
    check_rows(table, [(1, 25, "b", "partly"), (2, 20, "a", "TWO"), (3, 30, "a", "newer")])
    table.upsert(frame(spark, (1, 26, "c", "away")), update_columns=["dt", "ts"])
    check_rows(table, [(1, 26, "c", "partly"), (2, 20, "a", "TWO"), (3, 30, "a", "newer")])

    table.upsert(frame(spark, (1, 30, "a", "back")))
    after = [(1, 30, "a", "back"), (2, 20, "a", "TWO"), (3, 30, "a", "newer")]
    check_rows(table, after)
    table.compact()
    check_rows(table, after)


def test_a_global_index_leaves_keys_in_their_partition_where_it_is_told_to(spark, tmp_path):
    stays = {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "false"}
    table = create(spark, tmp_path, **stays)
    first = table.upsert(frame(spark, (1, 10, "a", "one")))
    table.upsert(frame(spark, (1, 20, "b", "stays")))

    assert told(table.changelog(start=first.instant)) == [("-U", 1, 10, "one"), ("U", 1, 20, "stays")]
    check_rows(table, [(1, 20, "a", "stays")])


def test_conditions_update_and_delete_with_the_rows_before(spark, tmp_path):
    table = create(spark, tmp_path)
    first = table.upsert(frame(spark, (1, 10, "a", "one"), (2, 10, "a", "two")))
    table.update_where("id = 1", {"name": "'ONE'"})
    table.delete_where("id = 2")

    assert told(table.changelog(start=first.instant)) == [
        ("-U", 1, 10, "one"),
        ("U", 1, 10, "ONE"),
        ("D", 2, 10, "two"),
    ]


def test_history_that_clean_removed_is_told_as_rows_with_a_warning(spark, tmp_path, caplog):
    table = create(spark, tmp_path)
    table.upsert(frame(spark, (1, 10, "a", "one")))
    for ts in (20, 30):
        table.upsert(frame(spark, (1, ts, "a", f"at {ts}")))
        table.compact()
    table.clean(retain_commits=1)
    with caplog.at_level(logging.WARNING):
        changes = told(table.changelog())

    assert ("I", 1, 10, "one") not in changes
    assert changes[-1] == ("U", 1, 30, "at 30")
    assert "compaction collapsed it" in caplog.text


@pytest.mark.parametrize("keeps", ["true", "false"])
def test_a_clustering_changed_nothing_and_is_not_told(spark, tmp_path, caplog, keeps):
    table = create(spark, tmp_path)
    table.upsert(frame(spark, (1, 10, "a", "one"), (2, 10, "a", "two")))
    table.upsert(frame(spark, (1, 20, "a", "ONE"), (3, 20, "a", "three")))
    before = told(table.changelog())
    for _ in range(2):
        table.cluster(["id"], options={"hoodie.clustering.preserve.commit.metadata": keeps})
    with caplog.at_level(logging.WARNING):
        assert told(table.changelog()) == before
    assert "are complete only after" not in caplog.text
    table.upsert(frame(spark, (3, 30, "a", "THREE")))
    assert told(table.changelog()) == [*before, ("-U", 3, 20, "three"), ("U", 3, 30, "THREE")]
    table.clean(retain_commits=1)
    with caplog.at_level(logging.WARNING):
        rest = told(table.changelog())
    assert sorted(row[1] for row in rest) == [1, 2, 3, 3, 3]
    assert "clustering moved it" in caplog.text


def test_a_table_without_a_changelog_says_so(spark, tmp_path):
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"], table_type="mor")
    with pytest.raises(UnsupportedTableError, match=r"hoodie\.allow\.operation\.metadata\.field=true"):
        table.changelog()
    with pytest.raises(ConfigError, match="has 'false'"):
        table.upsert(frame(spark, (1, 1, "a", "x")), options={"changelog.enabled": "true"})
