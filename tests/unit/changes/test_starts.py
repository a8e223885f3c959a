"""Starts after which changes are told, and those that are refused because no reader of the table can have noted them."""

from __future__ import annotations

from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hudi_engine.errors import CorruptTableError, HistoryGapError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.timeline.avro_file import encode_avro_file
from hudi_engine.format.timeline.schemas import ROLLBACK_METADATA
from hudi_engine.table.changes.gaps import check_start
from hudi_engine.table.changes.plan import newest_slices, plan_changes, steps_since
from hudi_engine.table.changes.window import NET
from hudi_engine.table.services import run_compaction
from hudi_engine.table.services.archive.execute import archive_instants
from hudi_engine.table.state import TableState

import tests.faults.mini_table as mini
from tests.unit.services.tables import (
    DAY_1,
    DAY_2,
    GROUP_1,
    GROUP_2,
    GROUP_3,
    batch,
    copy_on_write,
    merge_on_read,
    options,
    update,
)

OLD = "20251231235959000"
"""Before the first commit of tables made by hand."""


@pytest.fixture
def state(tmp_path: Path) -> TableState:
    return TableState.load(copy_on_write(tmp_path / "t", 3).storage)


def writes(state: TableState) -> list[str]:
    return [each.requested_time for each in state.timeline.completed_writes]


@pytest.mark.parametrize("start", [OLD, OLD[:14], f" {OLD} "])
def test_an_instant_from_before_the_whole_history_is_of_another_table(state: TableState, start: str) -> None:
    first = writes(state)[0]
    for ask in (check_start, lambda *given: steps_since(*given, None)):
        with pytest.raises(
            HistoryGapError, match=f"older than all.*{first}: the table was rebuilt.*on_gap"
        ) as gap:
            ask(state, start)
        assert gap.value.oldest == first


@pytest.mark.parametrize(
    "start",
    [
        "2025-12-31",
        "2025-12-31 23:59:59",
        datetime(2025, 12, 31),
        datetime(2025, 12, 31, tzinfo=timezone.utc),
    ],
)
def test_a_moment_from_before_the_first_commit_tells_every_row(state: TableState, start: Any) -> None:
    (step,), _ = steps_since(state, start, None)
    assert step.writes == set(writes(state))


def test_digits_between_two_commits_are_a_moment(state: TableState) -> None:
    first, second, _ = writes(state)
    between = f"{int(first) + 1}"
    assert first < between < second
    (step,), _ = steps_since(state, between, None)
    assert len(step.writes) == 2


def test_an_instant_of_a_table_that_is_empty_since_is_refused(state: TableState, tmp_path: Path) -> None:
    start = writes(state)[-1]
    for file in (tmp_path / "t" / ".hoodie").glob("*commit"):
        file.unlink()
    empty = TableState.load(state.storage)
    with pytest.raises(HistoryGapError, match="there are none: the table was rebuilt"):
        steps_since(empty, start, None)
    assert steps_since(empty, "2025-12-31", None)[0] == []


def test_a_moment_from_before_a_history_whose_beginning_is_lost_is_a_gap(
    state: TableState, tmp_path: Path
) -> None:
    first = writes(state)[0]
    table = copy_on_write(tmp_path / "lost", 1)
    table.commit({DAY_2: {GROUP_2: batch({"b": 1}, DAY_2)}})
    (tmp_path / "lost" / ".hoodie" / f"{first}.commit").unlink()
    with pytest.raises(HistoryGapError, match=f"commit {first} wrote rows that are there"):
        steps_since(TableState.load(table.storage), "2025-12-31", None)


def test_the_oldest_start_after_a_rollback_is_the_oldest_commit_that_is_left(state: TableState) -> None:
    first, _, undone = writes(state)
    mini.rollback(state.storage)
    with pytest.raises(
        HistoryGapError, match=f"taken back by rollback.*oldest start that is left is {first}"
    ) as gap:
        steps_since(TableState.load(state.storage), undone, None)
    assert gap.value.oldest == first
    assert "on_gap" in gap.value.advice and "on_gap" not in gap.value.lost
    assert "Retain more commits" not in str(gap.value), "it would have been taken back nevertheless"


def test_a_lost_file_of_the_window_is_an_error_and_not_a_delete(tmp_path: Path) -> None:
    table = merge_on_read(tmp_path / "t")
    first, second, _ = writes(TableState.load(table.storage))
    newest = table.commit({DAY_2: {GROUP_3: batch({"d": 41, "e": 5}, DAY_2)}})
    logs = sorted((tmp_path / "t" / "day=1").glob(".*.log.*"))
    for lost, since, until in (
        (next((tmp_path / "t").rglob(f"*_{newest}.parquet")), second, None),
        (logs[0], first, None),
        (logs[1], second, None),
    ):
        whole = lost.read_bytes()
        state = TableState.load(table.storage)
        schema = state.data_schema()
        assert schema is not None
        read = state.read_context(schema, resolve_options({}))
        steps, cleaned = steps_since(state, since, until)
        assert plan_changes(state, read, steps, cleaned, NET).units
        assert newest_slices(state, steps[0], cleaned)
        lost.unlink()
        for ask in (
            partial(plan_changes, state, read, steps, cleaned, NET),
            partial(newest_slices, state, steps[0], cleaned),
        ):
            with pytest.raises(CorruptTableError, match=f"{lost.name}.* is not there"):
                ask()
        lost.write_bytes(whole)


@pytest.mark.parametrize("archived", ["nothing", "the compaction", "its rollback too"])
def test_a_compaction_that_ran_again_after_its_run_was_rolled_back_is_no_gap(
    tmp_path: Path, archived: str
) -> None:
    table = merge_on_read(tmp_path / "t")
    storage, compacted = table.storage, str(run_compaction(table.storage, options()).instant)
    undoing, later = (str(int(compacted) + more) for more in (1, 2))
    told = {
        "startRollbackTime": undoing,
        "timeTakenInMillis": 1,
        "totalFilesDeleted": 0,
        "commitsRollback": [compacted],
        "partitionMetadata": {},
        "version": 1,
        "instantsRollback": [{"commitTime": compacted, "action": "compaction"}],
    }
    storage.create(f".hoodie/{undoing}.rollback", encode_avro_file(ROLLBACK_METADATA, told))
    update(table, {(DAY_1, GROUP_1): {"a": 11}}, compacted, instant=later)
    last = {"nothing": "", "the compaction": compacted, "its rollback too": undoing}[archived]
    done = [each for each in TableState.load(storage).timeline.completed if each.requested_time <= last]
    if done:
        archive_instants(TableState.load(storage), done, options())
    check_start(TableState.load(storage), compacted)
    (step,), _ = steps_since(TableState.load(storage), compacted, None)
    assert step.writes == {later}
