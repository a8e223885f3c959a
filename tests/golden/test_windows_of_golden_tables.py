"""What a reader of a table takes next, and what it is told when its past is gone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hudi_engine.errors import ConfigError, HistoryGapError
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.table.changes.checkpoint import WindowLimits, next_window
from hudi_engine.table.changes.gaps import check_known
from hudi_engine.table.changes.plan import steps_since
from hudi_engine.table.state import TableState

from tests.golden.golden import unpack

NAME = "v6_cow_nonpartitioned_upsert_h0150"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return unpack(NAME, tmp_path)


def state_of(folder: Path) -> TableState:
    return TableState.load(open_storage(str(folder)))


def times(state: TableState) -> list[str]:
    return [write.requested_time for write in state.timeline.completed_writes]


def test_a_window_ends_at_the_newest_commit_and_begins_after_the_last_one_taken(folder: Path) -> None:
    state = state_of(folder)
    written = times(state)

    assert next_window(state, None).end == written[-1]
    assert next_window(state, written[-1]).commits == 0
    assert next_window(state, written[-1]).end == written[-1]
    limited = next_window(state, written[0], limits=WindowLimits(max_commits=1))
    assert (limited.end, limited.commits) == (written[1], 1)
    assert next_window(state, written[0], end=written[0]).commits == 0


@pytest.mark.parametrize(
    ("limits", "taken"),
    [
        (WindowLimits(max_rows=10**6), 3),
        (WindowLimits(max_rows=1), 1),
        (WindowLimits(max_bytes=1), 1),
        (WindowLimits(max_commits=2, max_bytes=10**9), 2),
    ],
)
def test_a_limited_window_takes_whole_commits_and_at_least_one(
    folder: Path, limits: WindowLimits, taken: int
) -> None:
    state = state_of(folder)
    written = times(state)
    assert len(written) == 3

    first = next_window(state, None, limits=limits)
    assert (first.end, first.commits) == (written[taken - 1], taken), "the first part of a table too"
    assert next_window(state, written[0], limits=limits).end == written[min(taken, 2)]


def test_limits_under_which_nothing_could_be_read_are_refused() -> None:
    with pytest.raises(
        ConfigError, match="max_rows is 0; legal values: whole numbers of at least 1; max_bytes is 'many'"
    ):
        WindowLimits(max_rows=0, max_bytes="many")  # type: ignore[arg-type]


def test_a_window_ends_before_a_write_that_may_complete_later(folder: Path) -> None:
    written = times(state_of(folder))
    under_way = str(int(written[-1]) - 1)
    (folder / ".hoodie" / f"{under_way}.commit.requested").touch()

    assert next_window(state_of(folder), None).end == written[-2]


def test_an_instant_that_the_table_never_had_is_a_gap(folder: Path) -> None:
    state = state_of(folder)

    check_known(state, times(state)[0])
    with pytest.raises(HistoryGapError, match="no commit of its timeline is that instant"):
        check_known(state, "20200101000000000")


def test_a_file_that_has_gone_without_a_clean_is_noticed(folder: Path) -> None:
    written = times(state_of(folder))
    for file in folder.glob(f"*_{written[1]}.parquet"):
        shutil.move(file, folder.parent / file.name)
    state = state_of(folder)
    steps, cleaned = steps_since(state, written[1], None)

    assert len(steps) == 1
    for step in steps:
        for key in step.groups:
            with pytest.raises(HistoryGapError, match=f"files of commit {written[1]}"):
                cleaned.check_before(step, key, None)
