"""Updates of 3 of 30 columns in a merge-on-read table of version 9: bytes of logs and seconds, beside whole rows and Apache Hudi.

python3 dev.py bench --only partial        after nothing else
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.jars import fetch
from benchmarks.session import large_session
from benchmarks.systems import ApacheHudi

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROOT = Path(__file__).resolve().parent.parent
ROWS, SHARE, TIMES = 2_000_000, 10, 3
"""Rows of the table, of which one in so many is updated, so often; the last time counts."""
PARTITIONS = 4
OPTION = "hoodie.spark.sql.merge.into.partial.updates"
OWN = {
    "this engine, whole rows": {OPTION: "false"},
    "this engine, three columns": {},
    "the same, not published to Spark SQL": {"hoodie.engine.publish.manifest": "false"},
}
HUDI = {
    "Apache Hudi 1.2.0, whole rows": {OPTION: "false"},
    "Apache Hudi 1.2.0, three columns": {OPTION: "true"},
}
_CHANGED = ("ts", "n1", "t1")


def rows_of(spark: SparkSession, rows: int, turn: int = 0) -> DataFrame:
    """Return rows of 30 columns; of a turn every tenth one, with other values in three of them."""
    ids = spark.range(rows) if turn == 0 else spark.range(0, rows, SHARE)
    numbers = [f"cast(hash(id, {n}) as bigint) n{n}" for n in range(2, 14)]
    texts = [f"sha1(concat(id, '-{n}')) t{n}" for n in range(2, 14)]
    changed = (
        f"cast({turn} as bigint) ts", f"cast(hash(id, 1) + {turn} as bigint) n1", f"sha1(concat(id, '-1-{turn}')) t1",
    )  # fmt: skip
    return ids.selectExpr(
        "id", *changed, *numbers, *texts, f"concat('p', id % {PARTITIONS}) part", "'x' last"
    )


def own(spark: SparkSession, folder: Path, rows: int, options: dict[str, str]) -> Callable[[int], None]:
    """Make the table with this engine; return what updates it."""
    from hudi_engine import HudiTable

    path = str(folder / "t")
    given = {"hoodie.write.table.version": "9", "hoodie.compact.inline": "false", **options}
    HudiTable.create(
        spark, path, name="t", record_key="id", precombine_field="ts", partition_by="part", table_type="mor",
        options=given,
    ).bulk_insert(rows_of(spark, rows))  # fmt: skip
    table = HudiTable.open(spark, path, options=given)

    def update(turn: int) -> None:
        table.upsert(rows_of(spark, rows, turn), update_columns=list(_CHANGED))

    return update


def hudi(spark: SparkSession, folder: Path, rows: int, options: dict[str, str]) -> Callable[[int], None]:
    """Make the table with Apache Hudi; return what updates it."""
    path = str(folder / "t")
    given = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.operation": "bulk_insert",
        "hoodie.metadata.enable": "false",
    }
    rows_of(spark, rows).write.format("hudi").options(**given).mode("overwrite").save(path)
    for key, value in {**options, "hoodie.metadata.enable": "false"}.items():
        spark.conf.set(key, value)
    spark.sql(f"create table t using hudi location '{path}'")

    def update(turn: int) -> None:
        rows_of(spark, rows, turn).createOrReplaceTempView("s_batch")
        # Hudi's whole rows need an assignment of every column
        some = ", ".join(f"{name} = s.{name}" for name in _CHANGED)
        sets = "*" if options[OPTION] == "false" else some
        spark.sql(
            f"merge into t using s_batch s on t.id = s.id and t.part = s.part when matched then update set {sets}"
        )

    return update


def measure(scale: float = 1.0) -> dict[str, dict[str, float]]:
    """Measure every form in a process of its own; Apache Hudi where its jar can be had.

    Args:
        scale: Part of the rows, for a short run.
    """
    found: dict[str, dict[str, float]] = {}
    jars = fetch(ApacheHudi.jars)
    for name in (*OWN, *(HUDI if jars else ())):
        command = [sys.executable, "-m", "benchmarks.partial_updates", "--form", name, "--scale", str(scale)]
        command += ["--jars", ",".join(map(str, jars or ()))] if name in HUDI else []
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if lines:
            found[name] = json.loads(lines[-1])
        print(f"{name}: {lines[-1] if lines else done.stderr[-300:]}", flush=True)
    return found


def table(found: dict[str, dict[str, float]]) -> str:
    """Return what was measured as Markdown."""
    lines = ["| update of 3 of 30 columns | rows | MB of logs | seconds |", "|---|---|---|---|"]
    lines += [
        f"| {name} | {each['rows']:,.0f} of {each['of']:,.0f} | {each['bytes'] / 1e6:.1f} | {each['seconds']:.1f} |"
        for name, each in found.items()
    ]
    return "\n".join(lines)


def main() -> int:
    """Measure one form, in this process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--form", choices=(*OWN, *HUDI), required=True)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--jars", default="")
    wanted = parser.parse_args()
    rows = int(ROWS * wanted.scale)
    with tempfile.TemporaryDirectory(prefix="hudi-partial-") as name:
        folder = Path(name)
        by_hudi = wanted.form in HUDI
        spark = large_session(ApacheHudi.conf if by_hudi else {}, wanted.jars, folder)
        make, options = (hudi, HUDI[wanted.form]) if by_hudi else (own, OWN[wanted.form])
        update = make(spark, folder, rows, options)
        seconds, before = 0.0, 0
        for turn in range(1, TIMES + 1):
            before, start = _bytes(folder), time.monotonic()
            update(turn)
            seconds = time.monotonic() - start
        written = _bytes(folder) - before
        print(json.dumps({"rows": rows // SHARE, "of": rows, "bytes": written, "seconds": seconds}))
        spark.stop()
    return 0


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("t/*/.*.log.*"))


if __name__ == "__main__":
    sys.exit(main())
