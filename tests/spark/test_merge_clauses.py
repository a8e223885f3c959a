"""The clauses of a MERGE in one commit, against a naive model."""

from __future__ import annotations

import random

import pytest
from hudi_engine import ConfigError, HudiTable
from hudi_engine.spark.write.rows.clauses import MergeClauses, When
from hudi_engine.spark.write.rows.sides import ClauseRows

from tests.helpers.forms import in_turn
from tests.helpers.hudi_rs import rows_by_hudi_rs
from tests.spark.merges import BATCH, STORED, TABLES, frame, make

pytestmark = pytest.mark.sampled

# Clauses, and what becomes of a pair of a stored row and one of the batch (either may be missing).
CASES = {
    "plain": (MergeClauses(), lambda old, new: new or old),
    "matched condition": (
        MergeClauses(matched_condition="DBT_INTERNAL_SOURCE.n > 200"),
        lambda old, new: (new if new[1] > 200 or not old else old) if new else old,
    ),
    "not matched condition": (
        MergeClauses(not_matched_condition="s.n > 500", source="s"),
        lambda old, new: new if new and (old or new[1] > 500) else old,
    ),
    "skip matched": (MergeClauses(skip_matched=True), lambda old, new: old or new),
    "skip not matched": (MergeClauses(skip_not_matched=True), lambda old, new: old and (new or old)),
    "delete by source": (
        MergeClauses(by_source="delete", by_source_condition="t.n < 40", target="t"),
        lambda old, new: new or (old if old[1] >= 40 else None),
    ),
    "update by source": (
        MergeClauses(by_source={"n": "DBT_INTERNAL_DEST.n + 1"}),
        lambda old, new: new or (old[0], old[1] + 1, old[2]),
    ),
    "set": (
        MergeClauses(update_set={"n": "DBT_INTERNAL_DEST.n + DBT_INTERNAL_SOURCE.n"}, update_columns=("n",)),
        lambda old, new: (old[0], old[1] + new[1], old[2]) if old and new else old or new,
    ),
    "branches": (
        MergeClauses(
            when=(
                When(ClauseRows.MATCHED, "delete", "DBT_INTERNAL_SOURCE.n > 200"),
                When(ClauseRows.MATCHED, "do_nothing", "DBT_INTERNAL_DEST.dt = 'a'"),
                When(ClauseRows.MATCHED, "update", columns=("n",)),
                When(ClauseRows.NEW, "do_nothing", "DBT_INTERNAL_SOURCE.id = 6"),
                When(ClauseRows.NEW, "insert", values={"n": "DBT_INTERNAL_SOURCE.n + 1"}),
                When(ClauseRows.LEFT, "update", "DBT_INTERNAL_DEST.n < 40", values={"n": "n + 1"}),
                When(ClauseRows.LEFT, "delete"),
            )
        ),
        lambda old, new: by_branches(old, new),
    ),
    "branches for some rows": (
        MergeClauses(
            when=(
                When(ClauseRows.MATCHED, "delete", "DBT_INTERNAL_SOURCE.n > 200"),
                When(ClauseRows.MATCHED, "update", excluded=("n",)),
            )
        ),
        lambda old, new: (None if new[1] > 200 else (new[0], old[1], new[2])) if old and new else old or new,
    ),
    "everything": (
        MergeClauses(
            matched_condition="DBT_INTERNAL_DEST.dt = 'b'",
            not_matched_condition="DBT_INTERNAL_SOURCE.id = 6",
            by_source="delete",
        ),
        lambda old, new: (
            (new if old[2] == "b" else old) if old and new else new if new and new[0] == 6 else None
        ),
    ),
}


def by_branches(old, new):
    if old and new:
        return None if new[1] > 200 else old if old[2] == "a" else (old[0], new[1], old[2])
    if new:
        return None if new[0] == 6 else (new[0], new[1] + 1, new[2])
    return (old[0], old[1] + 1, old[2]) if old[1] < 40 else None


def make_ordered(spark, path, index="SIMPLE", **options):
    """A table in partitions of ``dt`` whose rows are ordered by ``at``."""
    return HudiTable.create(
        spark,
        str(path),
        name="t",
        record_key=["id"],
        precombine_field="at",
        partition_by=["dt"],
        options={"hoodie.index.type": index, **options},
    )


def modelled(stored, batch, becomes):
    old, new = ({row[0]: row for row in rows} for rows in (stored, batch))
    found = [becomes(old.get(key), new.get(key)) for key in sorted({*old, *new})]
    return [row for row in found if row]


@pytest.mark.parametrize(("name", "shape"), in_turn(tuple(CASES), tuple(TABLES)))
def test_every_clause_does_to_rows_what_it_says(spark, tmp_path, name, shape):
    clauses, becomes = CASES[name]
    table = make(spark, tmp_path / "t", shape)
    table.upsert(frame(spark, STORED))
    table.merge(frame(spark, BATCH), clauses)
    expected = modelled(STORED, BATCH, becomes)
    assert rows_by_hudi_rs(table.path, ["id", "n", "dt"]) == expected
    assert sorted(tuple(row) for row in table.snapshot().select("id", "n", "dt").collect()) == expected


def test_a_row_that_loses_by_its_ordering_field_is_not_counted_or_written(spark, tmp_path):
    table = HudiTable.create(
        spark, str(tmp_path / "t"), name="t", record_key=["id"], precombine_field="n", table_type="mor"
    )
    table.upsert(frame(spark, STORED))
    batch = [(1, 5, "late"), (2, 25, "newer")]
    done = table.merge(frame(spark, batch), MergeClauses(matched_condition="true"))
    assert (done.rows_updated, done.rows_inserted, done.files_written) == (1, 0, 1)
    assert rows_by_hudi_rs(table.path, ["id", "n", "dt"]) == [STORED[0], batch[1], *STORED[2:]]


def test_a_merge_into_an_empty_table_inserts_what_may_be_inserted(spark, tmp_path):
    table = make(spark, tmp_path / "t")
    table.merge(frame(spark, BATCH), MergeClauses(not_matched_condition="DBT_INTERNAL_SOURCE.n < 600"))
    assert rows_by_hudi_rs(table.path, ["id", "n", "dt"]) == BATCH[:3]


@pytest.mark.parametrize("is_empty", [False, True])
@pytest.mark.parametrize(
    ("text", "reason"),
    [("DBT_INTERNAL_SOURCE.n >", "Syntax error at or near"), ("nix = 1", "UNRESOLVED_COLUMN")],
)
def test_a_condition_that_spark_does_not_understand_is_named_with_the_reason(
    spark, tmp_path, text, reason, is_empty
):
    table = make(spark, tmp_path / "t")
    if not is_empty:
        table.upsert(frame(spark, STORED))
    clauses = MergeClauses(matched_condition="true", not_matched_condition=text)
    with pytest.raises(ConfigError) as raised:
        table.merge(frame(spark, BATCH), clauses)
    assert f"not_matched_condition {text!r} cannot be resolved: [" in str(raised.value)
    assert reason in str(raised.value)
    assert "SQLSTATE" not in str(raised.value)


@pytest.mark.parametrize(
    ("clauses", "message"),
    [
        (MergeClauses(matched_condition="n >"), "matched_condition 'n >' cannot be resolved"),
        (MergeClauses(on="nix = 1", called={"on": "predicates"}), "predicates 'nix = 1' cannot be resolved"),
        (MergeClauses(update_set={"n": "1 +"}), r"update_set sets n to '1 \+', which cannot be resolved"),
        (MergeClauses(by_source={"n": "nix"}), "by_source sets n to 'nix', which cannot be resolved"),
        (
            MergeClauses(by_source="delete", by_source_condition="array(1)"),
            r"by_source_condition 'array\(1\)' cannot be resolved",
        ),
        (
            MergeClauses(update_set={"n": "date'2026-01-01'"}),
            "the clauses of the merge cannot be resolved together",
        ),
        (MergeClauses(update_set={"n": "array(1)"}), "n is array<int> in the query and int in the table"),
    ],
)
def test_the_clause_that_fails_is_named(spark, tmp_path, clauses, message):
    table = make(spark, tmp_path / "t")
    table.upsert(frame(spark, STORED))
    with pytest.raises(ConfigError, match=message):
        table.merge(frame(spark, BATCH), clauses)
    assert rows_by_hudi_rs(table.path, ["id", "n", "dt"]) == STORED


def test_clauses_that_make_no_sense_are_refused(spark, tmp_path):
    table = make(spark, tmp_path / "t")
    table.upsert(frame(spark, STORED))
    for clauses, message in (
        (MergeClauses(matched_condition="nix = 1"), "nix"),
        (MergeClauses(update_set={"id": "1"}), "'id' is part of the record key"),
        (MergeClauses(by_source={"nix": "1"}), "'nix' is not in the table"),
        (
            MergeClauses(by_source="keep"),
            "by_source is 'keep'; legal values WHEN NOT MATCHED BY SOURCE: 'update', 'delete'",
        ),
        (MergeClauses(update_columns=("nn",)), "'nn' is not in the table"),
    ):
        with pytest.raises(ConfigError, match=message):
            table.merge(frame(spark, BATCH), clauses)
    assert rows_by_hudi_rs(table.path, ["id", "n", "dt"]) == STORED


@pytest.mark.parametrize("small_rows", ["1000", "0"])
def test_a_key_that_may_not_move_keeps_its_partition_column(spark, tmp_path, small_rows):
    table = HudiTable.create(
        spark,
        str(tmp_path / "t"),
        name="t",
        record_key=["id"],
        partition_by=["dt"],
        options={
            "hoodie.index.type": "GLOBAL_SIMPLE",
            "hoodie.simple.index.update.partition.path": "false",
            "hoodie.engine.small.batch.rows": small_rows,
        },
    )
    table.insert(frame(spark, [(1, 10, "a"), (2, 20, "a"), (2, 20, "a"), (3, 30, "b")]))
    table.merge(
        frame(spark, [(1, 11, "c"), (4, 40, "c")]),
        MergeClauses(by_source={"dt": "'c'", "n": "DBT_INTERNAL_DEST.n + 1"}),
    )
    expected = [(1, 11, "a"), (2, 21, "a"), (2, 21, "a"), (3, 31, "b"), (4, 40, "c")]
    assert rows_by_hudi_rs(table.path, ["id", "n", "dt"]) == expected
    assert {row["_hoodie_partition_path"] for row in table.snapshot().where("dt = 'a'").collect()} == {"a"}


# A stored row of (1, n 10, at 5) and (2, n 20, at 5), and one that comes for the first; what is left.
ORDERED = {
    "a row without one that comes is not older than itself": (
        MergeClauses(by_source={"n": "99"}),
        (1, 11, 9),
        [(1, 11, 9), (2, 99, 5)],
    ),
    "a row that the clause makes older stays": (
        MergeClauses(by_source={"n": "99", "at": "DBT_INTERNAL_DEST.at - 1"}),
        (1, 11, 9),
        [(1, 11, 9), (2, 20, 5)],
    ),
    "a late row that the clause makes newer is taken": (
        MergeClauses(update_set={"at": "DBT_INTERNAL_DEST.at + DBT_INTERNAL_SOURCE.at"}),
        (1, 11, 3),
        [(1, 11, 8), (2, 20, 5)],
    ),
    "a new row that the clause makes older stays out": (
        MergeClauses(update_set={"at": "DBT_INTERNAL_DEST.at - 4"}),
        (1, 11, 9),
        [(1, 10, 5), (2, 20, 5)],
    ),
    "a late row whose time is not taken is late all the same": (
        MergeClauses(update_columns=("n",)),
        (1, 11, 3),
        [(1, 10, 5), (2, 20, 5)],
    ),
    "a newer row whose time is not taken counts": (
        MergeClauses(update_columns=("n",)),
        (1, 11, 9),
        [(1, 11, 5), (2, 20, 5)],
    ),
}


@pytest.mark.parametrize(("name", "table_type"), in_turn(tuple(ORDERED), ("cow", "mor")))
def test_ordering_fields_are_compared_as_the_clauses_leave_them(spark, tmp_path, name, table_type):
    clauses, comes, expected = ORDERED[name]
    table = HudiTable.create(
        spark, str(tmp_path / "t"), name="t", record_key=["id"], precombine_field="at", table_type=table_type
    )
    table.upsert(spark.createDataFrame([(1, 10, 5), (2, 20, 5)], "id int, n int, at int"))
    before = table.snapshot().select("id", "n", "at").collect()
    result = table.merge(spark.createDataFrame([comes], "id int, n int, at int"), clauses)
    rows = sorted(tuple(row) for row in table.snapshot().select("id", "n", "at").collect())
    assert rows == expected
    told = sum(row not in before for row in rows)
    assert (result.rows_updated, result.rows_inserted, result.rows_deleted) == (told, 0, 0)
    assert rows_by_hudi_rs(str(tmp_path / "t"), ["id", "n", "at"]) == expected


@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE"])
@pytest.mark.parametrize("is_stored", [True, False])
def test_a_condition_asks_the_newest_of_several_rows_with_one_key(spark, tmp_path, index, is_stored):
    table = make_ordered(spark, tmp_path / "t", index)
    columns = "id int, n int, at int, dt string"
    stored = [(1, 10, 1, "a"), (2, 20, 1, "a"), (3, 30, 1, "a")] if is_stored else [(9, 90, 1, "a")]
    table.upsert(spark.createDataFrame(stored, columns))
    # The older one fulfils the condition; the newer one; both, of which one is without a time.
    comes = [
        (1, 100, 5, "a"),
        (1, 0, 6, "a"),
        (2, 0, 5, "a"),
        (2, 200, 6, "a"),
        (3, 300, None, "a"),
        (3, 301, 2, "a"),
    ]
    positive = "DBT_INTERNAL_SOURCE.n > 0"
    clauses = MergeClauses(matched_condition=positive, not_matched_condition=positive)
    table.merge(spark.createDataFrame(comes, columns), clauses)
    expected = {row[0]: row[1] for row in stored} | {2: 200, 3: 301}
    assert {row.id: row.n for row in table.snapshot().select("id", "n").collect()} == expected


@pytest.mark.parametrize("ordering", ["at", None])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_of_several_rows_with_one_key_one_comes(spark, tmp_path, kind, ordering):
    table = HudiTable.create(
        spark, str(tmp_path / "t"), name="t", record_key=["id"], precombine_field=ordering, table_type=kind
    )
    table.upsert(spark.createDataFrame([(1, 1, 10)], "id int, n int, at int"))
    comes = [(9, 3, 30), (9, 2, 20), (1, 4, 31), (1, 5, 21)]
    table.merge(
        spark.createDataFrame(comes, "id int, n int, at int").coalesce(1), MergeClauses(update_columns=("n",))
    )
    expected = [(1, 4), (9, 3)] if ordering else [(1, 5), (9, 2)]
    assert sorted(tuple(row) for row in table.snapshot().select("id", "n").collect()) == expected


def test_by_commit_time_a_row_moves_whatever_its_time(spark, tmp_path):
    options = {
        "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
        "hoodie.simple.index.update.partition.path": "true",
    }
    table = make_ordered(spark, tmp_path / "t", "GLOBAL_SIMPLE", **options)
    table.upsert(spark.createDataFrame([(1, 10, "a")], "id int, at int, dt string"))
    table.merge(spark.createDataFrame([(1, 5, "b")], "id int, at int, dt string"), MergeClauses())
    assert [tuple(row) for row in table.snapshot().select("id", "at", "dt").collect()] == [(1, 5, "b")]


def newest(rows):
    """Of ``(key, n, at, deletes)`` in order the one that is left: greatest time, of equal ones the last; a delete without a time ends."""
    left = None
    for row in rows:
        ends = row[3] and row[2] in (None, 0)
        after_an_end = left is not None and left[3] and left[2] in (None, 0)
        newer = (
            left is None
            or after_an_end
            or ends
            or (row[2] is None, -(row[2] or 0)) <= (left[2] is None, -(left[2] or 0))
        )
        left = row if newer else left
    return left


@pytest.mark.parametrize("mark", ["_hoodie_is_deleted", "__hudi_is_deleted"])
def test_the_first_batch_with_a_mark_deletes(spark, tmp_path, mark):
    table = make_ordered(spark, tmp_path / "t")
    table.upsert(
        spark.createDataFrame([(1, 10, 5, "a"), (2, 20, 5, "a")], "id int, n int, at int, dt string")
    )
    comes = [(1, 0, 0, "a", True), (2, 200, 6, "a", False), (3, 300, 6, "a", False)]
    table.merge(
        spark.createDataFrame(comes, f"id int, n int, at int, dt string, {mark} boolean"), MergeClauses()
    )
    assert sorted((row.id, row.n) for row in table.snapshot().collect()) == [(2, 200), (3, 300)]


@pytest.mark.parametrize(
    ("mark", "kind"), in_turn(("_hoodie_is_deleted", "__hudi_is_deleted", "op"), ("cow", "mor"))
)
def test_conditions_ask_the_newest_of_rows_of_which_some_delete(spark, tmp_path, mark, kind):
    chance = random.Random(f"{mark} {kind}")
    options = (
        {"hoodie.payload.delete.field": "op", "hoodie.payload.delete.marker": "D"} if mark == "op" else {}
    )
    table = HudiTable.create(
        spark,
        str(tmp_path / "t"),
        name="t",
        record_key=["id"],
        precombine_field="at",
        table_type=kind,
        options=options,
    )
    says = (lambda deletes: "D" if deletes else "U") if mark == "op" else (lambda deletes: deletes)
    columns = f"id int, n int, at int, {mark} {'string' if mark == 'op' else 'boolean'}"
    stored = [(key, 0, 1, says(False)) for key in range(0, 60, 2)]
    table.upsert(spark.createDataFrame(stored, columns))
    comes = [
        (
            chance.randrange(60),
            chance.randrange(-5, 6),
            chance.choice([None, 0, 2, 3, 4]),
            chance.random() < 0.4,
        )
        for _ in range(180)
    ]
    positive = "DBT_INTERNAL_SOURCE.n > 0"
    clauses = MergeClauses(matched_condition=positive, not_matched_condition=positive)
    batch = spark.createDataFrame([(*row[:3], says(row[3])) for row in comes], columns).coalesce(1)
    table.merge(batch, clauses)
    expected = {row[0]: row[1] for row in stored}
    for key in range(60):
        row = newest([each for each in comes if each[0] == key])
        old_time = 1 if key in expected else None
        if row is None or row[1] <= 0:
            continue
        if row[3] and (row[2] in (None, 0) or old_time is None or row[2] >= old_time):
            expected.pop(key, None)
        elif not row[3] and (old_time is None or (row[2] is not None and row[2] >= old_time)):
            expected[key] = row[1]
    assert {row.id: row.n for row in table.snapshot().select("id", "n").collect()} == expected
    assert {row[0]: row[1] for row in rows_by_hudi_rs(str(tmp_path / "t"), ["id", "n"])} == expected


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("payload", ["PartialUpdateAvroPayload", "OverwriteNonDefaultsWithLatestAvroPayload"])
def test_rows_of_one_key_that_fill_each_other_are_one_row_for_clauses(spark, tmp_path, payload, kind):
    options = {"hoodie.datasource.write.payload.class": f"org.apache.hudi.common.model.{payload}"}
    columns = "id int, n int, note string, at int"
    tables = [
        HudiTable.create(
            spark,
            str(tmp_path / name),
            name=name,
            record_key=["id"],
            precombine_field="at",
            table_type=kind,
            options=options,
        )
        for name in ("upserted", "merged")
    ]
    chance = random.Random(payload)
    for number in range(3):
        comes = [
            (
                chance.randrange(12),
                chance.choice([None, number, 7]),
                chance.choice([None, "x", "y"]),
                chance.randrange(5),
            )
            for _ in range(30)
        ]
        batch = spark.createDataFrame(comes, columns).coalesce(1)
        upserted, merged = tables
        upserted.upsert(batch)
        merged.merge(batch, MergeClauses())
        shown = [
            sorted(tuple(row) for row in table.snapshot().select("id", "n", "note", "at").collect())
            for table in tables
        ]
        assert shown[0] == shown[1]
