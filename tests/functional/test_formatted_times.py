"""Models whose partition folders hold formatted times: tables of their own, and of Apache Hudi's, which do not say how."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

from tests.helpers.handmade import HandmadeTable

MODEL = """
{{ config(
    materialized='incremental', unique_key='id', location_root='lake',
    partition_by=var('by', ['country', 'ts']), hudi_options=var('times', {})
) }}
select cast(1 as bigint) as id, 'us' as country, {{ var('at', 1705311000000) }} as ts, 'new' as v
"""
SCHEMA = pa.schema([("id", pa.int64()), ("country", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
PROPERTIES = {
    "hoodie.table.timeline.timezone": "LOCAL",
    "hoodie.partition.metafile.use.base.format": "false",
    "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
    "hoodie.datasource.write.hive_style_partitioning": "false",
    "hoodie.datasource.write.partitionpath.urlencode": "false",
}
GIVEN = (
    "{by: ['country:simple', 'ts:timestamp'], times: {hoodie.keygen.timebased.timestamp.type: EPOCHMILLISECONDS, "
    "hoodie.keygen.timebased.output.dateformat: yyyy/MM/dd, hoodie.keygen.timebased.output.timezone: UTC}}"
)


class TestGoingOn:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"orders.sql": MODEL}

    def test_the_model_says_the_kinds_and_meets_the_stored_rows(self, project: Any) -> None:
        place = Path(project.project_root) / "lake" / "orders"
        made = HandmadeTable(place, SCHEMA, ("country", "ts"), properties=PROPERTIES)
        row = pa.table({"id": [1], "country": ["us"], "ts": [1705311000000], "v": ["old"]}, schema=SCHEMA)
        partition = "us/2024/01/15"
        made.commit({partition: {"a1b2c3d4-0000-4000-8000-000000000000-0": row}})
        run_dbt(["run-operation", "hudi_adopt", "--args", "{table: orders, location: lake/orders}"])

        told = str(run_dbt_and_capture(["run"], expect_pass=False)[1])
        assert "partitionpath.field with the kind of each field" in told and "nothing was written" in told
        run_dbt(["run", "--vars", GIVEN])
        found = project.run_sql("select id, v from {schema}.orders", fetch="all")
        assert [tuple(each) for each in found] == [(1, "new")]
        assert {str(each.parent.relative_to(place)) for each in place.rglob("*.parquet")} == {partition}


class TestOfItsOwn:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"orders.sql": MODEL}

    def test_the_second_run_meets_the_rows_of_the_first(self, project: Any) -> None:
        for _ in range(2):
            run_dbt(["run", "--vars", GIVEN])
        place = Path(project.project_root) / "lake" / "orders"
        found = {str(each.parent.relative_to(place)) for each in place.rglob("*.parquet")}
        assert found == {"country=us/ts=2024%2F01%2F15"}
        assert project.run_sql("select count(*) from {schema}.orders", fetch="one")[0] == 1
