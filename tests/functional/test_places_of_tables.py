"""Folders that two names would share, warehouses that one process uses in turn, and tables of another format under a model's name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import patch_microbatch_end_time, run_dbt, run_dbt_and_capture
from dbt_common.exceptions import DbtRuntimeError

from tests.functional.conftest import CATALOG

pytestmark = pytest.mark.sampled

ONE = "{{ config(materialized='table', alias='orders', location_root=var('root'), schema=var('schema', none)) }} select 1 as id"
OTHER = ONE.replace("select 1", "select 2")


class TestOneFolderOfTwoNames:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"one.sql": ONE, "other.sql": OTHER.replace("var('schema', none)", "'other'")}

    def test_two_nodes_of_a_run_are_refused_before_either_is_built(
        self, project: Any, tmp_path: Path
    ) -> None:
        with pytest.raises(DbtRuntimeError, match="model one and model other would be one table"):
            run_dbt(["run", "--vars", f"root: {tmp_path}"])
        assert not list(tmp_path.iterdir())

    def test_a_table_of_another_name_is_not_replaced(self, project: Any, tmp_path: Path) -> None:
        words = ["--vars", f"root: {tmp_path}"]
        for _ in range(2):
            run_dbt(["run", "--select", "one", *words])
        (result,) = run_dbt(["run", "--select", "other", *words], expect_pass=False).results
        assert f"which is the table {project.test_schema}.orders" in result.message
        assert project.run_sql("select id from {schema}.orders", fetch="all") == [(1,)]
        project.run_sql("drop table {schema}.orders")
        run_dbt(["run", "--select", "other", *words])
        found = project.run_sql(f"select id from {project.test_schema}_other.orders", fetch="all")
        assert found == [(2,)]


class TestLocationInSql:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {}

    def test_it_counts_from_the_project_and_a_table_of_another_name_is_not_replaced(
        self, project: Any
    ) -> None:
        project.run_sql("create table {schema}.a location 'tables/a/' as select 1 as id")
        folder = Path(project.project_root) / "tables" / "a"
        assert (folder / ".hoodie").is_dir()
        with pytest.raises(Exception, match=f"is the table {project.test_schema}.a: .*another LOCATION"):
            project.run_sql(
                f"create or replace table {{schema}}.b location 'file:{folder}/' as select 2 as id"
            )
        project.run_sql("create or replace table {schema}.a location 'tables/a' as select 3 as id")
        assert project.run_sql("select id from {schema}.a", fetch="all") == [(3,)]
        project.run_sql("drop table {schema}.a")
        assert not folder.exists()

    def test_a_place_that_cannot_hold_tables_is_refused(self, project: Any) -> None:
        with pytest.raises(Exception, match="LOCATION of .*.b is 's4://lake/b', and tables cannot"):
            project.run_sql("create table {schema}.b location 's4://lake/b' as select 2 as id")


@pytest.mark.skipif(CATALOG != "directory", reason="a metastore is one for all folders")
class TestTwoWarehousesInOneProcess:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "m.sql": "{{ config(materialized=var('kind', 'table')) }} select '{{ target.name }}' as made_by",
            "reads.sql": "{{ config(materialized='table') }} select made_by from {{ ref('m') }}",
        }

    @pytest.fixture(scope="class")
    def dbt_profile_data(self, unique_schema: str, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        target = {**dbt_profile_target, "schema": unique_schema}
        others = {name: {**target, "location_root": name} for name in ("prod", "dev")}
        return {"test": {"outputs": {"default": target, **others}, "target": "default"}}

    def test_tables_of_the_first_are_neither_read_nor_dropped_by_runs_in_the_second(
        self, project: Any
    ) -> None:
        place = Path(project.project_root) / "prod" / project.test_schema / "m" / ".hoodie"
        run_dbt(["run", "--select", "m", "--target", "prod"])
        (failed,) = run_dbt(["run", "--select", "reads", "--target", "dev"], expect_pass=False).results
        assert "TABLE_OR_VIEW_NOT_FOUND" in failed.message
        run_dbt(["run", "--select", "m", "--target", "dev", "--vars", "kind: view"])
        assert place.is_dir()
        shown = ["show", "--quiet", "--inline", "select made_by from {{ ref('m') }}", "--target"]
        assert "prod" in run_dbt_and_capture([*shown, "prod"])[1]
        assert "dev" in run_dbt_and_capture([*shown, "dev"])[1]


ADDED = """
{{ config(materialized='incremental') }}
select cast(id as bigint) as id from range(5) {% if is_incremental() %} where id > (select max(id) from {{ this }}) {% endif %}
"""

BY_DAY = """
{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at', batch_size='day', begin='2020-01-01') }}
select id, timestamp '2020-01-01 00:00:00' + make_dt_interval(0, id * 6) as at from range(0, 16)
{% if model.batch %} where timestamp '2020-01-01 00:00:00' + make_dt_interval(0, id * 6)
  between '{{ model.batch.event_time_start }}' and '{{ model.batch.event_time_end }}' - interval 1 second {% endif %}
"""


class TestATableOfAnotherFormat:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "added.sql": ADDED,
            "by_day.sql": BY_DAY,
            "kept.sql": BY_DAY.replace("begin=", "full_refresh=false, begin="),
            "history.sql": ADDED.replace("'incremental'", "'incremental', full_refresh=false"),
            "doubled.sql": "{{ config(materialized='table') }} select id * 2 as id from {{ this }}",
            "fails.sql": "{{ config(materialized='table') }} select raise_error('no') as id",
        }

    def test_an_incremental_model_takes_all_rows_where_it_replaces_one(self, project: Any) -> None:
        project.run_sql("create table {schema}.added using parquet as select bigint(3) as id")
        for is_replaced in (True, False):
            _, told = run_dbt_and_capture(["run", "--select", "added"])
            assert (
                "added has replaced a table of another format, whose rows are deleted" in told
            ) is is_replaced
            found = project.run_sql("select id from {schema}.added order by id", fetch="all")
            assert found == [(number,) for number in range(5)]

    def test_a_microbatch_model_is_not_built_from_its_newest_batches_alone(self, project: Any) -> None:
        counted = "select count(*) from {schema}.by_day"
        project.run_sql("create table {schema}.by_day using parquet as select bigint(3) as id")
        with patch_microbatch_end_time("2020-01-04 18:30:00"):
            _, told = run_dbt_and_capture(["run", "--select", "by_day"], expect_pass=False)
            assert (
                "is a table of another format; dbt would build its newest batches alone: run it with" in told
            )
            assert project.run_sql(counted, fetch="all") == [(1,)]
            for more in (["--full-refresh"], []):
                run_dbt(["run", "--select", "by_day", *more])
                assert project.run_sql(counted, fetch="all") == [(16,)]

    def test_a_model_that_is_never_built_anew_is_told_the_way_too(self, project: Any) -> None:
        project.run_sql("create table {schema}.kept using parquet as select bigint(3) as id")
        for more in ([], ["--full-refresh"]):
            with patch_microbatch_end_time("2020-01-04 18:30:00"):
                _, told = run_dbt_and_capture(["run", "--select", "kept", *more], expect_pass=False)
            assert "take full_refresh: false out of the model and run it with --full-refresh once" in told

    def test_one_that_is_never_built_anew_replaces_no_rows(self, project: Any) -> None:
        project.run_sql("create table {schema}.history using parquet as select bigint(7) as id")
        for more in ([], ["--full-refresh"]):
            _, told = run_dbt_and_capture(["run", "--select", "history", *more], expect_pass=False)
            assert (
                "is a table of another format; its rows would be replaced: take full_refresh: false" in told
            )
            assert project.run_sql("select id from {schema}.history", fetch="all") == [(7,)]
        project.run_sql("drop table {schema}.history")
        run_dbt(["run", "--select", "history"])
        assert project.run_sql("select count(*) from {schema}.history", fetch="all") == [(5,)]

    def test_it_stays_until_the_rows_of_the_model_are_written(self, project: Any) -> None:
        for name in ("doubled", "fails"):
            project.run_sql(f"create table {{schema}}.{name} using parquet as select bigint(3) as id")
        run_dbt(["run", "--select", "fails"], expect_pass=False)
        assert project.run_sql("select id from {schema}.fails", fetch="all") == [(3,)]
        run_dbt(["run", "--select", "doubled"])
        assert project.run_sql("select id from {schema}.doubled", fetch="all") == [(6,)]
