"""Cores, memory and size: a load and an upsert of 10 % on one core and two, with 1 GiB of memory, and at four times the rows.

python3 dev.py bench --only sizes        all of it, after the tables of the peers or alone
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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.processes import DRIVER, JAVA, WORKER, cpu_seconds, peaks
from benchmarks.workload import rows_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROOT = Path(__file__).resolve().parent.parent
LOAD, UPSERT = "load", "upsert 10 %"
ROWS, MORE = 5_000_000, 20_000_000


@dataclass(frozen=True)
class Form:
    """One table under one session.

    Args:
        rows: Rows loaded; a tenth of them are upserted, a tenth of those are new.
        partitions: Partitions of the table.
        master: Spark's master; ``standalone`` for two workers of one core each. With ``local[1]`` all processes are kept on one
            core, as one task alone keeps more than one busy: its Java and its Python work at the same time.
        driver: Memory of Java, or of driver and executors each.
        python: Memory that each Python worker may take, None for no limit.
        times: How often each step is done; the last one counts. The first of a process compiles Java's code, and two workers
            have to compile it both, each with half of the rows to learn from.
    """

    rows: int = ROWS
    partitions: int = 10
    master: str = "local[2]"
    driver: str = "4g"
    python: str | None = None
    times: int = 4


FORMS = {
    "one core": Form(master="local[1]"),
    "two cores": Form(),
    "two workers": Form(master="standalone", driver="2g"),
    "20 M rows, one partition, 1 GiB": Form(rows=MORE, partitions=1, driver="1g", python="1g", times=1),
    "20 M rows, fifty partitions, 1 GiB": Form(rows=MORE, partitions=50, driver="1g", python="1g", times=1),
    "20 M rows": Form(rows=MORE, times=2),
}
_Steps = dict[str, dict[str, float]]


def measure(scale: float = 1.0) -> dict[str, _Steps]:
    """Measure every form in a process of its own; says each step as it ends.

    Args:
        scale: Part of the rows, for a short run.
    """
    found: dict[str, _Steps] = {}
    for number, name in enumerate(FORMS, 1):
        print(f"[{number} of {len(FORMS)}] {name}", flush=True)
        command = [sys.executable, "-m", "benchmarks.sizes", "--form", name, "--scale", str(scale)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        steps = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        found[name] = {step.pop("step"): step for step in steps}
        for step, figures in found[name].items():
            memory = ", ".join(
                f"{kind} {figures[kind]:,.0f}" for kind in (DRIVER, JAVA, WORKER) if kind in figures
            )
            print(
                f"  {step:<14}{figures['seconds']:>8.1f} s {figures['cpu']:>8.1f} s cpu   MiB: {memory}",
                flush=True,
            )
        if done.returncode:
            print("  FAILED:\n" + "\n".join(done.stderr.strip().splitlines()[-5:]), flush=True)
    return found


def table(found: dict[str, _Steps]) -> str:
    """Return figures and ratios in Markdown."""
    lines = [
        "| load and upsert of 10 % | step | seconds | CPU seconds | driver, MiB | Java, MiB | a worker, MiB |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, steps in found.items():
        for step, each in steps.items():
            memory = " | ".join(
                f"{each[kind]:,.0f}" if kind in each else "" for kind in (DRIVER, JAVA, WORKER)
            )
            lines.append(f"| {name} | {step} | {each['seconds']:.1f} | {each['cpu']:.1f} | {memory} |")
    return "\n".join([*lines, "", "| aim | | measured | |", "|---|---|---|---|", *_aims(found)])


@dataclass(frozen=True)
class _Ratio:
    """What one form takes by what another takes, and its limit."""

    text: str
    above: str
    below: str
    unit: str
    at_least: float | None = None
    at_most: float | None = None

    def line(self, found: dict[str, _Steps], step: str) -> str | None:
        """Return the row of the table; None where one of them was not measured."""
        if step not in found.get(self.above, {}) or step not in found.get(self.below, {}):
            return None
        ratio = found[self.above][step][self.unit] / found[self.below][step][self.unit]
        limit, met = (
            (f"at least {self.at_least:g} x", ratio >= self.at_least)
            if self.at_least is not None
            else (f"at most {self.at_most:g} x", ratio <= (self.at_most or 0))
        )
        return f"| {step}: {self.text} | {limit} | {ratio:.2f} x | {'met' if met else '**missed**'} |"


_RATIOS = (
    _Ratio("two cores against one", "one core", "two cores", "seconds", at_least=1.8),
    _Ratio("two workers of one core against two cores", "two cores", "two workers", "seconds", at_least=0.85),
    _Ratio("seconds of four times the rows", "20 M rows", "two cores", "seconds", at_most=4.4),
)


def _aims(found: dict[str, _Steps]) -> list[str]:
    lines = (each.line(found, step) for each in _RATIOS for step in (LOAD, UPSERT))
    return [line for line in lines if line is not None]


def main() -> None:
    """Command line: one form; prints a JSON line a step."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--form", choices=list(FORMS), required=True)
    parser.add_argument("--scale", type=float, default=1.0)
    given = parser.parse_args()
    form = FORMS[given.form]
    if form.master == "local[1]" and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory(prefix="hudi-sizes-") as folder:
        if form.master == "standalone":
            from tests.helpers.cluster import running_cluster

            with running_cluster(Path(folder), workers=2, cores=1) as master:
                _run(replace(form, master=master), Path(folder), given.scale)
        else:
            _run(form, Path(folder), given.scale)


def _run(form: Form, folder: Path, scale: float) -> None:
    from hudi_engine import HudiTable

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = session(form, folder)
    rows = int(form.rows * scale)
    try:
        _land(spark, rows, form.partitions, folder)
        table: Any = None

        def load(_: int) -> None:
            nonlocal table
            shutil.rmtree(folder / "t", ignore_errors=True)
            table = HudiTable.create(
                spark, str(folder / "t"), name="t", record_key=["id", "dt"], partition_by=["dt"]
            )
            table.bulk_insert(spark.read.parquet(str(folder / "load")))

        _step(LOAD, load, form.times)
        _step(UPSERT, lambda number: table.upsert(_batch(spark, folder, number)), form.times)
        assert table.snapshot().count() == rows + rows // 100
    finally:
        spark.stop()


def _batch(spark: SparkSession, folder: Path, number: int) -> DataFrame:
    """Return the rows to upsert, with other values each time: columns that stay are not written again."""
    from pyspark.sql import functions as F

    return spark.read.parquet(str(folder / "batch")).withColumn("status", F.col("status") + F.lit(number))


def _land(spark: SparkSession, rows: int, partitions: int, folder: Path) -> None:
    """Write what is loaded and what is upserted as Parquet, so that every form reads the same."""

    def placed(frame: DataFrame) -> DataFrame:
        number = F.pmod(F.xxhash64("id"), F.lit(partitions))
        return frame.withColumn("dt", F.concat(F.lit("p"), number.cast("string")))

    from pyspark.sql import functions as F

    old = rows_frame(spark, 0, rows // 10 - rows // 100, 10)
    new = rows_frame(spark, rows, rows // 100)
    placed(rows_frame(spark, 0, rows)).write.parquet(str(folder / "load"))
    batch = placed(old.unionByName(new)).withColumn("status", F.col("status") + 1)
    batch.repartition(4).write.parquet(str(folder / "batch"))


def session(form: Form, folder: Path) -> SparkSession:
    """Return a session of a form; its warehouse goes below the folder."""
    from pyspark.sql import SparkSession

    conf = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "8",
        "spark.driver.memory": form.driver,
        "spark.executor.memory": form.driver,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    if form.python is not None:
        conf["spark.executor.pyspark.memory"] = form.python
    builder = SparkSession.builder.master(form.master)
    for key, value in conf.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _step(name: str, work: Callable[[int], object], times: int) -> None:
    """Do it so often and print what the last time took; the work is told which time it is."""
    for number in range(times):
        begun, cpu = time.monotonic(), cpu_seconds()
        with peaks() as memory:
            work(number)
        found = {"step": name, "seconds": time.monotonic() - begun, "cpu": cpu_seconds() - cpu, **memory}
        if number == times - 1:
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
