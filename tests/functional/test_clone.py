"""`dbt clone` gives tables that share base files with the original's and go their own way."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.adapter.dbt_clone.test_dbt_clone import BaseClonePossible
from dbt.tests.util import run_dbt, run_dbt_and_capture

from tests.functional.two_environments import TwoEnvironments
from tests.helpers.hudi_rs import rows_by_hudi_rs

ORDERS = """
{{ config(materialized='incremental', unique_key='id', partition_by='day', table_type=var('type', 'mor')) }}
{% if is_incremental() %} select 2 as id, 'changed' as name, 'x' as day union all select 3, 'new', 'y'
{% else %} select 1 as id, 'a' as name, 'x' as day union all select 2, 'b', 'x' {% endif %}
"""
COUNTED = "{{ config(materialized='table') }} select count(*) as n from {{ ref('orders') }}"
FIRST = [(1, "a"), (2, "b")]
SECOND = [(1, "a"), (2, "changed"), (3, "new")]


@pytest.fixture(scope="class")
def writes_artifacts() -> bool:
    return True


class TestClonePossible(BaseClonePossible):
    pass


class TestSlimRun(TwoEnvironments):
    """A change is tried on clones of what production has."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"orders.sql": ORDERS, "counted.sql": COUNTED}

    def test_clones_share_files_and_go_their_own_way(self, project: Any, other_schema: str) -> None:
        project.create_test_schema(other_schema)
        there = ["--state", "state", "--target", "otherschema"]
        run_dbt(["run", "--exclude", "counted"])
        self.copy_state(project.project_root)

        run_dbt(["clone", *there, "--exclude", "counted"])
        original, clone = self.folders(project, "orders", other_schema)
        shared = inodes(clone)
        assert shared and shared == inodes(original)
        # an incremental run on top of the clone, deferring what is not cloned
        run_dbt(["run", *there, "--defer"])
        assert self.rows(project, other_schema) == rows_by_hudi_rs(str(clone), ["id", "name"]) == SECOND
        assert (
            self.rows(project, project.test_schema) == rows_by_hudi_rs(str(original), ["id", "name"]) == FIRST
        )
        assert project.run_sql(f"select n from {other_schema}.counted", fetch="one")[0] == 3

        run_dbt(["clone", *there, "--exclude", "counted"])  # it is there: nothing happens
        assert self.rows(project, other_schema) == SECOND
        run_dbt(["clone", *there, "--exclude", "counted", "--full-refresh"])
        assert self.rows(project, other_schema) == FIRST

        (result,) = run_dbt(["clone", *there, "-s", "counted", "--full-refresh"], expect_pass=False)
        assert f"{project.test_schema}.counted is not there; nothing to clone" in result.message
        assert (
            "This target finds tables below" in result.message
            and "`hudi-engine PATH clone`" in result.message
        )
        assert project.run_sql(f"select n from {other_schema}.counted", fetch="one")[0] == 3

        run_dbt(["run", "--exclude", "counted"])
        name = project.test_schema
        called = (
            f"{{table: {name}.orders, clone: {other_schema}.earlier, at: '{self.first_instant(original)}'}}"
        )
        run_dbt(["run-operation", "hudi_clone", "--args", called])
        assert self.rows(project, other_schema, "earlier") == FIRST
        assert self.rows(project, name) == SECOND

        project.run_sql(f"create view {other_schema}.seen as select 1 as id")
        for wrong, why in (
            (f"{other_schema}.seen", "is no Hudi table that a clone could replace"),
            (f"elsewhere.{other_schema}.far", "write it as schema.table"),
        ):
            given = f"{{table: {name}.orders, clone: {wrong}, replace: true}}"
            _, told = run_dbt_and_capture(["run-operation", "hudi_clone", "--args", given], expect_pass=False)
            assert why in told
        there = {each.name for each in clone.parent.iterdir() if each.is_dir()}
        assert not there & {"seen", "far"}

    def folders(self, project: Any, name: str, other_schema: str) -> tuple[Path, Path]:
        root = Path(project.project_root) / "warehouse"
        return root / project.test_schema / name, root / other_schema / name

    def rows(self, project: Any, schema: str, name: str = "orders") -> list[tuple[Any, ...]]:
        found = project.run_sql(f"select id, name from {schema}.{name} order by id", fetch="all")
        return [tuple(row) for row in found]

    def first_instant(self, table: Path) -> str:
        return min(each.name.partition(".")[0] for each in (table / ".hoodie").glob("*.deltacommit"))


class TestWhatHasTheName(TwoEnvironments):
    """What a clone takes the place of stays until the clone can be there."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        seen = "{{ config(materialized='view') }} select id, name from {{ ref('orders') }}"
        return {"orders.sql": ORDERS, "seen.sql": seen}

    @pytest.fixture(autouse=True)
    def there(self, project: Any, other_schema: str) -> list[str]:
        if not (Path(project.project_root) / "state").exists():
            project.create_test_schema(other_schema)
            run_dbt(["run"])
            self.copy_state(project.project_root)
        return ["--state", "state", "--target", "otherschema", "--full-refresh"]

    def rows(self, project: Any, name: str) -> list[tuple[Any, ...]]:
        found = project.run_sql(f"select * from {name}", fetch="all")
        return sorted(tuple(row)[:2] for row in found)

    @pytest.mark.parametrize("kind", ["view", "table"])
    def test_a_clone_that_cannot_be_made_leaves_what_has_its_name(
        self, project: Any, other_schema: str, there: list[str], kind: str
    ) -> None:
        name = f"{other_schema}.orders"
        project.run_sql(f"drop table if exists {name}")
        using = "using parquet" if kind == "table" else ""
        project.run_sql(f"create {kind} {name} {using} as select 7 as id, 'mine' as name")
        original = Path(project.project_root) / "warehouse" / project.test_schema / "orders"
        (file,) = (each for each in original.rglob("*.parquet") if ".hoodie" not in each.parts)
        away = file.rename(Path(project.project_root) / "away")

        (result,) = run_dbt(["clone", *there, "-s", "orders"], expect_pass=False)
        assert file.name.partition("_")[0] in result.message
        assert self.rows(project, name) == [(7, "mine")]

        away.rename(file)
        run_dbt(["clone", *there, "-s", "orders"])
        assert rows_by_hudi_rs(str(original.parents[1] / other_schema / "orders"), ["id", "name"]) == FIRST
        assert project.run_sql(f"select count(*) from {name}", fetch="one")[0] == len(FIRST)

    def test_a_view_that_cannot_be_read_leaves_the_table_that_has_its_name(
        self, project: Any, other_schema: str, there: list[str]
    ) -> None:
        name, away = f"{other_schema}.seen", f"{project.test_schema}.away"
        project.run_sql(f"create table {name} using hudi as select 7 as id, 'mine' as name")
        project.run_sql(f"alter table {project.test_schema}.orders rename to {away}")

        run_dbt(["clone", *there, "-s", "seen"], expect_pass=False)
        assert self.rows(project, name) == [(7, "mine")]

        project.run_sql(f"alter table {away} rename to {project.test_schema}.orders")
        run_dbt(["clone", *there, "-s", "seen"])
        assert self.rows(project, name) == FIRST


def inodes(table: Path) -> set[int]:
    return {os.stat(each).st_ino for each in table.rglob("*.parquet") if ".hoodie" not in each.parts}
