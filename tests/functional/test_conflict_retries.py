"""A model that another writer overtook is evaluated again, as often as it says."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt
from dbt_common.exceptions import DbtBaseException
from hudi_engine import HudiTable
from hudi_engine.write import pipeline

MODEL = """
{{ config(materialized='incremental', unique_key='id', conflict_retries=var('retries')) }}
select 1 as id, {% if is_incremental() %} (select max(n) from {{ this }}) + 1 {% else %} 1 {% endif %} as n
"""


class TestConflictRetries:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"counted.sql": MODEL}

    def run(self, retries: Any, *, passes: bool = True) -> str:
        results = run_dbt(["run", "--vars", f"{{retries: {retries}}}"], expect_pass=passes)
        return str(results[0].message)

    def rows(self, project: Any) -> list[tuple[int, ...]]:
        return [tuple(row) for row in project.run_sql("select id, n from {schema}.counted", fetch="all")]

    def test_the_rows_of_the_next_try_see_what_the_other_writer_wrote(
        self, project: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.run(0)
        assert self.rows(project) == [(1, 1)]
        base = str(project.project_root / "warehouse" / project.test_schema / "counted")
        inspect, others = pipeline.inspect, []

        def overtaken(spark: Any, state: Any, transaction: Any, metadata: Any, options: Any) -> None:
            if others:
                n = others.pop()
                HudiTable.open(spark, base).upsert(spark.createDataFrame([(1, n)], "id int, n int"))
            inspect(spark, state, transaction, metadata, options)

        monkeypatch.setattr(pipeline, "inspect", overtaken)
        others[:] = [10]
        told = self.run(0, passes=False)
        assert "WriteConflictError" in told
        assert "With conflict_retries in its config a model is evaluated again" in told
        assert self.rows(project) == [(1, 10)]
        others[:] = [20]
        self.run(1)
        assert self.rows(project) == [(1, 21)]
        with pytest.raises(
            DbtBaseException, match="conflict_retries is 'often'; legal values: whole numbers"
        ):
            self.run("often")
