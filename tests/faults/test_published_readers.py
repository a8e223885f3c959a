"""Readers by name go by the published list of files: whoever dies where, every file of the live list is there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.table.services import run_after_commit
from hudi_engine.table.snapshot import manifest as manifests
from hudi_engine.table.snapshot.manifest import newest_manifest, publish
from hudi_engine.table.table_services import TableServices

import tests.faults.mini_table as mini
from tests.faults.scenarios import COW, Bench, Scenario, killed, overwritten, roll_back_newest, upsert_both
from tests.faults.test_restore import restore_to_first, saved_then_changed, states
from tests.helpers.forms import in_turn
from tests.helpers.handmade import HandmadeTable


def published(storage: Storage) -> mini.Content:
    """Return what a reader by name sees; raises FileNotFoundError for a listed file that is gone."""
    manifest = newest_manifest(storage)
    assert manifest is not None
    found: mini.Content = {}
    for entry in manifest.entries:
        path = Path(entry.uri.removeprefix("file:"))
        rows: Mapping[str, int] = json.loads(path.read_bytes())
        found.update({(path.parent.name, key): value for key, value in rows.items()})
    return found


class PublishedBench(Bench):
    """Copies whose list of files is published."""

    def copy(self) -> LocalStorage:
        """Return a fresh copy of the prepared table, published."""
        storage = super().copy()
        publish(storage)
        return storage


def save_newest(storage: Storage) -> None:
    """Save the newest commit."""
    mini.savepoint(storage)


CASES = {
    "rollback": Scenario("", COW, upsert_both, roll_back_newest, goes_on=True),
    "rollback of an overwrite": Scenario("", COW, overwritten, roll_back_newest, goes_on=True),
    "restore": Scenario("", COW, saved_then_changed, restore_to_first, goes_on=True),
    "savepoint": Scenario("", COW, upsert_both, save_newest),
}


@pytest.mark.parametrize(("case", "when"), in_turn(tuple(CASES), ("after", "torn", "before")))
def test_killed_anywhere_a_reader_by_name_sees_a_commit_also_while_the_next_writer_goes_on(
    case: str, when: str, tmp_path: Path
) -> None:
    scenario = CASES[case]
    bench = PublishedBench(scenario, tmp_path)
    allowed = states(bench.copy())
    for call, done in enumerate(bench.calls, 1):
        where = f"killed {when} call {call}: {done}"
        storage = bench.copy()
        assert killed(storage, scenario.act, call, when), where
        assert published(storage) in allowed, where
        assert mini.content(storage) in allowed, where
        with mini.begin(storage):
            assert published(storage) in allowed, where
        assert mini.content(storage) in (bench.old, bench.new), where
        publish(storage)
        assert published(storage) == mini.content(storage), where
        begun = ".savepoint.inflight"  # stays until it is old, as another program may be making it
        assert [each for each in mini.leftovers(storage) if not each.endswith(begun)] == [], where
        bench.drop(storage)


@pytest.mark.parametrize("case", ["rollback", "restore"])
def test_killed_again_by_the_next_writer_a_reader_by_name_still_sees_a_commit(
    case: str, tmp_path: Path
) -> None:
    scenario = CASES[case]
    bench = PublishedBench(scenario, tmp_path)
    allowed = states(bench.copy())
    for call in range(4, len(bench.calls) + 1, 5):
        for again in range(2, 14, 4):
            storage = bench.copy()
            killed(storage, scenario.act, call, "after")
            killed(storage, lambda each: mini.write(each, {"z": {"next": 1}}), again, "after")
            where = f"killed after {bench.calls[call - 1]}, and the next writer at call {again}"
            assert published(storage) in allowed, where
            with mini.begin(storage):
                assert published(storage) in allowed, where
            bench.drop(storage)


QUIET = {"hoodie.engine.publish.manifest": "false", "hoodie.clean.commits.retained": 1}


@pytest.mark.parametrize("front", ["table", "services alone"])
def test_a_session_that_publishes_nothing_cleans_no_file_of_the_live_list(front: str, tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path))
    mini.write(storage, {"a": {"k1": 0}})
    publish(storage)
    for number in range(1, 5):
        mini.write(storage, {"a": {"k1": number}})
        if front == "table":
            TableServices(storage, resolve_options(QUIET)).after_commit()
        else:
            run_after_commit(storage, resolve_options(QUIET))
        assert published(storage)[("a", "k1")] <= number
    assert len([each for each in storage.list("a") if each.name.endswith(".parquet")]) < 5


def test_a_session_that_publishes_nothing_makes_no_first_list(tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path))
    for number in range(4):
        mini.write(storage, {"a": {"k1": number}})
        TableServices(storage, resolve_options(QUIET)).after_commit()
    assert newest_manifest(storage) is None


@pytest.mark.parametrize("first", [False, True], ids=["renewal", "first list"])
def test_a_slow_publisher_does_not_win_with_a_commit_that_was_rolled_back_meanwhile(
    first: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = pa.schema([("id", pa.string()), ("v", pa.int32()), ("dt", pa.string())])

    def rows(value: int) -> pa.Table:
        return pa.table({"id": ["a"], "v": [value], "dt": ["1"]}).cast(schema)

    table = HandmadeTable(tmp_path / "t", schema, ("dt",))
    table.commit({"dt=1": {"g-0": rows(1)}})
    if not first:
        publish(table.storage)
    table.commit({"dt=1": {"g-0": rows(2)}})
    real = manifests.snapshot_entries

    def slow(*given: object) -> object:
        content = real(*given)  # type: ignore[arg-type]
        monkeypatch.setattr(manifests, "snapshot_entries", real)
        mini.rollback(table.storage)
        return content

    monkeypatch.setattr(manifests, "snapshot_entries", slow)
    publish(table.storage)
    manifest = newest_manifest(table.storage)
    assert manifest is not None and len(manifest.entries) == 1
    assert Path(manifest.entries[0].uri.removeprefix("file:")).exists()
    shutil.rmtree(tmp_path / "t")
