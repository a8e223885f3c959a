"""Data tests that read earlier states in a project with a `ref` of its own."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt

OWN = """
{% macro ref() %}{{ return(builtins.ref(*varargs, **kwargs)) }}{% endmacro %}
{% macro source() %}{{ return(hudi_pinned(builtins.source(*varargs))) }}{% endmacro %}
"""
SOURCES = "sources: [{name: own, schema: '{{ target.schema }}', tables: [{name: orders}]}]"


class TestStatesOfTests:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        orders = "{{ config(materialized='table', unique_key='id') }} select 1 as id"
        return {"orders.sql": orders, "sources.yml": SOURCES}

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"names.sql": OWN}

    @pytest.fixture(scope="class")
    def tests(self) -> dict[str, str]:
        return {
            "ignored.sql": "{{ config(as_of='latest') }} select * from {{ ref('orders') }} where id > 1",
            "ignored_by_meta.sql": "{{ config(meta={'hudi': {'as_of': 'latest'}}) }} select * from {{ ref('orders') }} where id > 1",
            "kept.sql": "{{ config(as_of='latest') }} select * from {{ source('own', 'orders') }} where id > 1",
            "of_today.sql": "select * from {{ ref('orders') }} where id > 1",
        }

    @pytest.mark.core
    def test_one_whose_as_of_the_projects_ref_would_ignore_fails(self, project: Any) -> None:
        run_dbt(["run"])
        results = {each.node.name: each for each in run_dbt(["test"], expect_pass=False)}
        assert {name: str(each.status) for name, each in results.items()} == {
            "ignored": "error", "ignored_by_meta": "error", "kept": "pass", "of_today": "pass",
        }  # fmt: skip
        for name in ("ignored", "ignored_by_meta"):
            told = f"as_of of {name} would be ignored: the macro ref in macros/names.sql"
            assert told in str(results[name].message)
