"""Tables of versions 8 and 9 that this engine makes, continues and upgrades, read and continued by Apache Hudi."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi_engine import HudiTable

from tests.helpers.forms import in_turn
from tests.judge.apache_hudi import ApacheHudi
from tests.judge.arrow_rows import rows_of_spark
from tests.judge.hudi_rs import hudi_rs_rows
from tests.judge.readers import Judges
from tests.judge.rows import difference, without_meta

NEWEST = "1.2.0"
COLUMNS = "id string, ts long, dt string, val string"
BUSY = {
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "5",
    "hoodie.clean.commits.retained": "2",
}
TYPES = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}


@dataclass
class Table:
    """A table in a folder and the rows it should have.

    Args:
        kind: ``cow`` or ``mor``.
        rows: The rows by key.
    """

    spark: Any
    path: Path
    kind: str
    hudi: ApacheHudi
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)

    def make(self, version: int) -> None:
        """Make it in a table version."""
        HudiTable.create(
            self.spark, str(self.path), name="t", record_key="id", precombine_field="ts", partition_by="dt",
            table_type=self.kind, options={"hoodie.write.table.version": str(version)},
        )  # fmt: skip

    @property
    def opened(self) -> HudiTable:
        """The table, opened anew."""
        return HudiTable.open(self.spark, str(self.path))

    def frame(self, keys: Any, version: int) -> Any:
        """Rows of some keys."""
        values = [(f"k{key}", version, f"p{key % 3}", f"v{version} of {key}") for key in keys]
        return self.spark.createDataFrame(values, COLUMNS)

    def upsert(self, keys: Any, version: int, **options: str) -> str:
        """Upsert keys with a value of their own; return the instant."""
        done = self.opened.upsert(self.frame(keys, version), options=options)
        self.note(keys, version)
        return str(done.instant)

    def note(self, keys: Any, version: int) -> None:
        """Note what an upsert makes of the rows."""
        for key in keys:
            row = {"id": f"k{key}", "ts": version, "dt": f"p{key % 3}", "val": f"v{version} of {key}"}
            if row["id"] not in self.rows or self.rows[row["id"]]["ts"] <= version:
                self.rows[row["id"]] = row

    def upsert_by_hudi(self, keys: Any, version: int) -> None:
        """Upsert keys by Apache Hudi, in the version that the table has."""
        values = [
            list(values)
            for values in zip(*[(f"k{k}", version, f"p{k % 3}", f"v{version} of {k}") for k in keys])
        ]
        options = {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": "dt",
            "hoodie.datasource.write.table.type": TYPES[self.kind],
            "hoodie.write.table.version": str(self.opened.config.version),
            "hoodie.write.auto.upgrade": "false",
            "hoodie.metadata.enable": "false",
        }
        self.hudi.write(self.path, pa.table(values, names=["id", "ts", "dt", "val"]), options, keep_v6=False)
        self.note(keys, version)

    def check(self, after: str) -> None:
        """All readers see the rows, and nothing is wrong with the table."""
        wanted = list(self.rows.values())
        readers = {
            "this engine": lambda: rows_of_spark(self.opened.snapshot()),
            "hudi-rs": lambda: hudi_rs_rows(self.path),
            "Apache Hudi": lambda: self.hudi.read(self.path),
        }
        for name, read in readers.items():
            assert difference(without_meta(read()), wanted) == "", f"{after}, read by {name}"
        assert self.opened.validate(keys=True) == [], after


@pytest.fixture
def table(request: pytest.FixtureRequest, spark: Any, tmp_path: Path, apache_hudi: Judges) -> Table:
    return Table(spark, tmp_path / "t", request.param, apache_hudi(NEWEST))


@pytest.mark.parametrize(("table", "version"), in_turn(["cow", "mor"], [9, 8]), indirect=["table"])
def test_every_operation_and_service_leaves_the_right_rows(table: Table, version: int) -> None:
    table.make(version)
    table.upsert(range(30), 1)
    table.upsert(range(20, 40), 2)
    table.opened.delete(table.frame([1, 2, 3], 3))
    for key in (1, 2, 3):
        del table.rows[f"k{key}"]
    table.check("writes")
    if table.kind == "mor":
        table.opened.compact()
        table.upsert(range(6, 12), 4)
        table.check("compaction")
    table.opened.insert_overwrite(table.frame([0, 33], 5))
    table.rows = {key: row for key, row in table.rows.items() if row["dt"] != "p0"}
    table.note([0, 33], 5)
    table.opened.cluster()
    table.check("overwrite and clustering")
    saved, before = table.opened.savepoint().instant, dict(table.rows)
    table.upsert(range(40, 50), 6)
    table.check("a write after a savepoint")
    table.opened.restore(saved)
    table.rows = before
    table.check("restore")
    table.upsert(range(40, 50), 7)
    table.upsert_by_hudi([20, 77], 9)
    table.check("a write of Apache Hudi")
    table.upsert([20, 21, 78], 10)
    before = dict(table.rows)
    table.opened.rollback(table.upsert([21], 11))
    table.rows = before
    table.check("rollback")


@pytest.mark.parametrize("table", ["mor"], indirect=True)
def test_compaction_of_hudi_takes_logs_of_archived_writes(table: Table) -> None:
    chance = random.Random(1)
    table.make(8)
    for turn in range(1, 17):
        table.upsert(range(40) if turn == 1 else chance.sample(range(40), 6), turn, **BUSY)
    table.hudi.call(
        table.path, "run_compaction", keep_v6=False, op="scheduleAndExecute",
        options="hoodie.write.table.version=8,hoodie.write.auto.upgrade=false,hoodie.metadata.enable=false,"
        "hoodie.compact.inline.max.delta.commits=1",
    )  # fmt: skip
    table.check("compaction by Apache Hudi")


@pytest.mark.parametrize("table", ["cow", "mor"], indirect=True)
def test_upgrades_and_downgrades_between_writes_of_both(table: Table) -> None:
    chance, turn = random.Random(2), 0
    table.make(6)
    for version in (6, 8, 9, 6, 9):
        change = table.opened.upgrade if version >= table.opened.config.version else table.opened.downgrade
        change(version)
        assert table.opened.config.version == version
        table.check(f"version {version}")
        for _ in range(6):
            turn += 1
            table.upsert(chance.sample(range(40), 6), turn, **BUSY)
        turn += 1
        table.upsert_by_hudi([20, 77], turn)
        table.check(f"writes in version {version}")
