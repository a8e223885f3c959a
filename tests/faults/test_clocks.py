"""Clocks that stand still, go back or differ: instants stay unique and increasing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.instant import State
from hudi_engine.table.txn.owner import heartbeat_path

import tests.faults.mini_table as mini

NOON = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)


Clock = Callable[[], datetime]


def clock_of(*moments: datetime) -> Clock:
    """A clock that shows the moments in turn and then stays at the last."""
    shown = iter(moments)
    last = [moments[-1]]

    def now() -> datetime:
        last[0] = next(shown, last[0])
        return last[0]

    return now


@contextmanager
def showing(clock: Clock) -> Iterator[None]:
    """Let the machine's clock show something else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hudi_engine.format.timeline.clock._utc_now", clock)
        yield


def begin_all(storage: LocalStorage, clocks: Iterable[Clock]) -> list[str]:
    """Begin and give up one write a clock; return the instants."""
    found = []
    for clock in clocks:
        with showing(clock):
            transaction = mini.begin(storage)
            found.append(transaction.instant)
            transaction.abort()
    return found


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return mini.create_table(str(tmp_path))


def test_a_clock_that_stands_still_gives_increasing_instants(storage: LocalStorage) -> None:
    instants = begin_all(storage, [clock_of(NOON)] * 20)
    assert instants == sorted(set(instants))


def test_a_clock_that_goes_back_an_hour_gives_increasing_instants(storage: LocalStorage) -> None:
    jumping = clock_of(NOON, NOON, NOON - timedelta(hours=1))
    instants = begin_all(storage, [jumping] * 10)
    assert instants == sorted(set(instants))


def test_two_writers_whose_clocks_differ_by_two_hours_take_turns(storage: LocalStorage) -> None:
    fast, slow = clock_of(NOON + timedelta(hours=1)), clock_of(NOON - timedelta(hours=1))
    instants = begin_all(storage, [fast, slow] * 5)
    assert instants == sorted(set(instants))


def test_an_instant_that_another_program_took_in_the_same_millisecond_is_left_alone(
    storage: LocalStorage,
) -> None:
    """The other program does not take our lock; its files appear between our listing and our create."""
    taken = ["20260101120000000", "20260101120000001"]

    class Raced(LocalStorage):
        def create(self, path: str, data: bytes) -> None:
            if path == heartbeat_path(taken[0]):
                super().create(heartbeat_path(taken[0]), b"")
            if path == mini.timeline_path(taken[1], "commit", State.REQUESTED):
                super().create(path, b"other")
            super().create(path, data)

    with showing(clock_of(NOON)):
        transaction = mini.begin(Raced(storage.base))
    assert transaction.instant == "20260101120000002"
    assert storage.read(heartbeat_path(taken[0])) == b""
    assert storage.read(mini.timeline_path(taken[1], "commit", State.REQUESTED)) == b"other"
    assert not storage.exists(heartbeat_path(taken[1]))
    transaction.abort()


def test_a_table_with_instants_in_the_future_does_not_drag_others_along(
    storage: LocalStorage, tmp_path: Path
) -> None:
    mini.write(storage, {"a": {"k": 1}})
    for state in State:
        body = mini.CommitMetadata().to_json()
        storage.create(mini.timeline_path("20991231235959000", "commit", state), body)
    assert mini.write(storage, {"a": {"k": 2}}) > "20991231235959000"
    other = mini.create_table(str(tmp_path / "other"))
    assert mini.write(other, {"a": {"k": 1}}) < "2090"
