"""Keyed models of every commit's changes, where one window has several of a key."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt

from tests.functional.test_changes import ORDERS, Chain

pytestmark = pytest.mark.sampled

STEPS = """
{{ config(materialized='incremental', unique_key='id') }}
select id, amount, _change_type {{ var('time', '') }} from {{ hudi_changes(ref('orders'), mode='all') }}
"""
ONE_A_KEY = """
{{ config(materialized='incremental', unique_key='customer') }}
with touched as (select distinct customer from {{ hudi_changes(ref('orders'), mode='all') }})
select customer, count(o.id) as orders, if(count(o.id) = 0, 'delete', 'insert') as _change_type
from touched left join {{ ref('orders') }} o using (customer) group by customer
"""
ORDERED = """
{{ config(materialized='incremental', unique_key='id', precombine_field='ts') }}
select id, amount, ts, _change_type from {{ hudi_changes(ref('orders'), mode='all') }}
"""
FANNED_OUT = """
{{ config(materialized='incremental', unique_key='id') }}
select id, n, _change_type from {{ hudi_changes(ref('orders'), mode='all') }} lateral view explode(array(1, 2)) as n
"""
CHANGES = {
    "updated and deleted": ("update orders set amount = 5 where id = 1", "delete from orders where id = 1"),
    "updated twice": (
        "update orders set amount = 5 where id = 2",
        "update orders set amount = 6 where id = 2",
    ),
    "deleted and back": ("delete from orders where id = 3", "insert into orders values (3, 0, 7, 1)"),
}


@pytest.fixture(scope="class")
def chain(project: Any) -> Chain:
    run_dbt(["run"])
    return Chain(project)


class TestStepsOfAKey:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"orders.sql": ORDERS, "steps.sql": STEPS, "totals.sql": ONE_A_KEY}

    @pytest.mark.parametrize("change", CHANGES)
    def test_several_commits_of_a_key_are_refused_until_the_query_says_which_is_the_newest(
        self, chain: Chain, change: str
    ) -> None:
        chain.sql("update orders set amount = amount + 1 where id = 4")
        run_dbt(["run", "-s", "steps"])
        assert chain.rows("steps", "id, amount") == chain.rows("orders", "id, amount"), "one commit a key"
        for statement in CHANGES[change]:
            chain.sql(statement)
        before = chain.rows("steps", "id, amount")
        results = run_dbt(["run", "-s", "steps", "totals"], expect_pass=False)
        failed, followed = sorted(results, key=lambda result: result.node.name)
        assert "several rows with id '" in failed.message and "select _commit_time too" in failed.message
        assert followed.status == "success", "an aggregate has one row a key"
        assert chain.rows("steps", "id, amount") == before
        run_dbt(["run", "-s", "steps", "--vars", "{time: ', _commit_time'}"])
        assert chain.rows("steps", "id, amount") == chain.rows("orders", "id, amount")


class TestStepsThatOrderThemselves:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"orders.sql": ORDERS, "ordered.sql": ORDERED, "fanned.sql": FANNED_OUT}

    def test_a_first_build_takes_each_row_once_so_that_a_join_may_make_more_of_it(self, chain: Chain) -> None:
        assert len(chain.rows("fanned", "id, n")) == 2 * len(chain.rows("orders", "id"))
        run_dbt(["run", "-s", "fanned", "--full-refresh"])

    def test_updates_of_a_key_are_taken_by_their_ordering_field(self, chain: Chain) -> None:
        chain.sql("update orders set amount = 5, ts = 2 where id = 1")
        chain.sql("update orders set amount = 6, ts = 3 where id = 1")
        chain.sql("insert into orders values (7, 0, 1, 1)")
        chain.sql("update orders set amount = 2, ts = 2 where id = 7")
        run_dbt(["run", "-s", "ordered"])
        assert chain.rows("ordered", "id, amount, ts") == chain.rows("orders", "id, amount, ts")

    @pytest.mark.parametrize(
        "changes",
        [
            ("update orders set amount = 5, ts = 9 where id = 2", "delete from orders where id = 2"),
            ("update orders set amount = 5 where id = 3", "update orders set amount = 6 where id = 3"),
        ],
        ids=["one is a delete", "none is newer than the other"],
    )
    def test_what_the_ordering_field_does_not_decide_is_refused(
        self, chain: Chain, changes: tuple[str, ...]
    ) -> None:
        run_dbt(["run", "-s", "ordered", "--full-refresh"])
        for statement in changes:
            chain.sql(statement)
        (failed,) = run_dbt(["run", "-s", "ordered"], expect_pass=False)
        assert "several rows with id '" in failed.message and "select _commit_time too" in failed.message
