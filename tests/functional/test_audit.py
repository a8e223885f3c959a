"""Tests that run before the commit: what fails them is never seen, and the node fails with the test's name."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import patch_microbatch_end_time, run_dbt, run_dbt_and_capture, write_file

STRATEGIES = ("merge", "append", "insert_overwrite", "delete+insert", "replace_where")
TYPES = ("cow", "mor")
MODEL = """
{{{{ config(materialized='incremental', incremental_strategy='{strategy}', table_type='{kind}', partition_by='dt',
    unique_key={key}, incremental_predicates={predicates}, on_schema_change='append_new_columns', audit=true) }}}}
select * from {{{{ source('raw', 'arrivals') }}}}
"""
TESTS = """
version: 2
sources:
  - name: raw
    schema: "{{ target.schema }}"
    tables: [{name: arrivals}]
models:
"""


BOTH = [(each, kind) for each in STRATEGIES for kind in TYPES]
IN_TURNS = [(each, TYPES[number % 2]) for number, each in enumerate(STRATEGIES)]


def model(strategy: str, kind: str) -> str:
    keyless = strategy in ("append", "insert_overwrite", "replace_where")
    return MODEL.format(
        strategy=strategy,
        kind=kind,
        key="none" if keyless else "'id'",
        predicates="'id > 1'" if strategy == "replace_where" else "none",
    )


def arrive(project: Any, *rows: str, extra: bool = False) -> None:
    """Put rows into the table that all models read, with a further column if wanted."""
    project.run_sql("drop table if exists {schema}.arrivals")
    columns = "id, dt, name" + (", price" if extra else "")
    project.run_sql(
        f"create table {{schema}}.arrivals using parquet as select * from values {', '.join(rows)} as t({columns})"
    )


def rows_of(project: Any, table: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in project.run_sql(f"select * from {{schema}}.{table}", fetch="all"))


class EveryStrategy:
    """One model for each pair of a strategy and a table type."""

    pairs = IN_TURNS

    @property
    def named(self) -> dict[str, tuple[str, str]]:
        """Models by name."""
        return {f"{each.replace('+', '_')}_{kind}": (each, kind) for each, kind in self.pairs}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        names = self.named
        tested = "  - {name: %s, columns: [{name: name, data_tests: [not_null]}]}\n"
        listed = "".join(tested % name for name in names)
        return {**{f"{name}.sql": model(*each) for name, each in names.items()}, "all.yml": TESTS + listed}

    def test_a_failing_test_leaves_the_table_as_it_was(self, project: Any) -> None:
        names = self.named
        arrive(project, "(1, 'a', 'one')", "(2, 'b', 'two')")
        assert len(run_dbt(["run"])) == len(names)
        before = {name: rows_of(project, name) for name in names}
        assert all(rows == [(1, "a", "one"), (2, "b", "two")] for rows in before.values())

        arrive(project, "(2, 'b', 'again', 1.5)", "(3, 'b', null, 2.5)", extra=True)
        results = run_dbt(["run"], expect_pass=False)
        for result in results:
            said = str(result.message)
            assert "1 of 1 test(s) of" in said and f"not_null_{result.node.name}_name" in said, said
            assert "the table is as it was" in said
        after = {name: rows_of(project, name) for name in names}
        assert after == before

        arrive(project, "(2, 'b', 'again', 1.5)", "(3, 'b', 'three', 2.5)", extra=True)
        run_dbt(["run"])
        new = [(2, "b", "again", 1.5), (3, "b", "three", 2.5)]
        for name, (strategy, _) in names.items():
            kept = [(1, "a", "one", None), *([(2, "b", "two", None)] if strategy == "append" else [])]
            found = [(*row[:3], None if row[3] is None else float(row[3])) for row in rows_of(project, name)]
            assert found == sorted([*kept, *new], key=str), name


class TestEveryStrategy(EveryStrategy):
    pass


@pytest.mark.long
class TestEveryStrategyOnBothTypes(EveryStrategy):
    pairs = BOTH


SELECTED = """
{{ config(materialized='table', pre_commit_tests=[
    'unique', 'few_rows', {'name': 'known names', 'sql': "select * from {{ this }} where name = 'bad'"},
    'select s.* from this s where id > 9']) }}
select * from {{ source('raw', 'arrivals') }}
"""
SELECTED_YML = """
  - name: selected
    columns:
      - name: id
        data_tests:
          - unique: {config: {store_failures: true}}
          - not_null: {config: {severity: warn}}
      - name: name
        data_tests: [not_null]
"""


class TestNamedAndWritten:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"selected.sql": SELECTED, "all.yml": TESTS + SELECTED_YML}

    @pytest.fixture(scope="class")
    def tests(self) -> dict[str, str]:
        return {
            "few_rows.sql": "{{ config(store_failures=true) }} select count(*), max(id), max(id) from {{ ref('selected') }} having count(*) > 3 -- rows",
            "no_third.sql": "select selected.id from {{ ref('selected') }} where selected.id = 3",
        }

    def test_those_that_are_named_run_and_no_others(self, project: Any) -> None:
        arrive(project, "(1, 'a', 'one')", "(3, 'b', null)")
        run_dbt(["run"])
        good = rows_of(project, "selected")
        assert len(good) == 2, "neither not_null nor no_third was named"

        arrive(project, "(1, 'a', 'bad')", "(1, 'b', 'x')", "(11, 'b', 'x')", "(12, 'b', 'x')")
        said = str(run_dbt(["run"], expect_pass=False).results[0].message)
        for name in ("unique_selected_id", "few_rows", "known names", "pre_commit_tests[4]"):
            assert name in said
        assert "4 of 4" in said
        assert rows_of(project, "selected") == good
        stored = f"{project.test_schema}_dbt_test__audit.unique_selected_id"
        assert stored in said
        kept = project.run_sql(f"select unique_field, n_records from {stored}", fetch="all")
        assert [tuple(row) for row in kept] == [(1, 2)]
        # a test may select what a table has no names for
        query = f"select * from {project.test_schema}_dbt_test__audit.few_rows"
        assert [tuple(row) for row in project.run_sql(query, fetch="all")] == [(4, 12, 12)]

    def test_a_first_build_that_fails_makes_no_table(self, project: Any) -> None:
        project.run_sql("drop table if exists {schema}.selected")
        arrive(project, "(1, 'a', 'bad')")
        said = str(run_dbt(["run"], expect_pass=False).results[0].message)
        assert "failed before the commit; no table is made:" in said
        assert "selected" not in {row[1] for row in project.run_sql("show tables in {schema}", fetch="all")}
        arrive(project, "(1, 'a', 'good')")
        run_dbt(["run"])
        assert rows_of(project, "selected") == [(1, "a", "good")]

    def test_a_warning_that_dbt_makes_an_error_stops_the_commit(self, project: Any) -> None:
        write_file(
            SELECTED.replace("'unique', 'few_rows'", "'not_null'"),
            project.project_root,
            "models",
            "selected.sql",
        )
        arrive(project, "(4, 'a', 'four')")
        run_dbt(["run"])
        arrive(project, "(cast(null as int), 'a', 'x')")
        for words in (["--warn-error"], ["--warn-error-options", "{error: [LogTestResult]}"]):
            said = str(run_dbt([*words, "run"], expect_pass=False).results[0].message)
            assert "not_null_selected_id: got 1 result(s), configured to fail if != 0" in said
            assert rows_of(project, "selected") == [(4, "a", "four")]
        run_dbt(["run"])
        assert rows_of(project, "selected") == [(None, "a", "x")]
        write_file(SELECTED, project.project_root, "models", "selected.sql")

    def test_a_name_that_is_none_is_refused_before_anything_runs(self, project: Any) -> None:
        write_file(SELECTED.replace("few_rows", "few_row"), project.project_root, "models", "selected.sql")
        said = str(run_dbt(["run"], expect_pass=False).results[0].message)
        assert "names 'few_row', but no test of the model has this name" in said and "few_rows" in said
        write_file(SELECTED, project.project_root, "models", "selected.sql")


SNAPSHOT = """
{% snapshot history %}
{{ config(strategy='check', unique_key='id', check_cols=['name'], audit=true) }}
select * from {{ ref('people') }}
{% endsnapshot %}
"""


class TestSeedsAndSnapshots:
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {
            "people.csv": "id,name\n1,Ann\n2,Bob\n",
            "people.yml": "seeds:\n  - {name: people, config: {audit: true}, columns: [{name: id, data_tests: [unique]}]}\n",
        }

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        tested = "{name: history, columns: [{name: name, data_tests: [{accepted_values: {arguments: {values: [Ann, Bob, Cid]}}}]}]}"
        return {"history.sql": SNAPSHOT, "history.yml": f"snapshots:\n  - {tested}\n"}

    def test_both_are_tested(self, project: Any) -> None:
        run_dbt(["seed"])
        run_dbt(["snapshot"])
        write_file("id,name\n1,Ann\n1,Bob\n", project.project_root, "seeds", "people.csv")
        said = str(run_dbt(["seed"], expect_pass=False).results[0].message)
        assert "unique_people_id" in said
        assert rows_of(project, "people") == [(1, "Ann"), (2, "Bob")]
        write_file("id,name\n1,Ann\n2,Zed\n", project.project_root, "seeds", "people.csv")
        run_dbt(["seed"])
        before = rows_of(project, "history")
        said = str(run_dbt(["snapshot"], expect_pass=False).results[0].message)
        assert "accepted_values_history_name" in said
        assert rows_of(project, "history") == before
        write_file("id,name\n1,Ann\n2,Cid\n", project.project_root, "seeds", "people.csv")
        run_dbt(["seed"])
        run_dbt(["snapshot"])
        assert len(rows_of(project, "history")) == 3


EVENTS = """
{{ config(materialized='table', event_time='at') }}
select id, timestamp '2020-01-01 00:00:00' + make_dt_interval(id) as at, if(id = 1 and {{ var('bad', true) }}, null, 'x') as name
from range(0, 3)
"""
DAYS = """
{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at', batch_size='day', begin='2020-01-01',
    partition_by=['day'], concurrent_batches=true, audit=true) }}
select id, at, name, cast(at as date) as day from {{ ref('events') }}
"""


class TestBatches:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        tested = "models: [{name: days, columns: [{name: name, data_tests: [not_null]}]}]"
        return {"events.sql": EVENTS, "days.sql": DAYS, "days.yml": tested}

    def test_a_batch_that_fails_its_test_is_left_out_and_comes_with_the_next_run(self, project: Any) -> None:
        with patch_microbatch_end_time("2020-01-03 12:00:00"):
            _, log = run_dbt_and_capture(["run"], expect_pass=False)
            assert "not_null_days_name: got 1 result(s)" in log
            assert [row[0] for row in rows_of(project, "days")] == [0, 2]
            run_dbt(
                [
                    "run",
                    "--vars",
                    "{bad: false}",
                    "--event-time-start",
                    "2020-01-02",
                    "--event-time-end",
                    "2020-01-03",
                ]
            )
        assert [row[0] for row in rows_of(project, "days")] == [0, 1, 2]
