"""A table keeps its version whatever a model does, unless the model asks for upgrades."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt
from hudi_engine import open_table

ROWS = "select id, {{ var('n', 1) }} as n from range(3)"
VERSION_9 = "options={'hoodie.write.table.version': '9'}"
MODELS = {
    "rebuilt": ("materialized='table'", 6, 9),
    "for_athena": (f"materialized='table', {VERSION_9}", 9, 6),
    "merged": ("materialized='incremental', unique_key='id'", 6, 9),
}
UPGRADED = "options={'hoodie.write.table.version': '9', 'hoodie.write.auto.upgrade': var('upgrade', 'false')}"


def place(project: Any, name: str) -> str:
    for row in project.run_sql(f"describe table extended {{schema}}.{name}", fetch="all"):
        if row[0] == "Location":
            return str(row[1]).removeprefix("file:").partition("/.hoodie")[0]
    raise AssertionError(f"{name} has no location")


class TestVersions:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        made = {
            f"{name}.sql": f"{{{{ config({config}) }}}} {ROWS}" for name, (config, _, _) in MODELS.items()
        }
        asks = f"{{{{ config(materialized='incremental', unique_key='id', {UPGRADED}) }}}} {ROWS}"
        return {**made, "upgraded.sql": asks}

    def test_a_run_keeps_version_and_history_and_upgrades_where_it_is_asked_to(self, project: Any) -> None:
        run_dbt(["run"])
        kept = {}
        for name, (_, first, then) in MODELS.items():
            table = open_table(place(project, name))
            assert table.config.version == first, name
            kept[name] = table.timeline()[-1].requested_time
            (table.upgrade if then > first else table.downgrade)(then)
        table = open_table(place(project, "upgraded"))
        assert table.config.version == 9
        table.downgrade(6)

        run_dbt(["run", "--full-refresh", "--vars", "{n: 2}"])

        for name, (_, _, then) in MODELS.items():
            table = open_table(place(project, name))
            assert table.config.version == then, name
            assert kept[name] in {each.requested_time for each in table.timeline()}, name
            rows = project.run_sql(f"select distinct n from {{schema}}.{name}", fetch="all")
            assert [tuple(row) for row in rows] == [(2,)], name
        assert open_table(place(project, "upgraded")).config.version == 6
        run_dbt(["run", "-s", "upgraded", "--vars", "{n: 3, upgrade: 'true'}"])
        assert open_table(place(project, "upgraded")).config.version == 9
        rows = project.run_sql("select distinct n from {schema}.upgraded", fetch="all")
        assert [tuple(row) for row in rows] == [(3,)]
