"""The look into a few local files tells the rows of each partition as Spark does, or leaves it to Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.spark.write.spread.file_look import seen_partitions
from hudi_engine.spark.write.spread.file_sample import chosen_files

from tests.helpers.keyed import keyed_table

FILES, ROWS = 10, 120
COLUMNS = (
    "id",
    "concat('p', id % 3) dt",
    "id % 4 n",
    "date_add(date'2024-01-01', cast(id % 5 as int)) day",
    "if(id % 6 = 0, null, id / 4.0D) x",
    "id % 2 = 0 even",
    "cast(id % 5 as decimal(10, 2)) d",
    "timestamp_seconds(1700000000 + id % 2) at",
    "named_struct('dt', concat('q', id % 2)) s",
)


@pytest.fixture(scope="module")
def files(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("look") / "odd name %41 é"
    for number in range(FILES):
        one = spark.range(number * ROWS, (number + 1) * ROWS, 1, 1).selectExpr(*COLUMNS)
        one.write.parquet(str(folder / f"f {number}"))
    yield spark.read.parquet(*map(str, sorted(folder.iterdir())))


def of(*fields: str) -> TableConfig:
    return TableConfig({"hoodie.table.partition.fields": ",".join(fields)})


def counted(rows: Any, *fields: str) -> list[int]:
    return sorted(row["count"] for row in rows.groupBy(*fields).count().collect())


@pytest.mark.parametrize(
    "condition",
    [
        "dt = 'p1'",
        "dt in ('p0', 'p2')",
        "dt <> 'p0' and n < 3",
        "n between 1 and 2",
        "n > 0 or dt = 'p0'",
        "day >= date'2024-01-03'",
        "even and not (n = 2)",
        "x is null",
        "x > 10.5 and x is not null",
        "not (n in (1, 2))",
        "id >= 0",
    ],
)
def test_conditions_of_columns_and_plain_values_are_counted_without_spark(condition: str, files: Any) -> None:
    rows = files.where(condition)
    for fields in (("dt",), ("dt", "n")):
        found = seen_partitions(rows.select("id", *fields), of(*fields))
        assert found is not None
        exact = counted(rows, *fields)
        assert len(found) == len(exact)
        # Two files of ten say it of all; ids run on from file to file, so a bound on them cuts some more than others.
        assert all(
            abs(seen - true) <= 0.2 * true for seen, true in zip(sorted(found.values()), exact, strict=True)
        )


def test_a_column_is_found_whatever_case_and_place_it_is_given(files: Any) -> None:
    rows = files.where("n = 1").selectExpr("x", "dt as DT", "id").where("DT = 'p1'")
    found = seen_partitions(rows.select("DT", "id"), of("dt"))
    assert found is not None and list(found.values()) == counted(rows, "dt")
    swapped = files.where("n = 1 and dt <> 'p2'").selectExpr("dt as n", "n as dt", "id")
    found = seen_partitions(swapped, of("dt", "n"))
    assert found is not None and sorted(found.values()) == counted(swapped, "dt", "n")


@pytest.mark.parametrize(
    "rows",
    [
        lambda files: files.where("upper(dt) = 'P1'"),
        lambda files: files.where("d = 1.50"),
        lambda files: files.where("at > timestamp'2023-01-01'"),
        lambda files: files.where("s.dt = 'q1'"),
        lambda files: files.where("n = 1").selectExpr("id", "concat(dt, 'x') dt"),
        lambda files: files.where("n = 1").selectExpr("id", "cast(n as string) dt"),
        lambda files: files.where("n > 77"),
    ],
)
def test_what_only_spark_knows_is_left_to_spark(rows: Any, files: Any) -> None:
    assert seen_partitions(rows(files), of("dt")) is None


@pytest.mark.parametrize("fields", [("s.dt",), ("at:timestamp",), ("dt:simple", "at:timestamp")])
def test_partitions_that_are_made_of_parts_or_times_are_left_to_spark(
    fields: tuple[str, ...], files: Any
) -> None:
    config = TableConfig(
        {
            "hoodie.table.partition.fields": ",".join(fields),
            "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
        }
    )
    assert seen_partitions(files.where("n = 1"), config) is None


def test_values_in_the_names_of_folders_are_left_to_spark(spark: Any, files: Any, tmp_path: Path) -> None:
    files.repartition(9).write.partitionBy("dt").parquet(str(tmp_path / "t"))
    assert seen_partitions(spark.read.parquet(str(tmp_path / "t")).where("n = 1"), of("dt")) is None


def test_two_partition_columns_of_one_stored_column_are_counted_once(files: Any) -> None:
    twice = files.where("n = 1").selectExpr("id", "dt", "dt as other")
    found = seen_partitions(twice, of("dt", "other"))
    assert found is not None and sorted(found.values()) == counted(twice, "dt")


@pytest.mark.parametrize("day", ["date'+12000-01-01'", "date'-0044-03-15'"])
def test_days_that_python_has_none_of_are_left_to_spark(spark: Any, tmp_path: Path, day: str) -> None:
    spark.range(0, 900, 1, 9).selectExpr("id", f"if(id % 2 = 0, {day}, date'2024-01-01') day").write.parquet(
        str(tmp_path / "far")
    )
    rows = spark.read.parquet(str(tmp_path / "far"))
    assert seen_partitions(rows.where("id >= 0"), of("day")) is None
    assert seen_partitions(rows.where("day < date'+10000-01-01'"), of("day")) is None
    options = {"hoodie.engine.small.batch.rows": "0"}
    table = keyed_table(spark, tmp_path / "t", partition_by=["day"], precombine_field=None)
    table.insert_overwrite(rows.where(f"day = {day}"), options=options)
    assert table.snapshot().count() == 450


def test_the_files_looked_at_lie_apart_by_name_in_whatever_order_spark_names_them() -> None:
    files = [f"file:/t/part-{number:05d}" for number in range(12)]
    for turned in range(len(files)):
        assert chosen_files([*files[turned:], *files[:turned]], 2) == [files[3], files[9]]


def test_files_that_are_few_or_unlike_are_left_to_spark(spark: Any, files: Any, tmp_path: Path) -> None:
    assert seen_partitions(files.where(f"id < {2 * ROWS}"), of("dt")) is None
    files.repartition(3).write.parquet(str(tmp_path / "few"))
    few = spark.read.parquet(str(tmp_path / "few"))
    assert seen_partitions(few.where("n = 1"), of("dt")) is None
