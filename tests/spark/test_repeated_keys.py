"""Keys that are stored more than once: what a condition says of one row never befalls another one."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from hudi_engine import DataError, HudiTable
from hudi_engine import read as read_rows
from hudi_engine.errors import RepeatedKeyError
from hudi_engine.spark.write.rows.clauses import MergeClauses
from hudi_engine.spark.write.rows.replacement import EventWindow

from tests.helpers.forms import in_turn
from tests.helpers.hudi_rs import rows_by_hudi_rs

pytestmark = pytest.mark.sampled

COLUMNS = "id int, status string, at timestamp, part string"
NAMES = ["id", "status", "at", "part"]
SPREAD = {"hoodie.engine.small.batch.rows": "0"}
KINDS = {
    "cow": ("cow", {}),
    "mor": ("mor", {}),
    "cow on executors": ("cow", SPREAD),
    "mor on executors": ("mor", SPREAD),
    "cow by joins": ("cow", {**SPREAD, "hoodie.engine.wide.partition.bytes": "1"}),
    "mor by joins": ("mor", {**SPREAD, "hoodie.engine.wide.partition.bytes": "1"}),
    "cow bloom": ("cow", {"hoodie.index.type": "BLOOM"}),
    "cow global": ("cow", {"hoodie.index.type": "GLOBAL_SIMPLE"}),
    "mor global": ("mor", {"hoodie.index.type": "GLOBAL_BLOOM"}),
    "cow bucket": ("cow", {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}),
    "mor bucket": ("mor", {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}),
}

CHANGELOG = "mor changelog"
KEEPS_CHANGES = {CHANGELOG: ("mor", {"hoodie.allow.operation.metadata.field": "true"})}


def moment(day):
    return datetime(2026, 1, day, tzinfo=timezone.utc)


FIRST = [
    (1, "new", moment(1), "a"),
    (1, "paid", moment(2), "a"),
    (2, "new", moment(1), "a"),
    (3, "new", moment(2), "a"),
    (1, "other", moment(2), "b"),
]
AGAIN = (1, "paid again", moment(2), "a")
LATER = {"where": "at >= timestamp '2026-01-02 00:00:00Z' and part = 'a'"}
REPLACED = sorted([FIRST[0], FIRST[2], FIRST[4], AGAIN])
WRITES = {
    "replace_where": (lambda table, rows: table.replace(rows, **LATER), REPLACED),
    "window": (
        lambda table, rows: table.replace(rows, window=EventWindow("at", moment(2), moment(3))),
        sorted([FIRST[0], FIRST[2], AGAIN]),
    ),
    "keys and a predicate": (
        lambda table, rows: table.replace(
            rows, keys="id", where="DBT_INTERNAL_DEST.status <> 'new' and DBT_INTERNAL_DEST.part = 'a'"
        ),
        sorted([FIRST[0], FIRST[2], FIRST[3], FIRST[4], AGAIN]),
    ),
    "delete": (
        lambda table, rows: table.delete_where("status = 'paid'"),
        sorted([FIRST[0], FIRST[2], FIRST[3], FIRST[4]]),
    ),
    "delete of all copies": (
        lambda table, rows: table.delete_where("id = 1"),
        sorted([FIRST[2], FIRST[3]]),
    ),
}
REFUSED = {
    "update": lambda table, rows: table.update_where("status = 'paid'", {"status": "'PAID'"}),
    "update of all copies, which differ": lambda table, rows: table.update_where(
        "id = 1", {"status": "'done'"}
    ),
    "merge of those that fulfil a condition": lambda table, rows: table.merge(
        rows, MergeClauses(matched_condition="DBT_INTERNAL_DEST.status = 'paid'")
    ),
    "upsert of those that fulfil a condition": lambda table, rows: table.upsert(
        rows, match_condition="DBT_INTERNAL_DEST.status = 'paid'"
    ),
    "merge that deletes by source": lambda table, rows: table.merge(
        rows.limit(0),
        MergeClauses(by_source="delete", by_source_condition="DBT_INTERNAL_DEST.status = 'paid'"),
    ),
}


def make(spark, path, kind, with_logs=False):
    """Return a table whose keys are there more than once, in one file."""
    table_type, options = {**KINDS, **KEEPS_CHANGES}[kind]
    table = HudiTable.create(
        spark,
        str(path),
        name="t",
        record_key=["id"],
        partition_by=["part"],
        table_type=table_type,
        options=options,
    )
    table.insert(spark.createDataFrame(FIRST, COLUMNS))
    if with_logs:
        table.upsert(spark.createDataFrame(FIRST[3:4], COLUMNS))
    assert content(table) == said(FIRST)
    return table


def said(rows):
    return sorted((key, status, part) for key, status, _, part in rows)


def content(table):
    """Return the rows, which all readers agree on."""
    names = ["id", "status", "part"]
    found = sorted(tuple(row[name] for name in names) for row in read_rows(table.path).to_arrow().to_pylist())
    assert sorted(tuple(row) for row in table.snapshot().select(*names).collect()) == found
    assert rows_by_hudi_rs(table.path, names) == found
    return found


@pytest.mark.parametrize(
    ("kind", "write", "with_logs"), in_turn(sorted(KINDS), sorted(WRITES), (True, False))
)
def test_rows_that_do_not_fulfil_the_condition_stay(spark, tmp_path, kind, write, with_logs):
    table = make(spark, tmp_path / "t", kind, with_logs)
    act, expected = WRITES[write]
    act(table, spark.createDataFrame([AGAIN], COLUMNS))
    assert content(table) == said(expected)
    if write != "delete of all copies":
        table.delete_where("status = 'new' and id = 2")
        assert content(table) == said(each for each in expected if each[0] != 2), "and it can go on"


@pytest.mark.parametrize(
    ("kind", "write", "with_logs"), in_turn(sorted(KINDS), sorted(REFUSED), (False, True))
)
def test_an_update_of_one_of_several_rows_of_a_key_is_refused(spark, tmp_path, kind, write, with_logs):
    table = make(spark, tmp_path / "t", kind, with_logs)
    with pytest.raises(RepeatedKeyError, match="record key '1' is stored in several rows of partition 'a'"):
        REFUSED[write](table, spark.createDataFrame([AGAIN], COLUMNS))
    assert content(table) == said(FIRST)


def test_a_changelog_whose_base_file_has_a_key_twice_takes_no_change_of_it(spark, tmp_path):
    table = make(spark, tmp_path / "t", CHANGELOG)
    for change in (
        lambda: table.delete_where("id = 1"),
        lambda: table.upsert(spark.createDataFrame([AGAIN], COLUMNS)),
        lambda: table.delete(spark.createDataFrame([AGAIN], COLUMNS)),
    ):
        with pytest.raises(DataError, match="changelog mode"):
            change()
    assert content(table) == said(FIRST)


@pytest.mark.parametrize("kind", [kind for kind in sorted(KINDS) if kind.startswith("mor")])
def test_an_upsert_changes_all_rows_of_its_key_for_every_reader(spark, tmp_path, kind):
    """A record of a log changes the first row with its key for Apache Hudi and hudi-rs, so the file is written anew."""
    table = make(spark, tmp_path / "t", kind)
    table.upsert(spark.createDataFrame([AGAIN], COLUMNS))
    assert {row for row in content(table) if row[0] == 1 and row[2] == "a"} == {(1, "paid again", "a")}


BECOMES_TWO = {
    "replaced": lambda table, rows: [table.replace(rows(("k3", "s1", 3)), where="s = 's1'")],
    "inserted, then deleted": lambda table, rows: [
        table.insert(rows(("k3", "s2", 5))),
        table.delete_where("id = 'k2'"),
    ],
    "two inserted, then deleted": lambda table, rows: [
        table.insert(rows(("k3", "s2", 5), ("k3", "s3", 5))),
        table.delete(rows(("k2", "", 0)).select("id")),
    ],
}


@pytest.mark.parametrize(
    ("becomes", "table_type", "first"),
    in_turn(tuple(BECOMES_TWO), ("cow", "mor", "mor, compacted"), (("k2", "k3"), ("k3", "k2"))),
)
def test_a_key_that_becomes_two_hides_no_delete_of_another(spark, tmp_path, becomes, table_type, first):
    def rows(*values):
        return spark.createDataFrame(list(values), "id string, s string, n int")

    stored = {"k2": ("k2", "s1", 1), "k3": ("k3", "s2", 2)}
    table = HudiTable.create(
        spark,
        str(tmp_path / "t"),
        name="t",
        record_key=["id"],
        table_type=table_type[:3],
        schema=rows().schema,
    )
    start = table.insert(rows(*(stored[key] for key in first)).coalesce(1)).instant
    BECOMES_TWO[becomes](table, rows)
    if table_type.endswith("compacted"):
        table.compact()
    names = ["id", "s", "n"]
    now = sorted(tuple(row) for row in table.snapshot().select(*names).collect())
    for mode in ("net", "all"):
        content = sorted(stored.values())
        told = [tuple(row)[:4] for row in table.changes(start, mode=mode).collect()]
        for *row, kind in sorted(told, key=lambda each: each[3]):
            if kind in ("delete", "update_before"):
                content.remove(tuple(row))
            elif kind == "insert" or mode == "all":
                content.append(tuple(row))
            else:
                raise AssertionError(f"{row} {kind}: no key is changed, one is there twice and one goes")
        assert sorted(content) == now, (mode, told)
