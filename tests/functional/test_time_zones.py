"""Models in a session that is not in UTC: what they read of a time and write into SQL is the same moment."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

SOURCE = """
{{ config(materialized='table') }}
select id, timestamp '2026-07-01 10:00:00' + make_interval(0, 0, 0, 0, 2 * id) as at, id % 2 as p
from range({{ var('rows') }})
"""
FOLLOWS = """
{{ config(materialized='incremental', unique_key='id', table_type='TYPE') }}
{% if is_incremental() %}
{% set newest = run_query("select max(at) from " ~ this).columns[0].values()[0] %}
select * from {{ ref('source_rows') }} where at > '{{ newest }}'
{% else %}
select * from {{ ref('source_rows') }}
{% endif %}
"""


SOURCES = """
sources:
  - name: here
    schema: "{{ target.schema }}"
    tables:
      - name: loads
        config:
          loaded_at_field: at
          freshness:
            warn_after: {count: 1, period: hour}
            error_after: {count: 3, period: hour}
"""
KEPT = """
{% snapshot kept %}
{{ config(strategy='timestamp', unique_key='id', updated_at='at', target_schema=target.schema) }}
select * from {{ ref('source_rows') }}
{% endsnapshot %}
"""


class InAZone:
    zone: str
    shown: str

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        conf = {**dbt_profile_target["spark_conf"], "spark.sql.session.timeZone": self.zone}
        return {**dbt_profile_target, "spark_conf": conf}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        followers = {f"follows_{kind}.sql": FOLLOWS.replace("TYPE", kind) for kind in ("cow", "mor")}
        appended = FOLLOWS.replace("unique_key='id', table_type='TYPE'", "incremental_strategy='append'")
        loads = "{{ config(materialized='table') }} select current_timestamp() - interval 2 hours as at"
        return {
            "source_rows.sql": SOURCE,
            "follows_by_appending.sql": appended,
            "loads.sql": loads,
            "sources.yml": SOURCES,
            **followers,
        }

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"kept.sql": KEPT}

    def test_a_model_that_reads_its_newest_time_takes_what_is_newer_and_that_alone(
        self, project: Any
    ) -> None:
        for rows in (1, 4, 4, 6):
            run_dbt(["run", "--vars", f"{{rows: {rows}}}"])
            for name in ("follows_cow", "follows_mor", "follows_by_appending"):
                found = project.run_sql(f"select id from {{schema}}.{name} order by id", fetch="all")
                assert [row[0] for row in found] == list(range(rows)), name

    def test_show_tells_the_moment(self, project: Any) -> None:
        run_dbt(["run", "-s", "source_rows", "--vars", "{rows: 1}"])
        sql = "select at, cast(at as string) as text from {{ ref('source_rows') }}"
        _, log = run_dbt_and_capture(
            ["--log-format", "json", "show", "--output", "json", "--inline", sql, "--vars", "{rows: 1}"]
        )
        assert "2026-07-01 10:00:00" in log
        expected = self.shown
        assert expected in log, [line for line in log.splitlines() if "2026-07-01" in line]

    def test_a_source_is_as_old_as_its_newest_row(self, project: Any) -> None:
        run_dbt(["run", "-s", "loads", "--vars", "{rows: 1}"])
        (result,) = run_dbt(["source", "freshness", "--vars", "{rows: 1}"])
        assert result.status == "warn"
        assert 7200 <= result.age < 7200 + 600

    def test_a_snapshot_keeps_the_moments_of_its_rows(self, project: Any) -> None:
        for _ in range(2):
            run_dbt(["run", "-s", "source_rows", "--vars", "{rows: 2}"])
            run_dbt(["snapshot", "--vars", "{rows: 2}"])
        found = project.run_sql(
            "select cast(dbt_valid_from as string), dbt_valid_to is null from {schema}.kept order by id",
            fetch="all",
        )
        assert [tuple(row) for row in found] == [("2026-07-01 10:00:00", True), ("2026-07-01 12:00:00", True)]


class TestInNewYork(InAZone):
    zone, shown = "America/New_York", "2026-07-01T10:00:00-04:00"


@pytest.mark.long
class TestInBerlin(InAZone):
    zone, shown = "Europe/Berlin", "2026-07-01T10:00:00+02:00"


@pytest.mark.long
class TestInUtc(InAZone):
    zone, shown = "UTC", "2026-07-01T10:00:00"
