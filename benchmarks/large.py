"""A hundred million rows on one small machine: seconds, CPU seconds and the memory of each kind of process, step by step.

python3 dev.py bench large                        100 M rows: half an hour, 25 GB of disk
python3 dev.py bench large --rows 20000000        the same with a fifth of the rows
python3 dev.py bench large --cluster              loads and upserts on a standalone cluster of two workers

Rows lie in fifty partitions in the order in which they were made, as events do by day. *Keys everywhere* are those of all
partitions, so that a copy-on-write upsert writes nearly all files again; *recent keys* are those of the last partition, a tenth
of them new. Spark makes the rows while it loads them. Cleans keep one commit; the first that finds files is a step.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.processes import DRIVER, JAVA, WORKER, cpu_seconds, peaks
from benchmarks.sizes import Form, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITIONS = 50
_HEAP = "1200m"
_ROWS = (
    "select lower(concat(hex(xxhash64(id)), '-', hex(id))) id, {version}L ts, "
    "concat('p', lpad(cast(least({last}, floor(id * {partitions} / {rows})) as string), 2, '0')) dt, "
    "cast(id % 50000 as int) customer, hash(id, {version}) / 100.0 amount, concat('note ', id % 1000) note, "
    "cast((id + {version}) % 7 as int) status, timestamp_seconds(1760000000 + id) event_at"
)
_OPTIONS = {"hoodie.clean.automatic": "false", "hoodie.metadata.enable": "false"}
_PRIME = 7919


def main() -> int:
    """Command line; prints a line a step, and all of them as Markdown in the end."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument(
        "--cluster", action="store_true", help="two workers of one core, loads and upserts only"
    )
    parser.add_argument(
        "--folder", type=Path, help="where tables go (default: the system's temporary folder)"
    )
    given = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory(prefix="hudi-large-", dir=given.folder) as made:
        folder, form = Path(made), Form(master="local[2]", driver=_HEAP)
        if given.cluster:
            from tests.helpers.cluster import running_cluster

            cluster: Any = running_cluster(folder, workers=2, cores=1)
        else:
            cluster = nullcontext(form.master)
        with cluster as master:
            spark = session(Form(master=master, driver=_HEAP), folder)
            try:
                steps = _Steps(spark, folder, given.rows)
                steps.copy_on_write(all_of_it=not given.cluster)
                steps.merge_on_read()
            finally:
                spark.stop()
    print("\n" + steps.table())
    return 0


class _Steps:
    """The steps on one session."""

    def __init__(self, spark: SparkSession, folder: Path, rows: int) -> None:
        self.spark, self.folder, self.rows = spark, folder, rows
        self.version, self.path, self.kind = 1, "", ""
        self.instants: list[str] = []
        self.found: list[dict[str, Any]] = []

    def copy_on_write(self, *, all_of_it: bool) -> None:
        """Load, upserts, reads, services, global keys and the record index of a copy-on-write table."""
        self._load("copy-on-write", "cow")
        self._upsert("upsert of 0.1 %, keys everywhere", self._everywhere(1000))
        self._upsert("upsert of 1 %, keys everywhere", self._everywhere(100))
        self._step("clean", self._clean)
        self._upsert("upsert of 0.1 %, recent keys", self._recent(1000))
        self._upsert("upsert of 1 %, recent keys", self._recent(100))
        if all_of_it:
            self._step("changes of the last commit", self._changes)
            self._step("count and two sums", self._scan)
            by_keys = {"hoodie.index.type": "GLOBAL_SIMPLE"}
            self._upsert("upsert of 0.1 %, global keys", self._everywhere(1000), by_keys)
            self._clean()
            services = self._table().services()
            self._step("building the record index", lambda: services.create_index("record_index"))
            by_index = {"hoodie.index.type": "RECORD_INDEX", "hoodie.metadata.enable": "true"}
            self._upsert(
                "upsert of 0.1 %, global keys, by the record index", self._everywhere(1000), by_index
            )
            self._clean()
            self._upsert("upsert of 0.1 %, recent keys, by the record index", self._recent(1000), by_index)
            self._step("archive", lambda: self._table().services().archive(3, 4))
        shutil.rmtree(self.path)

    def merge_on_read(self) -> None:
        """Load, upserts, a compaction and reads of a merge-on-read table."""
        self._load("merge-on-read", "mor")
        self._upsert("upsert of 0.1 %, keys everywhere", self._everywhere(1000))
        self._upsert("upsert of 1 %, keys everywhere", self._everywhere(100))
        self._upsert("upsert of 1 %, recent keys", self._recent(100))
        self._step("count and two sums", self._scan)
        self._step("compaction", lambda: self._table().compact())
        self._step("count and two sums after it", self._scan)
        shutil.rmtree(self.path)

    def table(self) -> str:
        """Return all steps as Markdown."""
        head = ["table", "step", "seconds", "CPU seconds", "driver, MiB", "Java, MiB", "a worker, MiB"]
        lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
        for each in self.found:
            memory = [f"{each[kind]:,.0f}" if kind in each else "" for kind in (DRIVER, JAVA, WORKER)]
            row = [each["table"], each["step"], f"{each['seconds']:.1f}", f"{each['cpu']:.1f}", *memory]
            lines.append("| " + " | ".join(row) + " |")
        return "\n".join(lines)

    def _load(self, kind: str, table_type: str) -> None:
        from hudi_engine import HudiTable

        self.kind, self.path = kind, str(self.folder / table_type)
        made = HudiTable.create(
            self.spark, self.path, name="large", record_key=["id"], precombine_field="ts", partition_by=["dt"],
            table_type=table_type, options={**_OPTIONS, "hoodie.write.table.version": "9"},
        )  # fmt: skip
        self._step("load", lambda: made.bulk_insert(self._made("range(0, {rows}, 1, 50)", 1)))

    def _made(self, source: str, version: int) -> DataFrame:
        values = {"version": version, "rows": self.rows, "partitions": PARTITIONS, "last": PARTITIONS - 1}
        return self.spark.sql(f"{_ROWS} from {source}".format(**values))

    def _everywhere(self, share: int) -> DataFrame:
        """Rows of a share of all keys, which lie in all partitions."""
        self.version += 1
        count = self.rows // share
        ids = f"(select (id * {_PRIME} * 13 + {self.version}) % {self.rows} id from range({count}))"
        return self._made(ids, self.version)

    def _recent(self, share: int) -> DataFrame:
        """Rows of the last partition, a tenth of them new."""
        self.version += 1
        count = self.rows // share
        new = count // 10
        last = self.rows // PARTITIONS
        old = f"select {self.rows} - 1 - (id * {_PRIME}) % {last} id from range({count - new})"
        made = f"select {self.rows} + {self.version} * {self.rows // 10} + id id from range({new})"
        return self._made(f"({old} union all {made})", self.version)

    def _table(self) -> Any:
        from hudi_engine import HudiTable

        return HudiTable.open(self.spark, self.path, options=_OPTIONS)

    def _upsert(self, name: str, batch: DataFrame, options: dict[str, str] | None = None) -> None:
        """Upsert; of options that are given twice the later ones count."""
        given = {**_OPTIONS, **(options or {})}
        self._step(name, lambda: self.instants.append(self._table().upsert(batch, options=given).instant))

    def _clean(self) -> None:
        self._table().clean(retain_commits=1)

    def _changes(self) -> object:
        return self._table().changes(start=self.instants[-2]).count()

    def _scan(self) -> object:
        return self._table().snapshot().selectExpr("count(*)", "sum(amount)", "sum(status)").collect()

    def _step(self, name: str, work: Callable[[], object]) -> None:
        begun, cpu = time.monotonic(), cpu_seconds()
        with peaks() as memory:
            work()
        seconds = time.monotonic() - begun
        found = {"table": self.kind, "step": name, "seconds": seconds, "cpu": cpu_seconds() - cpu, **memory}
        self.found.append(found)
        shown = ", ".join(f"{kind} {memory[kind]:,.0f}" for kind in (DRIVER, JAVA, WORKER) if kind in memory)
        print(
            f"{self.kind:<14} {name:<52} {seconds:>8.1f} s {found['cpu']:>8.1f} s cpu  MiB: {shown}",
            flush=True,
        )


if __name__ == "__main__":
    raise SystemExit(main())
