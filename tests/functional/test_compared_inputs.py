"""Models that compare all rows of an input with their own, where the changes in between are gone."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt
from hudi_engine.format.storage import open_storage
from hudi_engine.table.changes.checkpoint import read_checkpoint
from hudi_engine.table.state import TableState

from tests.functional.test_changes import Chain
from tests.functional.test_writes_under_way import under_way

ORDERS = """
{{ config(materialized='incremental', unique_key='id', partition_by=['p']) }}
select id, p, v from values (1, 1, 'a', 'one'), (1, 2, 'a', 'two'), (1, 3, 'b', 'three'), (2, 300, 'a', 'undone'), (3, 1, 'c', 'moved')
as t(step, id, p, v) where step = {{ var('step', 1) }}
"""
FOLLOWER = """
{{{{ config(materialized='incremental', unique_key='id', partition_by=['p'] {config}) }}}}
select id, p, v, c._change_type, c._commit_time
from {{{{ hudi_changes(ref('orders'), mode='{mode}', on_gap=var('on_gap', 'fail')) }}}} c
"""
FOLLOWERS = {
    "by_place": FOLLOWER.format(config=", index='simple'", mode="net"),
    "by_key": FOLLOWER.format(config="", mode="net"),
    "by_key_in_steps": FOLLOWER.format(config="", mode="all"),
}


class TestComparedInputs:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"orders.sql": ORDERS} | {f"{name}.sql": text for name, text in FOLLOWERS.items()}

    def test_a_row_that_went_to_another_partition_is_there_once(self, project: Any) -> None:
        run_dbt(["run"])
        run_dbt(["run", "--vars", "{step: 2}"])
        root = project.adapter.config.credentials.location_root
        state = TableState.load(open_storage(f"{root}/{project.test_schema}/orders"))
        taken = state.timeline.completed_writes[-1].requested_time
        run_dbt(["run-operation", "hudi_rollback", "--args", f"{{table: orders, instant: '{taken}'}}"])
        run_dbt(["run", "--select", "orders", "--vars", "{step: 3}"])
        project.run_sql(f"delete from {project.test_schema}.orders where id = 3")
        run_dbt(["run", "--exclude", "orders", "--vars", "{on_gap: compare}"])
        for name in FOLLOWERS:
            rows = project.run_sql(f"select id, p, v from {project.test_schema}.{name}", fetch="all")
            assert sorted(map(tuple, rows)) == [(1, "c", "moved"), (2, "a", "two")], name


TYPED = """
{{ config(materialized='table', unique_key='id') }}
select id, cast(v as {{ var('kind', 'string') }}) as v from values {{ var('rows', "(1, 'one'), (2, 'two')") }} as t(id, v)
"""
OF_TYPED = """
{{ config(materialized='incremental', unique_key='id') }}
select id, cast(v as string) as v, _change_type, _commit_time from {{ hudi_changes(ref('typed'), on_gap=var('on_gap', 'fail')) }}
"""


class TestInputsOfOtherTypes:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"typed.sql": TYPED, "follower.sql": OF_TYPED}

    def test_an_input_that_was_built_anew_with_other_types_is_a_gap_which_the_model_can_bridge(
        self, project: Any
    ) -> None:
        run_dbt(["run"])
        said = "kind: int, rows: '(2, 22), (3, 33)'"
        built, failed = run_dbt(["run", "--vars", f"{{{said}}}"], expect_pass=False)
        assert built.status == "success"
        assert "column 'v' was string and is int32 since commit" in failed.message
        assert "on_gap='compare'" in failed.message
        run_dbt(["run", "-s", "follower", "--vars", "{on_gap: compare}"])
        rows = project.run_sql(f"select id, v from {project.test_schema}.follower", fetch="all")
        assert sorted(map(tuple, rows)) == [(2, "22"), (3, "33")]
        project.run_sql(f"delete from {project.test_schema}.typed where id = 2")
        run_dbt(["run", "-s", "follower"])
        rows = project.run_sql(f"select id, v from {project.test_schema}.follower", fetch="all")
        assert sorted(map(tuple, rows)) == [(3, "33")]


KEYED = """
{{ config(materialized='table', unique_key='id') }}
select cast(id as {{ var('kind', 'string') }}) as id, {{ var('v', "cast('one' as string)") }} as v
from values {{ var('ids', "('1'), ('2')") }} as t(id)
"""
OF_KEYED = """
{{ config(materialized='incremental', unique_key='id') }}
select cast(id as string) as id, cast(v as string) as v, _change_type, _commit_time
from {{ hudi_changes(ref('keyed'), on_gap=var('on_gap', 'fail'), end=var('end', none)) }}
"""


class TestInputsWithKeysOfOtherTypes:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"keyed.sql": KEYED, "follower.sql": OF_KEYED}

    def rows(self, project: Any) -> list[tuple[Any, ...]]:
        return sorted(
            map(tuple, project.run_sql(f"select id, v from {project.test_schema}.follower", fetch="all"))
        )

    def test_a_key_of_another_type_is_refused(self, project: Any) -> None:
        run_dbt(["run", "--vars", "{ids: \"('abc'), ('1'), ('2')\"}"])
        run_dbt(["run", "-s", "keyed", "--vars", "{kind: int, ids: '(2), (3)', v: \"date'2026-01-01'\"}"])
        (failed,) = run_dbt(["run", "-s", "follower", "--vars", "{on_gap: compare}"], expect_pass=False)
        assert "id of 'follower' is string and id of the input 'keyed' is int" in failed.message
        assert "run the model with --full-refresh" in failed.message
        assert self.rows(project) == [("1", "one"), ("2", "one"), ("abc", "one")]
        run_dbt(["run", "-s", "follower", "--full-refresh"])
        assert self.rows(project) == [("2", "2026-01-01"), ("3", "2026-01-01")]

    def test_an_input_made_anew_whose_first_commit_is_not_there_yet_takes_no_row_from_the_model(
        self, project: Any
    ) -> None:
        run_dbt(["run", "--full-refresh"])
        chain = Chain(project)
        noted = read_checkpoint(chain.state("follower"))
        project.run_sql(f"drop table {project.test_schema}.keyed purge")
        run_dbt(["run", "-s", "keyed", "--vars", "{ids: \"('1'), ('4')\"}"])
        project.run_sql(f"insert into {project.test_schema}.keyed values ('5', 'five')")
        first = chain.state("keyed").timeline.completed_writes[0].requested_time
        follow = ["run", "-s", "follower", "--vars"]
        with under_way(chain, "keyed", first):
            run_dbt([*follow, "{on_gap: compare}"])
            assert self.rows(project) == [("1", "one"), ("2", "one")]
        run_dbt([*follow, "{on_gap: compare, end: '2020-01-01'}"])
        assert self.rows(project) == [("1", "one"), ("2", "one")]
        assert read_checkpoint(chain.state("follower")) == noted, "so the next run compares"
        run_dbt([*follow, "{on_gap: compare}"])
        assert self.rows(project) == [("1", "one"), ("4", "one"), ("5", "five")]
