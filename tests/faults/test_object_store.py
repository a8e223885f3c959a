"""Writers on an object store: killed at their calls, with answers that get lost, and several at once."""

from __future__ import annotations

import multiprocessing
import random
import time
from pathlib import Path

import pytest
from hudi_engine.errors import WriteConflictError
from hudi_engine.format.storage import open_storage
from hudi_engine.format.storage.base import Storage

import tests.faults.mini_table as mini
from tests.faults.scenarios import COW, MOR, SCENARIOS, Bench, Scenario, killed, upsert_first, upsert_second
from tests.helpers.azure_server import AzureServer
from tests.helpers.gcs_server import GcsServer
from tests.helpers.s3_server import S3Server, Trouble

STORES = ["s3", *(pytest.param(each, marks=pytest.mark.long) for each in ("azure", "gcs"))]
CHOSEN = ("cow_upsert", "mor_upsert", "mor_write_after_dead_writer")
CHOSEN_SCENARIOS = [scenario for scenario in SCENARIOS if scenario.name in CHOSEN]
WRITERS, KEYS = 2, 2


Server = S3Server | AzureServer | GcsServer


@pytest.fixture(params=STORES)
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(f"{request.param}_server")
    return found


class BucketBench(Bench):
    """Runs a scenario on copies in a bucket."""

    def __init__(self, scenario: Scenario, root: Path, server: Server) -> None:
        self._bucket = server.new_bucket()
        super().__init__(scenario, root)

    def copy(self) -> Storage:  # type: ignore[override]
        self._count += 1
        target = open_storage(f"{self._bucket}/copy{self._count}")
        template = open_storage(str(self._root / "template"))
        for file in template.list("", recursive=True):
            if not file.is_dir:
                target.replace(file.path, template.read(file.path))
        return target


@pytest.mark.parametrize("scenario", CHOSEN_SCENARIOS, ids=lambda scenario: scenario.name)
def test_killed_the_table_is_old_or_new_and_the_next_writer_cleans_up(
    scenario: Scenario, server: Server, tmp_path: Path
) -> None:
    bench = BucketBench(scenario, tmp_path, server)
    for call in range(2, len(bench.calls) + 1, 4):
        when = ("before", "after")[call // 4 % 2]
        where = f"killed {when} call {call}: {bench.calls[call - 1]}"
        storage = bench.copy()
        killed(storage, scenario.act, call, when)
        seen = mini.content(storage)
        assert seen in (bench.old, bench.new), where
        assert bench.next_write(storage) == seen, where
        assert mini.leftovers(storage) == [], where


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_answers_that_get_lost_change_nothing(table_type: str, s3_server: S3Server, tmp_path: Path) -> None:
    bench = BucketBench(Scenario("", table_type, upsert_first, upsert_second), tmp_path, s3_server)
    draw = random.Random(table_type)
    storage = bench.copy()
    troubles = [
        Trouble("PUT", pattern, draw.choice(("unanswered", "dropped", "refused")))
        for pattern in ("lock", "heartbeat", "requested", "inflight", "marker", "commit$", "/a/", "/c/")
    ]
    with s3_server.trouble(*troubles) as wire:
        upsert_second(storage)
        assert sum(each.times for each in wire.troubles) <= 2, "hardly anything went wrong"
    assert mini.content(storage) == bench.new
    assert bench.next_write(storage) == bench.new
    assert mini.leftovers(storage) == []


def add_keys(base: str, name: str) -> None:
    """Commit keys one by one, again after each conflict."""
    storage, done = open_storage(base), 0
    while done < KEYS:
        try:
            mini.write(storage, {name: {f"{name}{done}": done}, "shared": {f"{name}{done}": done}})
            done += 1
        except WriteConflictError:
            continue


def test_many_processes_lose_no_row_and_write_none_twice(server: Server, tmp_path: Path) -> None:
    bench = BucketBench(Scenario("", MOR, upsert_first, upsert_second), tmp_path, server)
    storage = bench.copy()
    spawn = multiprocessing.get_context("spawn")
    names = [f"w{number}" for number in range(WRITERS)]
    processes = [spawn.Process(target=add_keys, args=(storage.base, name)) for name in names]
    victim = spawn.Process(target=add_keys, args=(storage.base, "victim"))
    for process in (*processes, victim):
        process.start()
    while not any(partition == "victim" for partition, _ in mini.content(storage)) and victim.is_alive():
        time.sleep(0.3)
    victim.kill()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    victim.join()
    mini.write(storage, {"z": {"k": 1}})
    found = mini.content(storage)
    for name in names:
        for number in range(KEYS):
            assert found[(name, f"{name}{number}")] == found[("shared", f"{name}{number}")] == number
    own = {key for partition, key in found if partition == "victim"}
    assert own == {key for partition, key in found if partition == "shared" and key.startswith("victim")}
    assert mini.leftovers(storage) == []
