"""Runs and clones beside another environment: each touches the tables of its own, and those only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt

from tests.functional.two_environments import TwoEnvironments

ORDERS = "{{ config(materialized='table', location_root=var('root', none)) }} select 1 as id"
TESTED = """
{{ config(materialized='table', audit=true) }}
select id from values (1), ({{ var('second', 2) }}) as t(id)
"""
UNIQUE = "models: [{name: tested, columns: [{name: id, data_tests: [unique]}]}]"


@pytest.fixture(scope="class")
def writes_artifacts() -> bool:
    return True


class OfTwo(TwoEnvironments):
    """Production's tables are built and their state is kept."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"orders.sql": ORDERS, "tested.sql": TESTED, "all.yml": UNIQUE}

    @pytest.fixture(scope="class", autouse=True)
    def production(self, project: Any, other_schema: str) -> None:
        project.create_test_schema(other_schema)
        run_dbt(["run"])
        self.copy_state(project.project_root)

    def ids(self, project: Any, table: str) -> list[int]:
        return [row[0] for row in project.run_sql(f"select id from {table} order by id", fetch="all")]

    def clone(self, *more: str, passes: bool = True) -> Any:
        there = ["--state", "state", "--target", "otherschema", "-s", "orders", "--full-refresh"]
        (result,) = run_dbt(["clone", *there, *more], expect_pass=passes)
        return result


class TestAuditsOfDeferredRuns(OfTwo):
    def test_a_first_build_is_looked_at_itself_and_not_what_it_defers_to(
        self, project: Any, other_schema: str
    ) -> None:
        there = ["--state", "state", "--target", "otherschema", "--defer", "-s", "tested"]
        (result,) = run_dbt(["run", *there, "--vars", "second: 1"], expect_pass=False)
        assert "failed before the commit; no table is made" in str(result.message)

        run_dbt(["run", *there])
        assert self.ids(project, f"{other_schema}.tested") == [1, 2]


class TestPlacesOfClones(OfTwo):
    def test_a_clone_takes_the_name_back_from_another_place(self, project: Any, other_schema: str) -> None:
        root = Path(project.project_root)
        run_dbt(["run", "-s", "orders", "--target", "otherschema", "--vars", f"root: {root}/marts"])
        pointer = root / "warehouse" / other_schema / "orders.table.json"
        assert pointer.exists()
        self.clone()
        assert not pointer.exists()
        assert (root / "warehouse" / other_schema / "orders" / ".hoodie").is_dir()
        assert self.ids(project, f"{other_schema}.orders") == [1]

    def test_the_table_of_another_name_is_not_replaced(self, project: Any, other_schema: str) -> None:
        taken = Path(project.project_root) / "taken"
        project.run_sql(
            f"create table {project.test_schema}.spare location '{taken}/orders' as select 7 as id"
        )
        self.clone()
        result = self.clone("--vars", f"root: {taken}", passes=False)
        assert f"which is the table {project.test_schema}.spare" in str(result.message)
        assert self.ids(project, f"{project.test_schema}.spare") == [7]
        assert self.ids(project, f"{other_schema}.orders") == [1]
