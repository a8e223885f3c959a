"""Looks at a warehouse of which other processes are moving rebuilt tables: little more than a minute for all of them, and once."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from hudi_engine.errors import WriteConflictError
from hudi_engine.spark.catalog import DirectoryCatalog
from hudi_engine.spark.catalog import rebuilds as module
from hudi_engine.spark.catalog.rebuilds import Settling


class Clock:
    """A clock that only sleep moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time of the looks."""
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


class Moves:
    """Tables that another process moves until some time."""

    def __init__(self, clock: Clock) -> None:
        self.until = float("inf")
        self._clock = clock

    def recover(self, base: str) -> None:
        if self._clock.now < self.until:
            raise WriteConflictError(f"another process is putting a rebuilt table in the place of {base}")


@pytest.fixture
def moves(clock: Clock) -> Moves:
    """The moves of all tables."""
    return Moves(clock)


@pytest.fixture
def catalog(tmp_path: Path, moves: Moves) -> DirectoryCatalog:
    """A warehouse of three tables that move, two of them where pointers lead, in two schemas."""
    catalog = DirectoryCatalog(str(tmp_path / "wh"), recover=moves.recover)
    for schema in ("a", "b"):
        catalog.create_schema(schema)
        catalog.save_pointer(schema, "far", str(tmp_path / "far" / schema))
    (tmp_path / "wh" / "a" / ".orders.rebuild-0a1b").mkdir()
    return catalog


def look_at_all(catalog: DirectoryCatalog) -> Settling:
    """Look at the places of all tables as a session does that is filled."""
    look = catalog._look([])
    for schema in catalog.schemas():
        catalog._places(schema, catalog._storage.list(schema), look)
    return look


def test_one_look_waits_once_for_all_tables_of_all_schemas_together(
    catalog: DirectoryCatalog, clock: Clock
) -> None:
    told = look_at_all(catalog).warnings
    assert 75 <= clock.now < 76, "longer than a process that is silent is watched"
    left_out = [text.split(" was not registered: another")[0] for text in told if "another process" in text]
    assert left_out == ["a.orders", "a.far", "b.far"]


def test_what_was_waited_for_in_vain_is_not_waited_for_by_the_next_look(
    catalog: DirectoryCatalog, clock: Clock
) -> None:
    look_at_all(catalog)
    waited = clock.now
    look_at_all(catalog)
    catalog.names("a")
    assert clock.now == waited


def test_what_was_waited_for_in_vain_and_has_come_is_waited_for_again_when_it_moves_again(
    catalog: DirectoryCatalog, clock: Clock, moves: Moves
) -> None:
    look_at_all(catalog)
    moves.until = clock.now
    look_at_all(catalog)
    waited, moves.until = clock.now, clock.now + 5
    told = look_at_all(catalog).warnings
    assert 5 <= clock.now - waited < 6 and not [text for text in told if "another process" in text]


def test_names_say_once_what_they_leave_out(
    catalog: DirectoryCatalog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        catalog.names("a")
        catalog.names("a")
    assert (
        len([text for text in caplog.messages if text.startswith("a.orders was not registered: another")])
        == 1
    )
