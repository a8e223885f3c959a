"""Changes between two states of a table, against a dictionary, over histories with every operation and service."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from pathlib import Path

import hudi_engine
import pytest
from hudi_engine import HudiTable
from hudi_engine.errors import ConfigError, HistoryGapError, TimelineError
from hudi_engine.table.state import TableState

from tests.helpers.forms import in_turn
from tests.helpers.histories import COLUMNS, KEEP, Shape, frame, make, random_history
from tests.helpers.keyed import keyed_table
from tests.helpers.told_changes import applied, check_all_pairs, check_by_spark, plan, told

SEEDS = {"SIMPLE": 1, "GLOBAL_SIMPLE": 2}


@pytest.mark.parametrize(("table_type", "index"), in_turn(("cow", "mor"), tuple(SEEDS)))
@pytest.mark.long
def test_changes_between_any_two_instants_make_the_one_state_the_other(spark, tmp_path, table_type, index):
    shape = Shape(table_type, index)
    table, states = random_history(spark, tmp_path / "t", shape, SEEDS[index])
    check_all_pairs(table, states)
    instants = list(states)
    start, middle, end = instants[0], instants[len(instants) // 2], instants[-1]
    check_by_spark(table, states, ((start, end), (start, middle), (middle, end)))
    first = told(table.changes(None, middle))
    assert {kind for kind, _, _ in first} <= {"insert"}
    assert applied({}, first) == states[middle]


def test_only_files_that_the_window_touched_are_opened(spark, tmp_path):
    table = make(spark, tmp_path / "t", **{"hoodie.parquet.small.file.limit": "0"})
    table.insert(frame(spark, (1, 1, "a", "one"), (2, 1, "b", "two")))
    start = table.insert(frame(spark, (3, 1, "a", "three"))).instant
    table.upsert(frame(spark, (3, 2, "a", "THREE")))
    touched = plan(TableState.load(table.storage), start, None, "net")
    opened = {path for unit in touched.units for piece in (unit.before, unit.after) for path in piece.paths}
    assert len(touched.units) == 1
    assert len(opened) == 2
    for file in Path(table.path).rglob("*.parquet"):
        if file.relative_to(table.path).as_posix() not in opened:
            file.write_bytes(b"whoever opens this fails")
    for mode, kinds in (
        ("net", ["update_after"]),
        ("all", ["update_after", "update_before"]),
        ("latest", ["update_after"]),
    ):
        assert sorted(kind for kind, _, _ in told(table.changes(start, mode=mode))) == kinds


def test_of_new_rows_nothing_of_before_is_read_but_how_many_there_were(spark, tmp_path):
    table = make(spark, tmp_path / "t")
    start = table.upsert(frame(spark, *((key, 1, "a", "old") for key in range(50)))).instant
    (before,) = (Path(table.path, each.path) for each in table.files())
    table.upsert(frame(spark, (100, 1, "a", "new")))
    (after,) = table.files()
    assert after.file_id in before.name, "the new row came into the file that was there"
    whole = before.read_bytes()
    footer = int.from_bytes(whole[-8:-4], "little") + 8
    before.write_bytes(b"PAR1" + b"\0" * (len(whole) - footer - 4) + whole[-footer:])
    assert [(kind, row[0]) for kind, row, _ in told(table.changes(start))] == [("insert", 100)]


def test_before_its_first_commit_a_table_has_no_rows(spark, tmp_path):
    table = make(spark, tmp_path / "t")
    table.upsert(frame(spark, (1, 1, "a", "one")))
    assert table.as_of("2020-01-01").columns == table.snapshot().columns
    assert table.as_of("2020-01-01").count() == 0
    assert hudi_engine.read(table.path, as_of="2020-01-01").to_arrow().num_rows == 0


def test_services_change_no_row(spark, tmp_path):
    table = make(spark, tmp_path / "t", "mor")
    table.upsert(frame(spark, (1, 1, "a", "one")))
    start = table.upsert(frame(spark, (1, 2, "a", "ONE"))).instant
    table.compact()
    assert plan(TableState.load(table.storage), start, None, "net").units == ()
    table.upsert(frame(spark, (2, 3, "a", "two")))
    assert [(kind, row[0]) for kind, row, _ in told(table.changes(start))] == [("insert", 2)]


def test_an_update_back_and_an_insert_that_is_deleted_again_are_no_net_change(spark, tmp_path):
    table = make(spark, tmp_path / "t")
    start = table.upsert(frame(spark, (1, 1, "a", "one"))).instant
    table.upsert(frame(spark, (1, 1, "a", "ONE"), (2, 1, "a", "two")))
    table.upsert(frame(spark, (1, 1, "a", "one")))
    table.delete(frame(spark, (2, 1, "a", "two")))
    assert told(table.changes(start)) == []
    kinds = sorted(kind for kind, _, _ in told(table.changes(start, mode="all")))
    assert kinds == ["delete", "insert", "update_after", "update_after", "update_before", "update_before"]


@pytest.mark.parametrize("keeps", ["true", "false"])
def test_the_newest_rows_are_told_whether_or_not_a_clustering_kept_their_commit_times(spark, tmp_path, keeps):
    table = make(spark, tmp_path / "t")
    start = table.upsert(frame(spark, (1, 1, "a", "one"), (2, 1, "a", "two"), (3, 1, "a", "three"))).instant
    table.upsert(frame(spark, (2, 2, "a", "TWO"), (4, 2, "a", "four")))
    table.delete_where("id = 3")
    table.cluster(["id"], options={"hoodie.clustering.preserve.commit.metadata": keeps})
    newest = told(table.changes(start, mode="latest"))
    assert sorted((kind, row[0], row[3]) for kind, row, _ in newest) == [
        ("update_after", 2, "TWO"),
        ("update_after", 4, "four"),
    ]


def test_rows_without_keys_are_told_one_by_one(spark, tmp_path):
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", options=KEEP)
    start = table.insert(frame(spark, (1, 1, "a", "one"), (1, 1, "a", "one"))).instant
    table.insert(frame(spark, (1, 1, "a", "one"), (2, 1, "a", "two")))
    table.delete_where("id = 1 and name = 'one'")
    changes = sorted((kind, row) for kind, row, _ in told(table.changes(start)))
    assert changes == [("delete", (1, 1, "a", "one"))] * 2 + [("insert", (2, 1, "a", "two"))]


def test_columns_that_came_in_the_window_are_null_before(spark, tmp_path):
    table = make(spark, tmp_path / "t")
    start = table.upsert(frame(spark, (1, 1, "a", "one"))).instant
    table.upsert(spark.createDataFrame([(1, 2, "a", "ONE", 7)], COLUMNS + ", more int"))
    changes = table.changes(start, mode="all").orderBy("_change_type")
    assert [tuple(row)[:6] for row in changes.collect()] == [
        (1, 2, "a", "ONE", 7, "update_after"),
        (1, 1, "a", "one", None, "update_before"),
    ]


def test_what_clean_took_is_an_error_that_names_it_and_the_choices(spark, tmp_path):
    table = make(spark, tmp_path / "t")
    start = table.upsert(frame(spark, (1, 1, "a", "one"), (9, 1, "b", "nine"))).instant
    for number in range(2, 5):
        last = table.upsert(frame(spark, (1, number, "a", f"v{number}"))).instant
    table.clean(retain_commits=1)
    with pytest.raises(
        HistoryGapError, match=f"after {start} cannot be read.*clean deleted.*on_gap='snapshot'"
    ) as gap:
        table.changes(start)
    assert gap.value.start == start
    assert "Retain more commits" in gap.value.advice
    assert told(table.changes(last)) == []
    assert {kind for kind, _, _ in told(table.changes(start, on_gap="snapshot"))} == {"insert"}


def test_a_clean_of_the_end_of_a_window_is_a_gap_and_not_fewer_rows(spark, tmp_path):
    table = make(spark, tmp_path / "t")
    start = table.upsert(frame(spark, (1, 1, "a", "one"))).instant
    end = table.upsert(frame(spark, (2, 1, "b", "two"))).instant
    for mode in ("net", "all", "latest"):
        assert [row for _, row, _ in told(table.changes(start, end, mode))] == [(2, 1, "b", "two")]
    for number in range(2, 5):
        table.upsert(frame(spark, (2, number, "b", f"v{number}")))
    table.clean(retain_commits=1)
    for mode in ("net", "all", "latest"):
        with pytest.raises(HistoryGapError, match=f"clean deleted the files of commit {end}.*partition 'b'"):
            table.changes(start, end, mode)


def test_a_start_that_was_rolled_back_is_a_gap(spark, tmp_path):
    table = make(spark, tmp_path / "t")
    table.upsert(frame(spark, (1, 1, "a", "one")))
    start = table.upsert(frame(spark, (2, 1, "a", "two"))).instant
    table.rollback(start)
    table.upsert(frame(spark, (3, 1, "a", "three")))
    with pytest.raises(HistoryGapError, match="taken back by rollback"):
        table.changes(start)


def test_moments_and_names_stand_for_states(spark, tmp_path):
    table = make(spark, tmp_path / "t")
    first = table.upsert(frame(spark, (1, 1, "a", "one"))).instant
    table.savepoint(first, comments="month end")
    moment = datetime.now(timezone.utc)
    table.upsert(frame(spark, (1, 2, "a", "ONE")))
    text = f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d}"
    for when in (first, moment, text, "month end"):
        assert [row["name"] for row in table.as_of(when).collect()] == ["one"]
        assert [row["name"] for row in table.snapshot(as_of=when).collect()] == ["one"]
        assert hudi_engine.read(table.path, as_of=when).to_arrow()["name"].to_pylist() == ["one"]
    assert [row["name"] for row in table.as_of("latest").collect()] == ["ONE"]
    for start in (first, moment, text):
        assert [(kind, row[3]) for kind, row, _ in told(table.changes(start))] == [("update_after", "ONE")]
    assert told(table.changes("earliest")) == told(table.changes()), "Hudi's word for the beginning"
    assert table.cdc("earliest").collect() == table.cdc().collect()
    assert table.next_window("earliest") == table.next_window(None)
    with pytest.raises(TimelineError, match="savepoints are called that"):
        table.as_of("year end")
    with pytest.raises(TimelineError, match="before they start"):
        table.changes(moment, "2020-01-01")
    with pytest.raises(ConfigError, match="mode is 'some'; legal values: net, all, latest"):
        table.changes(first, mode="some")


def test_what_changed_around_overwrites_that_are_left_out_is_one_change_a_key(spark, tmp_path):
    table = make(spark, tmp_path / "t")
    start = table.upsert(frame(spark, (1, 1, "a", "one"), (2, 1, "b", "two"), (3, 1, "a", "three"))).instant
    table.upsert(frame(spark, (1, 2, "a", "ONE")))
    table.insert_overwrite(frame(spark, (2, 3, "b", "other")))
    table.delete(frame(spark, (1, 4, "a", "ONE")))
    table.upsert(frame(spark, (3, 5, "a", "THREE")))
    found = {
        mode: sorted(
            (kind, row[0])
            for kind, row, _ in told(table.changes(start, None, mode, skip_insert_overwrite=True))
        )
        for mode in ("net", "latest")
    }
    assert found == {"net": [("delete", 1), ("update_after", 3)], "latest": [("update_after", 3)]}


@pytest.mark.parametrize("way", ["rollback", "restore"])
def test_an_undone_commit_is_no_position_of_a_reader(spark, tmp_path, way):
    table = make(spark, tmp_path / "t")
    commits = [table.upsert(frame(spark, (1, number, "a", f"v{number}"))).instant for number in range(3)]
    if way == "restore":
        table.restore(commits[0])
    else:
        table.rollback(commits[2])
    for ask in (lambda: table.next_window(commits[2]), lambda: table.changes(commits[2])):
        with pytest.raises(HistoryGapError, match=f"was taken back by {way}"):
            ask()
    assert table.next_window(commits[0]).commits == (0 if way == "restore" else 1)


def test_the_loop_of_the_guide_keeps_a_copy_up_to_date(spark, tmp_path):
    columns, options = "id int, ts bigint, name string", {"hoodie.clean.automatic": "false"}
    table, copy = (
        keyed_table(spark, tmp_path / name, partition_by=(), schema=columns, options=options)
        for name in ("t", "copy")
    )
    guide = Path(__file__).resolve().parents[2] / "docs" / "change-streams.md"
    (code,) = re.findall(r"```python\n(# keeps a copy.*?)```", guide.read_text(), re.DOTALL)
    names = {"table": table, "copy": copy}
    exec(code, names)  # noqa: S102
    since = names["follow"](None)
    assert since is None
    for rows in ([(1, 1, "one"), (2, 1, "two")], [(1, 2, "ONE"), (3, 2, "three")]):
        table.upsert(spark.createDataFrame(rows, columns))
        since = names["follow"](since)
    table.delete(spark.createDataFrame([(2, 3, "two")], columns))
    since = names["follow"](since)
    assert names["follow"](since) == since
    wanted = sorted((row["id"], row["name"]) for row in table.snapshot().collect())
    found = sorted((row["id"], row["name"]) for row in copy.snapshot().collect())
    assert found == wanted == [(1, "ONE"), (3, "three")]
