"""When a source last changed: services that go on after the last load are no news."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt
from hudi_engine.format.storage import open_storage
from hudi_engine.table.state import TableState

from dbt.adapters.hudi.spark.catalog_rows import last_write_time

EVENTS = """
{{ config(materialized='incremental', unique_key='id', table_type='TYPE') }}
select cast(id as int) as id, {{ var('n', 0) }} as n from range({{ var('rows', 10) }})
"""


class TestServicesAreNoNews:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "events_cow.sql": EVENTS.replace("TYPE", "cow"),
            "events_mor.sql": EVENTS.replace("TYPE", "mor"),
        }

    @pytest.mark.parametrize("kind", ["cow", "mor"])
    def test_services_and_runs_without_rows_do_not_make_a_source_fresher(
        self, project: Any, kind: str
    ) -> None:
        for number in range(3):
            run_dbt(["run", "--select", f"events_{kind}", "--vars", f"n: {number}"])
        base = f"{project.adapter.config.credentials.location_root}/{project.test_schema}/events_{kind}"
        before = TableState.load(open_storage(base))
        loaded, loads = last_write_time(before), before.timeline.completed_writes
        assert loaded is not None
        if kind == "mor":
            run_dbt(["run-operation", "hudi_compact", "--args", f"{{table: events_{kind}}}"])
        run_dbt(["run-operation", "hudi_cluster", "--args", f"{{table: events_{kind}}}"])
        run_dbt(["run-operation", "hudi_clean", "--args", f"{{table: events_{kind}, retain_commits: 1}}"])
        state = TableState.load(open_storage(base))
        newest = max(each.requested_time for each in state.timeline.instants if each.is_completed)
        assert last_write_time(state) == loaded
        assert newest > loads[-1].requested_time, "no service committed after the loads"
        run_dbt(["run", "--select", f"events_{kind}", "--vars", "rows: 0"])
        assert last_write_time(TableState.load(open_storage(base))) == loaded
        run_dbt(["run", "--select", f"events_{kind}", "--vars", "n: 9"])
        assert last_write_time(TableState.load(open_storage(base))) > loaded
