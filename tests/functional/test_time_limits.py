"""``job_execution_timeout_seconds``: a run that takes too long ends, and its write with it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.format.storage import open_storage
from hudi_engine.table.state import TableState

SLOW = """
{{ config(materialized='incremental', unique_key='id', job_execution_timeout_seconds=var('seconds')) }}
select id, 1 as n from range(0, {{ var('rows') }}, 1, 2) where id % 400000000000 < 3
"""
BY_FOLDER = "{{ config(materialized='view') }} select 1 as id"


class TestTimeLimits:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"slow.sql": SLOW, "quick.sql": BY_FOLDER}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"test": {"+job_execution_timeout_seconds": 600}}}

    def run(self, seconds: object, rows: int, *, passes: bool = True) -> Any:
        return run_dbt(["run", "--vars", f"{{seconds: {seconds}, rows: {rows}}}"], expect_pass=passes)

    def test_a_run_that_takes_too_long_is_taken_back(self, project: Any) -> None:
        self.run(600, 10)
        place = Path(project.project_root) / "warehouse" / project.test_schema / "slow"
        before = [
            each.requested_time
            for each in TableState.load(open_storage(str(place))).timeline.completed_writes
        ]

        began = time.monotonic()
        failed = {each.node.name: each for each in self.run(3, 400_000_000_000, passes=False)}
        assert time.monotonic() - began < 30
        assert "longer than job_execution_timeout_seconds: 3" in failed["slow"].message
        assert failed["quick"].status == "success"
        timeline = TableState.load(open_storage(str(place))).timeline
        assert [each.requested_time for each in timeline.completed_writes] == before
        assert timeline.pending == ()

        self.run(600, 10)
        assert project.run_sql("select count(*) from {schema}.slow", fetch="one")[0] == 3

    def test_a_limit_that_is_no_number_is_refused(self, project: Any) -> None:
        with pytest.raises(DbtRuntimeError, match="job_execution_timeout_seconds is 'soon'; legal values"):
            self.run("soon", 10)
