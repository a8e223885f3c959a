"""Logs of updates of some columns, which tables of versions 8 and 9 have in partial blocks, read by all and continued by Hudi."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi_engine import HudiTable
from hudi_engine.errors import SchemaError
from hudi_engine.format.logformat.reader import read_blocks
from hudi_engine.spark.write.rows.clauses import MergeClauses

from tests.judge.apache_hudi import ApacheHudi
from tests.judge.arrow_rows import rows_of_spark
from tests.judge.hudi_rs import hudi_rs_rows
from tests.judge.readers import Judges
from tests.judge.rows import difference, without_meta

NEWEST = "1.2.0"
NAMES = ("id", "ts", "dt", "qty", "note", "tags")
TYPES = "id string, ts long, dt string, qty int, note string, tags array<string>"
HUDI = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "dt",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.metadata.enable": "false",
}
Row = tuple[Any, ...]


def row(key: int, ts: int, note: str | None) -> Row:
    return (f"k{key}", ts, f"p{key % 2}", key * ts, note, [f"t{key}"])


class Table:
    """A merge-on-read table and the rows it should have.

    Args:
        path: Its folder.
        hudi: The judge.
        ordering: Ordering column, None for none.
        more: Options of the table.
    """

    def __init__(
        self,
        spark: Any,
        path: Path,
        hudi: ApacheHudi,
        version: int,
        ordering: str | None,
        more: dict[str, str],
    ) -> None:
        self._spark, self.path, self._hudi = spark, path, hudi
        self.rows: dict[str, list[Any]] = {}
        options = {
            "hoodie.write.table.version": str(version),
            "hoodie.compact.inline": "false",
            "hoodie.logfile.data.block.format": "avro",
            **more,
        }
        HudiTable.create(
            spark, str(path), name="t", record_key="id", precombine_field=ordering, partition_by="dt",
            table_type="mor", options=options,
        )  # fmt: skip
        self._options = options
        self._index = {key: value for key, value in more.items() if "index" in key}

    @property
    def opened(self) -> HudiTable:
        return HudiTable.open(self._spark, str(self.path), options=self._options)

    def frame(self, rows: list[Row]) -> Any:
        return self._spark.createDataFrame(rows, TYPES)

    def upsert(self, rows: list[Row], *columns: str) -> None:
        """Upsert rows, of stored ones only some columns if any are given."""
        self.opened.upsert(self.frame(rows), update_columns=columns or None)
        self.note(rows, *columns)

    def note(self, rows: list[Row], *columns: str) -> None:
        for each in rows:
            stored = self.rows.setdefault(each[0], list(each))
            for place, name in enumerate(NAMES):
                if not columns or name in columns:
                    stored[place] = each[place]

    def upsert_by_hudi(self, rows: list[Row], version: int) -> None:
        kinds = pa.schema(
            [
                ("id", pa.string()),
                ("ts", pa.int64()),
                ("dt", pa.string()),
                ("qty", pa.int32()),
                ("note", pa.string()),
                ("tags", pa.list_(pa.string())),
            ]  # fmt: skip
        )
        values = pa.table([list(each) for each in zip(*rows, strict=True)], schema=kinds)
        options = {**HUDI, **self._index, "hoodie.write.table.version": str(version)}
        self._hudi.write(self.path, values, options, keep_v6=False)
        self.note(rows)

    def compact_by_hudi(self, version: int) -> None:
        index = "".join(f",{key}={value}" for key, value in self._index.items())
        index += ",hoodie.datasource.write.recordkey.field=id"
        self._hudi.call(
            self.path, "run_compaction", keep_v6=False, op="scheduleAndExecute",
            options=f"hoodie.write.table.version={version},hoodie.write.auto.upgrade=false,hoodie.metadata.enable=false,"
            f"hoodie.compact.inline.max.delta.commits=1{index}",
        )  # fmt: skip

    def headers(self) -> list[tuple[bool, int]]:
        """Whether each data block of the logs is partial, and its columns without meta columns."""
        found = []
        for log in sorted(self.path.glob("*/.*.log.*")):
            for block in read_blocks(log.read_bytes()):
                if block.is_data:
                    found.append((block.is_partial, len(json.loads(block.schema or "{}")["fields"]) - 5))
        return found

    def check(self, after: str) -> None:
        """All readers see the rows."""
        wanted = [dict(zip(NAMES, values, strict=True)) for values in self.rows.values()]
        readers = {
            "this engine": lambda: rows_of_spark(self.opened.snapshot()),
            "hudi-rs": lambda: hudi_rs_rows(self.path),
            "Apache Hudi": lambda: self._hudi.read(self.path),
        }
        for name, read in readers.items():
            assert difference(without_meta(read()), wanted) == "", f"{after}, read by {name}"
        assert self.opened.validate(keys=True) == [], after


@pytest.fixture
def table(spark: Any, tmp_path: Path, apache_hudi: Judges, request: pytest.FixtureRequest) -> Table:
    version, ordering, more = request.param
    return Table(spark, tmp_path / "t", apache_hudi(NEWEST), version, ordering, more)


BUCKETS = {
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.bucket.index.hash.field": "id",
}
PLAIN = {"hoodie.engine.publish.manifest": "false"}
PARQUET = {"hoodie.logfile.data.block.format": "parquet"}


@pytest.mark.parametrize(
    "table",
    [
        (9, "ts", {}),
        pytest.param((9, None, {**PLAIN, **PARQUET}), marks=pytest.mark.long),
        pytest.param((8, "ts", {**PLAIN, **BUCKETS}), marks=pytest.mark.long),
    ],
    ids=["ordered, published", "no order, Parquet", "buckets"],
    indirect=True,
)
def test_updates_of_some_columns_are_partial_blocks_that_all_readers_merge(table: Table) -> None:
    version = table.opened.config.version
    table.upsert([row(key, 1, "first") for key in range(8)])
    table.upsert([row(key, 2, f"note {key}") for key in (0, 1, 2, 50)], "ts", "note")
    table.check("an update of two columns")
    assert any(partial for partial, _ in table.headers())
    table.upsert([row(key, 3, None) for key in (0, 1)], "ts", "note")
    table.opened.update_where("id = 'k3'", {"note": "upper(note)"})
    table.rows["k3"][4] = "FIRST"
    table.check("null, and an update by a condition")
    table.opened.delete(table.frame([row(1, 3, None), row(2, 3, None)]))
    del table.rows["k1"], table.rows["k2"]
    table.upsert([row(key, 4, "back") for key in (1, 3)], "ts", "note")
    table.check("deletes, and a key that comes back")
    table.opened.merge(
        table.frame([row(key, 5, "merged") for key in (4, 5, 60)]),
        MergeClauses(
            update_set={"note": "concat(DBT_INTERNAL_DEST.note, '!')"}, update_columns=("ts", "note")
        ),
    )
    for key in (4, 5):
        table.rows[f"k{key}"][1], table.rows[f"k{key}"][4] = 5, "first!"
    table.note([row(60, 5, "merged")])
    table.check("a merge")
    table.upsert_by_hudi([row(key, 6, "Hudi") for key in (4, 6, 70)], version)
    table.upsert([row(key, 7, "after Hudi") for key in (4, 6, 7)], "ts", "note")
    table.check("updates after a write of Apache Hudi")
    table.compact_by_hudi(version)
    table.check("compaction by Apache Hudi")
    table.upsert([row(key, 8, "last") for key in (4, 6, 7)], "ts", "note")
    table.opened.compact()
    table.check("compaction by this engine")


def test_a_column_gets_another_type_once_updates_of_some_columns_are_compacted(
    spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    path = tmp_path / "t"
    HudiTable.create(
        spark, str(path), name="t", record_key="id", precombine_field="ts", table_type="mor",
        options={"hoodie.write.table.version": "9", "hoodie.compact.inline": "false"},
    )  # fmt: skip

    def upsert(kinds: str, *row: Any, **given: Any) -> None:
        frame = spark.createDataFrame([row], f"id string, ts long, note string, {kinds}")
        HudiTable.open(spark, str(path)).upsert(frame, **given)

    narrow, wide = "n int, st struct<x: int>", "n long, st struct<x: int, y: string>"
    for key in "ab":
        upsert(narrow, key, 1, "note", -1, (1,))
    upsert(narrow, "b", 2, None, -2, (4,), update_columns=("ts", "n", "st"))
    with pytest.raises(
        SchemaError, match="'n' cannot change from int to bigint now.*Compact the table first"
    ):
        upsert(wide, "a", 3, "note", -3, (2, "y"))
    HudiTable.open(spark, str(path)).compact()
    upsert(wide, "a", 3, "note", -3, (2, "y"))

    wanted = {"a": (-3, {"x": 2, "y": "y"}), "b": (-2, {"x": 4, "y": None})}
    by_hudi = {each["id"]: (each["n"], each["st"]) for each in apache_hudi(NEWEST).read(path)}
    own = {
        each.id: (each.n, each.st.asDict()) for each in HudiTable.open(spark, str(path)).snapshot().collect()
    }
    assert (by_hudi, own) == (wanted, wanted)


def test_rows_that_come_late_lend_no_values_to_updates_of_some_columns(
    spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    """Rows of a log are merged with each other first, those of the base file with what is left."""
    table = Table(spark, tmp_path / "t", apache_hudi(NEWEST), 9, "ts", {})
    table.upsert([row(key, 5, "stored") for key in range(4)])
    late = [row(key, 4, "late") for key in range(4)]
    table.upsert([row(0, 7, "newer")], "note", "ts")
    table.opened.upsert(table.frame(late[:2]))
    table.check("a late row behind an update of some columns")
    table.opened.upsert(table.frame(late[2:]), update_columns=["note", "ts"])
    table.upsert([row(2, 7, "newer")], "qty", "ts")
    table.check("a late update of some columns before another")
    table.opened.upsert(table.frame([row(3, 4, "late")]))
    table.upsert([row(3, 7, "newer")], "note", "ts")
    table.check("a late row before an update of some columns")
    table.compact_by_hudi(9)
    table.check("a compaction by Apache Hudi")
