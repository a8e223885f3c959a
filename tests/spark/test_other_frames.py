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
from hudi_engine import ConfigError, HudiTable, InvalidKeyError, SchemaError
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


def polars_categories() -> Any:
    polars = pytest.importorskip("polars")
    return polars_frame().with_columns(polars.col("name").cast(polars.Categorical))


def pandas_frame() -> Any:
    return ARROW.to_pandas()


def arrow_batch() -> Any:
    return ARROW.to_batches()[0]


def arrow_reader() -> Any:
    return ARROW.to_reader()


def arrow_table() -> Any:
    return ARROW


@pytest.mark.parametrize(
    "make",
    [
        arrow_table,
        arrow_batch,
        arrow_reader,
        pandas_frame,
        polars_frame,
        polars_lazy_frame,
        polars_categories,
    ],
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
        table.insert(pd.DataFrame({"id": [1], "at": [moment]}))
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


def test_text_of_pandas_that_is_none_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"])
    with pytest.raises(SchemaError, match="values that are no column: column .id.: .*surrogates not allowed"):
        table.upsert(pd.DataFrame({"id": ["\ud800"]}))


NUMBERS = "id int, amount bigint, note string"


def test_whole_numbers_take_the_type_of_their_column_where_they_fit(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"], schema=NUMBERS)

    # pandas keeps 1 as int64, and numbers with a null beside them as floats
    table.upsert(pd.DataFrame({"id": [1, 2], "amount": [5, None], "note": [None, None]}))
    table.upsert(pa.table({"id": pa.array([3], pa.int64()), "amount": pa.array([6], pa.int64())}))

    assert table.schema is not None and table.schema.simpleString() == f"struct<{NUMBERS}>".replace(
        " ", ":"
    ).replace(",:", ",")
    found = hudi_engine.read(tmp_path / "t").to_arrow().sort_by("id").to_pylist()
    assert found == [{"id": id, "amount": amount, "note": None} for id, amount in ((1, 5), (2, None), (3, 6))]


def test_categories_of_whole_numbers_take_the_type_of_their_column_too(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"], schema=NUMBERS)
    nothing = pd.Categorical([None, None])
    table.upsert(
        pd.DataFrame({"id": pd.Categorical([1, 2]), "amount": pd.Categorical([5, None]), "note": nothing})
    )
    assert table.schema is not None and table.schema.names == ["id", "amount", "note"]
    assert [each.dataType.simpleString() for each in table.schema.fields] == ["int", "bigint", "string"]
    found = hudi_engine.read(tmp_path / "t").to_arrow().sort_by("id").to_pylist()
    assert found == [{"id": 1, "amount": 5, "note": None}, {"id": 2, "amount": None, "note": None}]


def test_a_pandas_frame_without_rows_fits_every_table_that_has_its_columns(
    spark: SparkSession, tmp_path: Path
) -> None:
    columns = "id int, day date, rate float, word string"
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"], schema=columns)
    table.upsert(
        pd.DataFrame({name: pd.Series([], dtype="float64") for name in ("id", "DAY", "rate", "word")})
    )
    assert table.schema is not None
    assert table.schema.simpleString() == "struct<id:int,day:date,rate:float,word:string>"
    assert len(table.commits()) == 1


def test_a_key_that_does_not_fit_its_column_is_refused_and_a_column_without_type_too(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"], schema="id int")

    with pytest.raises(
        SchemaError, match="'id' is int32 in the table and a key.* int64 in the batch: cast it to int32"
    ):
        table.upsert(pd.DataFrame({"id": [2**40]}))
    with pytest.raises(
        SchemaError, match=r"column\(s\) 'note' of the rows have no value and no type.*astype\('string'\)"
    ):
        table.upsert(pd.DataFrame({"id": [1], "note": [None]}))
    with pytest.raises(InvalidKeyError, match=r"1 row\(s\) have a null or empty record key \(id\)"):
        table.upsert(pd.DataFrame({"id": [None]}))
    assert table.timeline() == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "t", "recordkey": ["id"]}, "no argument 'recordkey'; did you mean 'record_key'?"),
        (
            {"name": "t", "nonsense": 1},
            "no argument 'nonsense'; it takes spark, path, schema, name, record_key",
        ),
        ({"record_key": ["id"]}, "needs name, the name of the table"),
    ],
)
def test_arguments_of_create_are_named(
    spark: SparkSession, tmp_path: Path, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(TypeError, match=said.replace("?", r"\?")):
        HudiTable.create(spark, str(tmp_path / "t"), **given)
    assert not (tmp_path / "t").exists()
