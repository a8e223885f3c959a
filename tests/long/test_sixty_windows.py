"""A microbatch model of sixty days: four threads, two days that fail and are retried, late rows; equal to all at once."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import patch_microbatch_end_time, run_dbt

from tests.functional.conftest import *  # noqa: F403

DAYS, A_DAY = 60, 40
END = "2020-02-29 23:59:59"
EVENTS = f"""
create table {{schema}}.events using parquet as
select id, timestamp '2020-01-01 00:00:00' + make_dt_interval(id div {A_DAY}, id % 24) as at,
    case when id in ({7 * A_DAY + 1}, {41 * A_DAY + 2}) then 'bad' else cast(id as string) end as amount
from range(0, {DAYS * A_DAY})
"""
MODEL = """
{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at', batch_size='day', begin='2020-01-01',
    lookback=3, concurrent_batches=true, partition_by=['day'], table_type='TYPE') }}
select cast(at as date) as day, max(at) as at, count(*) as events, sum(cast(amount as bigint)) as total
from {{ source('raw', 'events') }} group by cast(at as date)
"""
SOURCES = """
sources:
  - name: raw
    schema: "{{ target.schema }}"
    tables: [{name: events, config: {event_time: at}}]
"""


def at_once(project: Any) -> list[tuple[Any, ...]]:
    query = "select cast(at as date) as day, count(*), sum(cast(amount as bigint)) from {schema}.events group by cast(at as date)"
    return sorted(tuple(row) for row in project.run_sql(query, fetch="all"))


def stored(project: Any, model: str) -> list[tuple[Any, ...]]:
    rows = project.run_sql(f"select day, events, total from {{schema}}.{model}", fetch="all")
    return sorted(tuple(row) for row in rows)


def with_end(arguments: list[str], *, passes: bool = True) -> Any:
    with patch_microbatch_end_time(END):
        return run_dbt(arguments, expect_pass=passes)


class SixtyDays:
    table_type = ""

    @pytest.fixture(scope="class")
    def writes_artifacts(self) -> bool:
        return True

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"days.sql": MODEL.replace("TYPE", self.table_type), "sources.yml": SOURCES}

    def test_windows_that_failed_and_rows_that_are_late_end_up_as_if_computed_at_once(
        self, project: Any
    ) -> None:
        project.run_sql(EVENTS)
        (result,) = with_end(["run", "--threads", "4"], passes=False)
        assert len(result.batch_results.successful) == DAYS - 2
        assert len(result.batch_results.failed) == 2
        assert len(stored(project, "days")) == DAYS - 2

        project.run_sql("create table {schema}.mended using parquet as select * from {schema}.events")
        project.run_sql("drop table {schema}.events")
        mended = (
            "select id, at, case amount when 'bad' then '0' else amount end as amount from {schema}.mended"
        )
        project.run_sql(f"create table {{schema}}.events using parquet as {mended}")
        (result,) = with_end(["retry"])
        assert (len(result.batch_results.successful), result.batch_results.failed) == (DAYS, [])
        assert stored(project, "days") == at_once(project)

        late = "select -id, timestamp '2020-02-27 10:00:00' + make_dt_interval(id), '7' from range(0, 2)"
        project.run_sql(f"insert into {{schema}}.events {late}")
        assert stored(project, "days") != at_once(project)
        with_end(["run", "--threads", "4"])
        assert stored(project, "days") == at_once(project), "lookback takes in what is late"


class TestSixtyDays(SixtyDays):
    table_type = "cow"


class TestSixtyDaysMergeOnRead(SixtyDays):
    table_type = "mor"
