"""Tables as they were, named in models, tests, hooks and queries."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from hudi_engine.format.storage import open_storage
from hudi_engine.table.state import TableState

from dbt.adapters.hudi.spark.handle import HudiHandle

ORDERS = """
{{ config(materialized='table', unique_key='id') }}
select cast(id as int) as id, 'first' as name from range(1, 4)
"""
PINNED = """
{{ config(materialized='table', as_of=var('moment', none)) }}
select o.id, o.name, count(*) over () as n from {{ ref('orders') }} o
"""
IN_SQL = """
{{ config(materialized='table') }}
with old as (select * from {{ ref('orders') }} timestamp as of '{{ var("instant", "") }}' o)
select old.id, old.name as old_name, now.name as new_name, changed.name as told_name
from old join {{ ref('orders') }} version as of '{{ var("later", "") }}' now using (id)
left join hudi_table_changes('{{ ref("orders") }}', 'latest_state', '{{ var("instant", "") }}') changed using (id)
"""
LATEST_FIRST = """
{{ config(materialized='table', post_hook="insert into {{ ref('orders') }} values (100, 'new')") }}
select id, name from {{ hudi_as_of(ref('orders'), 'latest') }}
"""
LATEST_AGAIN = """
-- depends_on: {{ ref('latest_first') }}
{{ config(materialized='table') }}
select id, name from {{ hudi_as_of(ref('orders'), 'latest') }}
"""
TEST = "{{ config(as_of=var('moment', none)) }} select * from {{ ref('orders') }} where name <> 'first'"

BY_PROJECT = "{{ config(materialized='table') }} select id, name from {{ ref('orders') }}"
SNAPSHOT = """
{% snapshot remembered %}
{{ config(unique_key='id', strategy='check', check_cols='all') }}
select id, name from {{ hudi_as_of(ref('orders'), var('moment', 'latest')) }}
{% endsnapshot %}
"""


class TestStatesOfThePast:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "orders.sql": ORDERS,
            "pinned.sql": PINNED,
            "in_sql.sql": IN_SQL,
            "latest_first.sql": LATEST_FIRST,
            "latest_again.sql": LATEST_AGAIN,
            "by_project.sql": BY_PROJECT,
        }

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"remembered.sql": SNAPSHOT}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"+as_of": "{{ var('moment', none) }}"}}

    @pytest.fixture(scope="class")
    def tests(self) -> dict[str, str]:
        return {"all_first.sql": TEST}

    @pytest.fixture(scope="class")
    def instants(self, project: Any) -> list[str]:
        run_dbt(["run", "--select", "orders"])
        orders = f"{project.test_schema}.orders"
        project.run_sql(f"update {orders} set name = 'second' where id <= 2")
        project.run_sql(f"update {orders} set name = 'third' where id = 1")
        place = f"{project.adapter.config.credentials.location_root}/{orders.replace('.', '/')}"
        state = TableState.load(open_storage(place))
        return [each.requested_time for each in state.timeline.completed_writes]

    def rows(self, project: Any, query: str) -> list[tuple[Any, ...]]:
        said = query.replace("orders", f"{project.test_schema}.orders").replace(
            "@", project.test_schema + "."
        )
        return sorted(tuple(row) for row in project.run_sql(said, fetch="all"))

    def test_a_node_with_as_of_reads_its_tables_as_they_were(self, project: Any, instants: list[str]) -> None:
        at_first = ["--vars", f"{{moment: '{instants[0]}'}}"]
        chosen = ["pinned", "by_project", "remembered", "all_first"]
        run_dbt(["build", "--select", *chosen, *at_first, "--exclude", "orders"])
        for name in chosen[:3]:
            assert self.rows(project, f"select id, name from @{name}") == [
                (1, "first"),
                (2, "first"),
                (3, "first"),
            ], name
        results = run_dbt(["test", "--select", "all_first"], expect_pass=False)
        assert results[0].failures == 2, "without it they are as of now"
        run_dbt(["run", "--select", "pinned", "--vars", f"{{moment: '{instants[1]}'}}"])
        assert [row[1] for row in self.rows(project, "select id, name from @pinned")] == [
            "second",
            "second",
            "first",
        ]

    def test_dbt_show_reads_the_past(self, project: Any, instants: list[str]) -> None:
        asked = "select name from {{ hudi_as_of(ref('orders'), '" + instants[0] + "') }} where id = 1"
        _, output = run_dbt_and_capture(["show", "--inline", asked])
        assert "first" in output
        asked = f"select name from {{{{ ref('orders') }}}} version as of '{instants[1]}' where id = 1"
        _, output = run_dbt_and_capture(["show", "--inline", asked])
        assert "second" in output

    def test_models_and_queries_take_hudis_words(self, project: Any, instants: list[str]) -> None:
        plain, earlier = (
            project.run_sql(f"select * from {project.test_schema}.orders {words}", fetch="all")
            for words in ("where id = 3", f"version as of '{instants[0]}' where id = 3")
        )
        assert list(map(tuple, plain)) == list(map(tuple, earlier)) == [(3, "first")]
        given = f"{{instant: '{instants[0]}', later: '{instants[1]}'}}"
        run_dbt(["run", "--select", "in_sql", "--vars", given])
        assert self.rows(project, "select id, old_name, new_name, told_name from @in_sql") == [
            (1, "first", "second", "third"),
            (2, "first", "second", "second"),
            (3, "first", "first", None),
        ]
        told = self.rows(
            project,
            f"select op, ts_ms from hudi_table_changes('orders', 'cdc', '{instants[0]}', '{instants[1]}')",
        )
        assert told == [("u", instants[1])] * 2
        told = self.rows(
            project, f"select op, ts_ms from hudi_table_changes('orders', 'cdc', 'earliest', '{instants[1]}')"
        )
        assert told == [("i", instants[0])] * 3 + [("u", instants[1])] * 2
        project.run_sql(
            f"insert into {project.test_schema}.orders select id + 10, name from {project.test_schema}.orders "
            f"timestamp as of '{instants[0]}' where id = 3"
        )
        assert self.rows(project, "select name from orders where id = 13") == [("first",)]

    def test_a_state_goes_by_its_tables_name(self, project: Any, instants: list[str]) -> None:
        for query in (
            f"select orders.name from @orders timestamp as of '{instants[0]}' where orders.id = 1",
            f"select old.name from @orders timestamp as of '{instants[0]}' old where old.id = 1",
            f"select x from @orders timestamp as of '{instants[0]}' as old(i, x) where i = 1",
            f"select name from @orders timestamp as of '{instants[0]}' tablesample (100 percent) where id = 1",
            f"select orders.name from @orders version as of '{instants[0]}', range(1) where orders.id = 1",
        ):
            said = query.replace("@", project.test_schema + ".")
            assert list(map(tuple, project.run_sql(said, fetch="all"))) == [("first",)], query

    def test_a_time_may_be_a_literal_of_its_type_in_the_zone_of_the_session(
        self, project: Any, instants: list[str]
    ) -> None:
        # the timeline of the table is in UTC, and the session too
        first = datetime.strptime(instants[0], "%Y%m%d%H%M%S%f")
        for said in (f"timestamp '{first}'", f"timestamp_ntz '{first}'", f"timestamp '{first}+00:00'"):
            asked = f"select name from {project.test_schema}.orders timestamp as of {said} where id = 1"
            assert list(map(tuple, project.run_sql(asked, fetch="all"))) == [("first",)], said
        tomorrow = first.date() + timedelta(days=1)
        asked = (
            f"select name from {project.test_schema}.orders timestamp as of date '{tomorrow}' where id = 3"
        )
        assert list(map(tuple, project.run_sql(asked, fetch="all"))) == [("first",)]
        told = self.rows(
            project,
            f"select op from hudi_table_changes('orders', 'cdc', date '2020-01-01', timestamp '{first}')",
        )
        assert told == [("i",)] * 3

    def test_latest_is_one_state_for_the_whole_run(self, project: Any, instants: list[str]) -> None:
        run_dbt(["run", "--select", "latest_first", "latest_again"])
        again = self.rows(project, "select id, name from @latest_again where id < 100")
        assert again == self.rows(project, "select id, name from @latest_first where id < 100")
        assert self.rows(project, "select id from orders where id >= 100") == [(100,)], (
            "a hook added it in between"
        )
        assert self.rows(project, "select id from @latest_again where id >= 100") == []

    def test_a_soft_delete_empties_a_row_and_leaves_its_key(self, project: Any, instants: list[str]) -> None:
        run_dbt(["run-operation", "hudi_soft_delete", "--args", "{table: orders, where: id = 100}"])
        assert self.rows(project, "select id, name from orders where id = 100") == [(100, None)]
        with pytest.raises(Exception, match="nothing_here"):
            project.adapter.hudi_soft_delete(f"{project.test_schema}.orders", "nothing_here = 1")
        for no_text in (1, "", None):
            with pytest.raises(Exception, match="give a condition in SQL"):
                project.adapter.hudi_soft_delete(f"{project.test_schema}.orders", no_text)

    @pytest.mark.parametrize(
        ("query", "message"),
        [
            ("select * from orders timestamp as of current_date()", "no expression"),
            (
                "select * from hudi_table_changes('orders', 'all', 'earliest')",
                "takes 'schema.table', 'latest_state' or 'cdc'",
            ),
            (
                "select * from hudi_table_changes('nowhere', 'cdc', 'earliest')",
                "is no Hudi table of the warehouse",
            ),
            ("create view @v as select * from orders version as of '{}'", "in a view is refused"),
        ],
    )
    def test_what_cannot_be_told_is_refused(
        self, project: Any, instants: list[str], query: str, message: str
    ) -> None:
        with pytest.raises(Exception, match=message):
            self.rows(project, query.format(instants[0]))


class TestConnectionsOfOneSession:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"orders.sql": ORDERS}

    def test_a_connection_that_ends_drops_no_names_of_another(self, project: Any) -> None:
        run_dbt(["run", "--vars", "{moment: null}"])
        queries = (
            f"select count(*) from {project.test_schema}.orders timestamp as of '2999-01-01'",
            f"select 3 from information_schema.schemata where schema_name = '{project.test_schema}'",
        )
        with project.adapter.connection_named("one"):
            handle = project.adapter.connections.get_thread_connection().handle
            with handle.job("two connections") as session:
                other = HudiHandle(lambda: session, handle.router, lambda: 0, lambda _: None)
                with other.job("the other"):
                    read = [handle.with_states(session, query) for query in queries]
                    for query in queries:
                        other.with_states(session, query)
                other.close()
                assert [session.sql(query).collect()[0][0] for query in read] == [3, 3]
