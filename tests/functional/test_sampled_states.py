"""Earlier states and changes of a table in runs that read a part of its rows: samples, batches, and runs with none."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import patch_microbatch_end_time, run_dbt, run_dbt_and_capture
from dbt_common.exceptions import DbtRuntimeError

pytestmark = pytest.mark.sampled

EVENTS = """
{{ config(materialized='incremental', unique_key='id', event_time='at') }}
select id, timestamp '2020-01-01 00:00:00' + make_dt_interval(0, id * 6) as at, '{{ var("said", "first") }}' as said
from range(0, 16)
"""
BY_MACRO = (
    "{{ config(materialized='table') }} select e.id, e.said from {{ hudi_as_of(ref('events'), 'then') }} e"
)
BY_CONFIG = "{{ config(materialized='table', as_of='then') }} select id, said from {{ ref('events') }}"
BY_DAY = """
{{ config(
    materialized='incremental', incremental_strategy='microbatch', event_time='at', batch_size='day', begin='2020-01-01',
    as_of='then'
) }}
select * from {{ ref('events') }}
"""
FED = """
{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id') }}
select c.id, c.said, c._change_type from {{ hudi_changes(ref('events')) }} c
"""
OPTIMIZED = "{{ config(materialized='table') }} select o.id, o.said from {{ ref('logged') }}_ro o"
IN_SQL = "{{ config(materialized='table') }} select id, said from {{ ref('events') }} timestamp as of 'then'"
EPHEMERAL = "{{ config(materialized='ephemeral') }} select * from {{ ref('events') }}"
OVER_EPHEMERAL = "{{ config(materialized='table', as_of='then') }} select id from {{ ref('ephemeral') }}"
FED_BY_DAY = BY_DAY.replace(",\n    as_of='then'", "").replace("ref('events')", "hudi_changes(ref('events'))")
SECOND_DAY = ["--sample", "{'start': '2020-01-02', 'end': '2020-01-03'}"]


class TestPartsOfAState:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "events.sql": EVENTS,
            "by_macro.sql": BY_MACRO,
            "by_config.sql": BY_CONFIG,
            "by_day.sql": BY_DAY,
            "fed.sql": FED,
            "fed_by_day.sql": FED_BY_DAY,
            "logged.sql": EVENTS.replace("event_time", "table_type='mor', event_time"),
            "optimized.sql": OPTIMIZED,
            "before_all.sql": BY_CONFIG.replace("then", "20190101000000000"),
            "in_sql.sql": IN_SQL,
            "ephemeral.sql": EPHEMERAL,
            "over_ephemeral.sql": OVER_EPHEMERAL,
        }

    @pytest.fixture(scope="class", autouse=True)
    def then(self, project: Any) -> None:
        """The events before their text changed, under a name."""
        run_dbt(["run", "--select", "events", "logged"])
        run_dbt(["run-operation", "hudi_savepoint", "--args", "{table: events, comments: then}"])
        run_dbt(["run", "--select", "events", "logged", "--vars", "said: second"])

    @pytest.mark.parametrize("model", ["by_macro", "by_config", "in_sql", "optimized"])
    def test_a_sample_of_an_earlier_state_has_the_rows_of_its_time(self, project: Any, model: str) -> None:
        run_dbt(["run", "--select", model, *SECOND_DAY])
        assert _rows(project, model) == [(id_, "first") for id_ in range(4, 8)]
        run_dbt(["run", "--select", model, "--empty"])
        assert _rows(project, model) == []
        run_dbt(["run", "--select", model])
        assert _rows(project, model) == [(id_, "first") for id_ in range(16)]

    def test_an_ephemeral_model_is_refused_as_it_would_read_its_tables_as_they_are_now(
        self, project: Any
    ) -> None:
        _, told = run_dbt_and_capture(["run", "--select", "over_ephemeral"], expect_pass=False)
        assert "over_ephemeral has as_of and selects from the ephemeral model" in told

    def test_batches_of_an_earlier_state_have_the_rows_of_their_days(self, project: Any) -> None:
        for _ in range(2):
            with patch_microbatch_end_time("2020-01-04 18:30:00"):
                run_dbt(["run", "--select", "by_day"])
            assert _rows(project, "by_day") == [(id_, "first") for id_ in range(16)]

    def test_a_state_from_before_all_commits_is_warned_of(self, project: Any) -> None:
        _, told = run_dbt_and_capture(["run", "--select", "before_all"])
        assert "table events has no rows: its oldest commit is" in told and "WARN" in told.upper()

    def test_changes_are_taken_anew_after_a_build_without_rows(self, project: Any) -> None:
        everything = [(id_, "second") for id_ in range(16)]
        for words, found in (
            ([], everything),
            (["--empty"], everything),
            (["--empty", "--full-refresh"], []),
            (["--empty"], []),
            ([], everything),
        ):
            run_dbt(["run", "--select", "fed", *words])
            assert _rows(project, "fed") == found, words

    def test_changes_of_a_run_are_refused_in_a_model_of_batches(self, project: Any) -> None:
        with pytest.raises(DbtRuntimeError, match="hudi_changes is used in fed_by_day, .* 'microbatch'"):
            run_dbt(["run", "--select", "fed_by_day"])


def _rows(project: Any, model: str) -> list[tuple[Any, ...]]:
    found = project.run_sql(f"select id, said from {{schema}}.{model} order by id", fetch="all")
    return [tuple(row) for row in found]
