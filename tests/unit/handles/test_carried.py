"""Columns that stay as they are go from a base file to the next as they lie there, and no value is another one for it."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_engine.errors import CorruptTableError
from hudi_engine.format.filegroup.base_file import BaseFile
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.index.filters.footer import read_key_footer
from hudi_engine.format.parquet.file import ChunkFile
from hudi_engine.format.schema.leaves import leaves_with_statistics
from hudi_engine.format.schema.meta_fields import META_FIELDS, RECORD_KEY
from hudi_engine.format.storage.read_only import ForwardingStorage
from hudi_engine.table.handles.merge import merge_file
from hudi_engine.table.handles.updates import FileChanges
from hudi_engine.table.handles.write_task import WriteTask

from tests.unit.handles.test_merge import NEW, OLD, a_file, a_task

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.int64()),
        ("city", pa.string()),
        ("price", pa.float64()),
        ("note", pa.string()),
        ("deep", pa.struct([("a", pa.string()), ("b", pa.list_(pa.float64()))])),
        ("tags", pa.list_(pa.string())),
    ]
)
GROUP = 50


def a_row(number: int, **given: Any) -> dict[str, Any]:
    return {
        "id": f"k{number:05}",
        "ts": 10,
        "city": ["Oslo", "Bergen", None][number % 3],
        "price": number / 7,
        "note": f"note of {number}",
        "deep": {"a": f"a{number % 4}", "b": [1.5, None]} if number % 5 else None,
        "tags": None if number % 4 == 0 else ["x"] * (number % 3),
        **given,
    }


ROWS = [a_row(number) for number in range(3 * GROUP)]


@pytest.fixture(autouse=True)
def whatever_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files too are carried, whatever row groups they have."""
    monkeypatch.setattr("tests.unit.handles.test_merge.TABLE", SCHEMA)
    monkeypatch.setattr("hudi_engine.table.handles.carried._MIN_BYTES", 0)
    monkeypatch.setattr("hudi_engine.table.handles.carried._MIN_CHUNK_BYTES", 0)
    monkeypatch.setattr("hudi_engine.table.handles.carried._are_as_wanted", lambda groups, options: True)


@pytest.fixture
def task(tmp_path: Path) -> WriteTask:
    return a_task(tmp_path)


def with_keys(rows: list[dict[str, Any]]) -> pa.Table:
    table = pa.Table.from_pylist(rows, SCHEMA)
    return table.append_column(RECORD_KEY, table.column("id"))


def changes_of(
    stored: list[str], updates: dict[str, dict[str, Any]], deletes: set[str], inserts: list[dict[str, Any]]
) -> FileChanges:
    keys = sorted({*updates, *deletes})
    rows = [updates.get(key, {**ROWS[0], "id": key, "ts": 10**6}) for key in keys]
    numbers = {key: number for number, key in enumerate(keys)}
    picks = pa.array([numbers.get(key) for key in stored], pa.int32())
    gone = pa.array([key in deletes for key in keys], pa.bool_())
    return FileChanges(picks, with_keys(rows), gone, inserts=with_keys(inserts))


def an_old_file(folder: Path, rows: list[dict[str, Any]] = ROWS) -> FileSlice:
    """A base file with pages of another version than ours, by which those that were carried are known."""
    old = a_file(folder, rows, SCHEMA, GROUP)
    assert old.base_file is not None
    path = folder / old.base_file.path
    stored = pq.read_table(path)
    pq.write_table(
        stored,
        path,
        row_group_size=GROUP,
        compression="zstd",
        use_dictionary=["city"],
        write_statistics=leaves_with_statistics(stored.schema, stored),
        data_page_version="2.0",
        store_schema=False,
    )
    return FileSlice("", "f-0", OLD, replace(old.base_file, size=path.stat().st_size), ())


def opened(folder: Path, name: str) -> ChunkFile:
    return ChunkFile(pa.BufferReader((folder / name).read_bytes()))


def carried(folder: Path, old: FileSlice, new: str, number: int) -> set[str]:
    """Columns whose bytes in a row group of the new file begin with those in the old one."""
    assert old.base_file is not None
    before, after = (opened(folder, name).groups[number].chunks for name in (old.base_file.path, new))
    return {
        name
        for name in after
        if all(
            b"".join(mine.read()).startswith(b"".join(theirs.read()))
            for mine, theirs in zip(after[name], before[name], strict=True)
        )
    }


def rows_in(folder: Path, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(folder / name).select(SCHEMA.names).to_pylist()
    return rows


def test_columns_without_another_value_are_carried_and_new_rows_follow_them(
    task: WriteTask, tmp_path: Path
) -> None:
    old = an_old_file(tmp_path)
    updates = {ROWS[GROUP + 3]["id"]: a_row(GROUP + 3, ts=20, note="another")}
    new = [a_row(900, ts=20, city="Vadsø"), a_row(901, ts=20, city=None)]
    stat = merge_file(task, old, changes_of([row["id"] for row in ROWS], updates, set(), new))
    assert stat is not None and stat.path is not None
    everything = {*META_FIELDS, *SCHEMA.names} - {"_hoodie_file_name"}
    assert carried(tmp_path, old, stat.path, 0) == everything
    stays = {RECORD_KEY, "_hoodie_partition_path", "id", "city", "price", "tags"}
    # Nested columns with floating point numbers are not compared.
    assert carried(tmp_path, old, stat.path, 1) == stays
    assert carried(tmp_path, old, stat.path, 2) == everything
    assert rows_in(tmp_path, stat.path) == [updates.get(row["id"], row) for row in ROWS] + new
    groups = pq.ParquetFile(tmp_path / stat.path).metadata
    assert [groups.row_group(each).num_rows for each in range(3)] == [GROUP, GROUP, GROUP + 2]
    footer = read_key_footer(task.context.storage, stat.path)
    assert (footer.min_key, footer.max_key) == ("k00000", "k00901")


@pytest.mark.parametrize("seed", range(6))
def test_a_file_rewritten_many_times_has_the_rows_of_a_dictionary(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    old = an_old_file(tmp_path)
    model = {row["id"]: row for row in ROWS}
    for turn in range(8):
        stored = list(model)
        touched = chance.sample(stored, chance.choice([0, 1, 20]))
        updates = {
            key: {**model[key], "ts": 20 + turn, **some_columns(chance)}
            for key in (touched if chance.random() < 0.7 else touched[:1])
        }
        deletes = set(chance.sample(sorted(set(stored) - set(updates)), chance.choice([0, 0, 1])))
        new = [a_row(1000 + 10 * turn + each, ts=20) for each in range(chance.choice([0, 1, 5]))]
        (tmp_path / ".hoodie" / f"{NEW}.inflight").unlink(missing_ok=True)
        task = a_task(tmp_path)
        instant = f"202601{turn + 3:02}000000000"
        task = WriteTask(replace(task.context, instant=instant))
        (tmp_path / ".hoodie" / f"{instant}.inflight").touch()
        stat = merge_file(task, old, changes_of(stored, updates, deletes, new))
        model.update(updates)
        for key in deletes:
            del model[key]
        model.update({row["id"]: row for row in new})
        if stat is None:
            assert not (updates or deletes or new)
            continue
        assert stat.path is not None
        assert rows_in(tmp_path, stat.path) == list(model.values()), (seed, turn)
        names = pq.read_table(tmp_path / stat.path, columns=["_hoodie_file_name"]).column(0).to_pylist()
        assert set(names) == {stat.path}
        file = pq.ParquetFile(tmp_path / stat.path)
        assert_bounds_hold(file)
        size = (tmp_path / stat.path).stat().st_size
        token = stat.path.split("_")[1]
        old = FileSlice("", "f-0", instant, BaseFile("", "f-0", token, instant, size=size), ())
        assert old.base_file is not None and old.base_file.path == stat.path


def some_columns(chance: random.Random) -> dict[str, Any]:
    values = {"city": "Tromsø", "price": chance.random(), "note": "n" * chance.randint(0, 9), "tags": ["y"]}
    return {name: values[name] for name in chance.sample(sorted(values), chance.randint(0, 2))}


def assert_bounds_hold(file: pq.ParquetFile) -> None:
    for number in range(file.metadata.num_row_groups):
        rows = file.read_row_group(number)
        for place, name in enumerate(file.schema_arrow.names):
            told = file.metadata.row_group(number).column(place).statistics
            if pa.types.is_nested(rows.schema.field(name).type) or told is None or place > 9:
                continue
            present = [each for each in rows.column(name).to_pylist() if each is not None]
            assert told.null_count == rows.num_rows - len(present)
            key = str.encode if present and isinstance(present[0], str) else None
            assert (told.min, told.max) == (min(present, key=key), max(present, key=key))


@pytest.mark.parametrize(
    ("before", "after"),
    [(0.0, -0.0), (-0.0, 0.0), (math.nan, 1.0), (1.0, math.nan), (1.0, None), (None, 0.0)],
    ids=str,
)
def test_a_number_that_equals_the_stored_one_is_another_one_all_the_same(
    task: WriteTask, tmp_path: Path, before: float | None, after: float | None
) -> None:
    rows = [{**row, "price": before} if number == 3 else row for number, row in enumerate(ROWS)]
    old = an_old_file(tmp_path, rows)
    updates = {ROWS[3]["id"]: {**rows[3], "ts": 20, "price": after}}
    stat = merge_file(task, old, changes_of([row["id"] for row in ROWS], updates, set(), []))
    assert stat is not None and stat.path is not None
    found = rows_in(tmp_path, stat.path)[3]["price"]
    assert (repr(found), "price" in carried(tmp_path, old, stat.path, 0)) == (repr(after), False)


@pytest.mark.parametrize(
    "number", [2, 2 * GROUP + 2], ids=["in a row group that is looked at", "in another one"]
)
@pytest.mark.parametrize("foreign", ["bounds without NaN", "a dictionary"])
def test_numbers_as_other_writers_lay_them_out_are_written_anew(
    task: WriteTask, tmp_path: Path, foreign: str, number: int
) -> None:
    rows = [{**row, "price": math.nan} if each == number else row for each, row in enumerate(ROWS)]
    old = an_old_file(tmp_path, rows)
    assert old.base_file is not None
    path = tmp_path / old.base_file.path
    pq.write_table(
        pq.read_table(path),
        path,
        row_group_size=GROUP,
        compression="zstd",
        use_dictionary=["city", "price"] if foreign == "a dictionary" else ["city"],
        write_statistics=foreign != "a dictionary",
        store_schema=False,
    )
    updates = {ROWS[3]["id"]: a_row(3, ts=20)}
    stat = merge_file(task, old, changes_of([row["id"] for row in ROWS], updates, set(), []))
    assert stat is not None and stat.path is not None
    file = pq.ParquetFile(tmp_path / stat.path).metadata
    for group in range(3):
        told = file.row_group(group).column(file.schema.names.index("price"))
        assert not told.has_dictionary_page
        if group == number // GROUP:
            assert told.statistics is None or not told.statistics.has_min_max
    assert repr(rows_in(tmp_path, stat.path)) == repr([updates.get(row["id"], row) for row in rows])


def test_chunks_of_very_many_small_pages_are_made_anew(tmp_path: Path) -> None:
    old, stored = an_old_file(tmp_path), [row["id"] for row in ROWS]
    pages = []
    for turn in range(40):
        instant = f"2026020100{turn:02}00000"
        task = WriteTask(replace(a_task_again(tmp_path).context, instant=instant))
        (tmp_path / ".hoodie" / f"{instant}.inflight").touch()
        new = a_row(1000 + turn, ts=20)
        stat = merge_file(task, old, changes_of(stored, {}, set(), [new]))
        assert stat is not None and stat.path is not None
        stored.append(new["id"])
        size = (tmp_path / stat.path).stat().st_size
        old = FileSlice(
            "", "f-0", instant, BaseFile("", "f-0", stat.path.split("_")[1], instant, size=size), ()
        )
        (chunk,) = opened(tmp_path, stat.path).groups[-1].chunks["note"]
        pages.append(chunk.data_pages or 0)
    assert pq.read_table(tmp_path / stat.path).column("id").to_pylist() == stored
    assert max(pages) > 10, "new rows did not follow as pages"
    assert max(pages) <= 20


def a_task_again(folder: Path) -> WriteTask:
    (folder / ".hoodie" / f"{NEW}.inflight").unlink(missing_ok=True)
    return a_task(folder)


@pytest.mark.parametrize(
    ("option", "value", "left"),
    [
        ("hoodie.parquet.compression.codec", "gzip", {"zstd"}),
        ("hoodie.parquet.dictionary.enabled", "false", {"dictionary"}),
    ],
)
def test_a_layout_that_was_changed_is_that_of_the_whole_new_file(
    tmp_path: Path, option: str, value: str, left: set[str]
) -> None:
    task = a_task(tmp_path, **{option: value})
    updates = {ROWS[3]["id"]: a_row(3, ts=20)}
    stat = merge_file(
        task,
        an_old_file(tmp_path),
        changes_of([row["id"] for row in ROWS], updates, set(), []),
    )
    assert stat is not None and stat.path is not None
    found: set[str] = set()
    meta = pq.ParquetFile(tmp_path / stat.path).metadata
    for group in range(meta.num_row_groups):
        for column in range(meta.num_columns):
            chunk = meta.row_group(group).column(column)
            found.add(chunk.compression.lower())
            if chunk.has_dictionary_page and chunk.path_in_schema not in META_FIELDS:
                found.add("dictionary")
    assert not found & left
    assert rows_in(tmp_path, stat.path) == [updates.get(row["id"], row) for row in ROWS]


def test_nothing_is_carried_when_switched_off(tmp_path: Path) -> None:
    task = a_task(tmp_path, **{"hoodie.engine.carry.columns": "false"})
    old, updates = an_old_file(tmp_path), {ROWS[3]["id"]: a_row(3, ts=20)}
    stat = merge_file(task, old, changes_of([row["id"] for row in ROWS], updates, set(), []))
    assert stat is not None and stat.path is not None
    assert carried(tmp_path, old, stat.path, 0) == set()
    assert rows_in(tmp_path, stat.path) == [updates.get(row["id"], row) for row in ROWS]


class Far(ForwardingStorage):
    """A storage on which reading costs."""

    def __init__(self, storage: Any) -> None:
        super().__init__(storage)
        self.is_near = False


def test_far_away_only_row_groups_that_nobody_looks_at_are_carried(task: WriteTask, tmp_path: Path) -> None:
    far = Far(task.context.storage)
    read = replace(task.context.read, storage=far)
    task = WriteTask(replace(task.context, storage=far, read=read))
    old = an_old_file(tmp_path)
    updates = {ROWS[3]["id"]: a_row(3, ts=20)}
    stat = merge_file(task, old, changes_of([row["id"] for row in ROWS], updates, set(), []))
    assert stat is not None and stat.path is not None
    assert rows_in(tmp_path, stat.path) == [updates.get(row["id"], row) for row in ROWS]
    assert carried(tmp_path, old, stat.path, 0) == set()
    assert carried(tmp_path, old, stat.path, 1) == {*META_FIELDS, *SCHEMA.names} - {"_hoodie_file_name"}


class Full(ForwardingStorage):
    """A storage without room."""

    @contextmanager
    def open_output(self, path: str, **given: Any) -> Iterator[BinaryIO]:  # type: ignore[override]
        with self._storage.open_output(path, **given) as sink:
            yield sink
            raise OSError(28, "No space left on device", path)


def test_an_error_of_writing_is_not_told_as_one_of_the_old_file(task: WriteTask, tmp_path: Path) -> None:
    task = WriteTask(replace(task.context, storage=Full(task.context.storage)))
    updates = {ROWS[3]["id"]: a_row(3, ts=20)}
    changes = changes_of([row["id"] for row in ROWS], updates, set(), [])
    with pytest.raises(OSError, match="No space left"):
        merge_file(task, an_old_file(tmp_path), changes)


def test_an_old_file_cut_short_is_told(task: WriteTask, tmp_path: Path) -> None:
    old = an_old_file(tmp_path)
    assert old.base_file is not None
    path = tmp_path / old.base_file.path
    path.write_bytes(path.read_bytes()[:-200])
    updates = {ROWS[3]["id"]: a_row(3, ts=20)}
    changes = changes_of([row["id"] for row in ROWS], updates, set(), [])
    with pytest.raises(CorruptTableError, match=r"f-0_0-0-0"):
        merge_file(task, old, changes)


def test_what_others_wrote_is_made_anew(task: WriteTask, tmp_path: Path) -> None:
    old = an_old_file(tmp_path)
    assert old.base_file is not None
    path = tmp_path / old.base_file.path
    data = path.read_bytes()
    assert b"parquet-cpp-arrow" in data
    path.write_bytes(data.replace(b"parquet-cpp-arrow", b"parquet-mr-version"[:17]))
    updates = {ROWS[3]["id"]: a_row(3, ts=20)}
    stat = merge_file(task, old, changes_of([row["id"] for row in ROWS], updates, set(), []))
    assert stat is not None and stat.path is not None
    assert pq.ParquetFile(tmp_path / stat.path).metadata.num_row_groups == 1
    assert rows_in(tmp_path, stat.path) == [updates.get(row["id"], row) for row in ROWS]
