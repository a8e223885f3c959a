"""What a second run whose query has no rows leaves of the table, for every incremental strategy and both table types."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from dbt.tests.util import patch_microbatch_end_time, run_dbt

from tests.functional.test_strategies import CASES, SECOND, model
from tests.helpers.forms import of_the_gate

UNCHANGED = [(1, "a", "x"), (2, "b", "y")]
CHANGED: dict[str, list[tuple[Any, ...]]] = {
    "clauses": [(1, "A", "x"), (2, "B", "y")],
    "clauses_of_one_side": [(1, "A", "x"), (2, "B", "y")],
    "branches": UNCHANGED[1:],
    "full_sync": [],
    "overwrite_whole": [],
    "overwrite_table": [],
    "replace_where": UNCHANGED[:1],
    "overwrite_where": UNCHANGED[:1],
    "deleting": [],
}
CONFIGS = {
    **{name: config for name, (config, _, _) in CASES.items()},
    "overwrite_table": {"incremental_strategy": "insert_overwrite_table"},
}


class TestRunsWithoutRows:
    @pytest.fixture(scope="class")
    def models(self, pytestconfig: pytest.Config) -> dict[str, str]:
        nothing = f"select * from ({SECOND}) where id > 9"
        made = {
            f"{name}_{kind}.sql": model(second=nothing, table_type=kind, **CONFIGS[name])
            for name, kind in product(CONFIGS, ("cow", "mor"))
        }
        return of_the_gate(made, pytestconfig)

    def test_rows_go_where_the_strategy_replaces_more_than_what_comes(
        self, project: Any, models: dict[str, str]
    ) -> None:
        for _ in range(2):
            run_dbt(["run"])
        for name in (file.removesuffix(".sql") for file in models):
            found = project.run_sql(f"select id, name, dt from {{schema}}.{name} order by id", fetch="all")
            wanted = CHANGED.get(name.rpartition("_")[0], UNCHANGED)
            assert [tuple(row) for row in found] == wanted, name


BY_DAY = """
{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at', batch_size='day', begin='2020-01-01') }}
select id, at from {{ ref('events') }}
"""
EVENTS = """
{{ config(materialized='table', event_time='at') }}
select id, timestamp '2020-01-01 00:00:00' + make_dt_interval(0, id * 6) as at, 'x' as name from range(0, 8)
"""
BESIDE = {
    "whole": "incremental_strategy='insert_overwrite_table'",
    "part": "incremental_strategy='replace_where', incremental_predicates='id > 1'",
    "synced": "incremental_strategy='merge', unique_key='id', not_matched_by_source_action='delete'",
    "keyed": "incremental_strategy='merge', unique_key='id', on_schema_change='append_new_columns'",
}
SNAPSHOT = """
{% snapshot kept %}
{{ config(strategy='timestamp', unique_key='id', updated_at='at', hard_deletes='HOW', target_schema=target.schema) }}
select id, at {{ var('more', '') }} from {{ ref('events') }}
{% endsnapshot %}
"""


class TestRunsThatAskForNoRows:
    """An incremental run with ``--empty`` takes no row out, whatever its strategy replaces."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        query = "select id, at {{ var('more', '') }} from {{ ref('events') }} where id > 1 or {{ not is_incremental() }}"
        beside = {
            f"{name}.sql": f"{{{{ config(materialized='incremental', {config}) }}}} {query}"
            for name, config in BESIDE.items()
        }
        return {"events.sql": EVENTS, "by_day.sql": BY_DAY, **beside}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        ways = {"kept": "invalidate", "told": "new_record"}
        return {
            f"{name}.sql": SNAPSHOT.replace("kept", name).replace("HOW", how) for name, how in ways.items()
        }

    def test_no_version_of_a_snapshot_ends(self, project: Any) -> None:
        run_dbt(["run", "-s", "events"])
        run_dbt(["snapshot"])
        run_dbt(["snapshot", "--empty", "--vars", "more: ', name'"])
        for name in ("kept", "told"):
            query = f"select count(*), count(dbt_valid_to), count(name) from {{schema}}.{name}"
            assert project.run_sql(query, fetch="one") == (8, 0, 0)

    def test_rows_stay_and_columns_come(self, project: Any) -> None:
        with patch_microbatch_end_time("2020-01-02 18:30:00"):
            run_dbt(["run"])
            run_dbt(["run", "--empty", "--exclude", "events", "--vars", "more: ', name'"])
        for name in ("by_day", *BESIDE):
            found = project.run_sql(f"select id from {{schema}}.{name} order by id", fetch="all")
            assert [row[0] for row in found] == list(range(8)), name
        assert project.run_sql("select name from {schema}.keyed", fetch="one") == (None,)
