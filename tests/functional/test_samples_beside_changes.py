"""Changes in runs with ``--sample``, where what the model reads beside them is a part of the rows."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

ORDERS = """
{{ config(materialized='incremental', unique_key='id', event_time='at') }}
select id, id % 2 as customer, timestamp '2020-01-01 00:00:00' + make_dt_interval(id) as at
from range(0, {{ var('orders', 4) }})
"""
TOTALS = """
{{ config(materialized='incremental', unique_key='customer') }}
with touched as (select distinct customer from {{ hudi_changes(ref('orders'), mode='all', on_gap=var('gap', 'fail')) }})
select touched.customer, count(o.id) as orders, if(count(o.id) = 0, 'delete', 'update_after') as _change_type
from touched left join {{ ref('orders') }} o on o.customer = touched.customer group by touched.customer
"""
ALONE = """
{{ config(materialized='incremental', unique_key='id') }}
select c.id, c._change_type from {{ hudi_changes(ref('orders')) }} c
"""
FIRST_DAY = ["--sample", "{'start': '2020-01-01', 'end': '2020-01-02'}"]


class TestSamplesBesideChanges:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"orders.sql": ORDERS, "totals.sql": TOTALS, "alone.sql": ALONE}

    def totals(self, project: Any) -> list[tuple[int, int]]:
        found = project.run_sql("select customer, orders from {schema}.totals order by customer", fetch="all")
        return [tuple(row) for row in found]

    def test_a_table_that_is_there_takes_no_changes_beside_a_sample(self, project: Any) -> None:
        run_dbt(["run"])
        run_dbt(["run", "--select", "orders", "--vars", "orders: 8"])
        run_dbt(["run", "--select", "alone", *FIRST_DAY])
        (count,) = project.run_sql("select count(*) from {schema}.alone", fetch="one")
        assert count == 8, "of changes alone a sample leaves nothing out"
        _, told = run_dbt_and_capture(["run", "--select", "totals", *FIRST_DAY], expect_pass=False)
        assert "totals takes changes, and with --sample what it reads beside them" in told
        assert "--exclude totals" in told and self.totals(project) == [(0, 2), (1, 2)]
        run_dbt(["run", "--select", "totals"])
        assert self.totals(project) == [(0, 4), (1, 4)]
        run_dbt(["run", "--select", "totals", *FIRST_DAY])  # nothing has changed

    def test_no_run_goes_on_from_a_table_that_was_built_of_a_sample(self, project: Any) -> None:
        run_dbt(["run", "--select", "totals", "--full-refresh", *FIRST_DAY])
        assert self.totals(project) == [(0, 1)]
        _, told = run_dbt_and_capture(["run", "--select", "totals"], expect_pass=False)
        assert "totals was built with --sample" in told and "--full-refresh" in told
        run_dbt(["run", "--select", "totals", "--vars", "gap: snapshot"])
        assert self.totals(project) == [(0, 4), (1, 4)]
        run_dbt(["run", "--select", "totals"])
