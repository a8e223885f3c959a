"""What the session must get right: values, hooks, isolation, names that outlive the process."""

from __future__ import annotations

import datetime
import decimal
import os
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from dbt_common.exceptions import DbtBaseException
from hudi_engine import HudiTable
from pyspark.sql.conf import RuntimeConfig

PEOPLE = """id,name,big,ratio,born,seen,flag,code
1,it's,9007199254740993,0.1,2020-01-31,2020-01-01T12:30:00,true,007
2,,9223372036854775807,2,,,false,
3,"a,""b"" \\ ; --",1,3.5,1999-12-31,2021-06-01T00:00:00,,x
"""


@pytest.mark.core
class TestSeedValues:
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"people.csv": PEOPLE, "numbers.csv": "n\n" + "\n".join(map(str, range(20000)))}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"seeds": {"test": {"people": {"+column_types": {"code": "string", "ratio": "decimal(5,2)"}}}}}

    def test_values_arrive_as_they_are(self, project: Any) -> None:
        results = {result.node.name: result for result in run_dbt(["seed"])}
        assert results["numbers"].adapter_response["rows_affected"] == 20000
        rows = [
            tuple(row) for row in project.run_sql("select * from {schema}.people order by id", fetch="all")
        ]
        noon = datetime.datetime(2020, 1, 1, 12, 30)
        assert rows == [
            (1, "it's", 9007199254740993, decimal.Decimal("0.10"), datetime.date(2020, 1, 31), noon, True, "007"),
            (2, None, 9223372036854775807, decimal.Decimal("2.00"), None, None, False, None),
            (3, 'a,"b" \\ ; --', 1, decimal.Decimal("3.50"), datetime.date(1999, 12, 31), datetime.datetime(2021, 6, 1), None, "x"),
        ]  # fmt: skip

    def test_a_value_that_does_not_fit_its_type_fails_the_seed(self, project: Any) -> None:
        path = project.project_root / "seeds" / "bad.csv"
        path.write_text("id,amount\n1,7\n2,x12\n", "utf-8")
        (project.project_root / "seeds" / "bad.yml").write_text(
            "version: 2\nseeds: [{name: bad, config: {column_types: {amount: int}}}]", "utf-8"
        )
        (result,) = run_dbt(["seed", "-s", "bad"], expect_pass=False)
        told = "value x12 of column amount does not fit its type int, in row 2 below the header"
        assert told in result.message


class TestHooks:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        hooks = """
            pre_hook=[{"sql": "insert into {{ target.schema }}.log values ('before')", "transaction": false},
                      "insert into {{ target.schema }}.log values ('pre')"],
            post_hook=["insert into {{ target.schema }}.log values ('post'); insert into {{ target.schema }}.log values ('second')",
                       {"sql": "insert into {{ target.schema }}.log values ('after')", "transaction": false}]
        """
        return {
            f"{kind}_model.sql": f"{{{{ config(materialized='{kind}', {hooks}) }}}} select 1 as id"
            for kind in ("table", "incremental", "view")
        }

    @pytest.mark.parametrize("kind", ["table", "incremental", "view"])
    def test_hooks_run_in_and_outside_of_transactions(self, project: Any, kind: str) -> None:
        project.run_sql("drop table if exists {schema}.log; create table {schema}.log (word string)")
        run_dbt(["run", "-s", f"{kind}_model"])
        words = {row[0] for row in project.run_sql("select word from {schema}.log", fetch="all")}
        assert words == {"before", "pre", "post", "second", "after"}

    def test_models_of_many_threads_write_into_one_log(self, project: Any) -> None:
        project.run_sql("drop table if exists {schema}.log; create table {schema}.log (word string)")
        run_dbt(["run", "--threads", "4"])
        assert project.run_sql("select count(*) from {schema}.log", fetch="one")[0] == 15

    def test_a_failing_query_in_a_hook_fails_the_node(self, project: Any) -> None:
        path = project.project_root / "models" / "guarded.sql"
        path.write_text(
            "{{ config(materialized='table', pre_hook=\"select assert_true(false, 'not today')\") }} select 1 as id",
            "utf-8",
        )
        (result,) = run_dbt(["run", "-s", "guarded"], expect_pass=False)
        assert "not today" in result.message
        assert "in pre-hook 1 of 1; the model was not run:" in result.message
        path.remove()

    def test_a_misspelt_macro_in_a_hook_is_named(self, project: Any) -> None:
        path = project.project_root / "models" / "misspelt.sql"
        hook = "{{ hudi_compac(this) }}"
        path.write_text(f'{{{{ config(materialized="table", post_hook="{hook}") }}}} select 1 as id', "utf-8")
        (result,) = run_dbt(["run", "-s", "misspelt"], expect_pass=False)
        assert "in post-hook 1 of 1; what the model wrote" in result.message
        assert "'hudi_compac' is undefined" in result.message
        path.remove()

    def test_compaction_hook_of_a_copy_on_write_model_fails_the_node(self, project: Any) -> None:
        path = project.project_root / "models" / "hooked.sql"
        hook = "{{ hudi_compact(this) }}"
        path.write_text(f'{{{{ config(materialized="table", post_hook="{hook}") }}}} select 1 as id', "utf-8")
        (result,) = run_dbt(["run", "-s", "hooked"], expect_pass=False)
        assert "in post-hook 1 of 1" in result.message, result.message
        assert "only MERGE_ON_READ tables have log files to compact" in result.message, result.message
        path.remove()

    def test_illegal_argument_of_a_hook_stops_before_the_run(self, project: Any) -> None:
        path = project.project_root / "models" / "hooked.sql"
        hook = "{{ hudi_clean(this, 'x') }}"
        path.write_text(f'{{{{ config(materialized="table", post_hook="{hook}") }}}} select 1 as id', "utf-8")
        with pytest.raises(
            Exception, match="retain_commits is 'x'; legal values: whole numbers of at least 1"
        ):
            run_dbt(["run", "-s", "hooked"], expect_pass=False)
        path.remove()

    def test_the_failure_of_a_hook_behind_a_model_says_so_and_that_the_commit_stands(
        self, project: Any
    ) -> None:
        path = project.project_root / "models" / "hooked.sql"
        hooks = "post_hook=['select 1', 'select * from nowhere_at_all']"
        path.write_text(f"{{{{ config(materialized='table', {hooks}) }}}} select 7 as id", "utf-8")
        (result,) = run_dbt(["run", "-s", "hooked"], expect_pass=False)
        assert (
            "in post-hook 2 of 2; what the model wrote before is committed and stays, and " in result.message
        )
        assert "nowhere_at_all" in result.message
        assert project.run_sql("select id from {schema}.hooked", fetch="one")[0] == 7
        # the words of one node are not the next one's
        path.write_text("{{ config(materialized='table') }} select id from nowhere_at_all", "utf-8")
        (result,) = run_dbt(["run", "-s", "hooked"], expect_pass=False)
        assert "nowhere_at_all" in result.message and "post-hook" not in result.message
        path.remove()


class TestKeysTwice:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        config = "{{ config(materialized='incremental', unique_key='id' ORDER) }}"
        merged = (
            "select {% if is_incremental() %} id % 2 {% else %} id {% endif %} as id, id as n from range(3)"
        )
        return {
            "merged.sql": config.replace("ORDER", "") + merged,
            "merged_by_n.sql": config.replace("ORDER", ", precombine_field='n'") + merged,
            "merged_once.sql": config.replace("ORDER", ", table_type='mor'")
            + "select id, id as n from range(3)",
        }

    def test_a_merge_of_several_rows_of_one_key_that_nothing_orders_says_how_many_it_left_out(
        self, project: Any
    ) -> None:
        run_dbt(["run", "-s", "merged*"])
        _, log = run_dbt_and_capture(["run", "-s", "merged*"])
        said = [line for line in log.splitlines() if "in more than one row" in line]
        assert len(said) == 1
        assert (
            ".merged: a value of unique_key id in more than one row of the batch; 1 row was left out"
            in said[0]
        )


class TestIsolation:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "first.sql": "{{ config(materialized='table', pre_hook=['set spark.sql.shuffle.partitions = 7',"
            " 'create temporary view leak as select 1 as id']) }} select * from leak",
            "second.sql": "-- depends_on: {{ ref('first') }}\n{{ config(materialized='table', unique_key='id') }}"
            "select 1 as id, '${spark.sql.shuffle.partitions}' as literal",
        }

    def test_settings_and_temporary_views_stay_with_their_node(self, project: Any) -> None:
        run_dbt(["run", "--threads", "1"])
        with project.adapter.connection_named("look"):
            handle = project.adapter.connections.get_thread_connection().handle
            with handle.job("look") as session:
                assert session.conf.get("spark.sql.shuffle.partitions") == "1"
                assert session.conf.get("spark.python.sql.dataFrameDebugging.enabled") == "false"
                assert [t.name for t in session.catalog.listTables() if t.isTemporary] == []
        names = {r.identifier for r in project.adapter.list_relations(None, project.test_schema)}
        assert names == {"first", "second"}

    def test_a_connection_says_no_setting_again_that_spark_was_started_with(
        self, project: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        said: list[str] = []
        monkeypatch.setattr(RuntimeConfig, "set", lambda self, key, value: said.append(key))
        with project.adapter.connection_named("another"):
            handle = project.adapter.connections.get_thread_connection().handle
            with handle.job("another") as session:
                assert session.conf.get("spark.sql.session.timeZone") == "UTC"
        assert said == []

    def test_nothing_in_a_model_is_replaced_by_settings(self, project: Any) -> None:
        assert (
            project.run_sql("select literal from {schema}.second", fetch="one")[0]
            == "${spark.sql.shuffle.partitions}"
        )


class TestCursor:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"m.sql": "select 1 as id"}

    def test_timestamps_are_utc(self, project: Any) -> None:
        query = "select timestamp '2020-03-29 02:30:00' as t, array(timestamp '1969-12-31 23:00:00') as many"
        row = project.run_sql(query, fetch="one")
        assert row[0] == datetime.datetime(2020, 3, 29, 2, 30)
        assert row[1] == [datetime.datetime(1969, 12, 31, 23)]

    def test_errors_are_short(self, project: Any) -> None:
        with pytest.raises(DbtBaseException) as raised:
            project.run_sql("select nothing from {schema}.nowhere")
        assert "TABLE_OR_VIEW_NOT_FOUND" in str(raised.value)
        assert len(str(raised.value).splitlines()) < 6

    def test_show_fetches_a_few_rows(self, project: Any) -> None:
        _, output = run_dbt_and_capture(
            ["show", "--inline-direct", "select id from range(1000)", "--limit", "2"]
        )
        assert "| 0 |" in output.replace("  ", " ") and "| 2 |" not in output.replace("  ", " ")

    def test_rows_come_one_by_one_in_parts_and_all(self, project: Any) -> None:
        with project.adapter.connection_named("look"):
            cursor = project.adapter.connections.get_thread_connection().handle.cursor()
            cursor.execute("select id from range(5)")
            assert cursor.fetchone()[0] == 0
            assert [row[0] for row in cursor.fetchall()] == [1, 2, 3, 4]
            assert cursor.fetchone() is None
            cursor.execute("select ? as a, ? as b", ["it's", 1])
            assert tuple(cursor.fetchone()) == ("it's", 1)


class TestOneSessionForAll:
    """As in a notebook: nodes, runs and whoever looks share one Spark session."""

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        return {**dbt_profile_target, "isolate_sessions": False}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"grows.sql": "{{ config(materialized='incremental') }} select 1 as id"}

    def test_everybody_sees_the_newest_rows(self, project: Any) -> None:
        for rows in (1, 2, 3):
            run_dbt(["run"])
            assert project.run_sql("select count(*) from {schema}.grows", fetch="one")[0] == rows


SOURCES = """
sources:
  - name: lake
    schema: lake
    tables:
      - {name: events, external: {location: "{{ env_var('TEST_OUTSIDE_TABLE') }}"}}
      - {name: astray, external: {location: /nowhere/astray}}
"""
COMMIT_OUTSIDE = """
import os
from hudi_engine import HudiTable

def model(dbt, session):
    dbt.ref('read')
    table = HudiTable.open(session, os.environ['TEST_OUTSIDE_TABLE'])
    table.upsert(
        session.sql("select 3 as id, 'c' as name"), options={'hoodie.engine.publish.manifest': 'false'}
    )
    return session.range(1)
"""


class TestSourcesOfOtherWriters:
    @pytest.fixture(scope="class")
    def models(self, tmp_path_factory: pytest.TempPathFactory) -> Any:
        os.environ["TEST_OUTSIDE_TABLE"] = str(tmp_path_factory.mktemp("lake") / "events")
        yield {
            "sources.yml": SOURCES,
            "read.sql": "{{ config(materialized='table') }} select * from {{ source('lake', 'events') }}",
            "another_writer.py": COMMIT_OUTSIDE,
            "read_again.sql": "{{ config(materialized='table') }} -- depends_on: {{ ref('another_writer') }}\n"
            "select * from {{ source('lake', 'events') }}",
            "astray.sql": "select * from {{ source('lake', 'astray') }}",
        }
        del os.environ["TEST_OUTSIDE_TABLE"]

    def test_a_table_elsewhere_is_read_and_nothing_is_written_into_it(self, project: Any) -> None:
        outside = os.environ["TEST_OUTSIDE_TABLE"]
        with project.adapter.connection_named("writer"):
            with project.adapter.connections.get_thread_connection().handle.job("write") as session:
                table = HudiTable.create(session, outside, name="events", record_key=["id"])
                frame = session.sql("select 1 as id, 'a' as name")
                table.upsert(frame, options={"hoodie.engine.publish.manifest": "false"})
                before = _files(outside)
                run_dbt(["run", "-s", "read"])
                assert _files(outside) == before
                assert project.run_sql("select name from {schema}.read", fetch="one")[0] == "a"
                table.upsert(
                    session.sql("select 2 as id, 'b' as name"),
                    options={"hoodie.engine.publish.manifest": "false"},
                )
        run_dbt(["run", "-s", "read", "another_writer", "read_again"])
        assert project.run_sql("select count(*) from {schema}.read", fetch="one")[0] == 2
        assert project.run_sql("select count(*) from {schema}.read_again", fetch="one")[0] == 3
        project.run_sql("analyze table lake.events compute statistics")
        assert not any("spark_catalog" in path for path in _files(outside)), "no manifest is written there"
        project.run_sql("drop schema lake cascade")
        assert set(before) <= set(_files(outside)), "the files are another writer's"

    def test_a_source_that_is_not_there_fails_only_the_model_that_reads_it(self, project: Any) -> None:
        results = {r.node.name: r for r in run_dbt(["run", "-s", "read", "astray"], expect_pass=False)}
        assert results["read"].status == "success"
        assert (
            "source lake.astray at /nowhere/astray: TableNotFoundError: there is no Hudi table"
            in results["astray"].message
        )


def _files(folder: str) -> list[str]:
    return sorted(os.path.join(root, name) for root, _, names in os.walk(folder) for name in names)
