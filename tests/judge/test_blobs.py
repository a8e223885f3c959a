"""Columns of blobs of Apache Hudi 1.2 are read as it reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hudi_engine import HudiTable
from hudi_engine.format.storage import open_storage
from hudi_engine.spark.catalog import TableName, register_table

from tests.judge.arrow_rows import rows_of_spark
from tests.judge.readers import Judges
from tests.judge.rows import difference, without_meta

INLINE = "named_struct('type', 'INLINE', 'data', cast('{}' as binary), 'reference', cast(null as struct<external_path:string,"
INLINE += "offset:bigint,length:bigint,managed:boolean>))"


def made(
    hudi: Any, path: Path, version: int, kind: str, columns: str, *writes: str, log_format: str = "avro"
) -> None:
    """Have Hudi make a table by SQL; ``{}`` of each write is the table's name."""
    name = f"made_{abs(hash(str(path)))}"
    properties = {
        "type": kind, "primaryKey": "id", "preCombineField": "ts", "hoodie.metadata.enable": "false",
        "hoodie.write.table.version": str(version),
    }  # fmt: skip
    told = ", ".join(f"'{key}'='{value}'" for key, value in properties.items())
    hudi.sql(
        f"SET hoodie.write.table.version={version}", "SET hoodie.write.auto.upgrade=false",
        "SET hoodie.metadata.enable=false", "SET hoodie.compact.inline=false",
        f"SET hoodie.logfile.data.block.format={log_format}",
        f"CREATE TABLE {name} (id bigint, {columns}, ts bigint) USING hudi TBLPROPERTIES ({told}) LOCATION '{path}'",
        *(each.replace("{}", name) for each in writes),
        *(f"RESET hoodie.{key}" for key in ("write.table.version", "write.auto.upgrade", "metadata.enable", "compact.inline")),
        "RESET hoodie.logfile.data.block.format",
    )  # fmt: skip


def assert_ours(spark: Any, path: Path, expected: list[dict[str, Any]]) -> None:
    """Check what this engine reads, by path and by name."""
    found = without_meta(rows_of_spark(HudiTable.open(spark, str(path)).snapshot()))
    assert difference(found, without_meta(expected)) == "", "by path"
    name = TableName("default", f"named_{abs(hash(str(path)))}")
    register_table(spark, name, open_storage(str(path)))
    named = without_meta(rows_of_spark(spark.table(name.sql)))
    assert difference(named, without_meta(expected)) == "", "by name"


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_blobs_are_read_and_continued(kind: str, spark: Any, tmp_path: Path, apache_hudi: Judges) -> None:
    hudi, path = apache_hudi("1.2.0"), tmp_path / "t"
    made(
        hudi, path, 6, kind, "v BLOB",
        f"INSERT INTO {{}} SELECT 1L, {INLINE.format('abc')}, 10L UNION ALL SELECT 2L, null, 10L",
        f"UPDATE {{}} SET v = {INLINE.format('xyz')}, ts = 20L WHERE id = 2",
    )  # fmt: skip
    expected = hudi.read(path)
    assert sorted(row["v"]["data"] for row in expected) == ["abc", "xyz"]
    assert_ours(spark, path, expected)

    table = HudiTable.open(spark, str(path))
    table.upsert(table.snapshot().where("id = 1").selectExpr("5L id", "v", "30L ts"))
    rows = without_meta(rows_of_spark(table.snapshot()))
    assert [row["v"]["data"] for row in rows if row["id"] == 5] == ["abc"]
    assert difference(without_meta(hudi.read(path)), rows) == ""
