"""A merge-on-read and a copy-on-write table of a few rows, and what a reader sees of them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa
from hudi_engine.format.config.options import Options, resolve_options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.table.txn.owner import Owner, register

from tests.helpers.handmade import HandmadeTable
from tests.helpers.owners import write_owner
from tests.helpers.read_table import read_table

SCHEMA = pa.schema([("id", pa.string()), ("qty", pa.int64()), ("day", pa.string())])
GROUP_1, GROUP_2, GROUP_3 = (f"0000000{number}-0000-4000-8000-000000000000-0" for number in (1, 2, 3))
DAY_1, DAY_2 = "day=1", "day=2"

Rows = dict[str, int]


def options(**more: object) -> Options:
    """Options with a short wait for the lock; ``more`` has double underscores for dots."""
    raw: dict[str, object] = {"hoodie.write.lock.wait_time_ms": 2000}
    return resolve_options(
        {**raw, **{f"hoodie.{key.replace('__', '.')}": each for key, each in more.items()}}
    )


def batch(rows: Rows, day: str) -> pa.Table:
    """Rows of one day."""
    count = len(rows)
    return pa.table([list(rows), list(rows.values()), [day[-1]] * count], schema=SCHEMA)


def merge_on_read(path: Path) -> HandmadeTable:
    """Three base files in two days; two delta commits with updates in two of them and a delete in one.

    Rows: a=10, c=3, d=40, e=5, and b is deleted.
    """
    table = HandmadeTable(path, SCHEMA, ("day",), merge_on_read=True)
    first = table.commit(
        {
            DAY_1: {GROUP_1: batch({"a": 1, "b": 2}, DAY_1), GROUP_2: batch({"c": 3}, DAY_1)},
            DAY_2: {GROUP_3: batch({"d": 4, "e": 5}, DAY_2)},
        }
    )
    update(table, {(DAY_1, GROUP_1): {"a": 9}, (DAY_2, GROUP_3): {"d": 40}}, first)
    update(table, {(DAY_1, GROUP_1): {"a": 10}}, first, deletes={(DAY_1, GROUP_1): ["b"]})
    return table


MERGED: Rows = {"a": 10, "c": 3, "d": 40, "e": 5}


def update(
    table: HandmadeTable,
    changes: dict[tuple[str, str], Rows],
    base_instant: str,
    deletes: dict[tuple[str, str], list[str]] | None = None,
    *,
    instant: str | None = None,
) -> str:
    """Do a delta commit that appends logs to slices; return its instant."""
    instant = instant or table.next_instant()
    stats = []
    for (day, group), rows in changes.items():
        blocks = table.data_blocks(day, group, batch(rows, day), instant)
        gone = (deletes or {}).get((day, group))
        blocks += table.delete_blocks(day, gone, instant) if gone else []
        stats.append(table.append_log(day, group, base_instant, blocks, instant))
    table.complete(instant, stats)
    return instant


def copy_on_write(path: Path, versions: int) -> HandmadeTable:
    """One file group of which every commit writes a new version: row ``a`` counts up from 1."""
    table = HandmadeTable(path, SCHEMA, ("day",))
    for number in range(1, versions + 1):
        table.commit({DAY_1: {GROUP_1: batch({"a": number}, DAY_1)}})
    return table


def rows(storage: Storage, as_of: str | None = None, *, read_optimized: bool = False) -> Rows:
    """What a reader sees: value by key; a key that is there twice is an error."""
    found = read_table(storage, as_of=as_of, read_optimized=read_optimized, columns=["id", "qty"])
    keys = found.column("id").to_pylist()
    assert len(keys) == len(set(keys)), f"a key is there twice: {sorted(keys)}"
    return dict(zip(keys, found.column("qty").to_pylist(), strict=True))


def timeline(storage: Storage) -> Timeline:
    """The timeline, read anew."""
    return Timeline.load(storage, TableConfig.load(storage))


def writes(storage: Storage) -> list[str]:
    """Instants of completed writes."""
    return [instant.requested_time for instant in timeline(storage).completed_writes]


def data_files(storage: Storage) -> list[str]:
    """Names of base and log files, sorted."""
    found = storage.list("", recursive=True, skip=frozenset({".hoodie"}))
    return sorted(
        status.name
        for status in found
        if not status.is_dir and not status.name.startswith((".hoodie_partition", ".tmp-"))
    )


def writer_at_work(table: HandmadeTable, partitions: list[str] | None) -> str:
    """Leave a write of this living process on the timeline, in flight or, for None, only requested."""
    instant = table.next_instant()
    owner = Owner.current()
    register(owner)
    write_owner(table.storage, instant, owner)
    table.storage.create(f".hoodie/{instant}.deltacommit.requested", b"")
    if partitions is not None:
        body = CommitMetadata({partition: [] for partition in partitions}, {}, "UPSERT").to_json()
        table.storage.create(f".hoodie/{instant}.deltacommit.inflight", body)
    return instant


def keep_times(source: str, target: Path) -> LocalStorage:
    """Copy a table with its modification times."""
    shutil.copytree(source, target, copy_function=shutil.copy2)
    return LocalStorage(os.fspath(target))
