"""Models that read changes: a unit test of dbt gives them, and a contract lists what reaches the table."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from hudi_engine.table.changes.checkpoint import read_checkpoint

from tests.functional.test_changes import KEYED, ORDERS, Chain

DOUBLED = f"""
{{{{ config({KEYED}, on_schema_change='append_new_columns') }}}}
select id, amount * 2 as amount, _change_type, _commit_time from {{{{ hudi_changes(ref('orders')) }}}}
"""
KEPT = "{{ config(materialized='table', unique_key='id') }} select 1 as id, 'insert' as _change_type"
PROPERTIES = """
version: 2
models:
  - name: doubled
    config: {contract: {enforced: true}}
    columns:
      - {name: amount, data_type: bigint}
      - {name: id, data_type: int}
  - name: kept
    config: {contract: {enforced: true}}
    columns:
      - {name: id, data_type: int}
unit_tests:
  - name: changes_are_given
    model: doubled
    given:
      - input: ref('orders')
        format: sql
        rows: |
          select 7 as id, 1L as amount, 'delete' as _change_type, '1' as _commit_time
          union all select 8, 2L, 'update_after', '2'
    expect: {rows: [{id: 7, amount: 2, _change_type: delete}, {id: 8, amount: 4, _change_type: update_after}]}
"""


class TestGivenChanges:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"orders.sql": ORDERS, "doubled.sql": DOUBLED, "kept.sql": KEPT, "properties.yml": PROPERTIES}

    def test_a_unit_test_gives_changes_and_a_contract_need_not_list_what_is_consumed(
        self, project: Any
    ) -> None:
        _, output = run_dbt_and_capture(["run"], expect_pass=False)
        assert "_change_type" in output and "missing in contract" in output, "a table keeps what it selects"
        assert [str(result.status) for result in run_dbt(["test"])] == ["pass"]

        chain = Chain(project)
        assert chain.rows("doubled", "*") == [(20 * number, number) for number in range(1, 7)]
        chain.sql("delete from orders where id = 6")
        run_dbt(["run", "-s", "doubled"])
        assert chain.rows("doubled", "*") == [(20 * number, number) for number in range(1, 6)]

        # A clone's checkpoint names the inputs of its original, in another schema.
        own, other = f"{project.test_schema}.orders".lower(), f"{project.test_schema}_b"
        run_dbt(["run-operation", "hudi_clone", "--args", f"{{table: orders, clone: {other}.orders}}"])
        note(other, read_checkpoint(chain.state("doubled"))[own], own)
        chain.sql("delete from orders where id = 5")
        run_dbt(["run", "-s", "doubled"])
        assert chain.rows("doubled", "*") == [(20 * number, number) for number in range(1, 5)]

        # An instant that this input never had is a gap, and no first run.
        project.run_sql(f"delete from {other}.orders where id = 4")
        note(other, chain.state(f"../{other}/orders").timeline.completed_writes[-1].requested_time, own)
        _, output = run_dbt_and_capture(["run", "-s", "doubled"], expect_pass=False)
        assert "on_gap=" in output


def note(other: str, instant: str, own: str) -> None:
    """Let the checkpoint name an input of another schema, and no longer the model's own."""
    for given in (f"input: {other}.orders, set: '{instant}'", f"input: {own}, reset: true"):
        run_dbt(["run-operation", "hudi_checkpoint", "--args", f"{{table: doubled, {given}}}"])


MARKING = """
{{ config(materialized='incremental', unique_key='id') }}
select id, amount, amount < 0 as _hoodie_is_deleted from {{ ref('told') }}
"""
MARKED = """
unit_tests:
  - name: marks_in_rows
    model: marking
    given: [{input: ref('told'), rows: [{id: 7, amount: -1}, {id: 8, amount: 2}]}]
    expect: {rows: [{id: 7, _hoodie_is_deleted: true}, {id: 8, _hoodie_is_deleted: false}]}
  - name: marks_in_sql
    model: marking
    given: [{input: ref('told'), format: sql, rows: "select 7 as id, -1 as amount"}]
    expect: {format: sql, rows: "select 7 as id, -1 as amount, true as _hoodie_is_deleted"}
  - name: given_marks
    model: reading
    given: [{input: ref('landed'), rows: [{id: 7, _hoodie_is_deleted: true}, {id: 8, _hoodie_is_deleted: false}]}]
    expect: {rows: [{id: 8}]}
"""


class TestGivenMarks:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "told.sql": "select id, amount from values (1, 1), (2, {{ var('amount', 2) }}) as t(id, amount)",
            "marking.sql": MARKING,
            "landed.sql": "{{ config(materialized='table') }} select id, amount < 0 as _hoodie_is_deleted from {{ ref('told') }}",
            "reading.sql": "select id from {{ ref('landed') }} where not _hoodie_is_deleted",
            "properties.yml": MARKED,
        }

    def test_a_unit_test_gives_and_expects_the_mark_of_deleted_rows(self, project: Any) -> None:
        run_dbt(["run"])
        run_dbt(["run", "--vars", "{amount: -2}"])
        assert Chain(project).rows("marking", "id, amount") == [(1, 1)]
        assert [str(result.status) for result in run_dbt(["test"])] == ["pass"] * 3
