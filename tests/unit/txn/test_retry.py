"""Beginning a write again after a conflict."""

from __future__ import annotations

import pytest
from hudi_engine.errors import PlannedMeanwhileError, StorageError, WriteConflictError
from hudi_engine.table.txn.retry import retried


def overtaken(times: int, error: type[Exception] = WriteConflictError) -> tuple[list[int], object]:
    """Return the attempts so far, and a write that is overtaken a number of times."""
    attempts: list[int] = []

    def write() -> str:
        attempts.append(len(attempts) + 1)
        if len(attempts) <= times:
            raise error("another writer came first")
        return "committed"

    return attempts, write


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)


def test_a_write_begins_again_as_often_as_it_may() -> None:
    attempts, write = overtaken(2)
    assert retried(write, 2) == "committed"  # type: ignore[arg-type]
    assert attempts == [1, 2, 3]


@pytest.mark.parametrize("retries", [0, 1])
def test_the_last_conflict_is_raised(retries: int) -> None:
    attempts, write = overtaken(2)
    with pytest.raises(WriteConflictError):
        retried(write, retries)  # type: ignore[arg-type]
    assert len(attempts) == retries + 1


@pytest.mark.parametrize("error", [StorageError, PlannedMeanwhileError])
def test_another_error_and_a_plan_that_nobody_runs_are_not_tried_again(error: type[Exception]) -> None:
    attempts, write = overtaken(1, error)
    with pytest.raises(error):
        retried(write, 3)  # type: ignore[arg-type]
    assert attempts == [1]
