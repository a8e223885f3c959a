"""What receipts cost an upsert: processor seconds with them, beside the same upserts without.

python -m benchmarks.receipts [--rows 2000000] [--folder /dev/shm]

The same batches go in turn into two tables of twelve columns, without Spark. The least processor seconds of some
turns count, as what else a machine does only adds to them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time

import hudi_engine
import numpy as np
import pyarrow as pa

from benchmarks.without_spark import PARTITIONS, rows

OPTION = "hoodie.engine.receipts"
SHARES = {"0.1 %": 1000, "10 %": 10}
TURNS = 12


def batch(ids: np.ndarray, ts: int) -> pa.Table:
    """Return rows of twelve columns."""
    found, random = rows(ids, ts), np.random.default_rng(ts + 1)
    for number in range(5):
        found = found.append_column(f"n{number}", pa.array(random.integers(0, 1 << 40, len(ids))))
    return found


def measure(folder: str, count: int) -> dict[str, tuple[float, float]]:
    """Return processor seconds without and with receipts, the least of some turns, by share of the rows."""
    random = np.random.default_rng(0)
    tables = [_table(f"{folder}/{given}", given) for given in ("false", "true")]
    for table in tables:
        table.bulk_insert(batch(np.arange(count), 1))
    found = {}
    ts = 2
    for share, part in SHARES.items():
        seconds: list[list[float]] = [[], []]
        for turn in range(TURNS):
            ts += 1
            changed = batch(random.choice(count, count // part, replace=False), ts)
            # who comes first changes from turn to turn
            for number in (0, 1) if turn % 2 else (1, 0):
                begin = time.process_time()
                tables[number].upsert(changed)
                seconds[number].append(time.process_time() - begin)
        found[share] = (min(seconds[0]), min(seconds[1]))
    return found


def _table(path: str, given: str) -> hudi_engine.Table:
    return hudi_engine.create_table(
        path, name="orders", record_key=["id"], precombine_field="ts", partition_by=["day"],
        options={
            OPTION: given, "hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3",
        },
    )  # fmt: skip


def main() -> None:
    """Print the seconds and what receipts add."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--folder", default=None, help="where tables are made; a temporary folder without it")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        for share, (without, with_them) in measure(folder, given.rows).items():
            sys.stdout.write(
                f"upsert of {share:>5} of {given.rows:,} rows, {PARTITIONS} partitions: {without:.2f} CPU s without receipts, "
                f"{with_them:.2f} with them: {100 * (with_them / without - 1):+.1f} %\n"
            )


if __name__ == "__main__":
    main()
