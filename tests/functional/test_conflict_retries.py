"""A model that another writer overtook is evaluated again, as often as it says."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt
from dbt_common.exceptions import DbtBaseException
from hudi_engine import HudiTable
from hudi_engine.format.config.own_keys import CHECKPOINT
from hudi_engine.format.storage import open_storage
from hudi_engine.table.state import TableState
from hudi_engine.table.write import pipeline

MODEL = """
{{ config(materialized='incremental', unique_key='id', conflict_retries=var('retries')) }}
select 1 as id, {% if is_incremental() %} (select max(n) from {{ this }}) + 1 {% else %} 1 {% endif %} as n
"""


ORDERS = "{{ config(materialized='table', unique_key='id') }} select cast(id as int) as id from range(3)"
FOLLOWER = """
{{ config(materialized='incremental', unique_key='id', conflict_retries=2) }}
select c.id, c._change_type from {{ hudi_changes(ref('orders')) }} c
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

        def overtaken(rows: Any, state: Any, transaction: Any, metadata: Any, options: Any) -> None:
            if others:
                n, spark = others.pop(), rows.frame.sparkSession
                HudiTable.open(spark, base).upsert(spark.createDataFrame([(1, n)], "id int, n int"))
            inspect(rows, state, transaction, metadata, options)

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

    def test_a_plan_that_nobody_runs_fails_the_model_at_once(self, project: Any) -> None:
        run_dbt(["run", "--full-refresh", "--vars", "{retries: 0}"])
        table = f"table => '{project.test_schema}.counted'"
        project.run_sql(f"call run_clustering({table}, order => 'id', op => 'schedule')")
        folder = Path(project.project_root) / "warehouse" / project.test_schema / "counted" / ".hoodie"
        for plan in folder.glob(
            "*.replacecommit.requested"
        ):  # who planned it just now may be about to run it
            os.utime(plan, (0, 0))

        def rollbacks() -> int:
            done = project.run_sql(f"call show_timeline({table})", fetch="all")
            return [row[1] for row in done].count("rollback")

        before = rollbacks()
        told = self.run(2, passes=False)
        assert "which is planned and not done" in told and "conflict_retries" not in told
        assert rollbacks() == before + 1
        project.run_sql(f"call run_clustering({table}, op => 'execute')")
        self.run(0)
        assert self.rows(project) == [(1, 2)]


class TestFollowers:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"orders.sql": ORDERS, "follower.sql": FOLLOWER}

    def test_a_model_whose_changes_another_run_has_taken_meanwhile_fails_and_takes_what_is_left_next_time(
        self, project: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run_dbt(["run"])
        base = str(project.project_root / "warehouse" / project.test_schema / "follower")
        project.run_sql("insert into {schema}.orders values (10)")
        taken = json.dumps({f"{project.test_schema}.orders".lower(): self.newest(project)})
        inspect, others = pipeline.inspect, [11]

        def overtaken(written: Any, *args: Any) -> None:
            if others:
                spark = written.frame.sparkSession
                rows = spark.createDataFrame([(others.pop(),)], "id int")
                HudiTable.open(spark, base).upsert(rows, options={CHECKPOINT: taken})
            inspect(written, *args)

        monkeypatch.setattr(pipeline, "inspect", overtaken)
        [result] = run_dbt(["run", "--select", "follower"], expect_pass=False)
        assert "ConsumedMeanwhileError" in str(result.message)
        assert "the next run takes what comes after them" in str(result.message)
        project.run_sql("insert into {schema}.orders values (20)")
        run_dbt(["run", "--select", "follower"])
        found = project.run_sql("select id from {schema}.follower order by id", fetch="all")
        assert [row[0] for row in found] == [0, 1, 2, 11, 20]

    def newest(self, project: Any) -> str:
        storage = open_storage(str(project.project_root / "warehouse" / project.test_schema / "orders"))
        return TableState.load(storage).timeline.completed_writes[-1].requested_time
