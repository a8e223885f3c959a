"""Microbatch models: dbt's own test, batches beside each other, and what a batch may not do."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.incremental.test_incremental_microbatch import BaseMicrobatch
from dbt.tests.util import patch_microbatch_end_time, run_dbt, run_dbt_and_capture

from tests.helpers.forms import forms

EVENTS = """
{{ config(materialized='table', event_time='at') }}
select id, timestamp '2020-01-01 00:00:00' + make_dt_interval(0, id * 6) as at from range(0, 16)
"""
BY_DAY = """
{{ config(
    materialized='incremental', incremental_strategy='microbatch', event_time='at', batch_size=BATCH,
    begin='2020-01-01', PARTITION table_type='TYPE', concurrent_batches=true
) }}
select id, at, cast(at as date) as day, uuid() as run from {{ ref('events') }}
"""


def by_day(batch: str, table_type: str, partition: str = "partition_by=['day'],") -> str:
    return BY_DAY.replace("BATCH", repr(batch)).replace("TYPE", table_type).replace("PARTITION", partition)


class TestMicrobatch(BaseMicrobatch):
    """dbt's own: five days, one after the other and again."""


class TestBatchesBesideEachOther:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "events.sql": EVENTS,
            "cow_days.sql": by_day("day", "cow"),
            "mor_days.sql": by_day("day", "mor"),
            "hours_in_one_place.sql": by_day("hour", "cow", "").replace(
                "'2020-01-01'", "'2020-01-04 12:00:00'"
            ),
        }

    def test_every_batch_is_there_once_after_the_first_run_and_after_the_same_again(
        self, project: Any
    ) -> None:
        for _ in range(2):
            with patch_microbatch_end_time("2020-01-04 18:30:00"):
                _, told = run_dbt_and_capture(["run"])
            of_hours = told.count("MICROBATCH no commit +0 rows")  # with no event in most of them
            assert told.count(" OK created batch ") == told.count("MICROBATCH 20") + of_hours > of_hours
            for model in ("cow_days", "mor_days"):
                found = project.run_sql(f"select id from {{schema}}.{model} order by id", fetch="all")
                assert [row[0] for row in found] == list(range(16)), model
            found = project.run_sql("select id from {schema}.hours_in_one_place order by id", fetch="all")
            assert [row[0] for row in found] == [14, 15]
        before = dict(project.run_sql("select id, run from {schema}.cow_days", fetch="all"))
        window = ["--event-time-start", "2020-01-02", "--event-time-end", "2020-01-04"]
        run_dbt(["run", "--select", "cow_days", *window])
        after = dict(project.run_sql("select id, run from {schema}.cow_days", fetch="all"))
        assert {key for key in before if before[key] != after[key]} == set(range(4, 12))
        run_dbt(["run", "--select", "cow_days", "--full-refresh", *window])
        found = project.run_sql("select id from {schema}.cow_days order by id", fetch="all")
        assert [row[0] for row in found] == list(range(4, 12))


class TestDaysWithoutEvents:
    """A batch that takes no row out and puts none in leaves no instant behind; one whose rows are gone is a commit."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        days = {f"{kind}_days.sql": by_day("day", kind) for kind in ("cow", "mor")}
        some = "{{ config(materialized='table', event_time='at') }} select * from (EVENTS) where id in (VAR)"
        query = EVENTS.split("}}")[1]
        events = some.replace("EVENTS", query).replace("VAR", "{{ var('kept', '4, 5, 13') }}")
        return {"events.sql": events, **days}

    def commits(self, project: Any, model: str) -> list[str]:
        asked = f"CALL show_commits(table => '{project.test_schema}.{model}', limit => 100)"
        return [row[0] for row in project.run_sql(asked, fetch="all")]

    def test_an_empty_batch_makes_no_commit(self, project: Any) -> None:
        for commits in (3, 4):  # the second run looks back one day
            with patch_microbatch_end_time("2020-01-04 18:30:00"):
                _, told = run_dbt_and_capture(["run"])
            # the first day has no events and makes the table, the third has none
            assert told.count("MICROBATCH no commit +0 rows, 0 files") == 2
            for model in ("cow_days", "mor_days"):
                found = project.run_sql(f"select id from {{schema}}.{model} order by id", fetch="all")
                assert [row[0] for row in found] == [4, 5, 13], model
                assert len(self.commits(project, model)) == commits
        with patch_microbatch_end_time("2020-01-04 18:30:00"):
            run_dbt(["run", "--vars", "{kept: '4'}"])
        for model in ("cow_days", "mor_days"):
            found = project.run_sql(f"select id from {{schema}}.{model} order by id", fetch="all")
            assert [row[0] for row in found] == [4, 5]
            assert len(self.commits(project, model)) == 5


@pytest.mark.core
class TestBuildsThatEndedEarly:
    """What an interrupted first build leaves: the table, without the newest batches; a later run begins with the newest."""

    GAP = "ended with the batch up to 2020-01-02T00:00:00+00:00, and this run begins at 2020-01-03T00:00:00+00:00"

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"events.sql": EVENTS, "days.sql": by_day("day", "cow")}

    def told(self, *more: str, until: str = "2020-01-04 18:30:00") -> str:
        with patch_microbatch_end_time(until):
            told: str = run_dbt_and_capture(["run", *more, "--select", "days"])[1]
        return told

    @pytest.mark.parametrize("again", [(), ("--full-refresh",)], ids=["first build", "full refresh"])
    def test_batches_that_were_left_out_are_named_once_and_can_be_run(
        self, project: Any, again: tuple[str, ...]
    ) -> None:
        run_dbt(["run", "--select", "events"])
        assert "ended with the batch" not in self.told(*again, until="2020-01-02 00:00:00")
        told = self.told()
        assert told.count(self.GAP) == 1
        window = "--event-time-start 2020-01-02T00:00:00 --event-time-end 2020-01-03T00:00:00"
        assert window in told
        assert "ended with the batch" not in self.told(*window.split(), until="2020-01-03 00:00:00")
        assert "ended with the batch" not in self.told()
        found = project.run_sql("select id from {schema}.days order by id", fetch="all")
        assert [row[0] for row in found] == list(range(16))

    def test_a_build_that_came_to_its_end_is_followed_without_a_word(self, project: Any) -> None:
        run_dbt(["run", "--select", "events"])
        for more in (("--full-refresh",), ()):
            assert "ended with the batch" not in self.told(*more)


@pytest.mark.core
class TestBatchesThatRunAgain:
    """``dbt retry`` asks for ``--full-refresh`` again if the run did whose batches failed; those that are done stay."""

    @pytest.fixture(scope="class")
    def writes_artifacts(self) -> bool:
        return True

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        failing = "if(cast(at as date) = date'{{ env_var('BAD_DAY', '1999-01-01') }}', raise_error('a bad day'), id)"
        cow, mor = (
            by_day("day", each, place).replace("select id,", f"select {failing} as id,")
            for each, place in (("cow", ""), ("mor", "partition_by=['day'],"))
        )
        return {"events.sql": EVENTS, "cow_days.sql": cow, "mor_days.sql": mor}

    @pytest.mark.parametrize("bad_day", forms(["2020-01-01", "2020-01-02", "2020-01-04"], ["2020-01-02"]))
    @pytest.mark.parametrize("asked", [(), ("--full-refresh",)], ids=["run", "full refresh"])
    def test_a_retry_adds_the_batches_that_failed(
        self, project: Any, monkeypatch: pytest.MonkeyPatch, asked: tuple[str, ...], bad_day: str
    ) -> None:
        with patch_microbatch_end_time("2020-01-04 18:30:00"):
            run_dbt(["run", "--full-refresh"])
            monkeypatch.setenv("BAD_DAY", bad_day)
            window = ("--event-time-start", "2020-01-01", "--event-time-end", "2020-01-05")
            run_dbt(["run", *(asked or window)], expect_pass=False)
            monkeypatch.delenv("BAD_DAY")
            run_dbt(["retry"])
        for model in ("cow_days", "mor_days"):
            found = project.run_sql(f"select id from {{schema}}.{model} order by id", fetch="all")
            assert [row[0] for row in found] == list(range(16)), model


class TestRowsOfOtherBatches:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        late = by_day("day", "cow").replace("select id, at,", "select id, at + make_dt_interval(DAYS) as at,")
        return {
            "events.sql": EVENTS,
            "late_from_the_first.sql": late.replace("DAYS", "1"),
            "late_from_the_second.sql": late.replace("DAYS", "if(id < 4, 0, 1)"),
        }

    @pytest.mark.parametrize(("which", "day"), [("first", "01"), ("second", "02")])
    def test_a_row_outside_of_its_batch_fails_the_batch(self, project: Any, which: str, day: str) -> None:
        model = f"late_from_the_{which}"
        with patch_microbatch_end_time("2020-01-03 12:00:00"):
            _, log = run_dbt_and_capture(["run", "--select", "events", model], expect_pass=False)
        assert f"not among those that the write replaces: at from 2020-01-{day}" in log
        assert "a ref or source without the config event_time" in log
        # dbt runs no other batch when the first one of a build fails
        assert ("as in the first batch that failed" in log) == (which == "second")
        there = project.run_sql(f"show tables in {{schema}} like '{model}'", fetch="all")
        assert len(there) == (which == "second")


class TestEventTimeInQuotes:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        quotes = "models: [{name: events, columns: [{name: at, quote: true}]}]"
        return {"events.sql": EVENTS, "events.yml": quotes, "days.sql": by_day("day", "cow")}

    def test_a_batch_that_runs_again_has_the_rows_of_its_window(self, project: Any) -> None:
        for ids in (range(4), range(8), range(8)):
            with patch_microbatch_end_time(f"2020-01-0{len(ids) // 4} 23:00:00"):
                run_dbt(["run"])
            found = project.run_sql("select id from {schema}.days order by id", fetch="all")
            assert [row[0] for row in found] == [*ids]


class TestKeysOnSeveralDays:
    """An order has a row a day: the key is that of the order, and a day that runs again leaves the other days' rows."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        orders = """
{{ config(materialized='table', event_time='at') }}
select id, timestamp '2020-01-01 06:00:00' + make_dt_interval(day) as at, concat('day ', day) as status
from values (1, 0), (1, 1), (2, 0), (3, 1) as t(id, day)
"""
        days = """
{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at', batch_size='day', begin='2020-01-01',
    unique_key='id', table_type='TYPE') }}
select id, at, status from {{ ref('events') }}
"""
        rest = """
{{ config(materialized='incremental', incremental_strategy='delete+insert', unique_key='id', table_type='TYPE',
    incremental_predicates=["DBT_INTERNAL_DEST.status <> 'day 0'"]) }}
select id, at, status from {{ ref('events') }} {% if is_incremental() %} where status = 'day 1' {% endif %}
"""
        made = {"events.sql": orders}
        for kind in ("cow", "mor"):
            made |= {
                f"{kind}_days.sql": days.replace("TYPE", kind),
                f"{kind}_rest.sql": rest.replace("TYPE", kind),
            }
        return made

    def test_a_day_that_runs_again_leaves_the_rows_of_other_days(self, project: Any) -> None:
        wanted = [(1, "day 0"), (1, "day 1"), (2, "day 0"), (3, "day 1")]
        with patch_microbatch_end_time("2020-01-02 12:00:00"):
            run_dbt(["run"])
            for _ in range(2):
                for model in ("cow_days", "mor_days", "cow_rest", "mor_rest"):
                    found = project.run_sql(
                        f"select id, status from {{schema}}.{model} order by all", fetch="all"
                    )
                    assert [tuple(row) for row in found] == wanted, model
                window = ["--event-time-start", "2020-01-02", "--event-time-end", "2020-01-03"]
                run_dbt(["run", "--exclude", "events", *window])
