"""Syncs of one table that overtake each other: the entries are at last those of its newest commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hudi_engine.errors import ServiceError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.storage import open_storage
from hudi_engine.spark.hive_sync.entry import LAST_COMMIT, HiveEntry
from hudi_engine.spark.hive_sync.sync import sync_after_commit, sync_hive
from hudi_engine.table.state import TableState

from tests.helpers.handmade import HandmadeTable

SESSION: Any = SimpleNamespace(version="4.0.0")
SCHEMA = pa.schema([("id", pa.int64()), ("dt", pa.string())])


class Stored:
    """A table of the metastore."""

    def __init__(self, entry: HiveEntry) -> None:
        self.entry = entry
        self.properties: dict[str, str] = {}
        self.partitions: set[str] = set()

    def getSd(self) -> SimpleNamespace:  # noqa: N802 - Hive's name
        return SimpleNamespace(
            getInputFormat=lambda: self.entry.input_format, getLocation=lambda: self.entry.location
        )


class Shared:
    """A metastore that all syncs of a test speak to.

    Attributes:
        before: What others do first, by the call: once each.
        dropped: Partitions that went.
        looks: How often a sync began.
    """

    def __init__(self) -> None:
        self.stored: dict[str, Stored] = {}
        self.before: dict[str, Callable[[], object]] = {}
        self.dropped: list[str] = []
        self.looks = 0

    def __call__(self, spark: object) -> Shared:
        self.looks += 1
        return self

    def close(self) -> None:
        pass

    def has_database(self, name: str) -> bool:
        return True

    def tables(self, database: str, names: Sequence[str]) -> dict[str, Stored]:
        return {name: self.stored[name] for name in names if name in self.stored}

    def create(self, entry: HiveEntry) -> None:
        self.stored[entry.name] = Stored(entry)
        self.alter(entry, self.stored[entry.name])

    def alter(self, entry: HiveEntry, table: Stored) -> None:
        self.before.pop("alter", lambda: None)()
        table.properties |= entry.properties

    def drop(self, entry: HiveEntry) -> None:
        del self.stored[entry.name]

    def keys_of(self, table: Stored) -> list[tuple[str, str]]:
        return list(table.entry.keys)

    def partitions(self, entry: HiveEntry) -> set[str]:
        self.before.pop("partitions", lambda: None)()
        return set(self.stored[entry.name].partitions)

    def partition(self, entry: HiveEntry, name: str) -> tuple[str, str]:
        return f"{entry.location}/{name}", entry.input_format

    def name_of(self, keys: Sequence[str], values: Sequence[str]) -> str:
        return "/".join(f"{key}={value}" for key, value in zip(keys, values, strict=True))

    def add_partitions(self, entry: HiveEntry, found: Mapping[str, Sequence[str]]) -> None:
        names = [name for name, _ in entry.keys]
        self.stored[entry.name].partitions |= {self.name_of(names, values) for values in found.values()}

    def drop_partition(self, entry: HiveEntry, name: str) -> None:
        self.dropped.append(name)
        self.stored[entry.name].partitions.discard(name)


@pytest.fixture
def metastore(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shared]:
    shared = Shared()
    monkeypatch.setattr("hudi_engine.spark.hive_sync.sync.Metastore", shared)
    yield shared


@pytest.fixture
def table(tmp_path: Path) -> HandmadeTable:
    made = HandmadeTable(tmp_path / "t", SCHEMA, ("dt",))
    write(made, "a")
    return made


def write(table: HandmadeTable, day: str) -> None:
    table.commit({f"dt={day}": {f"f-{day}": pa.table({"id": [1], "dt": [day]})}})


def sync(table: HandmadeTable) -> None:
    sync_hive(SESSION, open_storage(str(table.path)), resolve_options({}))


@pytest.mark.parametrize("call", ["partitions", "alter"])
def test_a_sync_that_is_overtaken_by_one_of_a_later_commit_takes_nothing_back(
    call: str, metastore: Shared, table: HandmadeTable
) -> None:
    sync(table)

    def other() -> None:
        write(table, "b")
        sync(table)

    metastore.before[call] = other
    sync(table)
    (stored,) = metastore.stored.values()
    newest = TableState.load(open_storage(str(table.path))).timeline.completed_writes[-1].requested_time
    assert stored.partitions == {"dt=a", "dt=b"}
    assert stored.properties[LAST_COMMIT] == newest
    assert metastore.dropped == []


@pytest.fixture
def busy(metastore: Shared, table: HandmadeTable) -> None:
    """Another writer commits, and does not sync, as often as the table's entry is made."""
    days = iter("bcdefghijk")

    def other() -> None:
        write(table, next(days))
        metastore.before["alter"] = other

    metastore.before["alter"] = other


@pytest.mark.usefixtures("busy")
def test_a_table_that_is_written_faster_than_it_is_synced_is_told(table: HandmadeTable) -> None:
    with pytest.raises(ServiceError, match="was written each of the 5 times .* call sync_hive"):
        sync(table)


@pytest.mark.usefixtures("busy")
def test_a_commit_does_not_fail_for_others_that_come_faster_than_its_sync(
    table: HandmadeTable, caplog: pytest.LogCaptureFixture
) -> None:
    sync_after_commit(SESSION, open_storage(str(table.path)), resolve_options({}), "20260101000000000")
    assert "the commit 20260101000000000 is complete: the table" in caplog.text
    assert "call sync_hive when it is written less often" in caplog.text


@pytest.mark.parametrize("change", ["archived", "rolled back"])
def test_what_is_archived_meanwhile_overtakes_no_sync_and_a_rollback_does(
    change: str, metastore: Shared, table: HandmadeTable
) -> None:
    write(table, "b")
    calls: list[str] = []

    def other() -> None:
        first, newest = TableState.load(open_storage(str(table.path))).timeline.completed_writes
        gone = first if change == "archived" else newest
        calls.append(gone.requested_time)
        for path in (table.path / ".hoodie").glob(f"{gone.requested_time}.*"):
            path.unlink()

    metastore.before["alter"] = other
    sync(table)
    (stored,) = metastore.stored.values()
    assert calls and metastore.looks == (1 if change == "archived" else 2)
    assert stored.partitions == ({"dt=a", "dt=b"} if change == "archived" else {"dt=a"})
