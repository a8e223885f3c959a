"""Texts of few values go from a base file to the next by number: every value stays with its row, and no other value stays."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_engine.format.merge.base_reader import opened_base_file
from hudi_engine.format.schema.coded import coded_like, decoded, with_used_values
from hudi_engine.format.schema.meta_fields import RECORD_KEY
from hudi_engine.table.handles.merge import merge_file
from hudi_engine.table.handles.updates import FileChanges
from hudi_engine.table.handles.write_task import WriteTask
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.handles.test_merge import NEW, OLD, a_file, a_task

pytestmark = pytest.mark.usefixtures("carried_columns")
CITIES = ["Oslo", "Bergen", "Tromsø", "", None]
GROUPS = 1_000
PLAIN_FILES = {"hoodie.parquet.compression.codec": "uncompressed"}
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("n", pa.int64()), ("city", pa.string())])


def a_row(number: int) -> dict[str, Any]:
    # The second and third row group have values that the first has not; one value is of a single row.
    city = "Hammerfest" if number == 7 else CITIES[(number * 7 + number // GROUPS) % (3 + number // GROUPS)]
    return {"id": f"k{number:05}", "ts": 10, "n": number, "city": city}


ROWS = [a_row(number) for number in range(3 * GROUPS)]


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WriteTask:
    monkeypatch.setattr("tests.unit.handles.test_merge.TABLE", SCHEMA)
    return a_task(tmp_path, **PLAIN_FILES)


def some_changes(
    updates: dict[int, str | None], deletes: set[int], inserts: list[dict[str, Any]]
) -> FileChanges:
    numbers = sorted({*updates, *deletes})
    rows = [{**ROWS[each], "ts": 20, "city": updates.get(each)} for each in numbers]
    picks: list[int | None] = [None] * len(ROWS)
    for place, number in enumerate(numbers):
        picks[number] = place
    with_keys = [
        table.append_column(RECORD_KEY, table.column("id"))
        for table in (pa.Table.from_pylist(rows, SCHEMA), pa.Table.from_pylist(inserts, SCHEMA))
    ]
    gone = pa.array([each in deletes for each in numbers], pa.bool_())
    return FileChanges(pa.array(picks, pa.int32()), with_keys[0], gone, inserts=with_keys[1])


def test_few_values_are_read_by_number_and_keys_are_not(task: WriteTask, tmp_path: Path) -> None:
    base = a_file(tmp_path, ROWS, SCHEMA, GROUPS, "none").base_file
    assert base is not None
    with opened_base_file(task.context.read, base) as file:
        first = next(file.blocks(task.context.read.schema.names))
    coded = {field.name for field in first.schema if pa.types.is_dictionary(field.type)}
    assert coded == {"_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_file_name", "city"}


def test_each_row_keeps_its_value_through_updates_deletes_and_new_rows(
    task: WriteTask, tmp_path: Path
) -> None:
    chance = random.Random(5)
    updates = {
        number: chance.choice([*CITIES, f"new {number}"]) for number in chance.sample(range(len(ROWS)), 400)
    }
    deletes = {number for number in chance.sample(range(len(ROWS)), 200) if number not in updates}
    inserts = [
        {"id": f"x{number}", "ts": 20, "n": number, "city": f"far {number % 40}"} for number in range(90)
    ]
    stat = merge_file(
        task, a_file(tmp_path, ROWS, SCHEMA, GROUPS, "none"), some_changes(updates, deletes, inserts)
    )
    assert stat is not None and stat.path is not None
    expected = {row["id"]: row["city"] for number, row in enumerate(ROWS) if number not in deletes}
    expected |= {ROWS[number]["id"]: city for number, city in updates.items()}
    expected |= {row["id"]: row["city"] for row in inserts}
    found = pq.read_table(tmp_path / stat.path)
    keys = found.column("id").to_pylist()
    assert dict(zip(keys, found.column("city").to_pylist(), strict=True)) == expected
    assert found.schema.field("city").type == pa.string()
    times = dict(zip(keys, found.column("_hoodie_commit_time").to_pylist(), strict=True))
    touched = {ROWS[number]["id"] for number in updates} | {row["id"] for row in inserts}
    assert {key for key, time in times.items() if time == NEW} == touched
    assert set(times.values()) == {OLD, NEW}
    assert set(found.column("_hoodie_file_name").to_pylist()) == {stat.path}


@pytest.mark.parametrize("how", ["deleted", "updated"])
def test_a_value_that_no_row_has_any_more_is_not_in_the_new_file(
    task: WriteTask, tmp_path: Path, how: str
) -> None:
    old = a_file(tmp_path, ROWS, SCHEMA, GROUPS, "none")
    changes = some_changes({} if how == "deleted" else {7: "Oslo"}, {7} if how == "deleted" else set(), [])
    stat = merge_file(task, old, changes)
    assert stat is not None and stat.path is not None and old.base_file is not None
    assert b"Hammerfest" in (tmp_path / old.base_file.path).read_bytes()
    assert b"Hammerfest" not in (tmp_path / stat.path).read_bytes()


def test_bounds_in_the_new_file_are_those_of_its_rows(task: WriteTask, tmp_path: Path) -> None:
    stat = merge_file(
        task, a_file(tmp_path, ROWS, SCHEMA, GROUPS, "none"), some_changes({8: "Ålesund"}, {7}, [])
    )
    assert stat is not None and stat.path is not None
    file = pq.ParquetFile(tmp_path / stat.path)
    place = file.schema_arrow.get_field_index("city")
    for number in range(file.metadata.num_row_groups):
        cities = file.read_row_group(number, columns=["city"]).column("city")
        told = file.metadata.row_group(number).column(place).statistics
        present = [each for each in cities.to_pylist() if each is not None]
        assert (told.min, told.max) == (min(present), max(present, key=str.encode))
        assert told.null_count == cities.null_count


texts = st.lists(st.none() | st.sampled_from(["a", "b", "", "æ", "long text"]), max_size=30)


@given(st.lists(texts, min_size=1, max_size=4), st.data())
def test_coding_and_decoding_keep_every_value(chunks: list[list[str | None]], data: st.DataObject) -> None:
    kind = pa.dictionary(pa.int32(), pa.string())
    column = pa.chunked_array([pa.array(each, pa.string()).dictionary_encode() for each in chunks], kind)
    rows = pa.table({"n": np.arange(len(column)), "text": column})
    keep = data.draw(st.lists(st.booleans(), min_size=len(column), max_size=len(column)))
    rows = rows.filter(pa.array(keep, pa.bool_()))
    expected = [
        text for text, kept in zip([each for chunk in chunks for each in chunk], keep, strict=True) if kept
    ]
    slim = with_used_values(rows)
    assert slim.column("text").to_pylist() == expected
    if expected:
        (whole,) = slim.column("text").chunks
        assert sorted(whole.dictionary.to_pylist()) == sorted({each for each in expected if each is not None})
    plain = decoded(rows)
    assert (plain.column("text").to_pylist(), plain.schema.field("text").type) == (expected, pa.string())
    again = coded_like(plain, rows.schema)
    assert (again.schema, again.column("text").to_pylist()) == (rows.schema, expected)
