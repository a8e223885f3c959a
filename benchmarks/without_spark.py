"""Seconds of writes by `hudi_engine.Table`, without Spark: a new process with 1,000 rows, appends, upserts into many rows.

python -m benchmarks.without_spark [--rows 2000000] [--folder /dev/shm]

hudi-rs (the PyPI package `hudi`) has no writer to compare with; it reads what was written, so that the rows are checked.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import hudi_engine
import numpy as np
import pyarrow as pa

from tests.helpers.hudi_rs import rows_by_hudi_rs

PARTITIONS = 4
REPEATS = 3
COLD = """
import sys
import pyarrow as pa
import hudi_engine

table = hudi_engine.open_table(sys.argv[1])
table.upsert(pa.ipc.open_file(sys.argv[2]).read_all())
"""
IMPORTS = {"pyarrow": "import pyarrow", "hudi_engine": "import hudi_engine; hudi_engine.open_table"}


def rows(ids: np.ndarray, ts: int) -> pa.Table:
    """Return rows of seven columns, some hundred bytes each."""
    random = np.random.default_rng(ts)
    return pa.table(
        {
            "id": ids,
            "ts": np.full(len(ids), ts),
            "day": pa.array([f"2026-01-0{part + 1}" for part in range(PARTITIONS)]).take(
                pa.array(ids % PARTITIONS)
            ),
            "customer": pa.array(random.integers(0, 1 << 20, len(ids))).cast(pa.string()),
            "status": pa.array(["new", "paid", "sent"]).take(pa.array(ids % 3)),
            "amount": random.random(len(ids)),
            "note": pa.array(random.integers(0, 1 << 40, len(ids))).cast(pa.string()),
        }
    )


def measure(folder: str, count: int) -> dict[str, float]:
    """Return seconds, the median of some runs, by what was done."""
    found = {f"import {name}": _process(["-c", text]) for name, text in IMPORTS.items()}
    for kind in ("cow", "mor"):
        found[f"{kind}: cold start, upsert of 1,000 rows"] = _cold(folder, kind)
        found |= _writes(_table(f"{folder}/large_{kind}", kind), kind, count)
    return found


def _table(path: str, kind: str) -> hudi_engine.Table:
    return hudi_engine.create_table(
        path, name="orders", record_key=["id"], precombine_field="ts", partition_by=["day"], table_type=kind
    )


def _writes(table: hudi_engine.Table, kind: str, count: int) -> dict[str, float]:
    """Return the seconds of writes into one table, which hudi-rs counts afterwards."""
    random, load = np.random.default_rng(0), rows(np.arange(count), 1)
    found = {f"{kind}: bulk_insert of {count:,} rows": _seconds(lambda: table.bulk_insert(load))}
    later = iter(range(2, 100))

    def upserts(size: int) -> float:
        batches = [rows(random.choice(count, size, replace=False), next(later)) for _ in range(REPEATS)]
        return median([_seconds(partial(table.upsert, batch)) for batch in batches])

    found[f"{kind}: upsert of 0.1 % of them"] = upserts(count // 1000)
    found[f"{kind}: upsert of 10 % of them"] = upserts(count // 10)
    more = [rows(np.arange(1000) + count + 1000 * number, 1) for number in range(REPEATS)]
    found[f"{kind}: append of 1,000 rows"] = median([_seconds(partial(table.insert, each)) for each in more])
    assert len(rows_by_hudi_rs(table.path, ["id"])) == count + 1000 * REPEATS
    return found


def _cold(folder: str, kind: str) -> float:
    batch, table = Path(folder) / "batch.arrow", _table(f"{folder}/{kind}", kind)
    with pa.OSFile(str(batch), "wb") as sink, pa.ipc.new_file(sink, rows(np.arange(0), 1).schema) as writer:
        writer.write_table(rows(np.arange(1000), 1))
    return _process(["-c", COLD, table.path, str(batch)])


def _process(arguments: list[str]) -> float:
    command = [sys.executable, *arguments]
    return median(_seconds(lambda: subprocess.run(command, check=True)) for _ in range(REPEATS))


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def main() -> None:
    """Print the seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--folder", default=None, help="where tables are made; a temporary folder without it")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        for what, seconds in measure(folder, given.rows).items():
            sys.stdout.write(f"{what:45} {seconds:8.2f} s\n")


if __name__ == "__main__":
    main()
