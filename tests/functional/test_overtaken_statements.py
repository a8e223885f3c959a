"""Statements in whose midst another process changes the same table."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import DbtBaseException
from hudi_engine import HudiTable
from hudi_engine.spark.sql import ddl
from pyspark.sql import SparkSession

from tests.functional.conftest import CATALOG

pytestmark = pytest.mark.sampled

CHANGES = {
    "add": "add columns (mine int)",
    "drop": "drop column gone",
    "widen": "alter column n type bigint",
}


class TestOvertaken:
    def base(self, project: Any, name: str) -> str:
        return str(project.project_root / "warehouse" / project.test_schema / name)

    @pytest.mark.parametrize("change", CHANGES)
    def test_a_column_that_another_process_adds_meanwhile_is_not_dropped(
        self, project: Any, change: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        name = f"altered_{change}"
        project.run_sql(f"create table {{schema}}.{name} using hudi as select 1 id, 2 n, 3 gone")
        looked = ddl.data_columns

        def then_another_adds(table: HudiTable) -> Any:
            columns = looked(table)
            monkeypatch.undo()
            other = HudiTable.open(table.spark, table.path)
            other.alter_schema("id int, n int, gone int, theirs int")
            return columns

        monkeypatch.setattr(ddl, "data_columns", then_another_adds)
        with pytest.raises(DbtBaseException, match="another writer changed the columns"):
            project.run_sql(f"alter table {{schema}}.{name} {CHANGES[change]}")
        project.run_sql(f"alter table {{schema}}.{name} {CHANGES[change]}")
        found = project.run_sql(f"select theirs from {{schema}}.{name}", fetch="all")
        assert [tuple(row) for row in found] == [(None,)]

    @pytest.mark.skipif(CATALOG != "directory", reason="Spark asks another catalog for each name")
    @pytest.mark.parametrize("rows", ["(id int) using hudi", "using hudi as select 1 id"])
    def test_a_table_that_another_process_has_made_is_content_for_if_not_exists(
        self, project: Any, rows: str
    ) -> None:
        name = "made_as" if " as " in rows else "made"
        project.run_sql(f"create table {{schema}}.before_{name} using hudi as select 1 id")  # Spark runs then
        spark = SparkSession.builder.getOrCreate()
        other = HudiTable.create(spark, self.base(project, name), name=name, schema="id int, theirs int")
        other.insert(spark.createDataFrame([(7, 70)], "id int, theirs int"))
        with pytest.raises(DbtBaseException, match=name):
            project.run_sql(f"create table {{schema}}.{name} {rows}")
        project.run_sql(f"create table if not exists {{schema}}.{name} {rows}")
        found = project.run_sql(f"select id, theirs from {{schema}}.{name}", fetch="all")
        assert [tuple(row) for row in found] == [(7, 70)]
