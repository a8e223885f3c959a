"""A clone knows of the cleans that took files of its earlier states, also of those that stay behind or were cut off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hudi_engine
import pytest
from hudi_engine.errors import TimelineError
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.timeline.active import CleanBound, Timeline
from hudi_engine.format.timeline.instant import Instant, State
from hudi_engine.table.clone import clone_table
from hudi_engine.table.services import archive, clean, drop_savepoint
from hudi_engine.table.services.archive.execute import archive_instants
from hudi_engine.table.services.clean import execute
from hudi_engine.table.state import TableState

import tests.faults.mini_table as mini
from tests.faults.scenarios import COW, MOR

RETAINED = 3


class Killed(BaseException):
    """The process is gone."""


def archived(path: Path, table_type: str = COW, *saved: int) -> tuple[Storage, list[str]]:
    """A table of nine commits whose first three are archived; the sixth writes anew what the first has written."""
    storage = mini.create_table(str(path), table_type)
    instants = []
    for number in range(9):
        rows = {"a": {"k": 6}} if number == 5 else {f"p{number}" if number else "a": {"k": number}}
        instants.append(mini.write(storage, rows))
        if number == 5 and table_type == MOR:
            instants[-1] = mini.write(storage, {"a": {"k": 6}}, "INSERT_OVERWRITE")
        if number in saved:
            mini.savepoint(storage)
    limits = {"hoodie__keep__min__commits": 6 + len(saved), "hoodie__keep__max__commits": 7 + len(saved)}
    policy = {"hoodie__clean__policy": "KEEP_LATEST_FILE_VERSIONS"}
    archive(storage, mini.options(**limits, **policy, hoodie__archive__beyond__savepoint="true"))
    assert storage.list(".hoodie/archived")
    return storage, instants


def cloned(storage: Storage, at: str | None = None) -> Storage:
    return open_storage(clone_table(storage, f"{storage.base}_clone", at=at).path)


def files(storage: Storage, instant: str) -> list[str]:
    return [
        each.path for each in storage.list("", recursive=True) if each.path.endswith(f"_{instant}.parquet")
    ]


def readable(storage: Storage, instants: list[str]) -> list[str]:
    """The instants as of which a table can be read."""
    found = []
    for instant in instants:
        try:
            TableState.load(storage).timeline.check_readable(instant)
            found.append(instant)
        except TimelineError:
            with pytest.raises(TimelineError, match="cleaned up to"):
                hudi_engine.read(storage.base, as_of=instant).to_arrow()
    return found


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_a_clone_of_an_earlier_moment_cannot_be_read_as_of_what_a_later_clean_has_taken(
    tmp_path: Path, table_type: str
) -> None:
    storage, instants = archived(tmp_path / "t", table_type)
    before = cloned(storage, instants[7])
    assert readable(before, instants[3:8]) == instants[3:8]
    clean(storage, mini.options(), retain_commits=RETAINED)
    assert not files(storage, instants[0]) and readable(storage, instants) == instants[6:]

    clone = open_storage(clone_table(storage, str(tmp_path / "later"), at=instants[7]).path)
    assert readable(clone, instants[:8]) == instants[6:8]
    for each in instants[6:8]:
        assert mini.content(clone, as_of=each) == mini.content(storage, as_of=each)
    assert mini.content(clone) == mini.content(storage, as_of=instants[7])
    again = open_storage(clone_table(clone, str(tmp_path / "again")).path)
    assert readable(again, instants[:8]) == instants[6:8]


def test_a_clone_whose_newest_commit_is_older_than_what_a_clean_retains_is_whole_as_of_that(
    tmp_path: Path,
) -> None:
    storage, instants = archived(tmp_path / "t", COW, 6)
    clean(storage, mini.options(), retain_commits=RETAINED - 1)
    assert not files(storage, instants[0]) and readable(storage, instants) == instants[6:]

    clone = cloned(storage, instants[6])
    drop_savepoint(clone, mini.options(), instants[6])
    assert readable(clone, instants[:7]) == [instants[6]]
    assert mini.content(clone) == mini.content(storage, as_of=instants[6])
    mini.write(clone, {"p9": {"k": 9}})
    assert readable(clone, instants[:7]) == [instants[6]] and mini.leftovers(clone) == []


@pytest.mark.parametrize("when", ["before it deletes", "after it has deleted"])
def test_a_clone_made_while_a_clean_is_cut_off_cannot_be_read_as_of_what_that_may_have_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    storage, instants = archived(tmp_path / "t")
    delete_all = execute._delete_all

    def killed(*given: Any) -> None:
        if when == "after it has deleted":
            delete_all(*given)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(execute, "_delete_all", killed)
        with pytest.raises(Killed):
            clean(storage, mini.options(), retain_commits=RETAINED)
    assert [each.state for each in TableState.load(storage).timeline.pending] == [State.INFLIGHT]

    clone = cloned(storage)
    assert readable(clone, instants) == instants[6:] and mini.leftovers(clone) == []
    assert mini.content(clone) == mini.content(storage)
    clean(clone, mini.options(), retain_commits=RETAINED)
    assert not files(clone, instants[0])
    assert bool(files(storage, instants[0])) is (when == "before it deletes")


def test_a_clean_that_is_only_planned_takes_no_state_from_a_clone(tmp_path: Path) -> None:
    storage, instants = archived(tmp_path / "t")
    before = {
        each.path: storage.read(each.path) for each in storage.list("", recursive=True) if not each.is_dir
    }
    clean(storage, mini.options(), retain_commits=RETAINED)
    for path in before:
        if not storage.exists(path):
            storage.create(path, before[path])
    for each in storage.list(".hoodie"):
        if each.name.endswith((".clean", ".clean.inflight")):
            storage.delete(each.path)
    clone = cloned(storage)
    assert readable(clone, instants) == instants
    assert mini.content(clone, as_of=instants[4]) == {
        ("a", "k"): 0,
        **{(f"p{n}", "k"): n for n in range(1, 5)},
    }


def test_a_clean_between_the_looks_at_timeline_and_files_makes_the_clone_look_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, instants = archived(tmp_path / "t")
    look, done = TableState.whole_view, list[str]()

    def late(state: TableState, **more: Any) -> Any:
        if not done:
            done.append(mini.write(storage, {"a": {"k": 10}}))
            clean(storage, mini.options(), retain_commits=1)
        return look(state, **more)

    monkeypatch.setattr(TableState, "whole_view", late)
    clone = cloned(storage)
    assert done and mini.content(clone) == mini.content(storage)
    assert len(mini.content(clone)) == 8


def done_cleans(storage: Storage) -> list[str]:
    """The files of a table's completed cleans, oldest first."""
    return sorted(each.path for each in storage.list(".hoodie") if each.name.endswith(".clean"))


def test_a_clean_of_the_original_that_cannot_be_read_refuses_no_clone(tmp_path: Path) -> None:
    storage, _ = archived(tmp_path / "t")
    clean(storage, mini.options(), retain_commits=RETAINED)
    (damaged,) = done_cleans(storage)
    storage.replace(damaged, storage.read(damaged)[:20])
    clone = cloned(storage)
    assert mini.content(clone) == mini.content(storage) and len(mini.content(clone)) == 8
    assert clone.read(damaged) == storage.read(damaged)


def test_a_clean_that_stays_behind_is_known_whatever_damage_one_has_that_comes_along(tmp_path: Path) -> None:
    storage, _ = archived(tmp_path / "t")
    clean(storage, mini.options(), retain_commits=RETAINED)
    newest = [mini.write(storage, {"a": {"k": value}}) for value in (9, 10)]
    clean(storage, mini.options(), retain_commits=1)
    damaged, cut_off = done_cleans(storage)
    storage.replace(damaged, storage.read(damaged)[:20])
    storage.delete(cut_off)
    clone = cloned(storage)
    assert mini.content(clone) == mini.content(storage)
    timeline = TableState.load(clone).timeline
    cleans = [each for each in timeline.completed if each.action == "clean"]
    assert len(cleans) == 2 and timeline.clean_bound(cleans[-1]).oldest == newest[-1]


@pytest.mark.parametrize("look", [1, 2])
def test_a_clean_that_is_archived_while_a_clone_looks_at_it_makes_the_clone_look_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look: int
) -> None:
    storage, instants = archived(tmp_path / "t")
    clean(storage, mini.options(), retain_commits=RETAINED)
    bound, looks = Timeline.clean_bound, list[str]()

    def late(timeline: Timeline, each: Instant) -> CleanBound:
        looks.append(each.file_name)
        if len(looks) == look:
            archive_instants(TableState.load(storage), [each], mini.options())
        return bound(timeline, each)

    with monkeypatch.context() as patch:
        patch.setattr(Timeline, "clean_bound", late)
        clone = cloned(storage, instants[7])
    assert looks and not done_cleans(storage)
    assert mini.content(clone) == mini.content(storage, as_of=instants[7])
    assert readable(clone, instants[6:8]) == instants[6:8]
