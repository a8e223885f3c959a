"""Contracts: columns are compared before the query runs, NOT NULL and CHECK before the commit."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.constraints.test_constraints import (
    BaseIncrementalConstraintsColumnsEqual,
    BaseTableConstraintsColumnsEqual,
    BaseViewConstraintsColumnsEqual,
)
from dbt.tests.util import run_dbt, run_dbt_and_capture


class SparkTypes:
    @pytest.fixture
    def string_type(self) -> str:
        return "string"

    @pytest.fixture
    def int_type(self) -> str:
        return "int"

    @pytest.fixture
    def schema_string_type(self) -> str:
        return "string"

    @pytest.fixture
    def schema_int_type(self) -> str:
        return "int"

    @pytest.fixture
    def data_types(self) -> list[list[str]]:
        """SQL value, type in the contract, type in the error message."""
        return [
            ["1", "int", "int"],
            ["'1'", "string", "string"],
            ["cast('2019-01-01' as date)", "date", "date"],
            ["true", "boolean", "boolean"],
            ["cast('2013-11-03 00:00:00-07' as timestamp)", "timestamp", "timestamp"],
            ["array('a')", "array<string>", "array<string>"],
            ["cast(1 as decimal(9,2))", "decimal(9,2)", "decimal(9,2)"],
        ]


class SomeTypes(SparkTypes):
    """Every type is compared by the same macro: one without a parameter, one with an element and one with numbers."""

    @pytest.fixture
    def data_types(self) -> list[list[str]]:
        return [
            ["1", "int", "int"],
            ["array('a')", "array<string>", "array<string>"],
            ["cast(1 as decimal(9,2))", "decimal(9,2)", "decimal(9,2)"],
        ]


class TestTableConstraintsColumnsEqual(SomeTypes, BaseTableConstraintsColumnsEqual):
    pass


@pytest.mark.long
class TestTableConstraintsOfEveryType(SparkTypes, BaseTableConstraintsColumnsEqual):
    pass


@pytest.mark.long
class TestViewConstraintsOfEveryType(SparkTypes, BaseViewConstraintsColumnsEqual):
    pass


@pytest.mark.long
class TestIncrementalConstraintsOfEveryType(SparkTypes, BaseIncrementalConstraintsColumnsEqual):
    pass


CONTRACT = """
models:
  - name: {name}
    config: {{contract: {{enforced: true}}}}
    constraints: [{{type: check, name: small, expression: "id < 100"}}]
    columns:
      - {{name: id, data_type: int, constraints: [{{type: not_null}}]}}
      - {{name: name, data_type: string}}
"""


class TestConstraintsGuardTheCommit:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        sql = "{{ config(materialized='%s', on_schema_change='fail') }} select cast({{ var('id', 1) }} as int) as id, 'a' as name"
        return {
            **{f"{kind}_model.sql": sql % kind for kind in ("table", "incremental")},
            **{f"{kind}.yml": CONTRACT.format(name=f"{kind}_model") for kind in ("table", "incremental")},
        }

    @pytest.mark.parametrize("kind", ["table", "incremental"])
    def test_rows_that_break_a_constraint_leave_the_table_as_it_was(self, project: Any, kind: str) -> None:
        run_dbt(["run", "-s", f"{kind}_model"])
        for value, message in (("null", "not null id"), ("100", "small: id < 100")):
            command = ["run", "-s", f"{kind}_model", "--vars", f"{{id: '{value}'}}"]
            (result,) = run_dbt(command, expect_pass=False)
            assert f"constraint violated: {message}" in result.message
            assert f'a row that breaks it: {{"id":{value},"name":"a"}}' in result.message
        rows = project.run_sql(f"select id, name from {{schema}}.{kind}_model", fetch="all")
        assert [tuple(row) for row in rows] == [(1, "a")]


NOT_KEPT = """
models:
  - name: m
    config: {contract: {enforced: true}}
    constraints: [{type: check, name: small, expression: "{{ var('check', 'id < 9') }}"}]
    columns:
      - name: id
        data_type: int
        constraints:
          - {type: not_null}
          - {type: primary_key}
          - {type: unique, warn_unenforced: false}
          - {type: foreign_key, expression: "other (id)"}
      - name: name
        data_type: string
        constraints:
          - {type: custom, expression: "default 'a'"}
          - {type: custom, expression: "encode zstd", warn_unsupported: false}
"""


class TestConstraintsThatNothingComesOf:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        config = "{{ config(materialized=var('kind', 'table'), on_schema_change='fail') }}"
        return {"m.sql": config + " select 1 as id, 'a' as name", "m.yml": NOT_KEPT}

    @pytest.mark.parametrize("kind", ["table", "incremental"])
    def test_they_are_said_once_a_model_unless_the_user_knows(self, project: Any, kind: str) -> None:
        _, told = run_dbt_and_capture(["run", "--vars", f"{{kind: {kind}}}"])
        words = " ".join(told.split())
        assert (
            words.count("primary_key (id), foreign_key (id) other (id) of m is not enforced by dbt-hudi") == 1
        )
        assert words.count("custom (name) default 'a' of m is not supported by dbt-hudi") == 1
        assert "unique" not in told and "zstd" not in told
        silence = ["--warn-error-options", "{silence: [ConstraintNotSupported, ConstraintNotEnforced]}"]
        _, told = run_dbt_and_capture([*silence, "run", "--vars", f"{{kind: {kind}}}"])
        assert "by dbt-hudi" not in told

    def test_a_check_that_spark_does_not_understand_is_named(self, project: Any) -> None:
        for check in ("nope > 1", "id >"):
            (result,) = run_dbt(["run", "--vars", f"{{check: '{check}'}}"], expect_pass=False)
            assert f"the constraint small ({check}) cannot be evaluated: " in result.message


CLAUSED = """
models:
  - name: {name}
    config: {{contract: {{enforced: true}}}}
    columns:
      - {{name: id, data_type: int}}
      - {{name: ts, data_type: int}}
      - {{name: amount, data_type: int, constraints: [{{type: check, name: owed, expression: "amount >= 0"}}]}}
      - {{name: name, data_type: string, constraints: [{{type: not_null}}]}}
"""
CLAUSES = {
    "set_check": (
        "merge_update_set_expressions={'amount': 'DBT_INTERNAL_DEST.amount - 10'}",
        "owed: amount >= 0; nothing was written; a row that breaks it: "
        '{"id":1,"ts":2,"amount":-5,"name":"a"}',
    ),
    "set_null": (
        "merge_update_set_expressions={'name': 'cast(null as string)'}",
        "not null name: `name` is not null; nothing was written; a row that breaks it: "
        '{"id":1,"ts":2,"amount":5,"name":null}',
    ),
    "left_check": (
        "not_matched_by_source_action='update set amount = -1'",
        "owed: amount >= 0; nothing was written; a row that breaks it: "
        '{"id":2,"ts":1,"amount":-1,"name":"b"}',
    ),
    "left_null": (
        "not_matched_by_source_action='update set name = null', not_matched_by_source_condition='id = 2'",
        "not null name: `name` is not null; nothing was written; a row that breaks it: "
        '{"id":2,"ts":1,"amount":7,"name":null}',
    ),
    # None of these makes a row that breaks it: what goes, and what stays as it is for being newer, is not asked.
    "left_goes": ("not_matched_by_source_action='delete'", None),
    "older": (
        "precombine_field='ts', merge_update_set_expressions={'amount': '-1', 'ts': '0'}",
        None,
    ),
}


class TestConstraintsOfWhatClausesMake:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        sql = (
            "{{ config(materialized='incremental', unique_key='id', on_schema_change='fail', SAID) }} "
            "{% if var('run', 1) == 1 %} select 1 as id, 1 as ts, 5 as amount, 'a' as name "
            "union all select 2, 1, 7, 'b' {% else %} select 1 as id, 2 as ts, 5 as amount, 'a' as name {% endif %}"
        )
        return {
            **{f"{name}.sql": sql.replace("SAID", said) for name, (said, _) in CLAUSES.items()},
            **{f"{name}.yml": CLAUSED.format(name=name) for name in CLAUSES},
        }

    def test_a_value_that_a_clause_computes_is_asked_as_well(self, project: Any) -> None:
        run_dbt(["run"])
        results = run_dbt(["run", "--vars", "{run: 2}"], expect_pass=False)
        told = {result.node.name: (str(result.status), result.message) for result in results}
        for name, (_, message) in CLAUSES.items():
            if message is None:
                assert told[name][0] == "success", told[name]
            else:
                assert told[name][0] == "error" and f"constraint violated: {message}" in told[name][1]
                rows = project.run_sql(
                    f"select id, ts, amount, name from {{schema}}.{name} order by id", fetch="all"
                )
                assert [tuple(row) for row in rows] == [(1, 1, 5, "a"), (2, 1, 7, "b")], name
        assert project.run_sql("select id, amount from {schema}.left_goes", fetch="all") == [(1, 5)]
        assert project.run_sql("select amount from {schema}.older order by id", fetch="all") == [(5,), (7,)]


JOINED = """
{{ config(materialized='table') }}
select s.id, s.name from (select cast(id as int) as id, if(id = 4, null, 'c') as name from range(5)) s
where s.id in (select cast(id as int) from range(3))
"""
JOINED_YML = """
models:
  - name: joined
    config: {contract: {enforced: true}}
    columns:
      - {name: id, data_type: int}
      - {name: name, data_type: string, constraints: [{type: not_null}]}
"""


class TestRowsThatTheQueryLeavesOut:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"joined.sql": JOINED, "joined.yml": JOINED_YML}

    def test_they_are_not_asked(self, project: Any) -> None:
        run_dbt(["run"])
        assert project.run_sql("select count(name) from {schema}.joined", fetch="one")[0] == 3
