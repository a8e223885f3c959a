"""A project whose folders are its names, and what its tests ask of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt_and_capture
from hudi_engine.format.storage.uris import plain_location
from hudi_engine.spark.catalog import DirectoryCatalog

from tests.functional.conftest import CATALOG

DO = "{% macro do(statement) %}{% do run_query(statement) %}{% endmacro %}"
MODEL = "{{ config(materialized='table', location_root=var('root', none)) }} select {{ var('id', 1) }} as id"


@pytest.mark.skipif(CATALOG != "directory", reason="folders are names in the directory catalog only")
class NamesOnDisk:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"orders.sql": MODEL}

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"do.sql": DO}

    @pytest.fixture
    def folder(self, project: Any) -> Path:
        """The folder of the schema."""
        return Path(project.project_root) / "warehouse" / project.test_schema

    def do(self, statement: str, fails: str | None = None) -> str:
        """Run a statement in a session that is filled anew, and return what is told; {} is the schema."""
        args = ["run-operation", "do", "--args", f'{{statement: "{statement}"}}']
        _, told = run_dbt_and_capture(args, expect_pass=fails is None)
        told = " ".join(told.split())
        assert fails is None or fails in told
        return told

    def named(self, folder: Path) -> dict[str, str | None]:
        """The tables that the next process would show, and where."""
        names = DirectoryCatalog(str(folder.parent)).names(folder.name)
        return {name.name: base and plain_location(base) for name, base in names.items()}

    def rows(self, name: str) -> str:
        return run_dbt_and_capture(["show", "--quiet", "--inline", f"select id from {name}"])[1]
