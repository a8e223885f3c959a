"""Metadata tables that this engine and Apache Hudi keep in turn, used by both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi_engine import HudiTable
from hudi_engine import read as read_rows
from hudi_engine.format.hfile.file import HFile
from hudi_engine.format.metadata.expressions import Expression
from hudi_engine.format.storage import open_storage
from hudi_engine.table.services.indexing import index_facts

from tests.helpers.forms import in_turn
from tests.helpers.metadata_table import differences, open_metadata
from tests.judge.apache_hudi import ApacheHudi
from tests.judge.arrow_rows import rows_of_spark
from tests.judge.hudi_rs import hudi_rs_rows
from tests.judge.readers import Judges
from tests.judge.rows import difference, without_meta

COLUMNS = "id string, ts long, dt string, val string"
TYPES = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
METADATA = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "4",
}
SECONDARY, EXPRESSION = "secondary_index_val", "expr_index_day"
PARTITIONS = {
    "bloom_filters",
    "column_stats",
    "files",
    "partition_stats",
    "record_index",
    SECONDARY,
    EXPRESSION,
}


class InTurn:
    """A table that both write, and the rows it should have."""

    def __init__(self, spark: Any, path: Path, kind: str, hudi: ApacheHudi, version: str = "9") -> None:
        self.spark, self.path, self.kind, self.hudi = spark, path, kind, hudi
        self.version, self.partitions, self.metadata = version, PARTITIONS, METADATA
        self.rows: dict[str, dict[str, Any]] = {}
        HudiTable.create(
            spark, str(path), name="t", record_key="id", precombine_field="ts", partition_by="dt",
            table_type=kind, options={"hoodie.write.table.version": version},
        )  # fmt: skip

    @property
    def opened(self) -> HudiTable:
        return HudiTable.open(self.spark, str(self.path))

    def batch(self, keys: Any, turn: int) -> list[tuple[str, int, str, str]]:
        values = [(f"k{key}", turn, f"p{key % 3}", f"v{turn} of {key}") for key in keys]
        for each in values:
            self.rows[each[0]] = dict(zip(("id", "ts", "dt", "val"), each, strict=True))
        return values

    def ours(self, keys: Any, turn: int, **options: str) -> Any:
        frame = self.spark.createDataFrame(self.batch(keys, turn), COLUMNS)
        return self.opened.upsert(frame, options={**self.metadata, **options})

    def delete(self, keys: Any) -> None:
        gone = [self.rows.pop(f"k{key}") for key in keys]
        values = [tuple(each.values()) for each in gone]
        self.opened.delete(self.spark.createDataFrame(values, COLUMNS))

    def theirs(self, keys: Any, turn: int, *, index: str = "SIMPLE") -> None:
        options = {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": "dt",
            "hoodie.datasource.write.table.type": TYPES[self.kind],
            "hoodie.write.table.version": self.version,
            "hoodie.index.type": index,
            **self.metadata,
        }
        values = [list(each) for each in zip(*self.batch(keys, turn), strict=True)]
        self.hudi.write(
            self.path, pa.table(values, names=["id", "ts", "dt", "val"]), options, keep_v6=self.version == "6"
        )

    def begin_in_turn(self, index: str = "RECORD_INDEX") -> None:
        """Upsert by Apache Hudi, delete, and roll a write back."""
        self.theirs([3, 4, 40], 2, index=index)
        self.check("Apache Hudi found keys by its record index")
        self.delete([3, 5, 40])
        self.check("deletes")
        before = dict(self.rows)
        self.opened.rollback(self.ours([6, 7, 41], 3).instant)
        self.rows = before
        self.check("a rollback")

    def check(self, after: str) -> None:
        storage = open_storage(str(self.path))
        kept = open_metadata(storage)
        assert kept is not None and set(kept.partitions) == self.partitions, after
        assert differences(storage) == [], after
        wanted = list(self.rows.values())
        by_metadata = {"hoodie.metadata.enable": "true"}
        readers = {
            "this engine": lambda: rows_of_spark(self.opened.snapshot()),
            "hudi-rs": lambda: hudi_rs_rows(self.path),
            "Apache Hudi": lambda: self.hudi.read(self.path, options=by_metadata),
        }
        for name, read in readers.items():
            assert difference(without_meta(read()), wanted) == "", f"{after}, read by {name}"
        if SECONDARY not in self.partitions:
            return
        for name, options in (("with", by_metadata), ("without", {"hoodie.metadata.enable": "false"})):
            assert self.by_value(wanted[-1]["val"], options) == [wanted[-1]["id"]], f"{after}, {name} indexes"
            assert self.by_value("no such value", options) == [], f"{after}, {name} indexes"
        for option in by_metadata, {"hoodie.metadata.enable": "false"}:
            assert self.by_minute(option) == sorted(each["id"] for each in wanted), after
        view = self.view()
        shown = self.hudi.sql(f"SHOW INDEXES FROM {view}")
        assert sorted(map(tuple, map(dict.values, shown))) == index_facts(storage, self.opened.config), after
        by_index = read_rows(str(self.path), filters=[("val", "=", wanted[-1]["val"])])
        assert by_index.to_arrow()["id"].to_pylist() == [wanted[-1]["id"]]
        assert [each.kept for each in by_index.plan.steps if each.by == SECONDARY] == [1, 1], after

    def view(self) -> str:
        """Return a name that Apache Hudi has for the table."""
        name = f"v{abs(hash(str(self.path)))}"
        self.hudi.sql(f"CREATE TABLE IF NOT EXISTS {name} USING hudi LOCATION '{self.path}'")
        return name

    def by_minute(self, options: dict[str, str]) -> list[str]:
        """Return the keys of all rows, as Apache Hudi finds them by the minute of their time; of an hour before it finds none."""
        found = [
            self.where(f"from_unixtime(ts, 'yyyy-MM-dd HH:mm') {each}", options)
            for each in ("= '1970-01-01 00:00'", "> '1971-01-01 00:00'")
        ]
        assert found[1] == []
        return sorted(found[0])

    def by_value(self, value: str, options: dict[str, str]) -> list[str]:
        """Return the keys of the rows with a value, as Apache Hudi finds them."""
        return self.where(f"val = '{value}'", options)

    def where(self, condition: str, options: dict[str, str]) -> list[str]:
        """Return the keys of the rows that meet a condition, as Apache Hudi finds them."""
        view = self.view()
        rows = self.hudi.sql(
            f"REFRESH TABLE {view}",
            *(f"SET {key}={each}" for key, each in options.items()),
            f"SELECT id FROM {view} WHERE {condition}",
        )
        return [each["id"] for each in rows]


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_both_keep_and_use_one_metadata_table(
    kind: str, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    table = InTurn(spark, tmp_path / "t", kind, apache_hudi("1.2.0"))
    table.ours(range(20), 1)
    assert table.opened.services().create_index(SECONDARY, ["val"]) == (SECONDARY,)
    by_day = Expression.parse("from_unixtime(ts, 'yyyy-MM-dd HH:mm')")
    assert table.opened.services().create_index(EXPRESSION, (), by_day) == (EXPRESSION,)
    table.check("they were built")
    table.begin_in_turn()
    saved, before = table.ours([1, 44], 3).instant, dict(table.rows)
    table.ours([1, 2, 45], 4)
    table.delete([44, 7])
    table.opened.restore(saved)
    table.rows = before
    table.check("a restore")
    table.theirs([10, 46], 4, index="RECORD_INDEX")
    table.check("Apache Hudi goes on after the restore")
    if kind == "mor":
        table.opened.compact()
    table.opened.cluster()
    table.check("compaction and clustering")
    for turn in range(4, 9):
        table.ours([turn, turn + 30], turn)
    table.opened.clean(retain_commits=2)
    table.check("a compaction of the metadata table, and a clean")
    table.theirs([8, 9, 42], 20, index="RECORD_INDEX")
    table.check("Apache Hudi goes on")


@pytest.mark.parametrize(("kind", "hudi"), in_turn(("cow", "mor"), ("0.15.0", "1.2.0")))
def test_both_keep_and_use_one_metadata_table_of_version_6(
    kind: str, hudi: str, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    table = InTurn(spark, tmp_path / "t", kind, apache_hudi(hudi), "6")
    table.partitions = {"bloom_filters", "column_stats", "files", "record_index"}
    table.ours(range(20), 1)
    table.check("it was built")
    table.begin_in_turn()
    table.theirs([6, 42], 3, index="RECORD_INDEX")
    table.check("Apache Hudi goes on after the rollback")
    saved, before = table.ours([1, 44], 3).instant, dict(table.rows)
    table.ours([1, 2, 45], 4)
    table.opened.restore(saved)
    table.rows = before
    table.check("a restore")
    table.theirs([10, 46], 4, index="RECORD_INDEX")
    if kind == "mor":
        table.opened.compact()
    table.opened.cluster()
    table.check("compaction and clustering")
    for turn in range(5, 17):
        table.ours([turn, turn + 30], turn)
        if turn == 9:
            table.theirs([8, 9, 42], turn, index="RECORD_INDEX")
            table.check("Apache Hudi in between")
    table.opened.clean(retain_commits=2)
    table.check("a compaction of the metadata table, and a clean")
    for turn in range(21, 26):
        table.theirs([turn, 9, 43], turn, index="RECORD_INDEX")
    table.check("Apache Hudi goes on")
    table.ours([2, 47], 30)
    table.check("and this engine")


@pytest.mark.parametrize("kind", in_turn(("cow", "mor")))
def test_both_keep_a_record_index_by_partition(
    kind: str, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    table, by_partition = InTurn(spark, tmp_path / "t", kind, apache_hudi("1.2.0")), "RECORD_LEVEL_INDEX"
    table.metadata = {
        **{key: each for key, each in METADATA.items() if "record" not in key},
        "hoodie.metadata.record.level.index.enable": "true",
    }
    table.partitions = {"bloom_filters", "column_stats", "files", "partition_stats", "record_index"}
    table.ours(range(1), 1)
    table.ours(range(20), 1)
    table.check("it was built, and two partitions came")
    table.begin_in_turn(by_partition)
    table.theirs([6, 41], 3, index=by_partition)
    table.check("Apache Hudi goes on after the rollback")
    if kind == "mor":
        table.opened.compact()
    table.opened.cluster()
    for turn in range(4, 9):
        table.ours([turn, turn + 30], turn)
    table.opened.clean(retain_commits=2)
    table.check("clustering, a compaction of the metadata table, and a clean")
    table.theirs([8, 9, 42], 20, index=by_partition)
    table.check("Apache Hudi goes on")


@pytest.mark.parametrize(("version", "hudi"), [("6", "0.15.0"), ("6", "1.2.0"), ("9", "1.2.0")])
def test_apache_hudi_reads_base_files_of_the_metadata_table_that_hold_no_record(
    version: str, hudi: str, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    """After deletes and a compaction of the metadata table, file groups of the record index are empty."""
    table = InTurn(spark, tmp_path / "t", "cow", apache_hudi(hudi), version)
    table.partitions = {"bloom_filters", "column_stats", "files", "record_index"}
    table.partitions |= {"partition_stats"} if version == "9" else set()
    table.ours(range(12), 1)
    table.delete(range(1, 12))
    for turn in range(2, 12):
        table.ours([0], turn)
    base_files = (tmp_path / "t/.hoodie/metadata/record_index").glob("*.hfile")
    assert any(HFile.of_bytes(each.read_bytes()).entries == 0 for each in base_files)
    table.check("file groups without a record")
    table.theirs([0, 1, 2, 3], 20, index="RECORD_INDEX")
    table.check("Apache Hudi found keys by its record index")
