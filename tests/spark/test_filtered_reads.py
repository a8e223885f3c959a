"""Filters and look-ups of `HudiTable` on tables of Apache Hudi with a metadata table."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hudi_engine import ConfigError, HudiTable
from pyspark.sql import SparkSession

from tests.unit.data_skipping.hudi_tables import (
    ALL_INDEXES,
    LOG_STATS,
    PARTITIONED_INDEX,
    TYPES,
    opened_files,
    unpack,
)

FILTERS: dict[str, list[tuple[Any, str]]] = {
    ALL_INDEXES: [
        ([("name", "=", "eve")], "name = 'eve'"),
        ([("id", "in", ["k1", "k5", None])], "id in ('k1', 'k5') or id is null"),
        ([("name", "not in", ["eve"])], "name is null or name not in ('eve')"),
        ([("d", ">=", datetime.date(2024, 1, 2))], "d >= date'2024-01-02'"),
        ([("ts", "<", "2024-02-04")], "ts < timestamp'2024-02-04 00:00:00Z'"),
        ([("qty", "!=", 10)], "qty != 10"),
        ([[("name", "=", "eve")], [("id", "=", "k1")]], "name = 'eve' or id = 'k1'"),
        ([("price", ">", 1.0)], "price > 1.0"),
    ],
    LOG_STATS: [([("name", "=", "n3")], "name = 'n3'"), ([("name", "=", "n1")], "name = 'n1'")],
    TYPES: [],
}


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_gives_what_spark_finds_in_all_rows(name: str, spark: SparkSession, tmp_path: Path) -> None:
    table = HudiTable.open(spark, unpack(name, tmp_path))
    for filters, condition in FILTERS[name]:
        expected = table.snapshot().where(condition).collect()
        assert sorted(map(str, table.snapshot(filters=filters).collect())) == sorted(map(str, expected)), (
            filters
        )


def test_nan_passes_a_filter_as_it_does_in_spark(spark: SparkSession, tmp_path: Path) -> None:
    table = HudiTable.open(spark, unpack(TYPES, tmp_path))
    doubles = [
        field.name for field in table.schema or [] if field.dataType.simpleString() in ("double", "float")
    ]
    assert doubles
    for name in doubles:
        expected = table.snapshot().where(f"{name} > 1e30").count()
        assert table.snapshot(filters=[(name, ">", 1e30)]).count() == expected
    assert any(table.snapshot().where(f"isnan({name})").count() for name in doubles)


def test_a_look_up_runs_no_job_and_opens_one_file(spark: SparkSession, tmp_path: Path) -> None:
    table = HudiTable.open(spark, unpack(ALL_INDEXES, tmp_path))
    with opened_files() as opened:
        found: pa.Table = table.lookup(["k1"], columns=["id", "name"]).to_arrow()
    assert found.to_pylist() == [{"id": "k1", "name": "anna"}] and len(set(opened)) == 1


def test_a_filter_reads_no_file_that_an_index_rules_out(spark: SparkSession, tmp_path: Path) -> None:
    table = HudiTable.open(spark, unpack(PARTITIONED_INDEX, tmp_path))
    whole = table.snapshot().inputFiles()
    by_key = [("id", "=", "4")]
    assert len(table.snapshot(filters=by_key).inputFiles()) == 1 < len(whole)
    assert table.snapshot(filters=by_key).count() == 1
    off = {"hoodie.enable.data.skipping": False, "hoodie.engine.publish.manifest": False}
    assert table.snapshot(filters=by_key, options=off).count() == 1


def test_an_expression_of_arrow_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = HudiTable.open(spark, unpack(LOG_STATS, tmp_path))
    with pytest.raises(ConfigError, match="give tuples, or a condition of Spark"):
        table.snapshot(filters=pc.field("name") == "n1")


def test_explain_has_the_plan_of_the_filtered_read_and_runs_no_job(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = HudiTable.open(spark, unpack(ALL_INDEXES, tmp_path))
    caplog.set_level("INFO", "hudi_engine.table.data_skipping.plan")
    for filters, _ in FILTERS[ALL_INDEXES]:
        caplog.clear()
        with opened_files() as opened:
            plan = table.explain(filters)
        assert opened == []
        table.snapshot(filters=filters)
        assert [each.message for each in caplog.records] == [f"{table.storage.base}: {plan}"] * 2
        assert plan.bytes_read == sum(each.size for each in plan.slices)
    assert "2 of 3 partitions skipped by" in str(table.explain([("name", "=", "eve")]))
