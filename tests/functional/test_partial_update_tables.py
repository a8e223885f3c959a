"""Statements on tables of partial updates, where a null says nothing: what clears a column, and what says that it cannot."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt
from dbt_common.exceptions import DbtBaseException

FACTS = """
{{ config(materialized='table', unique_key='id', precombine_field='ts', table_type='%s', options={
    'hoodie.datasource.write.payload.class': 'org.apache.hudi.common.model.PartialUpdateAvroPayload'}) }}
select 1 as id, 1 as ts, 'secret' as note union all select 2, 1, 'known'
"""
ROWS = [(1, 1, "secret"), (2, 1, "known")]
MERGE = (
    "merge into {schema}.%s t using (select 1 as id, 2 as ts, cast(null as string) as note) s on t.id = s.id "
)


class TestNulls:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"logged.sql": FACTS % "mor", "whole.sql": FACTS % "cow"}

    @pytest.fixture(autouse=True)
    def _built(self, project: Any) -> None:
        run_dbt(["run", "--full-refresh"])

    def rows(self, project: Any, name: str) -> list[tuple[Any, ...]]:
        found = project.run_sql(f"select id, ts, note from {{schema}}.{name} order by id", fetch="all")
        return [tuple(row) for row in found]

    def test_an_update_clears_a_copy_on_write_row_and_is_refused_for_a_merge_on_read_one(
        self, project: Any
    ) -> None:
        project.run_sql("update {schema}.whole set note = null where id = 1")
        assert self.rows(project, "whole") == [(1, 1, None), ROWS[1]]
        with pytest.raises(DbtBaseException, match="note cannot be set to null: .*compact the table"):
            project.run_sql("update {schema}.logged set note = null where id = 1")
        with pytest.raises(DbtBaseException, match="note cannot be set to null"):
            project.adapter.hudi_soft_delete(f"{project.test_schema}.logged", "id = 1")
        assert self.rows(project, "logged") == ROWS

    @pytest.mark.parametrize("name", ["whole", "logged"])
    @pytest.mark.parametrize(
        "clause", ["when matched then update set note = null", "when not matched by source then update set note = null"]
    )  # fmt: skip
    def test_a_merge_that_sets_a_column_to_null_is_refused(
        self, project: Any, name: str, clause: str
    ) -> None:
        with pytest.raises(DbtBaseException, match="column note of a row would become null"):
            project.run_sql(MERGE % name + clause)
        assert self.rows(project, name) == ROWS
        project.run_sql(MERGE % name + "when matched then update set *")
        assert self.rows(project, name) == [(1, 2, "secret"), ROWS[1]], "gaps of a row are filled"
