"""A file that a commit names is missed by readers of the states that have it, and nothing that went rightly is."""

from __future__ import annotations

from pathlib import Path

import hudi_engine
import pyarrow as pa
import pytest
from hudi_engine.errors import CorruptTableError
from hudi_engine.format.filegroup.missing import check_nothing_missing, check_slice_whole
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.table.state import TableState

from tests.golden.golden import NAMES, unpack
from tests.helpers.handmade import HandmadeTable, file_id
from tests.unit.filegroup.conftest import hudi_name
from tests.unit.services.tables import DAY_2, GROUP_3, batch, merge_on_read, writes

SCHEMA = pa.schema([("id", pa.string())])


def rows(*keys: str) -> pa.Table:
    return pa.table({"id": list(keys)})


def ids(table: Path, as_of: str | None = None) -> list[str]:
    return sorted(hudi_engine.read(table, as_of=as_of).to_arrow()["id"].to_pylist())


@pytest.fixture
def table(tmp_path: Path) -> HandmadeTable:
    return HandmadeTable(tmp_path / "t", SCHEMA)


def lose(folder: Path, instant: str) -> str:
    (path,) = folder.glob(f"*_{instant}.parquet")
    path.unlink()
    return path.name


@pytest.mark.parametrize("versions", [1, 2])
def test_a_lost_base_file_of_the_newest_commit_is_an_error_that_names_both(
    table: HandmadeTable, tmp_path: Path, versions: int
) -> None:
    group = file_id()
    newest = [table.commit({"": {group: rows("a")}}) for _ in range(versions)][-1]
    assert ids(tmp_path / "t") == ["a"]
    name = lose(tmp_path / "t", newest)
    with pytest.raises(CorruptTableError, match=f"{name}.*commit {newest} wrote it"):
        ids(tmp_path / "t")


def test_files_that_were_cleaned_or_replaced_are_not_missed(table: HandmadeTable, tmp_path: Path) -> None:
    one, two, three = file_id(), file_id(), file_id()
    first = table.commit({"": {one: rows("a")}})
    second = table.commit({"": {one: rows("a", "b")}})
    lose(tmp_path / "t", first)
    assert ids(tmp_path / "t") == ["a", "b"]
    table.commit({"": {two: rows("c")}}, replaced={"": [one]})
    lose(tmp_path / "t", second)
    assert ids(tmp_path / "t") == ["c"]
    table.commit({"": {three: rows("d")}})
    assert ids(tmp_path / "t") == ["c", "d"]


def test_a_lost_base_file_of_an_earlier_state_is_an_error_whichever_commit_wrote_it(
    table: HandmadeTable, tmp_path: Path
) -> None:
    one, two = file_id(), file_id()
    first = table.commit({"": {one: rows("a")}})
    second = table.commit({"": {two: rows("b")}})
    table.commit({"": {one: rows("a", "c")}})
    name = lose(tmp_path / "t", first)
    for when in (first, second):
        with pytest.raises(CorruptTableError, match=f"{name}.*commit {first} wrote it"):
            ids(tmp_path / "t", when)
    assert ids(tmp_path / "t") == ["a", "b", "c"]


def test_a_lost_log_is_an_error_for_the_states_that_have_it(tmp_path: Path) -> None:
    table = merge_on_read(tmp_path / "t")
    first, second, third = writes(table.storage)
    (lost,) = (tmp_path / "t" / DAY_2).glob(".*.log.1_*")
    lost.unlink()
    assert "d" in ids(tmp_path / "t", first)
    for when in (second, third):
        with pytest.raises(CorruptTableError, match=f"{lost.name}.*commit {second} wrote it"):
            ids(tmp_path / "t", when)
    table.commit({DAY_2: {GROUP_3: batch({"d": 41, "e": 5}, DAY_2)}})
    assert "d" in ids(tmp_path / "t"), "the base file after it has its rows"


def test_what_another_writer_took_between_timeline_and_listing_is_not_missed(
    table: HandmadeTable, tmp_path: Path
) -> None:
    table.commit({"": {file_id(): rows("a")}})
    newest = table.commit({"": {file_id(): rows("b")}})
    state = TableState.load(open_storage(str(tmp_path / "t")))
    assert state.data_schema() is not None
    (tmp_path / "t" / ".hoodie" / f"{newest}.commit").unlink()
    lose(tmp_path / "t", newest)
    check_nothing_missing(state.storage, state.config, state.timeline, state.view())


@pytest.mark.parametrize("name", NAMES)
def test_tables_of_apache_hudi_are_whole_and_looking_asks_the_storage_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = TableState.load(open_storage(str(unpack(name, tmp_path))))
    for instant in state.timeline.completed_writes:
        state.timeline.commit_metadata(instant)
    view = state.view()
    for call in ("read", "list", "stat", "exists"):
        monkeypatch.setattr(LocalStorage, call, None)
    check_nothing_missing(state.storage, state.config, state.timeline, view)


def test_a_lost_log_that_a_compaction_did_not_merge_is_an_error(v9) -> None:
    stat = WriteStat(
        file_id="f", path=hudi_name("f@48.log.1"), partition_path="", num_writes=1, file_size_in_bytes=10
    )
    v9.instants("10_15.deltacommit", "50_55.commit")
    v9.instants("48_52.deltacommit", partition_to_write_stats={"": [stat]})
    v9.files("f@10", "f@50")
    timeline = Timeline.load(v9.storage, v9.config)
    for instant in timeline.completed_writes:
        timeline.commit_metadata(instant)
    missing = rf"{stat.path}.*commit 0+48 wrote it"
    with pytest.raises(CorruptTableError, match=missing):
        check_nothing_missing(v9.storage, v9.config, timeline, v9.view())
    (newest,) = v9.view().latest_slices()
    with pytest.raises(CorruptTableError, match=missing):
        check_slice_whole(v9.storage, v9.config, timeline, newest, [(stat.path, "48".zfill(17))])


def test_a_log_that_a_compaction_merged_is_not_missed(v9) -> None:
    stat = WriteStat(
        file_id="f", path=hudi_name("f@40.log.1"), partition_path="", num_writes=1, file_size_in_bytes=10
    )
    v9.instants("10_15.deltacommit", "50_55.commit")
    v9.instants("40_45.deltacommit", partition_to_write_stats={"": [stat]})
    v9.files("f@10", "f@50")
    timeline = Timeline.load(v9.storage, v9.config)
    for instant in timeline.completed_writes:
        timeline.commit_metadata(instant)
    check_nothing_missing(v9.storage, v9.config, timeline, v9.view())
