"""Incremental models in runs with ``--sample``: what is not of its time stays, or the run says what goes."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import patch_microbatch_end_time, run_dbt, run_dbt_and_capture

EVENTS = """
{{ config(materialized='table', event_time='at') }}
select id, timestamp '2020-01-01 00:00:00' + make_dt_interval(0, id * 6) as at from range(0, {{ var('events', 16) }})
"""
BATCHES = """
{{ config(
    materialized='incremental', incremental_strategy='microbatch', event_time='EVENT', batch_size='day', begin='2020-01-01'
) }}
"""
BY_DAY = (
    BATCHES.replace("EVENT", "at") + "select id, at, '{{ invocation_id }}' as run from {{ ref('events') }}"
)
DAYS = (
    BATCHES.replace("EVENT", "day")
    + "select cast(at as date) as day, count(*) as n from {{ ref('events') }} group by 1"
)
REPLACING = {
    "days_of_rows": "incremental_strategy='insert_overwrite', partition_by=['day']",
    "whole": "incremental_strategy='insert_overwrite'",
    "whole_table": "incremental_strategy='insert_overwrite_table'",
    "some": "incremental_strategy='replace_where', incremental_predicates='id >= 0'",
    "by_day": "incremental_strategy='delete+insert', unique_key='day', record_key='id'",
    "synced": "incremental_strategy='merge', unique_key='id', not_matched_by_source_action='delete'",
}
KEYED = {
    "merged": "incremental_strategy='merge', unique_key='id'",
    "by_keys": "incremental_strategy='delete+insert', unique_key=['id', 'day'], record_key='id'",
}
OF_EVENTS = "select id, at, cast(at as date) as day from {{ ref('events') }}"
SEEN = """
{% snapshot seen %}
{{ config(unique_key='id', strategy='check', check_cols='all', hard_deletes='invalidate') }}
select * from {{ ref('events') }}
{% endsnapshot %}
"""
SAMPLE = ["--sample", "{'start': '2020-01-02T09:00:00', 'end': '2020-01-03T14:00:00'}"]
OF_SAMPLE = {6, 7, 8, 9, 10}


def count(project: Any, model: str) -> int:
    (found,) = project.run_sql(f"select count(*) from {{schema}}.{model}", fetch="one")
    return int(found)


class TestBatchesOfASample:
    """A batch takes the part of its window that is of the sample's time."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"events.sql": EVENTS, "by_day.sql": BY_DAY, "days.sql": DAYS}

    def test_rows_before_and_after_the_sample_stay_as_they_are(self, project: Any) -> None:
        with patch_microbatch_end_time("2020-01-04 18:30:00"):
            run_dbt(["run"])
        before = dict(project.run_sql("select id, run from {schema}.by_day", fetch="all"))
        _, told = run_dbt_and_capture(["run", "--exclude", "events", *SAMPLE])
        after = dict(project.run_sql("select id, run from {schema}.by_day", fetch="all"))
        assert "reads a sample" not in told
        assert sorted(after) == list(range(16))
        assert {key for key in before if before[key] != after[key]} == OF_SAMPLE
        found = project.run_sql("select n from {schema}.days order by day", fetch="all")
        assert [row[0] for row in found] == [4, 4, 3, 4], "of the third day the sample has the beginning"

    def test_a_first_build_and_a_full_refresh_are_the_sample(self, project: Any) -> None:
        run_dbt(["run", "--full-refresh", "--exclude", "events", *SAMPLE])
        found = project.run_sql("select id from {schema}.by_day", fetch="all")
        assert {row[0] for row in found} == OF_SAMPLE
        found = project.run_sql("select n from {schema}.days order by day", fetch="all")
        assert [row[0] for row in found] == [2, 3]


class TestRowsThatASampleReplaces:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        texts = {
            f"{name}.sql": f"{{{{ config(materialized='incremental', {config}) }}}} {OF_EVENTS}"
            for name, config in {**REPLACING, **KEYED}.items()
        }
        view = "{{ config(materialized='view') }} select * from {{ ref('events') }}"
        over = texts["whole.sql"].replace("'events'", "'a_view'")
        python = (
            "def model(dbt, session):\n    dbt.config(materialized='incremental', incremental_strategy='insert_overwrite')\n"
            "    return dbt.ref('events')\n"
        )
        unread = texts["whole.sql"].replace("{{ ref('events') }}", "(select 1 as id, current_date() as at)")
        more = {
            "a_view.sql": view,
            "over_view.sql": over,
            "in_python.py": python,
            "unread.sql": unread,
        }
        return {"events.sql": EVENTS, **texts, **more}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"seen.sql": SEEN}

    def test_a_run_says_that_rows_go_and_is_stopped_where_warnings_are_errors(self, project: Any) -> None:
        run_dbt(["build"])
        stopped = [
            "--warn-error-options",
            "{'error': ['AdapterEventWarning']}",
            "build",
            "--exclude",
            "events",
            *SAMPLE,
        ]
        found = {each.node.name: str(each.status) for each in run_dbt(stopped, expect_pass=False)}
        losing = {*REPLACING, "over_view", "seen"}
        assert {name for name, status in found.items() if status == "error"} == losing
        assert {count(project, name) for name in losing} == {16}

        results, told = run_dbt_and_capture(["build", "--exclude", "events", *SAMPLE])
        assert {str(each.status) for each in results} == {"success"}
        told = " ".join(told.split())
        for name in losing:
            assert told.count(f".{name} reads ") == 1 and f"(--exclude {name})" in told, name
        assert "reads a sample (2020-01-02T09:00:00+00:00 up to 2020-01-03T14:00:00+00:00), and " in told
        assert "over_view reads a_view, of which it may have a sample" in told
        assert (
            "replaces each partition of its rows: stored rows among these that" in told
            and "--full-refresh" in told
        )
        assert count(project, "days_of_rows") == 13 and count(project, "synced") == 5
        # dbt gives Python models all rows
        assert {count(project, name) for name in (*KEYED, "in_python")} == {16}

    def test_nothing_is_said_of_runs_that_build_tables_anew_or_take_all_rows(self, project: Any) -> None:
        for words in (["--full-refresh", *SAMPLE], []):
            _, told = run_dbt_and_capture(["run", *words])
            assert "(--exclude" not in told, words
