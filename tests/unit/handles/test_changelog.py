"""Changelog mode: which records a batch leaves in the log of a slice."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hudi_engine.errors import DataError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.schema.meta_fields import RECORD_KEY, with_meta_columns
from hudi_engine.table.handles import changelog

DATA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("name", pa.string())])
SCHEMA = with_meta_columns(DATA, operation=True)
SLICE = FileSlice("", "f-0", "20260101000000000", None, ())


def config(ordering: str | None) -> TableConfig:
    properties = {
        "hoodie.table.timeline.timezone": "UTC",
        "hoodie.table.name": "t",
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.version": "6",
        "hoodie.timeline.layout.version": "1",
        "hoodie.table.recordkey.fields": "id",
        "hoodie.engine.changelog": "true",
    }
    return TableConfig.from_properties(
        properties | ({"hoodie.table.precombine.field": ordering} if ordering else {})
    )


def rows(*given: tuple[Any, ...], operation: bool = False) -> pa.Table:
    names = ["id", "ts", "name", *(["_hoodie_operation"] if operation else [])]
    columns = {name: [row[number] for row in given] for number, name in enumerate(names)}
    schema = pa.schema([*DATA, *([pa.field("_hoodie_operation", pa.string())] if operation else [])])
    table = pa.table(columns, schema=schema)
    return table.append_column(RECORD_KEY, table.column("id"))


@pytest.fixture
def context(monkeypatch):
    """A write to a slice that holds a (time 10) and b (time 10)."""
    stored = rows(("a", 10, "one"), ("b", 10, "two"))
    columns = [
        stored.column(field.name) if field.name in stored.column_names else pa.nulls(2, field.type)
        for field in SCHEMA
    ]
    table = pa.Table.from_arrays(columns, schema=SCHEMA)
    monkeypatch.setattr(changelog, "read_slice", lambda read, file_slice: table)
    return lambda ordering="ts": SimpleNamespace(read=None, schema=SCHEMA, config=config(ordering))


def told(changes: changelog.LoggedChanges) -> list[tuple[Any, ...]]:
    return [
        tuple(row.values()) for row in changes.rows.select(["_hoodie_operation", *DATA.names]).to_pylist()
    ]


def test_an_update_is_the_row_before_and_the_row_after_and_a_new_row_is_an_insert(context):
    changes = changelog.changes_of(context(), SLICE, rows(("c", 5, "three"), ("a", 20, "ONE")), None)
    assert told(changes) == [("I", "c", 5, "three"), ("-U", "a", 10, "one"), ("U", "a", 20, "ONE")]
    assert (changes.inserted, changes.updated, changes.deletes) == (1, 1, None)


def test_a_row_that_loses_against_the_stored_one_leaves_nothing(context):
    assert told(changelog.changes_of(context(), SLICE, rows(("a", 9, "late")), None)) == []


def test_a_deleted_row_is_kept_as_it_was_and_its_key_is_deleted_after_it(context):
    incoming = rows(("a", 20, "x"), ("b", 9, "late"), ("c", 1, "unknown"))
    changes = changelog.changes_of(context(), SLICE, incoming, pa.array([True, True, True]))
    assert told(changes) == [("D", "a", 10, "one")]
    assert (changes.deletes.keys.to_pylist(), changes.deletes.ordering.to_pylist()) == (["a"], [20])


def test_the_delete_operation_wins_whatever_the_time(context):
    keys = pa.table({RECORD_KEY: ["b", "c"]})
    changes = changelog.changes_of(context(), SLICE, keys, None, delete_always=True)
    assert told(changes) == [("D", "b", 10, "two")]
    assert (changes.deletes.keys.to_pylist(), changes.deletes.ordering) == (["b"], None)


def test_without_an_ordering_field_the_later_write_wins(context):
    changes = changelog.changes_of(context(None), SLICE, rows(("a", 1, "again")), None)
    assert told(changes) == [("-U", "a", 10, "one"), ("U", "a", 1, "again")]


def test_update_columns_leave_the_others_as_they_were(context):
    changes = changelog.changes_of(context(), SLICE, rows(("a", 20, "ONE")), None, update_columns=("ts",))
    assert told(changes) == [("-U", "a", 10, "one"), ("U", "a", 20, "one")]


def test_changes_that_the_batch_names_are_kept_as_they_are_and_in_their_order(context):
    given = rows(
        ("a", 10, "one", "-U"),
        ("a", 20, "ONE", "U"),
        ("b", 10, "two", "D"),
        ("b", 30, "back", "I"),
        ("a", 20, "ONE", "D"),
        operation=True,
    )
    changes = changelog.given_changes(context(), given)
    assert [row[:2] for row in told(changes)] == [
        ("-U", "a"), ("U", "a"), ("D", "b"), ("I", "b"), ("D", "a"),
    ]  # fmt: skip
    assert changes.deletes.keys.to_pylist() == ["a"]


def test_new_keys_of_a_batch_that_names_its_changes_are_stored_as_they_end(context):
    given = rows(
        ("x", 1, "first", "I"),
        ("y", 1, "gone", "I"),
        ("x", 1, "first", "-U"),
        ("x", 2, "last", "U"),
        ("y", 1, "gone", "D"),
        operation=True,
    )
    assert changelog.settled_rows(given).select(DATA.names).to_pylist() == [
        {"id": "x", "ts": 2, "name": "last"}
    ]


@pytest.mark.parametrize("ends", [changelog.settled_rows, lambda given: changelog.given_changes(None, given)])
def test_changes_of_a_key_that_end_with_the_row_before_an_update_are_refused(ends):
    given = rows(
        ("a", 10, "one", "U"),
        ("b", 10, "two", "-U"),
        ("b", 20, "two", "U"),
        ("a", 10, "one", "-U"),
        operation=True,
    )
    with pytest.raises(
        DataError, match="1 key.*'a', end with _hoodie_operation='-U'.*'D' for a row that goes"
    ):
        ends(given)


def test_an_unknown_operation_is_refused_by_name():
    with pytest.raises(DataError, match=r"'\+I', None; legal values: I, -U, U, D"):
        changelog.check_operations(
            rows(("a", 1, "x", "+I"), ("b", 1, "y", None), ("c", 1, "z", "U"), operation=True)
        )
