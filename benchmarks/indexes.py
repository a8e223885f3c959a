"""Look-ups and upserts by the indexes of the metadata table, what each index costs to build and to keep, and Apache Hudi beside.

python3 dev.py bench indexes [--rows 20000000] [--partitions 100]

Keys say nothing of their partition. Each side has a process of its own; a step that is named twice counts the second time.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.jars import fetch
from benchmarks.session import large_session
from benchmarks.systems import ApacheHudi

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROOT = Path(__file__).resolve().parent.parent
_KEY = "lower(concat(hex(xxhash64(id)), '-', hex(id)))"
_ROWS = f"select {_KEY} id, {{version}}L ts, concat('p', id % {{partitions}}) dt, id n, rand(7) amount, uuid() note"
_BY_INDEX, _BY_KEYS = {"hoodie.index.type": "RECORD_INDEX"}, {"hoodie.index.type": "GLOBAL_SIMPLE"}
_BATCHES = (100, 10_000)
_PRIME = 7919


def main() -> int:
    """Command line; prints each step, and how the sides compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--partitions", type=int, default=100)
    parser.add_argument("--sides", default="dbt-hudi,hudi")
    parser.add_argument("--side", choices=("dbt-hudi", "hudi"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        _Side(given).run()
        return 0
    found: dict[str, dict[str, float]] = {}
    for side in given.sides.split(","):
        arguments = ["--rows", str(given.rows), "--partitions", str(given.partitions), "--side", side]
        command = [sys.executable, "-m", "benchmarks.indexes", *arguments]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in (line for line in process.stdout if line.startswith("{")):
                step = json.loads(line)
                found.setdefault(side, {})[step["step"]] = step["seconds"]
                print(f"{side:<9} {step['step']:<46} {step['seconds']:>9.3f} s", flush=True)
        if process.returncode:
            print(f"{side} FAILED with {process.returncode}")
    _compare(found)
    return 0


def _compare(found: dict[str, dict[str, float]]) -> None:
    ours, theirs = found.get("dbt-hudi", {}), found.get("hudi", {})

    def line(what: str, one: float | None, other: float | None) -> None:
        if one is not None and other:
            print(f"{what:<72} {one / other:>6.2f}")

    for kind in ("cow", "mor"):
        for batch in _BATCHES:
            by_index = ours.get(f"{kind}: upsert {batch} keys, record index")
            line(f"{kind}: {batch} keys by record index to GLOBAL_SIMPLE", by_index,
                 ours.get(f"{kind}: upsert {batch} keys, global simple"))  # fmt: skip
            line(f"{kind}: {batch} keys by record index to Apache Hudi's", by_index,
                 theirs.get(f"{kind}: upsert {batch} keys, record index"))  # fmt: skip
    line(
        "cow: building the record index to the load",
        ours.get("cow: build record_index"),
        ours.get("cow: load"),
    )
    plain = ours.get("cow: upsert 10 %, no metadata table")
    for index in ("files and column_stats", "record_index too"):
        line(f"cow: upsert of 10 % with {index} to none", ours.get(f"cow: upsert 10 %, {index}"), plain)


class _Side:
    """One side, in its own process."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.rows, self.partitions, self.side = given.rows, given.partitions, given.side
        os.environ["PYSPARK_PYTHON"] = sys.executable
        self.folder = Path(tempfile.mkdtemp(prefix="indexes-"))
        jars = fetch(ApacheHudi.jars) if given.side == "hudi" else []
        if jars is None:
            raise SystemExit(f"the jar of Apache Hudi cannot be fetched: {ApacheHudi.jars}")
        conf = ApacheHudi.conf if given.side == "hudi" else {}
        self.spark: SparkSession = large_session(conf, ",".join(map(str, jars)), self.folder)

    def run(self) -> None:
        """Do all steps."""
        try:
            for kind in ("cow", "mor"):
                (self._ours if self.side == "dbt-hudi" else self._hudi)(kind)
                shutil.rmtree(self.folder / kind)
        finally:
            self.spark.stop()
            shutil.rmtree(self.folder)

    def _step(self, name: str, act: Callable[[], Any]) -> Any:
        begun = time.perf_counter()
        result = act()
        print(json.dumps({"step": name, "seconds": time.perf_counter() - begun}), flush=True)
        return result

    def _all(self) -> DataFrame:
        return self.spark.sql(f"{self._select(1)} from range(0, {self.rows}, 1, {self.partitions // 10})")

    def _select(self, version: int) -> str:
        return _ROWS.format(version=version, partitions=self.partitions)

    def _some(self, number: int, version: int) -> DataFrame:
        """Rows whose keys lie everywhere."""
        ids = f"select (id * {_PRIME} + {version}) % {self.rows} id from range({number})"
        return self.spark.sql(f"{self._select(version)} from ({ids})").coalesce(2).localCheckpoint()

    def _ours(self, kind: str) -> None:
        from hudi_engine import HudiTable, lookup

        options = {"hoodie.write.table.version": "9", "hoodie.metadata.enable": "false"}
        path = str(self.folder / kind)
        made = HudiTable.create(
            self.spark, path, name="t", record_key=["id"], partition_by=["dt"], precombine_field="ts",
            table_type=kind, options=options,
        )  # fmt: skip
        self._step(f"{kind}: load", lambda: made.bulk_insert(self._all()))
        version, on = 2, {"hoodie.metadata.enable": "true"}

        def upsert(number: int, given: dict[str, str], called: str) -> None:
            nonlocal version
            for _ in range(2):
                version += 1
                batch, table = self._some(number, version), HudiTable.open(self.spark, path)
                self._step(f"{kind}: {called}", lambda: table.upsert(batch, options=given))  # noqa: B023

        services = HudiTable.open(self.spark, path).services()
        if kind == "cow":
            part = self.rows // 10
            upsert(part, {"hoodie.metadata.enable": "false"}, "upsert 10 %, no metadata table")
            self._step("cow: build files and column_stats", lambda: services.create_index("column_stats"))
            upsert(part, on, "upsert 10 %, files and column_stats")
        self._step(f"{kind}: build record_index", lambda: services.create_index("record_index"))
        if kind == "cow":
            upsert(part, on, "upsert 10 %, record_index too")
        for number in (1, 1_000, 100_000):
            keys = [row.id for row in self._some(number, 1).select("id").collect()]
            for _ in range(2):
                self._step(f"{kind}: look up {number} keys", lambda: lookup(path, keys).to_arrow())  # noqa: B023
        by_key = [("id", "=", keys[0])]
        for _ in range(2):
            table = HudiTable.open(self.spark, path)
            self._step(f"{kind}: filter by a key", lambda: table.snapshot(filters=by_key).collect())  # noqa: B023
        for number in _BATCHES:
            upsert(number, {**on, **_BY_INDEX}, f"upsert {number} keys, record index")
        services.drop_index("record_index")
        for number in _BATCHES:
            upsert(number, {**on, **_BY_KEYS}, f"upsert {number} keys, global simple")

    def _hudi(self, kind: str) -> None:
        options = {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": "dt",
            "hoodie.datasource.write.table.type": {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}[kind],
            "hoodie.metadata.enable": "true",
            "hoodie.metadata.global.record.level.index.enable": "true",
            "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
        }

        def write(rows: DataFrame, operation: str, mode: str) -> None:
            given = {**options, "hoodie.datasource.write.operation": operation}
            rows.write.format("hudi").options(**given).mode(mode).save(str(self.folder / kind))

        self._step(f"{kind}: load with record index", lambda: write(self._all(), "bulk_insert", "overwrite"))
        version = 2
        for number in _BATCHES:
            for _ in range(2):
                version += 1
                batch = self._some(number, version)
                called = f"{kind}: upsert {number} keys, record index"
                self._step(called, lambda: write(batch, "upsert", "append"))  # noqa: B023


if __name__ == "__main__":
    raise SystemExit(main())
