"""Changes between two states of a table, against a dictionary, over histories with every operation and service."""

from __future__ import annotations

import random
from datetime import datetime, timezone
from pathlib import Path

import pytest
from hudi_engine import HudiTable
from hudi_engine.changes.plan import plan_changes, steps_since
from hudi_engine.config.options import resolve_options
from hudi_engine.errors import ConfigError, HistoryGapError, TimelineError
from hudi_engine.merge.table_reader import read_table
from hudi_engine.storage import open_storage
from hudi_engine.table_state import TableState

COLUMNS = "id int, ts bigint, dt string, name string"
NAMES = ["id", "ts", "dt", "name"]
KEEP = {"hoodie.clean.automatic": "false", "hoodie.compact.inline": "false"}


def make(spark, path, table_type="cow", **options):
    return HudiTable.create(
        spark,
        str(path),
        name="t",
        record_key=["id"],
        precombine_field="ts",
        partition_by=["dt"],
        table_type=table_type,
        schema=COLUMNS,
        options={**KEEP, **options},
    )


def frame(spark, *rows):
    return spark.createDataFrame(list(rows), COLUMNS)


def rows_as_of(table, instant):
    rows = read_table(open_storage(table.path), as_of=instant, columns=NAMES).to_pylist()
    return {(row["dt"], row["id"]): tuple(row[name] for name in NAMES) for row in rows}


def told(changes):
    assert changes.columns == [*NAMES, "_change_type", "_commit_time"]
    return [
        (row["_change_type"], tuple(row[name] for name in NAMES), row["_commit_time"])
        for row in changes.collect()
    ]


def applied(rows, changes, *, deletes=True):
    """The rows with the changes made, in the order of their commits; an update must find the row it tells."""
    rank = {"delete": 0, "update_before": 1, "update_after": 2, "insert": 3}
    found = dict(rows)
    for kind, row, _ in sorted(changes, key=lambda each: (each[2], rank[each[0]])):
        key = (row[2], row[0])
        if kind == "delete":
            assert found.pop(key) == row
        elif kind == "update_before":
            assert found[key] == row
        elif kind == "insert":
            assert key not in found
            found[key] = row
        else:
            assert not deletes or (key in found and found[key] != row)
            found[key] = row
    return found


STEPS = [
    "upsert",
    "upsert",
    "upsert",
    "delete",
    "overwrite",
    "drop",
    "insert",
    "table",
    "compact",
    "rollback",
    "same",
]


def random_history(spark, path, table_type, index, seed):
    """A table and the instants of its history."""
    random_ = random.Random(f"{seed}-{index}-{table_type}")
    table = make(spark, path, table_type, **{"hoodie.index.type": index})
    instants = []
    for clock in range(1, 11):
        count = random_.randrange(1, 7)
        keys = {random_.randrange(10): random_.choice(["a", "b"]) for _ in range(count)}
        batch = frame(spark, *((key, clock, part, f"v{clock}") for key, part in keys.items()))
        step = random_.choice(STEPS) if clock > 1 else "upsert"
        if step == "upsert":
            result = table.upsert(
                batch, options={"hoodie.engine.small.batch.rows": random_.choice(["0", "1000"])}
            )
        elif step == "delete":
            result = table.delete(batch)
        elif step == "overwrite":
            result = table.insert_overwrite(batch)
        elif step == "table":
            result = table.insert_overwrite_table(batch)
        elif step == "drop":
            result = table.delete_partitions([random_.choice(["a", "b"])])
        elif step == "insert":
            new = frame(spark, *((key + 100 * clock, clock, part, "new") for key, part in keys.items()))
            result = table.insert(new)
        elif step == "same":
            result = table.upsert(table.snapshot().select(*NAMES).limit(3))
        elif step == "compact" and table_type == "mor":
            table.compact()
            continue
        else:
            table.rollback(table.upsert(batch).instant)
            continue
        instants.append(result.instant)
    return table, instants


def plan(state, start, end, mode):
    read = state.read_context(state.data_schema(end), resolve_options({}))
    steps, cleaned = steps_since(state, start, end, mode=mode)
    return plan_changes(state, read, steps, cleaned, mode)


def told_here(changes):
    rows = changes.to_pylist()
    return [(row["_change_type"], tuple(row[name] for name in NAMES), row["_commit_time"]) for row in rows]


@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize(("index", "seed"), [("SIMPLE", 1), ("GLOBAL_SIMPLE", 2)])
def test_changes_between_any_two_instants_make_the_one_state_the_other(
    spark, tmp_path, table_type, index, seed
):
    table, instants = random_history(spark, tmp_path / "t", table_type, index, seed)
    state = TableState.load(table.storage)
    states = {instant: rows_as_of(table, instant) for instant in instants}
    for number, start in enumerate(instants):
        for end in instants[number:]:
            net = told_here(plan(state, start, end, "net").rows())
            assert applied(states[start], net) == states[end]
            keys = [(row[2], row[0]) for _, row, _ in net]
            both = {**states[start], **states[end]}
            differing = [key for key in both if states[start].get(key) != states[end].get(key)]
            assert sorted(keys) == sorted(differing), "net tells each changed key once"
            assert applied(states[start], told_here(plan(state, start, end, "all").rows())) == states[end]
    start, middle, end = instants[0], instants[len(instants) // 2], instants[-1]
    for window in ((start, end), (start, middle), (middle, end)):
        expected = states[window[1]]
        for mode in ("net", "all"):
            assert sorted(told(table.changes(*window, mode))) == sorted(
                told_here(plan(state, *window, mode).rows())
            )
        newest = applied(states[window[0]], told(table.changes(*window, "latest")), deletes=False)
        assert {key: row for key, row in newest.items() if key in expected} == expected
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
        HistoryGapError, match=f"after {start} cannot be told.*clean deleted.*on_gap='snapshot'"
    ) as gap:
        table.changes(start)
    assert gap.value.start == start
    assert told(table.changes(last)) == []
    assert {kind for kind, _, _ in told(table.changes(start, on_gap="snapshot"))} == {"insert"}


@pytest.mark.parametrize("mode", ["net", "all", "latest"])
def test_a_clean_of_the_end_of_a_window_is_a_gap_and_not_fewer_rows(spark, tmp_path, mode):
    table = make(spark, tmp_path / "t")
    start = table.upsert(frame(spark, (1, 1, "a", "one"))).instant
    end = table.upsert(frame(spark, (2, 1, "b", "two"))).instant
    assert [row for _, row, _ in told(table.changes(start, end, mode))] == [(2, 1, "b", "two")]
    for number in range(2, 5):
        table.upsert(frame(spark, (2, number, "b", f"v{number}")))
    table.clean(retain_commits=1)
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
    assert [row["name"] for row in table.as_of("latest").collect()] == ["ONE"]
    for start in (first, moment, text):
        assert [(kind, row[3]) for kind, row, _ in told(table.changes(start))] == [("update_after", "ONE")]
    with pytest.raises(TimelineError, match="savepoints are called that"):
        table.as_of("year end")
    with pytest.raises(TimelineError, match="before they start"):
        table.changes(moment, "2020-01-01")
    with pytest.raises(ConfigError, match="mode is 'some'; legal are net, all, latest"):
        table.changes(first, mode="some")
