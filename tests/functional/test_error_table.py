"""Error tables: rows that cannot be written go there with a reason, and the others are committed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt

ON = "hudi_options={'hoodie.errortable.enable': true}"
FEED = """
{{ config(materialized='view') }}
select * from values {{ var('rows', "(1, '10', 'a'), (2, '20', 'b')") }} as t(id, amount, day)
"""
TYPED = "select id, {% if is_incremental() %}amount{% else %}cast(amount as int) as amount{% endif %}, day from {{ ref('feed') }}"
STRATEGIES = {
    "upserted": "unique_key='id'",
    "merged": "unique_key='id', table_type='mor', merge_exclude_columns=['day']",
    "inserted": "unique_key='id', incremental_strategy='insert'",
    "overwritten": "incremental_strategy='insert_overwrite', partition_by='day'",
    "replaced": "unique_key='id', incremental_strategy='delete+insert'",
}
CONTRACT = """
models:
  - name: ruled
    config: {contract: {enforced: true}}
    constraints: [{type: check, name: small, expression: "id < 100"}]
    columns:
      - {name: id, data_type: int}
      - {name: name, data_type: string, constraints: [{type: not_null}]}
      - {name: chance, data_type: double, constraints: [{type: check, expression: "chance < 0.5"}]}
  - name: tested
    columns: [{name: id, data_tests: [{accepted_values: {arguments: {values: [1, 2]}}}]}]
"""
# rows that are evaluated twice have another chance each time
RULED = """
{{ config(materialized='table', HUDI_OPTIONS) }}
select cast(id as int) as id, if(id = 7, cast(null as string), 'n') as name, rand() as chance from range(1, 201)
union all select 100, null, 0.1D
"""
BAD = "(1, '11', 'a'), (3, 'x', 'a'), (null, '30', 'c'), (3, 'x', 'a')"


PAGE = (Path(__file__).resolve().parents[2] / "docs" / "error-tables.md").read_text("utf-8")
EXAMPLE = dict(re.findall(r"```\w+\n(?:--|#) (clean_payments\.\w+)[^\n]*\n(.*?)```", PAGE, re.DOTALL))
PAYMENTS = """
{{ config(materialized='view') }}
select * from values (1, '10'), (2, 'ten'), (cast(null as int), '5'), (3, '-1') {{ var('more', '') }} as t(payment_id, amount)
"""


def rows(project: Any, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in project.run_sql(query, fetch="all")]


class TestErrorTables:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        head = "{{ config(materialized='incremental', %s, %s) }} "
        return {
            "feed.sql": FEED,
            "models.yml": CONTRACT,
            **{f"{name}.sql": head % (config, ON) + TYPED for name, config in STRATEGIES.items()},
            "strict.sql": head % ("unique_key='id'", "table_type='cow'") + TYPED,
            "tested.sql": head % ("unique_key='id', audit=true", ON) + TYPED,
            "landed_payments.sql": PAYMENTS,
            **EXAMPLE,
            "ruled.sql": RULED.replace("HUDI_OPTIONS", ON),
        }

    def test_rows_without_a_key_or_of_another_type_are_set_aside(self, project: Any) -> None:
        run_dbt(["run", "-s", "feed", "strict", *STRATEGIES])
        assert "__errors" not in str(rows(project, "show tables in {schema}"))
        for _ in range(2):
            results = run_dbt(["run", "-s", *STRATEGIES, "feed", "--vars", f'{{rows: "{BAD}"}}'])
            said = {each.node.name: each for each in results if each.node.name in STRATEGIES}
            (failed,) = run_dbt(["run", "-s", "strict", "--vars", f'{{rows: "{BAD}"}}'], expect_pass=False)
        assert "value x of column amount does not fit its type int" in failed.message
        for name, each in said.items():
            keyed = "unique_key" in STRATEGIES[name]
            assert each.adapter_response["rows_set_aside"] == (3 if keyed else 2), name
            assert f"{3 if keyed else 2} rows to the error table" in each.adapter_response["_message"]
            found = rows(
                project,
                f"select reason, raw_row, copies, source_file, model from {{schema}}.{name}__errors order by 1",
            )
            misfit = (
                "value x of column amount does not fit its type int",
                '{"id":3,"amount":"x","day":"a"}',
                2,
            )
            keyless = ("null or empty record key (id)", '{"id":null,"amount":"30","day":"c"}', 1)
            assert [row[:3] for row in found] == [*([keyless] if keyed else []), misfit], name
            assert {row[3:] for row in found} == {(None, f"model.test.{name}")}
        expected = [(1, 11), (2, 20)]
        for name in ("upserted", "merged", "replaced"):
            assert rows(project, f"select id, amount from {{schema}}.{name} order by id") == expected, name
        assert rows(project, "select id, amount from {schema}.strict order by id") == [(1, 10), (2, 20)]
        assert rows(project, "select id, amount, day from {schema}.overwritten order by amount") == [
            (1, 11, "a"), (2, 20, "b"), (None, 30, "c"),
        ]  # fmt: skip

    def test_constraints_are_checked_in_one_evaluation(self, project: Any) -> None:
        run_dbt(["run", "-s", "ruled"])
        ((good, least),) = rows(project, "select count(*), max(chance) from {schema}.ruled")
        ((bad,),) = rows(project, "select count(*) from {schema}.ruled__errors")
        assert least < 0.5 and good + bad == 201
        found = dict(
            rows(project, "select get_json_object(raw_row, '$.id'), reason from {schema}.ruled__errors")
        )
        assert (
            found["100"]
            == "constraint violated: small: id < 100; constraint violated: not null name: `name` is not null"
        )
        assert "not null name" in found["7"]

    @pytest.mark.long
    def test_a_run_that_fails_later_adds_no_error_twice(self, project: Any) -> None:
        run_dbt(["run", "-s", "feed", "tested"])
        for values, passes in (
            ("(9, '1', 'a'), (null, '5', 'e')", False),
            ("(1, '7', 'a'), (null, '5', 'e')", True),
        ):
            run_dbt(["run", "-s", "feed", "tested", "--vars", f'{{rows: "{values}"}}'], expect_pass=passes)
            assert rows(project, "select reason, copies from {schema}.tested__errors") == [
                ("null or empty record key (id)", 1)
            ]
        assert rows(project, "select id, amount from {schema}.tested order by id") == [(1, 7), (2, 20)]

    def test_the_example_of_the_page_sets_rows_aside_in_every_run(self, project: Any) -> None:
        expected = [
            "constraint violated: check on amount: amount > 0",
            "constraint violated: not null amount: `amount` is not null",
            "null or empty record key (payment_id)",
        ]
        for more, last in (("", 3), (", (4, 'x')", 4)):
            results = run_dbt(
                ["run", "-s", "clean_payments", "landed_payments", "--vars", f'{{more: "{more}"}}']
            )
            (said,) = (each for each in results if each.node.name == "clean_payments")
            assert f", {last} rows to the error table" in said.message
            found = rows(project, "select reason from {schema}.clean_payments__errors")
            assert len(found) == last and sorted({row[0] for row in found}) == expected
        assert rows(project, "select payment_id, amount from {schema}.clean_payments") == [(1, 10)]
        query = "select from_json(raw_row, 'payment_id int, given_amount string').given_amount from {schema}.clean_payments__errors"
        assert sorted(row[0] for row in rows(project, query)) == ["-1", "5", "ten", "x"]


FEED_OF_DAYS = """
{{ config(materialized='view', event_time='at') }}
select id, v, cast(at as timestamp) as at from values
(1, '1', '2026-01-01 10:00:00'), (2, '2', '2026-01-02 10:00:00') {{ var('more', '') }} as t(id, v, at)
"""
NUMBER = "{% if is_incremental() %}v{% else %}cast(v as int) as v{% endif %}"
IN_PYTHON = """
def model(dbt, session):
    dbt.config(materialized='incremental', unique_key='id', hudi_options={'hoodie.errortable.enable': True})
    frame = dbt.ref('days')
    return frame.select('id', 'v') if dbt.is_incremental else frame.selectExpr('id', 'cast(v as int) as v')
"""
BATCHED = "incremental_strategy='microbatch', event_time='at', begin='2026-01-01', batch_size='day'"


@pytest.mark.long
class TestErrorTablesOfOtherModels:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        def sql(config: str, query: str) -> str:
            return f"{{{{ config(materialized='incremental', unique_key='id', {config}, {ON}) }}}} {query}"

        days, raw = (
            "from {{ ref('days') }}",
            "{{ config(materialized='incremental', unique_key='id') }} select id, v",
        )
        changes = f"select id, {NUMBER}, c._change_type from {{{{ hudi_changes(ref('raw')) }}}} c"
        return {
            "days.sql": FEED_OF_DAYS,
            "raw.sql": f"{raw} {days}",
            "batched.sql": sql(BATCHED, f"select id, {NUMBER}, at {days}"),
            "changed.sql": sql("table_type='mor', location_root='elsewhere'", changes),
            "in_python.py": IN_PYTHON,
            "taken.sql": sql("table_type='cow'", f"select id, {NUMBER} {days}"),
            "taken__errors.sql": "select 1 as x",
        }

    def test_batches_changes_and_python_models_set_rows_aside(self, project: Any) -> None:
        window = ["--event-time-start", "2026-01-01", "--event-time-end", "2026-01-03"]
        run_dbt(["run", *window])
        more = ", (3, 'x', '2026-01-01 11:00:00'), (4, '4', '2026-01-02 12:00:00'), (5, 'y', '2026-01-02 13:00:00')"
        results = run_dbt(["run", *window, "--vars", f'{{more: "{more}"}}'], expect_pass=False)
        (failed,) = (each for each in results if each.status == "error")
        assert "taken__errors is the name of an error table (hoodie.errortable.enable)" in failed.message
        for name in ("batched", "changed", "in_python"):
            query = f"select get_json_object(raw_row, '$.v') from {{schema}}.{name}__errors order by 1"
            assert rows(project, query) == [("x",), ("y",)], name
            assert rows(project, f"select id, v from {{schema}}.{name} order by 1") == [
                (1, 1),
                (2, 2),
                (4, 4),
            ], name
        assert (project.project_root / "elsewhere" / "changed__errors" / ".hoodie").check()
        assert rows(project, "select id from {schema}.taken order by 1") == [(1,), (2,)]
