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
CUSTOMERS = """
{{ config(materialized='table', event_time='at') }}
select id as customer, timestamp '2020-01-01 00:00:00' + make_dt_interval(id) as at from range(0, 2)
"""
STAGED = "{{{{ config(materialized='{kind}') }}}} select customer from {{{{ ref('{above}') }}}}"
NAMED = """
{{ config(materialized='incremental', unique_key='id') }}
select c.id, s.customer, c._change_type from {{ hudi_changes(ref('orders'), on_gap=var('gap', 'fail')) }} c
join {{ ref(var('staged', 'staged')) }} s on s.customer = c.customer
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
        assert "totals takes changes, and with --sample what else it reads" in told
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


class TestSamplesBehindChanges:
    """What the model reads beside the changes has no ``event_time``, and is made of rows that have."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        staged = {
            "staged.sql": STAGED.format(kind="view", above="inner"),
            "inner.sql": STAGED.format(kind="ephemeral", above="customers"),
            "stored.sql": STAGED.format(kind="table", above="customers"),
        }
        return {"orders.sql": ORDERS, "customers.sql": CUSTOMERS, "named.sql": NAMED, **staged}

    def count(self, project: Any) -> int:
        return int(project.run_sql("select count(*) from {schema}.named", fetch="one")[0])

    @pytest.mark.parametrize(("staged", "orders"), [("staged", 8), ("stored", 12)])
    def test_no_changes_are_taken_beside_what_is_made_of_a_sample(
        self, project: Any, staged: str, orders: int
    ) -> None:
        said = ["--vars", f"{{staged: {staged}, orders: {orders}}}"]
        if orders == 8:
            run_dbt(["run"])
        run_dbt(["run", "--select", "orders", *said])
        _, told = run_dbt_and_capture(["run", "--exclude", "orders", *said, *FIRST_DAY], expect_pass=False)
        assert f"what else it reads (through {staged}) is a part of the rows" in told
        assert f"run it and {staged} without --sample" in told and self.count(project) == orders - 4
        run_dbt(["run", "--exclude", "orders", *said])
        assert self.count(project) == orders

    def test_a_table_that_the_run_does_not_build_is_as_it_was(self, project: Any) -> None:
        said = ["--vars", "{staged: stored, orders: 16}"]
        run_dbt(["run", "--select", "orders", *said])
        run_dbt(["run", "--select", "named", *said, *FIRST_DAY])
        assert self.count(project) == 16

    def test_no_run_goes_on_from_a_table_that_was_built_so(self, project: Any) -> None:
        run_dbt(["run", "--select", "named", "staged", "--full-refresh", *FIRST_DAY])
        _, told = run_dbt_and_capture(["run", "--select", "named", "staged"], expect_pass=False)
        assert "named was built with --sample" in told
