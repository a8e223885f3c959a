"""Partition columns that Apache Hudi leaves out of its files are read as it reads them by path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi_engine import HudiTable

from tests.judge.apache_hudi import KEEP_V6, VERSIONS
from tests.judge.arrow_rows import rows_of_spark
from tests.judge.readers import Judges
from tests.judge.rows import difference

LEFT_OUT = "hoodie.datasource.write.drop.partition.columns"
DECLARED = {"number": "int", "day": "date", "large": "bigint"}


@pytest.mark.parametrize("version", VERSIONS)
def test_columns_of_all_types_are_text_though_a_statement_declared_them(
    version: str, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    hudi, path = apache_hudi(version), tmp_path / "t"
    columns = ", ".join(f"{name} {kind}" for name, kind in DECLARED.items())
    named = hudi.sql(
        *(f"SET {key}={value}" for key, value in KEEP_V6.items()),
        f"CREATE TABLE left_out (id bigint, v string, ts bigint, {columns}) USING hudi PARTITIONED BY ({', '.join(DECLARED)}) "
        f"TBLPROPERTIES (primaryKey='id', preCombineField='ts', '{LEFT_OUT}'='true') LOCATION '{path}'",
        "INSERT INTO left_out VALUES (1L, 'a', 1L, 7, date'2024-03-01', 70000000000L)",
        "SELECT number FROM left_out",
    )
    hudi.sql(*(f"RESET {key}" for key in KEEP_V6), "DROP TABLE left_out")
    theirs = hudi.read(path)

    assert [row["number"] for row in named] == [7], "by the name of the statement"
    assert [(row["number"], row["day"], row["large"]) for row in theirs] == [
        ("7", "2024-03-01", "70000000000")
    ]
    ours = HudiTable.open(spark, str(path)).snapshot()
    assert difference(rows_of_spark(ours), theirs) == ""
    assert ours.columns[-len(DECLARED) :] == list(DECLARED)


@pytest.mark.parametrize("version", VERSIONS)
def test_truth_values_and_nulls_of_folders(
    version: str, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    hudi, path = apache_hudi(version), tmp_path / "t"
    rows = pa.table({"id": [1, 2, 3], "ts": [1, 1, 1], "flag": [True, False, None]})
    options = {
        "hoodie.table.name": "flags",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "flag",
        LEFT_OUT: "true",
    }
    hudi.write(path, rows, options, mode="overwrite")
    theirs = hudi.read(path)

    assert sorted(str(row["flag"]) for row in theirs) == ["None", "false", "true"]
    assert difference(rows_of_spark(HudiTable.open(spark, str(path)).snapshot()), theirs) == ""
