"""Injected faults leave exactly what a dying process would leave."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hudi_engine.errors import ConfigError
from hudi_engine.format.storage.local import LocalStorage

from tests.helpers.fault import FaultInjectingStorage, FaultPlan, SimulatedCrash, raise_crash


@pytest.fixture
def dying(tmp_path: Path) -> Callable[[int, str], FaultInjectingStorage]:
    def make(call: int, when: str) -> FaultInjectingStorage:
        return FaultInjectingStorage(LocalStorage(str(tmp_path)), FaultPlan(call, when, crash=raise_crash))

    return make


def test_calls_that_change_something_are_noted_in_order(tmp_path: Path) -> None:
    storage = FaultInjectingStorage(LocalStorage(str(tmp_path)))
    storage.create("a", b"")
    storage.read("a")
    with storage.open_output("b"):
        pass
    storage.delete("a")

    assert storage.calls == [("create", "a"), ("open_output", "b"), ("delete", "a")]


@pytest.mark.parametrize(("when", "there"), [("before", False), ("torn", False), ("after", True)])
def test_a_crash_around_a_create(
    dying: Callable[[int, str], FaultInjectingStorage], when: str, there: bool
) -> None:
    storage = dying(2, when)
    storage.create("first", b"1")

    with pytest.raises(SimulatedCrash):
        storage.create("second", b"22")

    assert storage.exists("second") is there
    leftovers = [status for status in storage.list("") if status.name.startswith(".tmp-")]
    assert [status.size for status in leftovers] == ([1] if when == "torn" else [])


@pytest.mark.parametrize(("when", "there"), [("before", False), ("torn", False), ("after", True)])
def test_a_crash_around_an_output_file(
    dying: Callable[[int, str], FaultInjectingStorage], when: str, there: bool
) -> None:
    storage = dying(1, when)

    with pytest.raises(SimulatedCrash), storage.open_output("f") as sink:
        sink.write(b"rows")

    assert storage.exists("f") is there


def test_a_torn_tree_deletion_takes_half_of_the_files(
    dying: Callable[[int, str], FaultInjectingStorage], tmp_path: Path
) -> None:
    for name in "abcd":
        LocalStorage(str(tmp_path)).create(f"t/{name}", b"")

    with pytest.raises(SimulatedCrash):
        dying(1, "torn").delete_tree("t")

    assert sorted(os.listdir(tmp_path / "t")) == ["c", "d"]


def test_the_dead_do_not_clean_up(dying: Callable[[int, str], FaultInjectingStorage]) -> None:
    storage = dying(1, "after")
    with pytest.raises(SimulatedCrash):
        storage.create("a", b"")

    with pytest.raises(SimulatedCrash, match="dead already"):
        storage.delete("a")
    assert storage.exists("a")


def test_an_error_happens_once_and_the_writer_lives_on(tmp_path: Path) -> None:
    storage = FaultInjectingStorage(LocalStorage(str(tmp_path)), FaultPlan(1, "error", error=PermissionError))

    with pytest.raises(PermissionError, match="create of 'a'"):
        storage.create("a", b"")
    storage.create("a", b"")
    assert storage.exists("a")


@pytest.mark.parametrize(("call", "when"), [(0, "before"), (1, "sometimes")])
def test_a_plan_that_means_nothing_is_refused(call: int, when: str) -> None:
    with pytest.raises(ConfigError, match="before, after, torn, error"):
        FaultPlan(call, when)
