"""Real processes: killed without warning, suspended, and many at once."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from hudi_engine.errors import WriteConflictError
from hudi_engine.format.storage.local import LocalStorage

import tests.faults.mini_table as mini
from tests.faults.scenarios import COW, MOR, Bench, Scenario, upsert_first, upsert_second
from tests.helpers.fault import FaultInjectingStorage, FaultPlan

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux")
FORK = multiprocessing.get_context("fork")


def start(work: Callable[..., None], *arguments: object) -> BaseProcess:
    """Run a function in another process."""
    process = FORK.Process(target=work, args=arguments)
    process.start()
    return process


def write_and_die(base: str, call: int, when: str) -> None:
    upsert_second(FaultInjectingStorage(LocalStorage(base), FaultPlan(call, when)))


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_a_process_that_died_is_rolled_back_by_another_at_once(table_type: str, tmp_path: Path) -> None:
    bench = Bench(Scenario("", table_type, upsert_first, upsert_second), tmp_path)
    for call in range(1, len(bench.calls) + 1, 5):
        when = ("before", "after", "torn")[call % 3]
        storage = bench.copy()
        process = start(write_and_die, storage.base, call, when)
        process.join()
        where = f"killed {when} call {call}: {bench.calls[call - 1]}"
        if process.exitcode != 137:
            assert when == "after", where
            continue
        seen = mini.content(storage)
        assert seen in (bench.old, bench.new), where
        assert bench.next_write(storage) == seen, where
        assert mini.leftovers(storage) == [], where


def write_slowly(base: str, rows: mini.Rows, ready: str, result: str) -> None:
    """Write all files, say so, be suspended, and commit when awake again."""
    storage = LocalStorage(base)
    try:
        with mini.begin(storage) as transaction:
            task = mini.work(storage, transaction, rows)
            transaction.inflight(task.profile())
            task.write_files()
            Path(ready).touch()
            os.kill(os.getpid(), signal.SIGSTOP)
            transaction.commit(task.metadata)
        Path(result).write_text("committed")
    except WriteConflictError as error:
        Path(result).write_text(str(error))


@pytest.mark.parametrize(
    ("mine", "outcome"), [({"b": {"k3": 9}}, "committed"), ({"a": {"k1": 9}}, "both changed file group")]
)
def test_a_suspended_process_keeps_its_instant_and_is_checked_when_it_wakes(
    mine: mini.Rows, outcome: str, tmp_path: Path
) -> None:
    storage = mini.create_table(str(tmp_path / "table"))
    upsert_first(storage)
    ready, result = tmp_path / "ready", tmp_path / "result"
    process = start(write_slowly, storage.base, mine, str(ready), str(result))
    while not ready.exists():
        time.sleep(0.01)
    with mini.begin(storage) as transaction:
        assert transaction.rolled_back == ()
        task = mini.work(storage, transaction, {"a": {"k1": 10}})
        transaction.inflight(task.profile())
        task.write_files()
        transaction.commit(task.metadata)
    assert process.pid is not None
    while process.is_alive() and not result.exists():
        os.kill(process.pid, signal.SIGCONT)
        time.sleep(0.01)
    process.join()
    assert outcome in result.read_text()
    expected = {("a", "k1"): 10, ("a", "k2"): 2, ("b", "k3"): 9 if outcome == "committed" else 3}
    assert mini.content(storage) == expected
    assert mini.leftovers(storage) == []


def add_keys(base: str, name: str, count: int) -> None:
    """Commit ``count`` new keys one by one, again after each conflict."""
    storage = LocalStorage(base)
    done = 0
    while done < count:
        try:
            mini.write(storage, {name: {f"{name}{done}": done}, "shared": {f"{name}{done}": done}})
            done += 1
        except WriteConflictError:
            continue


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_many_processes_lose_no_row_and_write_none_twice(table_type: str, tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path), table_type)
    names, count = ("p", "q", "r"), 4
    processes = [start(add_keys, storage.base, name, count) for name in names]
    for number in range(6):
        victim = start(add_keys, storage.base, f"victim{number}", 1000)
        time.sleep(0.15)
        victim.kill()
        victim.join()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    mini.write(storage, {"z": {"k": 1}})
    found = mini.content(storage)
    for name in names:
        for number in range(count):
            assert found[(name, f"{name}{number}")] == number
            assert found[("shared", f"{name}{number}")] == number
    own = {key for partition, key in found if partition.startswith("victim")}
    shared = {key for partition, key in found if partition == "shared" and key.startswith("victim")}
    assert own == shared, "half of a commit of a killed process is there"
    assert mini.leftovers(storage) == []


def test_exactly_one_of_many_processes_wins_each_instant(tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path))
    processes = [start(add_keys, storage.base, name, 5) for name in ("p", "q", "r", "s")]
    for process in processes:
        process.join()
    timeline = mini.Timeline.load(storage, mini.TableConfig.load(storage))
    assert len(timeline.completed_writes) == 20
