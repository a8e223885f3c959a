"""What ten standard operations cost, as numbers that only a decision may change: mutating calls, Spark jobs, memory."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from hudi_engine import HudiTable
from hudi_engine.format.storage.local import LocalStorage

from tests.helpers.fault import FaultInjectingStorage
from tests.reliability import real_table
from tests.reliability.actions import FIRST, SECOND
from tests.reliability.real_table import KINDS, SCHEMA, batch

ROWS = 100_000
MOST_MEMORY = 64 * 1024 * 1024
"""Bytes of Arrow's memory for a write of a hundred thousand rows of 40 bytes."""
_GROUPS = itertools.count()


@dataclass(frozen=True)
class Cost:
    """An operation on a kind of table that has three commits, and what it costs.

    Args:
        name: For people.
        kind: The table's kind.
        act: The operation.
        calls: Mutating storage calls.
        jobs: Spark jobs.
    """

    name: str
    kind: str
    act: Callable[[HudiTable], object]
    calls: int
    jobs: int


COSTS = (
    Cost("upsert of three partitions", "cow", lambda table: table.upsert(batch(SECOND)), 17, 1),
    Cost("upsert of three partitions", "mor", lambda table: table.upsert(batch(SECOND)), 17, 1),
    Cost("insert", "cow", lambda table: table.insert(batch(SECOND[:1])), 14, 1),
    Cost("bulk insert", "cow", lambda table: table.bulk_insert(batch(SECOND[:1])), 14, 1),
    Cost("overwrite of partitions", "cow", lambda table: table.insert_overwrite(batch(SECOND)), 17, 1),
    Cost("delete", "mor", lambda table: table.delete(batch(FIRST[:1])), 15, 1),
    Cost("drop of a partition", "cow", lambda table: table.delete_partitions(["a"]), 12, 0),
    Cost("compaction", "mor", lambda table: table.compact(), 16, 0),
    Cost("clean", "cow", lambda table: table.clean(1), 9, 0),
    Cost("rollback", "cow", lambda table: table.rollback(_newest(table)), 14, 0),
)


def _newest(table: HudiTable) -> str:
    return real_table.commits(table)[-1].requested_time


def measure(spark: Any, path: Path, cost: Cost) -> tuple[int, int, list[Any]]:
    """Run an operation; returns its mutating calls and Spark jobs, and the calls one by one."""
    kind = KINDS[cost.kind]
    table = real_table.create(spark, path, kind)
    for _ in range(3):
        table.upsert(batch(FIRST))
    storage = FaultInjectingStorage(LocalStorage(table.path))
    context, group = spark.sparkContext, f"cost-{next(_GROUPS)}"
    context.setJobGroup(group, cost.name)
    cost.act(HudiTable(spark, table.path, storage, {**real_table.CALM, **kind.options}))
    jobs = len(context.statusTracker().getJobIdsForGroup(group))
    context.setLocalProperty("spark.jobGroup.id", None)
    return len(storage.calls), jobs, list(storage.calls)


def peak_of_an_upsert(spark: Any, path: Path) -> int:
    """Upsert a hundred thousand rows onto themselves; returns the most bytes that Arrow held above what it held before."""
    table = real_table.create(spark, path, KINDS["cow"])
    numbers = pa.array(range(ROWS))
    texts = numbers.cast(pa.string())
    rows = pa.table([texts, numbers, texts, ["a"] * ROWS], schema=SCHEMA)
    table.upsert(rows)
    pool = pa.default_memory_pool()
    before, peak = pool.bytes_allocated(), 0
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.001):
            peak = max(peak, pool.bytes_allocated() - before)

    watcher = threading.Thread(target=watch)
    watcher.start()
    table.upsert(rows)
    done.set()
    watcher.join()
    return peak
