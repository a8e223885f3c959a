"""Models that read what changed in their inputs since their last run."""

from __future__ import annotations

import random
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from hudi_engine.format.storage import open_storage
from hudi_engine.table.changes.checkpoint import read_checkpoint
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.consumers import list_consumers

KEYED = "materialized='incremental', unique_key='id'"
ORDERS = """
{{ config(materialized='table', unique_key='id', precombine_field='ts') }}
select cast(id as int) as id, cast(id % 3 as int) as customer, cast(10 * id as bigint) as amount, cast(1 as bigint) as ts
from range(1, 7)
"""
DOUBLED = f"""
{{{{ config({KEYED}, precombine_field='ts') }}}}
select c.id, customer, amount * 2 as amount, ts, c._change_type, c._commit_time
from {{{{ hudi_changes(ref('orders'), on_gap=var('on_gap', 'fail'), max_commits=var('max_commits', none), keep_for='2 days',
    begin=var('begin', none), end=var('end', none)) }}}} c
{{{{ "where assert_true(false) is null" if var('dies', false) else "" }}}}
"""
COPY = f"""
{{{{ config({KEYED}, on_schema_change='sync_all_columns') }}}}
select id, customer, amount, _change_type from {{{{ hudi_changes(ref('doubled')) }}}}
"""
TOTALS = """
{{ config(materialized='incremental', unique_key='customer') }}
with touched as (select distinct customer from {{ hudi_changes(ref('copied'), mode='all') }})
select t.customer, count(o.id) as orders, sum(o.amount) as total,
       if(count(o.id) = 0, 'delete', 'update_after') as _change_type
from touched t left join {{ ref('copied') }} o on t.customer = o.customer
group by t.customer
"""


class Chain:
    """The project's tables, next to what they should hold."""

    def __init__(self, project: Any) -> None:
        self.project = project

    def rows(self, name: str, columns: str) -> list[tuple[Any, ...]]:
        found = self.project.run_sql(f"select {columns} from {self.project.test_schema}.{name}", fetch="all")
        return sorted(tuple(row) for row in found)

    def state(self, name: str) -> TableState:
        return TableState.load(open_storage(str(self.base(name))))

    def base(self, name: str) -> str:
        return f"{self.project.adapter.config.credentials.location_root}/{self.project.test_schema}/{name}"

    def sql(self, statement: str) -> None:
        self.project.run_sql(statement.replace("orders", f"{self.project.test_schema}.orders"))

    def check(self) -> None:
        """All three models are what their queries give over all rows of the first table."""
        orders = [
            (id_, customer, 2 * amount)
            for id_, customer, amount in self.rows("orders", "id, customer, amount")
        ]
        assert self.rows("doubled", "id, customer, amount") == orders
        assert self.rows("copied", "id, customer, amount") == orders
        totals: dict[int, tuple[int, int]] = {}
        for _, customer, amount in orders:
            count, total = totals.get(customer, (0, 0))
            totals[customer] = (count + 1, total + amount)
        assert self.rows("totals", "customer, orders, total") == sorted(
            (key, *value) for key, value in totals.items()
        )


class TestChainOfModels:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"orders.sql": ORDERS, "doubled.sql": DOUBLED, "copied.sql": COPY, "totals.sql": TOTALS}

    @pytest.fixture(scope="class")
    def chain(self, project: Any) -> Chain:
        run_dbt(["run"])
        return Chain(project)

    def follow(self, *args: str, expect_pass: bool = True) -> Any:
        return run_dbt(["run", "--exclude", "orders", *args], expect_pass=expect_pass)

    def test_the_first_run_takes_all_rows(self, chain: Chain) -> None:
        chain.check()
        assert set(read_checkpoint(chain.state("doubled"))) == {f"{chain.project.test_schema}.orders".lower()}

    def test_any_changes_reach_the_end_of_the_chain(self, chain: Chain) -> None:
        random_ = random.Random(7)
        statements = [
            "delete from orders where id = {id}",
            "update orders set amount = amount + {id} where id >= {id}",
            "update orders set customer = {id} % 4 where id = {id}",
            "insert into orders values ({new}, {id} % 4, {id}, 1)",
        ]
        for run in range(2):
            for _ in range(random_.randrange(3)):
                statement = random_.choice(statements)
                chain.sql(statement.format(id=random_.randrange(1, 7), new=random_.randrange(100, 10**6)))
            if run == 1:
                chain.sql("insert into orders values (7, 1, 5, 1)")
                self.follow("--vars", "{dies: true}", expect_pass=False)
            self.follow()
            chain.check()

    def test_without_new_commits_nothing_is_committed(self, chain: Chain) -> None:
        self.follow()
        before = chain.state("doubled").timeline.completed_writes
        results = self.follow()
        assert chain.state("doubled").timeline.completed_writes == before
        assert {result.status for result in results} == {"success"}
        assert all(result.adapter_response["_message"].startswith("0 changes since ") for result in results)

    def test_a_rollback_of_a_model_takes_its_checkpoint_back(self, chain: Chain) -> None:
        before = read_checkpoint(chain.state("totals"))
        chain.sql("insert into orders values (50, 1, 5, 1)")
        self.follow()
        assert read_checkpoint(chain.state("totals")) != before
        newest = chain.state("totals").timeline.completed_writes[-1].requested_time
        run_dbt(["run-operation", "hudi_rollback", "--args", f"{{table: totals, instant: '{newest}'}}"])
        assert read_checkpoint(chain.state("totals")) == before
        self.follow()
        chain.check()

    def test_other_commits_of_the_target_carry_the_checkpoint(self, chain: Chain) -> None:
        before = read_checkpoint(chain.state("copied"))
        chain.project.run_sql(f"delete from {chain.project.test_schema}.copied where id < 0 or id = 50")
        newest = chain.state("copied").timeline.newest_metadata()
        assert newest is not None and "dbt_hudi.checkpoint" in newest.extra_metadata
        assert read_checkpoint(chain.state("copied")) == before
        self.follow("--full-refresh")
        chain.check()

    def test_a_full_refresh_in_the_middle_is_told_as_what_it_did(self, chain: Chain) -> None:
        chain.sql("delete from orders where id = 6")
        self.follow("--full-refresh", "--select", "doubled")
        self.follow()
        chain.check()

    def test_a_limit_leaves_the_rest_for_the_next_run(self, chain: Chain) -> None:
        for number in range(3):
            chain.sql(f"insert into orders values ({200 + number}, 1, 5, 1)")
        for known in range(1, 4):
            self.follow("--select", "doubled", "--vars", "{max_commits: 1}")
            assert len([row for row in chain.rows("doubled", "id") if 200 <= row[0] < 203]) == known
        self.follow()
        chain.check()

    def test_a_replay_reads_what_vars_say(self, chain: Chain) -> None:
        before = chain.state("orders").timeline.completed_writes[-1].requested_time
        chain.sql("update orders set amount = amount + 1 where id = 1")
        after = chain.state("orders").timeline.completed_writes[-1].requested_time
        self.follow()
        chain.project.run_sql(f"delete from {chain.project.test_schema}.doubled where id = 1")
        self.follow("--vars", f"{{begin: '{before}', end: '{after}'}}")
        chain.check()

    def test_a_model_that_asked_for_it_is_a_consumer_of_its_input(self, chain: Chain) -> None:
        chain.sql("update orders set amount = amount + 1 where id = 2")
        noted = read_checkpoint(chain.state("doubled"))
        self.follow("--select", "doubled")
        (found,) = list_consumers(open_storage(chain.base("orders")))
        assert found.name.endswith(".doubled")
        assert found.instant in noted.values(), "what the run began after"
        _, output = run_dbt_and_capture(["run-operation", "hudi_checkpoint", "--args", "{table: orders}"])
        assert f"{found.name}  {found.instant}  until 20" in output

    def test_the_checkpoint_is_shown_set_and_reset(self, chain: Chain) -> None:
        source = f"{chain.project.test_schema}.orders".lower()
        _, output = run_dbt_and_capture(["run-operation", "hudi_checkpoint", "--args", "{table: doubled}"])
        noted = read_checkpoint(chain.state("doubled"))[source]
        assert f"{source}  {noted}" in output
        run_dbt(["run-operation", "hudi_checkpoint", "--args", "{table: doubled, reset: 'false'}"])
        assert read_checkpoint(chain.state("doubled")) == {source: noted}, "a text says no as YAML does"
        wrong = ["run-operation", "hudi_checkpoint", "--args", "{table: doubled, reset: perhaps}"]
        assert "legal values: true, false" in run_dbt_and_capture(wrong, expect_pass=False)[1]
        run_dbt(["run-operation", "hudi_checkpoint", "--args", "{table: doubled, reset: true}"])
        assert read_checkpoint(chain.state("doubled")) == {}
        run_dbt(
            [
                "run-operation",
                "hudi_checkpoint",
                "--args",
                f"{{table: doubled, input: orders, set: '{noted}'}}",
            ]
        )
        assert read_checkpoint(chain.state("doubled")) == {source: noted}
        never = "{table: doubled, input: orders, set: '20200101000000000'}"
        _, output = run_dbt_and_capture(
            ["run-operation", "hudi_checkpoint", "--args", never], expect_pass=False
        )
        assert "no commit of its timeline is that instant" in output
        assert read_checkpoint(chain.state("doubled")) == {source: noted}

    def test_what_was_rolled_back_in_the_input_is_a_gap_with_choices(self, chain: Chain) -> None:
        chain.sql("insert into orders values (300, 1, 5, 1)")
        self.follow()
        newest = chain.state("orders").timeline.completed_writes[-1].requested_time
        run_dbt(["run-operation", "hudi_rollback", "--args", f"{{table: orders, instant: '{newest}'}}"])
        assert {result.status for result in run_dbt(["compile"])} == {"success"}, (
            "only a run needs the changes"
        )
        results = self.follow("--select", "doubled", expect_pass=False)
        assert "taken back by rollback" in results[0].message
        assert "on_gap='compare'" in results[0].message
        _, output = run_dbt_and_capture(["run", "--exclude", "orders", "--vars", "{on_gap: compare}"])
        assert "taken back by rollback" in output and "are taken (on_gap)" in output
        assert "Choose on_gap" not in output, "it is chosen"
        chain.check()


MIRROR = """
{{{{ config({keyed}, table_type='{kind}', on_schema_change='{change}') }}}}
select c.id, c.amount, c._change_type, c._commit_time from {{{{ hudi_changes(ref('orders')) }}}} c
"""


PLACES = """
{{ config(materialized='incremental', unique_key='id', partition_by=['p']) }}
select id, p, v from values (1, 1, 'c', 'first'), (1, 2, 'c', 'first'), (2, 1, 'a', 'moved'), (3, 2, 'c', 'second')
as t(step, id, p, v) where step = {{ var('step', 1) }}
"""


class TestConsumedChangeType:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        cases = {
            "ignored": ("cow", "ignore"),
            "failing": ("mor", "fail"),
            "growing": ("cow", "append_new_columns"),
        }
        return {"orders.sql": ORDERS} | {
            f"{name}.sql": MIRROR.format(keyed=KEYED, kind=kind, change=change)
            for name, (kind, change) in cases.items()
        }

    def test_a_delete_leaves_no_column_behind(self, project: Any) -> None:
        run_dbt(["run"])
        chain = Chain(project)
        chain.sql("delete from orders where id = 2")
        run_dbt(["run", "--exclude", "orders"])
        orders = chain.rows("orders", "id, amount")
        for name in ("ignored", "failing", "growing"):
            assert chain.rows(name, "id, amount") == orders
            schema = chain.state(name).data_schema()
            assert schema is not None and schema.names == ["id", "amount"]


BOTH = """
{{ config(materialized='incremental', unique_key=['region', 'id']) }}
{% if var('us', false) %} select 'us' as region, id from {{ hudi_changes(source('us', 'orders')) }} union all {% endif %}
select 'eu' as region, id from {{ hudi_changes(source('eu', 'orders')) }}
"""
REGIONS = """
sources:
  - {name: eu, schema: "{{ target.schema }}_eu", tables: [{name: orders}]}
  - {name: us, schema: "{{ target.schema }}_us", tables: [{name: orders}]}
"""


class TestInputsOfOneName:
    """Each input has its own checkpoint, also where its table is called as that of another one."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"both.sql": BOTH, "sources.yml": REGIONS}

    def test_a_new_one_brings_all_its_rows(self, project: Any) -> None:
        project.run_sql("create schema {schema}_eu; create schema {schema}_us")
        made = "using hudi tblproperties ('primaryKey' = 'id') as select"
        project.run_sql(f"create table {{schema}}_eu.orders {made} 1 as id")
        run_dbt(["run"])
        project.run_sql("insert into {schema}_eu.orders values (2)")
        project.run_sql(f"create table {{schema}}_us.orders {made} 7 as id")
        run_dbt(["run", "--vars", "{us: true}"])
        assert Chain(project).rows("both", "region, id") == [("eu", 1), ("eu", 2), ("us", 7)]
        project.run_sql("drop schema {schema}_eu cascade; drop schema {schema}_us cascade")


class TestKeysThatMove:
    """A key of a table with a global index is deleted where it was and inserted where it is."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        follower = "{{ config(materialized='incremental', unique_key='id', partition_by=[%s]) }} select * from {{ hudi_changes(ref('places')) }}"
        return {"places.sql": PLACES, "flat.sql": follower % "", "parted.sql": follower % "'p'"}

    def test_a_key_that_moved_stays_though_its_old_file_group_changed_later(self, project: Any) -> None:
        chain = Chain(project)
        run_dbt(["run"])
        for step in (2, 3):
            run_dbt(["run", "-s", "places", "--vars", f"step: {step}"])
        run_dbt(["run", "--exclude", "places"])
        places = chain.rows("places", "id, p, v")
        assert places == [(1, "a", "moved"), (2, "c", "second")]
        assert (chain.rows("flat", "id, p, v"), chain.rows("parted", "id, p, v")) == (places, places)


class TestWrongUses:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "orders.sql": ORDERS,
            "as_view.sql": "{{ config(materialized='view') }} select * from {{ hudi_changes(ref('orders')) }}",
            "wrong_mode.sql": "{{ config(materialized='table') }} select * from {{ hudi_changes(ref('orders'), mode='some', max_commits=0, skip_compaction=false, keep_for='long', latest=1) }}",
            "earlier.sql": "{{ config(materialized='table') }} select * from {{ hudi_as_of(ref('orders'), 'latest') }} o",
            "all.sql": "{{ config(materialized='table') }} select * from {{ hudi_changes(ref('orders'), begin='earliest') }} c",
            "before.sql": "{{ config(materialized='table') }} select * from {{ hudi_changes(ref('orders'), end='2020-01-01') }} c",
            "text.sql": "{{ config(materialized='table') }} select * from {{ hudi_changes('orders') }}",
            "text_as_of.sql": "{{ config(materialized='table') }} select * from {{ hudi_as_of('orders', 'latest') }}",
            "backwards.sql": "{{ config(materialized='table') }} select * from {{ hudi_changes(ref('orders'), begin='2026-02-01', end='2026-01-01') }}",
            "unknown.sql": "{{ config(materialized='table') }} select * from {{ hudi_as_of(ref('orders'), 'yesterday') }} o",
        }

    def test_they_are_refused_by_name(self, project: Any) -> None:
        results = {result.node.name: result for result in run_dbt(["run"], expect_pass=False)}
        assert results["earlier"].status == results["all"].status == results["before"].status == "success"
        assert results["all"].adapter_response["rows_inserted"] > 0
        assert results["before"].adapter_response["rows_inserted"] == 0, "the table had no rows then"
        assert "materialized as 'view'" in results["as_view"].message
        wrong = results["wrong_mode"].message
        for said in (
            "latest is no argument",
            "mode is 'some'; legal values: net, all, latest; max_commits is 0",
            "skip_compaction is false",
            "keep_for is 'long'; legal is a number of hours or days",
        ):
            assert said in wrong
        assert "savepoints are called that" in results["unknown"].message
        assert "hudi_changes: 'orders' is no relation; give ref('orders')" in results["text"].message
        assert "hudi_as_of: 'orders' is no relation" in results["text_as_of"].message
        assert "the changes end at 2026-01-01, before they start" in results["backwards"].message
