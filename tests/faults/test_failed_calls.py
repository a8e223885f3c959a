"""A storage call that fails without a crash: a typed error, old or new state, and the next write works."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from hudi_engine.errors import HudiError
from hudi_engine.format.storage.local import LocalStorage

import tests.faults.mini_table as mini
from tests.faults.scenarios import SCENARIOS, Action, Bench, Scenario
from tests.helpers.fault import FailingStorage, FaultInjectingStorage
from tests.helpers.forms import forms, in_turn, named

EFFECTS = ("not_done", "done_but_failed")
ERRNOS = (errno.ENOSPC, errno.EIO, errno.EACCES, errno.EMFILE)


def outcome(act: Action, storage: FailingStorage) -> Exception | None:
    """Run an action and return what it raised."""
    try:
        act(storage)
    except Exception as error:
        return error
    return None


def writes_data(call: tuple[str, str]) -> bool:
    """Return whether the call is one of the writer of data files, which is not under test here."""
    return not call[1].startswith(".hoodie/") or call[1].startswith(".hoodie/.temp/")


def check(bench: Bench, storage: FailingStorage, copy: LocalStorage, call: int, where: str) -> None:
    """Run the action on a storage that fails and check the promises, also those of the next write."""
    error = outcome(bench.scenario.act, storage)
    seen = mini.content(copy)
    if error is None:
        assert seen == bench.new, where
    else:
        assert isinstance(error, HudiError) or writes_data(bench.calls[call - 1]), f"{where}: {error!r}"
        assert seen == bench.old or bench.scenario.goes_on, where
    assert seen in (bench.old, bench.new), where
    settled = bench.next_write(copy)
    assert settled == seen or (bench.scenario.goes_on and settled == bench.new), where
    assert mini.leftovers(copy) == [], where
    bench.drop(copy)


@pytest.mark.parametrize(("scenario", "effect"), in_turn(SCENARIOS, EFFECTS), ids=named)
def test_one_failed_call_gives_a_typed_error_and_the_next_write_works(
    scenario: Scenario, effect: str, tmp_path: Path
) -> None:
    bench = Bench(scenario, tmp_path)
    for call in range(1, len(bench.calls) + 1):
        number = ERRNOS[call % len(ERRNOS)]
        where = f"{errno.errorcode[number]} at call {call}: {bench.calls[call - 1]}"
        copy = bench.copy()
        check(bench, FailingStorage(copy, call, number, late=effect == "done_but_failed"), copy, call, where)


@pytest.mark.parametrize("scenario", forms(SCENARIOS, SCENARIOS[2::4]), ids=named)
def test_on_a_disk_that_is_full_from_some_call_on_nothing_is_lost(scenario: Scenario, tmp_path: Path) -> None:
    bench = Bench(scenario, tmp_path)
    for call in range(1, len(bench.calls) + 1):
        where = f"full from call {call}: {bench.calls[call - 1]}"
        copy = bench.copy()
        check(bench, FailingStorage(copy, call, errno.ENOSPC, lasting=True), copy, call, where)


def test_a_commit_that_landed_although_the_storage_reported_an_error_stands(tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path))
    probe = FaultInjectingStorage(storage)
    mini.write(probe, {"a": {"k": 1}})
    path = next(path for _, path in probe.calls if path.endswith(".commit"))
    call = [path for _, path in probe.calls].index(path) + 1
    lying = FailingStorage(storage, call, errno.EIO, late=True)
    mini.write(lying, {"b": {"k": 2}})
    assert mini.content(storage) == {("a", "k"): 1, ("b", "k"): 2}
    assert mini.leftovers(storage) == []


def test_the_error_of_a_write_is_not_hidden_by_trouble_in_its_rollback(tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path))
    with pytest.raises(ZeroDivisionError), mini.begin(FailingStorage(storage, 5, errno.EIO, lasting=True)):
        _ = 1 // 0
    assert mini.leftovers(storage)
    mini.write(storage, {"a": {"k": 1}})
    assert mini.leftovers(storage) == []
