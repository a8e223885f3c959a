"""What an option costs an upsert: processor seconds with one value of it, beside the same upserts with another.

python -m benchmarks.options [--only receipts] [--rows 2000000] [--folder /dev/shm]

The same batches go in turn into two tables of twelve columns, without Spark. The least processor seconds of some turns count, as
what else a machine does only adds to them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass, field

import hudi_engine
import numpy as np
import pyarrow as pa

from benchmarks.without_spark import PARTITIONS, rows

SHARES = {"0.1 %": 1000, "10 %": 10}
TURNS = 20
_FEW_FILES = {"hoodie.clean.commits.retained": "1"}
_NO_METADATA = {"hoodie.metadata.enable": "false"}


@dataclass(frozen=True)
class Pair:
    """Two values to compare.

    Args:
        key: The option.
        values: What the other is compared with, and the other.
        kinds: Table types.
        options: What both tables have besides.
    """

    key: str
    values: tuple[str, str]
    kinds: tuple[str, ...] = ("cow",)
    options: dict[str, str] = field(default_factory=dict)


PAIRS = {
    "receipts": Pair("hoodie.engine.receipts", ("false", "true")),
    "version 9": Pair("hoodie.write.table.version", ("6", "9"), ("cow", "mor"), _NO_METADATA),
    "metadata table": Pair(
        "hoodie.metadata.enable", ("false", "true"), ("cow", "mor"), {"hoodie.write.table.version": "9"}
    ),
}


def batch(ids: np.ndarray, ts: int) -> pa.Table:
    """Return rows of twelve columns."""
    found, random = rows(ids, ts), np.random.default_rng(ts + 1)
    for number in range(5):
        found = found.append_column(f"n{number}", pa.array(random.integers(0, 1 << 40, len(ids))))
    return found


def measure(folder: str, pair: Pair, kind: str, count: int) -> dict[str, tuple[float, float]]:
    """Return the processor seconds with the first and the second value, by share of the rows."""
    random = np.random.default_rng(0)
    tables = [_table(f"{folder}/{value}", pair, kind, value) for value in pair.values]
    for table in tables:
        table.bulk_insert(batch(np.arange(count), 1))
    found, ts = {}, 2
    for share, part in SHARES.items():
        seconds: tuple[list[float], list[float]] = ([], [])
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


def _table(path: str, pair: Pair, kind: str, value: str) -> hudi_engine.Table:
    return hudi_engine.create_table(
        path, name="orders", record_key=["id"], precombine_field="ts", partition_by=["day"], table_type=kind,
        options={**_FEW_FILES, **pair.options, pair.key: value},
    )  # fmt: skip


def main() -> None:
    """Print the seconds and what the second value adds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PAIRS)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--folder", default=None, help="where tables are made; a temporary folder without it")
    given = parser.parse_args()
    sys.stdout.write(f"upserts into {given.rows:,} rows, {PARTITIONS} partitions, CPU seconds:\n")
    for name in [given.only] if given.only else PAIRS:
        pair = PAIRS[name]
        for kind in pair.kinds:
            with tempfile.TemporaryDirectory(dir=given.folder) as folder:
                for share, (before, after) in measure(folder, pair, kind, given.rows).items():
                    sys.stdout.write(
                        f"  {name:15} {kind} {share:>5}: {before:.2f} with {pair.values[0]}, {after:.2f} with {pair.values[1]}: "
                        f"{100 * (after / before - 1):+.1f} %\n"
                    )
                    sys.stdout.flush()


if __name__ == "__main__":
    main()
