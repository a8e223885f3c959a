"""What is wrong with a table is found, and what is right is left alone."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.filegroup.base_file import parse_base_file
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.table.inspect import duplicate_keys, file_facts, validate
from hudi_engine.table.services import clean
from hudi_engine.table.state import TableState

from tests.golden.golden import NAMES, unpack
from tests.helpers.handmade import HandmadeTable, file_id
from tests.unit.services.tables import copy_on_write, options, writes

DEFAULTS = resolve_options(None)
PARTITIONED = "v6_mor_simple_compaction_h0150"


def state_of(folder: Path) -> TableState:
    return TableState.load(open_storage(str(folder)))


def newest(folder: Path, kind: str) -> Path:
    return folder / next(each.path for each in file_facts(state_of(folder)) if each.kind == kind)


def lose_a_base_file(folder: Path) -> Path:
    path = newest(folder, "base")
    path.unlink()
    return path


def lose_a_log(folder: Path) -> Path:
    path = newest(folder, "log")
    path.unlink()
    return path


def cut_a_base_file(folder: Path) -> Path:
    path = newest(folder, "base")
    path.write_bytes(path.read_bytes()[:-10])
    return path


def leave_a_file_of_a_failed_writer(folder: Path) -> Path:
    path = newest(folder, "base")
    group, token, _ = path.stem.split("_")
    left = path.with_name(f"{group}_{token}_20991231235959999.parquet")
    shutil.copyfile(path, left)
    return left


def leave_a_second_attempt(folder: Path) -> Path:
    path = newest(folder, "base")
    group, _, instant = path.stem.split("_")
    left = path.with_name(f"{group}_7-7-7_{instant}.parquet")
    shutil.copyfile(path, left)
    return left


def lose_partition_metadata(folder: Path) -> Path:
    partition = newest(folder, "base").parent
    for path in partition.glob(".hoodie_partition_metadata*"):
        path.unlink()
    return partition


def leave_markers(folder: Path) -> Path:
    markers = folder / ".hoodie/.temp/20260101000000000"
    markers.mkdir(parents=True)
    return markers


DAMAGE: dict[str, list[tuple[Callable[[Path], Path], bool]]] = {
    "missing_file": [(lose_a_base_file, True), (lose_a_log, True)],
    "wrong_size": [(cut_a_base_file, True)],
    "orphan_file": [(leave_a_file_of_a_failed_writer, False), (leave_a_second_attempt, False)],
    "no_partition_metadata": [(lose_partition_metadata, True)],
    "orphan_markers": [(leave_markers, False)],
}
CASES = [(problem, break_it, harms) for problem, ways in DAMAGE.items() for break_it, harms in ways]


@pytest.mark.parametrize("name", NAMES)
def test_tables_of_apache_hudi_are_as_they_should_be(name: str, tmp_path: Path) -> None:
    state = state_of(unpack(name, tmp_path))

    assert validate(state) == []
    assert duplicate_keys(state, DEFAULTS) == []


@pytest.mark.parametrize(
    ("problem", "break_it", "harms"), CASES, ids=lambda each: getattr(each, "__name__", None)
)
def test_damage_is_found_and_named(
    problem: str, break_it: Callable[[Path], Path], harms: bool, tmp_path: Path
) -> None:
    folder = unpack(PARTITIONED, tmp_path)
    broken = break_it(folder)

    found = [each for each in validate(state_of(folder)) if each.problem == problem]

    assert [(each.path, each.harms) for each in found] == [(str(broken.relative_to(folder)), harms)]


def damage_the_newest_commit(folder: Path) -> Path:
    path = folder / ".hoodie" / state_of(folder).timeline.completed_writes[-1].file_name
    path.write_bytes(b"junk")
    return path


def test_a_commit_that_cannot_be_read_is_told_beside_other_harm(tmp_path: Path) -> None:
    folder = unpack(PARTITIONED, tmp_path)
    broken, lost = damage_the_newest_commit(folder), lose_partition_metadata(folder)

    found = [(each.problem, each.path) for each in validate(state_of(folder)) if each.harms]

    assert ("damaged_commit", str(broken.relative_to(folder))) in found
    assert ("no_partition_metadata", str(lost.relative_to(folder))) in found


def test_a_lost_file_of_an_earlier_state_is_told_until_a_clean_has_passed_it(tmp_path: Path) -> None:
    table = copy_on_write(tmp_path / "t", 3)
    first, second, third = writes(table.storage)
    lost = [next((tmp_path / "t").rglob(f"*_{each}.parquet")) for each in (first, second)]
    for path in lost:
        path.unlink()
    found = validate(state_of(tmp_path / "t"))
    assert [(each.problem, each.path, each.harms) for each in found] == [
        ("missing_older_file", str(path.relative_to(tmp_path / "t")), False) for path in lost
    ]
    assert f"states before {second} cannot be read" in found[0].message

    clean(table.storage, options(clean__commits__retained=1), even_if_empty=True)
    assert validate(state_of(tmp_path / "t")) == []


def test_lost_files_of_earlier_states_are_looked_up_and_not_searched_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = copy_on_write(tmp_path / "t", 40)
    times = writes(table.storage)
    for each in times[:-1]:
        next((tmp_path / "t").rglob(f"*_{each}.parquet")).unlink()
    parsed: list[str] = []

    def parse(path: str, *more: object) -> object:
        parsed.append(path)
        return parse_base_file(path, *more)  # type: ignore[arg-type]

    monkeypatch.setattr("hudi_engine.table.inspect.validation.parse_base_file", parse)
    found = validate(state_of(tmp_path / "t"))

    told = [each.message.partition("states before ")[2].partition(" ")[0] for each in found]
    assert sorted(told) == times[1:]
    assert len(parsed) < 10 * len(times)


def test_files_of_replaced_groups_are_not_missed(tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t", pa.schema([("id", pa.string())]))
    old, new = file_id(), file_id()
    first = table.commit({"": {old: pa.table({"id": ["a"]})}})
    table.commit({"": {new: pa.table({"id": ["b"]})}}, replaced={"": [old]})
    for gone in (tmp_path / "t").glob(f"*_{first}.parquet"):
        gone.unlink()

    assert [each.problem for each in validate(state_of(tmp_path / "t")) if each.harms] == []


def test_a_key_in_two_files_of_a_partition_is_told_with_both(tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t", pa.schema([("id", pa.string()), ("dt", pa.string())]), ("dt",))
    both, other = pa.table({"id": ["a", "b"], "dt": ["x", "x"]}), pa.table({"id": ["b"], "dt": ["x"]})
    elsewhere = pa.table({"id": ["a"], "dt": ["y"]})
    table.commit({"dt=x": {file_id(): both, file_id(): other}, "dt=y": {file_id(): elsewhere}})

    found = duplicate_keys(state_of(tmp_path / "t"), DEFAULTS)

    assert [(each.problem, each.path) for each in found] == [("duplicate_key", "dt=x")]
    assert "key 'b' is there 2 times" in found[0].message


def test_no_more_duplicates_are_returned_than_asked_for(tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t", pa.schema([("id", pa.string())]))
    rows = pa.table({"id": [str(number) for number in range(50)]})
    table.commit({"": {file_id(): rows, file_id(): rows}})

    assert len(duplicate_keys(state_of(tmp_path / "t"), DEFAULTS, limit=7)) == 7


@pytest.mark.parametrize(("ids", "twice"), [([1, 2, 3], []), ([1, 2, 2], ["2"])])
def test_keys_of_a_table_without_meta_columns_are_those_of_its_columns(
    tmp_path: Path, ids: list[int], twice: list[str]
) -> None:
    schema = pa.schema([("id", pa.int64()), ("note", pa.string())])
    table = HandmadeTable(tmp_path / "t", schema, properties={"hoodie.populate.meta.fields": "false"})
    table.commit({"": {file_id(): pa.table({"id": ids, "note": ["x"] * 3}, schema=schema)}})
    file = next((tmp_path / "t").glob("*.parquet"))
    pq.write_table(pq.read_table(file).select(schema.names), file)

    found = duplicate_keys(state_of(tmp_path / "t"), DEFAULTS)

    assert [each.message.partition("'")[2].partition("'")[0] for each in found] == twice
