"""Tables that Apache Hudi bootstrapped from Parquet files: read and continued where all rows are inside, else refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_engine import HudiTable
from hudi_engine.errors import UnsupportedTableError

from tests.judge.readers import Judges, assert_all_read
from tests.judge.rows import without_meta

OPTIONS = {
    "hoodie.table.name": "landed",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "name",
    "hoodie.datasource.write.partitionpath.field": "day",
    "hoodie.bootstrap.full.input.provider": "org.apache.hudi.bootstrap.SparkParquetBootstrapDataProvider",
    "hoodie.bootstrap.mode.selector": "org.apache.hudi.client.bootstrap.selector.BootstrapRegexModeSelector",
}


def bootstrapped(
    hudi: Any, folder: Path, days: str, mode: str, table_type: str = "COPY_ON_WRITE"
) -> tuple[Path, list[dict[str, Any]]]:
    """Lay files of two days, and have Hudi bootstrap a table from them.

    Args:
        hudi: Apache Hudi.
        folder: For files and table.
        days: A pattern of the days that are taken as ``mode`` says; others are taken the other way.
        mode: ``FULL_RECORD`` or ``METADATA_ONLY``.
        table_type: The table's type.
    """
    source, path = folder / "files", folder / "table"
    rows = [{"id": number, "name": f"n{number}", "day": f"d{number % 2}"} for number in range(20)]
    for day in ("d0", "d1"):
        (source / f"day={day}").mkdir(parents=True)
        inside = [{"id": each["id"], "name": each["name"]} for each in rows if each["day"] == day]
        pq.write_table(pa.Table.from_pylist(inside), source / f"day={day}" / "part.parquet")
    options = {
        **OPTIONS,
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.bootstrap.base.path": str(source),
        "hoodie.bootstrap.mode.selector.regex": days,
        "hoodie.bootstrap.mode.selector.regex.mode": mode,
    }
    hudi.write(path, pa.Table.from_pylist(rows).slice(0, 0), options, operation="bootstrap", mode="overwrite")
    return path, rows


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_table_that_took_whole_rows_is_read_and_continued(
    table_type: str, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    hudi = apache_hudi("0.15.0")
    path, rows = bootstrapped(hudi, tmp_path, ".*", "FULL_RECORD", table_type)
    table = HudiTable.open(spark, str(path))
    assert_all_read(path, without_meta(hudi.read(path)), apache_hudi)
    first = table.next_window(None).end
    assert first == "00000000000002"
    assert table.changes(None, first).count() == len(rows)
    table.upsert(
        spark.createDataFrame([(3, "z", "d1"), (100, "new", "d0")], "id long, name string, day string")
    )
    held = {each["id"]: each for each in rows}
    held[3] = {"id": 3, "name": "z", "day": "d1"}
    held[100] = {"id": 100, "name": "new", "day": "d0"}
    assert_all_read(path, without_meta(hudi.read(path)), apache_hudi)
    found = table.snapshot().select("id", "name", "day").collect()
    assert len(found) == len(held)
    assert {row.id: row.asDict() for row in found} == held
    assert {row.id for row in table.changes(first).collect()} == {3, 100}
    assert table.as_of(first).count() == len(rows)


def test_a_table_that_took_keys_alone_of_one_day_is_refused(
    spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    path, _ = bootstrapped(apache_hudi("0.15.0"), tmp_path, ".*d1", "METADATA_ONLY")
    with pytest.raises(UnsupportedTableError, match="is bootstrapped from .*FULL_RECORD for every partition"):
        HudiTable.open(spark, str(path)).snapshot()
