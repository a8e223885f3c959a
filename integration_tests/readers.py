"""Reading the demo's tables back with independent readers, and comparing what they give."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from hudi import HudiReadOptions, HudiTableBuilder  # noqa: E402

from tests.judge import apache_hudi  # noqa: E402

_PENDING = apache_hudi.DESCRIPTION.with_suffix(".pending")
"""There while `dev.py` fetches Apache Hudi."""
_LONGEST_WAIT_SECONDS = 1200

Reader = Callable[[str, Path], pa.Table]


@dataclass(frozen=True)
class Verdict:
    """What a reader said about a table."""

    reader: str
    table: str
    rows: int
    difference: str
    seconds: float


def canonical(table: pa.Table) -> pa.Table:
    """Bring a table to one form: data columns by name, one type for each kind, rows in order."""
    columns = {}
    for name in sorted(name for name in table.column_names if not name.startswith("_hoodie_")):
        column = table.column(name)
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", "UTC"))
        elif pa.types.is_large_string(column.type) or pa.types.is_dictionary(column.type):
            column = column.cast(pa.string())
        columns[name] = column.combine_chunks()
    plain = pa.table(columns)
    return plain.sort_by([(name, "ascending") for name in _sortable(plain)])


def _sortable(table: pa.Table) -> list[str]:
    """Give the columns to sort by: as few as tell the rows apart, text and numbers first."""
    preferred = ("arrival", "recorded_at", "flight_date", "carrier", "flight", "origin", "time_hour")
    names = [name for name in preferred if name in table.column_names]
    return names + [name for name in table.column_names if name not in names]


def difference(ours: pa.Table, theirs: pa.Table) -> str:
    """Say how two canonical tables differ; empty text when they are equal."""
    if ours.column_names != theirs.column_names:
        return f"columns {ours.column_names} against {theirs.column_names}"
    if ours.num_rows != theirs.num_rows:
        return f"{ours.num_rows} rows against {theirs.num_rows}"
    for name in ours.column_names:
        left, right = ours.column(name), theirs.column(name)
        if left.type != right.type:
            return f"column {name} is {left.type} against {right.type}"
        if not left.equals(right):
            unequal = pc.fill_null(pc.not_equal(left, right), True)
            at = pc.index(unequal, True).as_py()
            return f"column {name}, for example {left[at]} against {right[at]}"
    return ""


def judge(reader: str, read: Reader, tables: dict[str, Path], ours: dict[str, pa.Table]) -> Iterator[Verdict]:
    """Read every table with one reader and compare."""
    for name, path in tables.items():
        start = time.monotonic()
        theirs = canonical(read(name, path))
        yield Verdict(reader, name, theirs.num_rows, difference(ours[name], theirs), time.monotonic() - start)


def of_session(spark: Any, name: str) -> pa.Table:
    """Select a table by its name in the session that dbt used."""
    return spark.table(name).toArrow()


def truth(year: pa.Table, months: range) -> pa.Table:
    """Give the flights that must be in the table in the end, from the raw data, in canonical form."""
    return canonical(year.filter(pc.is_in(year["month"], pa.array(months, year["month"].type))))


@contextmanager
def plain_spark(warehouse: Path, schema: str, tables: dict[str, Path]) -> Iterator[Reader]:
    """Plain Spark SQL in a fresh process: it selects from every table by name."""
    with tempfile.TemporaryDirectory(prefix="plain-spark-") as folder:
        program = [sys.executable, str(HERE / "read_plainly.py"), str(warehouse), schema, folder, *tables]
        done = subprocess.run(program, capture_output=True, text=True, cwd=folder)
        if done.returncode != 0:
            raise RuntimeError(f"plain Spark failed:\n{done.stderr[-3000:]}")
        yield lambda name, path: pq.read_table(f"{folder}/{name}")


@contextmanager
def hudi_rs() -> Iterator[Reader]:
    """hudi-rs, in Rust, in this process."""

    def read(name: str, path: Path) -> pa.Table:
        batches = HudiTableBuilder.from_base_uri(str(path)).build().read(HudiReadOptions())
        return pa.Table.from_batches(batches)

    yield read


@contextmanager
def real_hudi(version: str) -> Iterator[Reader]:
    """Apache Hudi itself, on PySpark 3.5 in a process of its own."""
    process = apache_hudi.ApacheHudi(version)
    try:
        yield lambda name, path: process.read_arrow(path)
    finally:
        process.close()


def apache_hudi_is_there() -> bool:
    """Whether Apache Hudi can be used; waits while it is still being fetched."""
    start = time.monotonic()
    while _PENDING.exists() and time.monotonic() - start < _LONGEST_WAIT_SECONDS:
        time.sleep(0.5)
    return apache_hudi.available()
