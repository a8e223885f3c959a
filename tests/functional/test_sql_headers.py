"""The `sql_header` of a model: its statements run before the query, once, in the same session."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt

MODEL = """
{{ config(KIND, sql_header="HEADER") }}
QUERY
"""
KINDS = {
    "whole": "materialized='table'",
    "part": "materialized='incremental', unique_key='id', on_schema_change='fail'",
    "seen": "materialized='view'",
}
CONTRACT = """
models:
  - name: NAME
    config: {contract: {enforced: true}}
    columns: [{name: id, data_type: int}]
"""


def of(kind: str, header: str, query: str) -> str:
    return MODEL.replace("KIND", kind).replace("HEADER", header).replace("QUERY", query)


class TestHeadersOfContracts:
    """dbt puts the header before the query also where it only compares columns."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        views = {
            name: of(
                kind, f"create temporary view {name}_ids as select 1 as id;", f"select id from {name}_ids"
            )
            for name, kind in KINDS.items()
            if name != "seen"
        }
        settings = {
            f"{name}_set": of(kind, "set test.of.headers=1", "select 1 as id") for name, kind in KINDS.items()
        }
        models = {**views, **settings}
        return {
            **{f"{name}.sql": sql for name, sql in models.items()},
            **{f"{name}.yml": CONTRACT.replace("NAME", name) for name in models},
        }

    def test_a_header_runs_once_and_is_a_statement_of_its_own(self, project: Any) -> None:
        for result in run_dbt(["run"]):
            found = project.run_sql(f"select * from {{schema}}.{result.node.name}", fetch="all")
            assert found == [(1,)], result.node.name
