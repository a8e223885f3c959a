"""Tables with ``hoodie.table.cdc.enabled``: what their change data files hold, and what is told from them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hudi_engine import HudiTable
from hudi_engine.errors import ConfigError, HistoryGapError
from hudi_engine.format.logformat.change_records import read_change_records
from hudi_engine.table.state import TableState

from tests.helpers.keyed import keyed_table

pytestmark = pytest.mark.sampled

COLUMNS = "id int, ts bigint, dt string, born date, name string"


def make(spark, path, logging, table_type="cow"):
    return keyed_table(
        spark,
        path,
        table_type,
        options={
            "hoodie.table.cdc.enabled": "true",
            "hoodie.table.cdc.supplemental.logging.mode": logging,
            "hoodie.clean.automatic": "false",
        },
    )


def frame(spark, *rows):
    from datetime import date

    return spark.createDataFrame(
        [(key, ts, dt, date(2026, 1, key), name) for key, ts, dt, name in rows], COLUMNS
    )


def story(spark, table):
    """Four commits: new rows; an update, a late row and a new row in one file; a delete; an overwrite."""
    return [
        table.upsert(frame(spark, (1, 1, "a", "one"), (2, 1, "a", "two"), (3, 1, "b", "three"))).instant,
        table.upsert(frame(spark, (1, 2, "a", "ONE"), (2, 0, "a", "late"), (4, 2, "a", "four"))).instant,
        table.delete(frame(spark, (2, 3, "a", "two"))).instant,
        table.insert_overwrite(frame(spark, (3, 4, "b", "THREE"), (5, 4, "b", "five"))).instant,
    ]


def told(table, start, end):
    return {
        (
            row["ts_ms"],
            row["op"],
            *(json.loads(text)["name"] if text else None for text in (row["before"], row["after"])),
        )
        for row in table.cdc(start, end).collect()
    }


@pytest.mark.parametrize(
    ("logging", "columns"),
    [
        ("OP_KEY_ONLY", ["op", "record_key"]),
        ("DATA_BEFORE", ["op", "record_key", "before"]),
        ("DATA_BEFORE_AFTER", ["op", "ts_ms", "before", "after"]),
    ],
)
def test_each_rewritten_file_has_its_change_data(spark, tmp_path, logging, columns):
    table = make(spark, tmp_path / "t", logging)
    instants = story(spark, table)
    state = TableState.load(table.storage)
    files = {
        write.requested_time: [
            path
            for _, stat in state.timeline.commit_metadata(write).write_stats()
            for path in stat.cdc_stats or ()
        ]
        for write in state.timeline.completed_writes
    }
    assert [len(files[instant]) for instant in instants] == [0, 1, 1, 0], (
        "new file groups tell their rows themselves"
    )
    (path,) = files[instants[1]]
    file = Path(table.path, path)
    assert (file.name[0], file.suffix, file.stat().st_size) == (
        ".",
        ".cdc",
        state.timeline.commit_metadata(state.timeline.completed_writes[1])
        .partition_to_write_stats["a"][0]
        .cdc_stats[path],
    )
    (records,) = read_change_records(file.read_bytes(), path)
    assert records.column_names == columns
    assert records["op"].to_pylist() == ["u", "i"], "the late row changed nothing"

    first, second, third, last = instants
    assert told(table, first, None) == {
        (second, "u", "one", "ONE"),
        (second, "i", None, "four"),
        (third, "d", "two", None),
        (last, "d", "three", None),
        (last, "i", None, "THREE"),
        (last, "i", None, "five"),
    }
    kinds = sorted((row["_change_type"], row["name"]) for row in table.changes(first, third, "all").collect())
    assert kinds == [("delete", "two"), ("insert", "four"), ("update_after", "ONE"), ("update_before", "one")]


def test_images_are_rows_as_json_with_days_for_dates(spark, tmp_path):
    table = make(spark, tmp_path / "t", "DATA_BEFORE_AFTER")
    first, second, *_ = story(spark, table)
    update = table.cdc(first, second).where("op = 'u'").first()
    assert json.loads(update["before"]) == {"id": 1, "ts": 1, "dt": "a", "born": 20454, "name": "one"}
    every = Counter(row["op"] for row in table.cdc().collect())
    assert every == Counter(row["op"] for row in table.cdc("2020-01-01").collect()), (
        "every commit, without a start"
    )
    assert set(every) == {"i", "u", "d"}


def test_dates_and_times_inside_of_other_values_are_numbers_too(spark, tmp_path):
    table = keyed_table(spark, tmp_path / "t", precombine_field=None, partition_by=())
    nested = "named_struct('d', date'2026-01-01', 'l', array(timestamp_micros(id), null))"
    columns = {"s": nested, "m": "map('k', date'1970-01-02')", "t": "'text'"}
    some = [f"if(id = 0, {value}, null) as {name}" for name, value in columns.items()]
    table.upsert(spark.range(2).selectExpr("id", *some))
    images = sorted((json.loads(row["after"]) for row in table.cdc().collect()), key=lambda each: each["id"])
    assert images == [
        {"id": 0, "s": {"d": 20454, "l": [0, None]}, "m": {"k": 1}, "t": "text"},
        {"id": 1, "s": None, "m": None, "t": None},
    ]


def test_a_window_of_one_commit_opens_its_change_data_and_no_slice(spark, tmp_path):
    table = make(spark, tmp_path / "t", "DATA_BEFORE_AFTER")
    first, second, *_ = story(spark, table)
    for file in Path(table.path, "a").glob("*.parquet"):
        file.write_bytes(b"whoever opens this fails")
    for mode, rows in (("net", 2), ("all", 3)):
        assert table.changes(first, second, mode).count() == rows
    assert table.cdc(first, second).count() == 2


@pytest.mark.parametrize("saves", [False, True], ids=["cleaned", "an older state saved"])
@pytest.mark.parametrize("logging", ["OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER"])
def test_rows_before_a_cleaned_commit_are_told_by_change_data_that_has_them_and_else_refused(
    spark, tmp_path, logging, saves
):
    table = make(spark, tmp_path / "t", logging)
    first = table.upsert(frame(spark, (1, 1, "a", "v1"))).instant
    second, third, _ = (
        table.upsert(frame(spark, (1, number, "a", f"v{number}"))).instant for number in (2, 3, 4)
    )
    if saves:
        table.savepoint(first)
    table.clean(options={"hoodie.clean.commits.retained": "1"})
    assert len(list(Path(table.path, "a").glob("*.parquet"))) == 2 + saves, "that of the second has gone"
    if logging == "OP_KEY_ONLY":
        with pytest.raises(HistoryGapError, match=f"clean deleted the files of commit {second}"):
            table.cdc(second, third).collect()
        with pytest.raises(HistoryGapError, match=f"clean deleted the files of commit {second}"):
            table.changes(second, third, "all").collect()
    else:
        assert told(table, second, third) == {(third, "u", "v2", "v3")}


def test_change_data_from_before_the_mode_was_another_is_not_told_by_an_older_saved_state(spark, tmp_path):
    table = make(spark, tmp_path / "t", "OP_KEY_ONLY")
    first, second, third, _ = (
        table.upsert(frame(spark, (1, number, "a", f"v{number}"))).instant for number in (1, 2, 3, 4)
    )
    table.savepoint(first)
    table.clean(options={"hoodie.clean.commits.retained": "1"})
    properties = Path(table.path, ".hoodie", "hoodie.properties")
    properties.write_text(properties.read_text("utf-8").replace("OP_KEY_ONLY", "DATA_BEFORE_AFTER"), "utf-8")
    with pytest.raises(Exception, match=r"names the record key '1', which its file slice \(none\) lacks"):
        HudiTable.open(spark, table.path).cdc(second, third).collect()


def test_a_rollback_takes_the_change_data_away(spark, tmp_path):
    table = make(spark, tmp_path / "t", "DATA_BEFORE_AFTER", "mor")
    table.insert(frame(spark, (1, 1, "a", "one")))
    added = table.insert(frame(spark, (2, 1, "a", "two")))
    assert list(Path(table.path, "a").glob(".*.cdc"))
    assert sorted(row["name"] for row in table.snapshot().collect()) == ["one", "two"]
    table.rollback(added.instant)
    assert not list(Path(table.path, "a").glob(".*.cdc"))
    assert not list(Path(table.path, ".hoodie/.temp").glob("*/*"))


def test_what_a_table_keeps_is_said_once(spark, tmp_path):
    table = make(spark, tmp_path / "t", "DATA_BEFORE")
    with pytest.raises(ConfigError, match="OP_KEY_ONLY.*has 'DATA_BEFORE'"):
        table.upsert(
            frame(spark, (1, 1, "a", "one")),
            options={"hoodie.table.cdc.supplemental.logging.mode": "OP_KEY_ONLY"},
        )
