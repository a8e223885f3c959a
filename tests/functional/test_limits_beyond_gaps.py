"""Models that take a part of their input at once, where the changes since their checkpoint are gone."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt
from hudi_engine.format.storage import open_storage
from hudi_engine.table.changes.checkpoint import read_checkpoint
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.consumers import forget_consumer, list_consumers

ORDERS = """
{{ config(materialized='incremental', unique_key='id', event_time='at') }}
select cast(id as int) as id, cast({{ var('step', 0) }} as int) as step, timestamp '2020-01-01 00:00:00' as at from range(0, 3)
"""
FOLLOWER = """
{{{{ config(materialized='incremental', unique_key='id') }}}}
select c.id, c.step, c._change_type from {{{{ hudi_changes(ref('orders'), on_gap=var('on_gap', 'fail'),
    max_commits=var('most', none), keep_for='2 days') }}}} c {0}
"""
BESIDE = "left semi join {{ ref('orders') }} o on o.id = c.id"
FIRST_DAY = ["--sample", "{'start': '2020-01-01', 'end': '2020-01-02'}"]


class TestLimitsBeyondGaps:
    """A window that clean has passed is not asked for again and again."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        names = {"by_snapshot": "", "by_compare": "", "sampled": BESIDE}
        return {"orders.sql": ORDERS} | {f"{name}.sql": FOLLOWER.format(read) for name, read in names.items()}

    @pytest.fixture(scope="class")
    def orders(self, project: Any) -> TableState:
        """The input, of whose commits clean leaves the newest two whole."""
        run_dbt(["run", "--exclude", "sampled"])
        run_dbt(["run", "--select", "sampled", *FIRST_DAY])
        root = project.adapter.config.credentials.location_root
        storage = open_storage(f"{root}/{project.test_schema}/orders")
        for reader in list_consumers(storage):
            forget_consumer(storage, reader.name)
        for step in range(1, 5):
            run_dbt(["run", "--select", "orders", "--vars", f"step: {step}"])
        run_dbt(["run-operation", "hudi_clean", "--args", "{table: orders, retain_commits: 2}"])
        return TableState.load(storage)

    @pytest.mark.parametrize(
        ("name", "on_gap"), [("by_snapshot", "snapshot"), ("by_compare", "compare"), ("sampled", "snapshot")]
    )
    def test_a_gap_is_bridged_with_a_state_that_can_be_read(
        self, project: Any, orders: TableState, name: str, on_gap: str
    ) -> None:
        run_dbt(["run", "--select", name], expect_pass=False)
        bound = orders.timeline.cleaned_up_to
        assert bound is not None
        left = [
            each.requested_time
            for each in orders.timeline.completed_writes
            if each.requested_time >= bound.oldest
        ]
        for step, instant in zip(range(5 - len(left), 5), left, strict=True):
            run_dbt(["run", "--select", name, "--vars", f"{{on_gap: {on_gap}, most: 1}}"])
            rows = project.run_sql(f"select distinct step from {project.test_schema}.{name}", fetch="all")
            assert [row[0] for row in rows] == [step]
            root = project.adapter.config.credentials.location_root
            state = TableState.load(open_storage(f"{root}/{project.test_schema}/{name}"))
            assert set(read_checkpoint(state).values()) == {instant}
            (held,) = (each.instant for each in list_consumers(orders.storage) if each.name.endswith(name))
            assert held in left, "of what is gone nothing is kept"
