"""Rows of pandas, Polars and Arrow are written as those of Spark are."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hudi_engine
import pandas as pd
import pyarrow as pa
import pytest
from hudi_engine import ConfigError, HudiTable
from pyspark.sql import SparkSession

from tests.helpers.hudi_rs import rows_by_hudi_rs

ROWS = [
    {
        "id": 1,
        "name": "a",
        "price": decimal.Decimal("1.50"),
        "day": datetime.date(2026, 1, 1),
        "tags": ["x", None],
    },
    {"id": 2, "name": None, "price": None, "day": None, "tags": None},
]
ARROW = pa.Table.from_pylist(
    ROWS,
    pa.schema(
        [
            ("id", pa.int64()),
            ("name", pa.large_string()),
            ("price", pa.decimal128(6, 2)),
            ("day", pa.date32()),
            ("tags", pa.large_list(pa.large_string())),
        ]
    ),
)


def polars_frame() -> Any:
    return pytest.importorskip("polars").from_arrow(ARROW)


def polars_lazy_frame() -> Any:
    return polars_frame().lazy()


def pandas_frame() -> Any:
    return ARROW.to_pandas()


def arrow_batch() -> Any:
    return ARROW.to_batches()[0]


def arrow_reader() -> Any:
    return ARROW.to_reader()


def arrow_table() -> Any:
    return ARROW


@pytest.mark.parametrize(
    "make", [arrow_table, arrow_batch, arrow_reader, pandas_frame, polars_frame, polars_lazy_frame]
)
def test_rows_of_every_library_are_written_with_their_values(
    make: Callable[[], Any], spark: SparkSession, tmp_path: Path
) -> None:
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"])

    result = table.upsert(make())

    assert result.rows_inserted == 2
    found = hudi_engine.read(tmp_path / "t").to_arrow().sort_by("id")
    assert found.to_pylist() == ROWS
    assert rows_by_hudi_rs(str(tmp_path / "t"), ["id", "name"]) == [(1, "a"), (2, None)]
    assert {each.path for each in table.files()} == {
        each.path for each in hudi_engine.read(tmp_path / "t").files()
    }
    assert repr(table).endswith("name='t', COPY_ON_WRITE, key=id)")


def test_the_rows_of_one_table_can_be_written_into_another(spark: SparkSession, tmp_path: Path) -> None:
    source = HudiTable.create(spark, str(tmp_path / "s"), name="s", record_key=["id"])
    source.bulk_insert(ARROW)
    target = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"])

    target.insert(hudi_engine.read(tmp_path / "s", filters=[("id", ">", 1)]))
    target.delete(pd.DataFrame({"id": [2]}))

    assert hudi_engine.read(tmp_path / "t").to_arrow().num_rows == 0


def test_a_time_without_a_zone_is_taken_in_the_zone_of_the_session(
    spark: SparkSession, tmp_path: Path
) -> None:
    moment = datetime.datetime(2026, 1, 1, 12, 0)
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"])
        table.insert(pd.DataFrame({"id": [1], "at": [moment], "nothing": [None]}))
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(zone))

    found = hudi_engine.read(tmp_path / "t").to_arrow().to_pylist()
    assert found == [{"id": 1, "at": datetime.datetime(2026, 1, 1, 17, 0, tzinfo=datetime.timezone.utc)}]


def test_rows_of_no_known_library_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"])

    with pytest.raises(
        ConfigError, match="the rows are a list; give a Spark, pandas or Polars DataFrame or an Arrow"
    ):
        table.upsert([{"id": 1}])  # type: ignore[arg-type]
    assert table.timeline() == []
