"""What a table takes on disk and what a scan of all its own columns takes, beside the same rows as plain Parquet with zstd.

python3 dev.py bench stored_bytes [--rows 5000000]

Keys of three kinds: `md5`, random text; `number`, whole numbers in random order; `ordered`, whole numbers in the order of the rows.
Tables are written with and without Bloom filters in their footers. Scans write to Spark's `noop` in turn, so that all have the same
minutes.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from benchmarks.session import large_session
from benchmarks.workload import rows_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEYS = {
    "md5": "id",
    "number": "cast(pmod(ts * 2654435761, 4294967296) as string)",
    "ordered": "cast(ts as string)",
}
_WARM, _COUNTED = 6, 9
_OF_HUDI = ("_hoodie_record_key", "_hoodie_commit_seqno")


def main() -> int:
    """Command line; prints two tables of Markdown."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=5_000_000)
    given = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory(prefix="bytes-") as made:
        spark = large_session({}, "", Path(made))
        try:
            print("| keys | form | MB | to Parquet | bytes of a row: key, number in the commit, footer |")
            print("|---|---|---|---|---|")
            forms = {kind: _written(spark, Path(made) / kind, kind, given.rows) for kind in KEYS}
            print("\n| keys | form | own columns, s | to Parquet |\n|---|---|---|---|")
            for kind, frames in forms.items():
                _scan(kind, frames)
        finally:
            spark.stop()
    return 0


def _written(spark: SparkSession, folder: Path, kind: str, rows: int) -> dict[str, DataFrame]:
    """Write the forms of one kind of keys, print what they take, and return what reads them."""
    from hudi_engine import HudiTable
    from pyspark.sql import functions as F

    source = rows_frame(spark, 0, rows).withColumn("id", F.expr(KEYS[kind]))
    plain = folder / "parquet"
    source.repartition("dt").write.option("compression", "zstd").partitionBy("dt").parquet(str(plain))
    read = {"Parquet": spark.read.parquet(str(plain)).select(source.columns)}
    parquet = _report(kind, "Parquet", plain, rows, None)
    for form, enabled in (("table", "true"), ("table without Bloom filters", "false")):
        path = folder / enabled
        table: Any = HudiTable.create(
            spark, str(path), name="t", record_key=["id"], precombine_field="ts", partition_by=["dt"],
            options={"hoodie.parquet.bloom.filter.enabled": enabled},
        )  # fmt: skip
        table.bulk_insert(source.repartition("dt"), options={"hoodie.parquet.bloom.filter.enabled": enabled})
        _report(kind, form, path, rows, parquet)
        read[form] = table.snapshot().select(source.columns)
    return read


def _report(kind: str, form: str, folder: Path, rows: int, parquet: int | None) -> int:
    """Print the bytes of a form's data files, and what the columns and footers of Hudi are of them."""
    files = [each for each in folder.rglob("*.parquet") if ".hoodie" not in each.parts]
    size, own, footers = sum(each.stat().st_size for each in files), dict.fromkeys(_OF_HUDI, 0), 0
    for each in files:
        metadata = pq.read_metadata(each)
        footers += metadata.serialized_size
        for group in range(metadata.num_row_groups):
            for column in range(metadata.num_columns):
                chunk = metadata.row_group(group).column(column)
                if chunk.path_in_schema in own:
                    own[chunk.path_in_schema] += chunk.total_compressed_size
    parts = ", ".join(f"{each / rows:.2f}" for each in (*own.values(), footers))
    ratio = f"{size / parquet:.2f} x" if parquet else ""
    print(f"| {kind} | {form} | {size / 1e6:.0f} | {ratio} | {parts if parquet else ''} |", flush=True)
    return size


def _scan(kind: str, frames: dict[str, DataFrame]) -> None:
    """Scan the forms in turn and print the medians."""
    taken: dict[str, list[float]] = {form: [] for form in frames}
    for number in range(_WARM + _COUNTED):
        for form, frame in frames.items():
            begun = time.perf_counter()
            frame.write.format("noop").mode("overwrite").save()
            if number >= _WARM:
                taken[form].append(time.perf_counter() - begun)
    for form, seconds in taken.items():
        ratio = median(seconds) / median(taken["Parquet"])
        print(f"| {kind} | {form} | {median(seconds):.2f} | {ratio:.2f} x |", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
