"""What SQL says of views is kept for the processes that come later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.functional.conftest import CATALOG


class TestViews:
    def kept(self, project: Any) -> dict[str, Any]:
        place = Path(project.project_root) / "warehouse" / project.test_schema / "seen.view.json"
        found: dict[str, Any] = json.loads(place.read_text("utf-8"))
        return found

    @pytest.mark.skipif(CATALOG != "directory", reason="another catalog keeps views itself")
    def test_properties_are_kept(self, project: Any) -> None:
        project.run_sql("create view {schema}.seen tblproperties ('a' = 'b') as select 1 as id")
        project.run_sql("alter view {schema}.seen set tblproperties ('team' = 'data')")
        assert self.kept(project)["properties"] == {"a": "b", "team": "data"}
        project.run_sql("alter view {schema}.seen unset tblproperties if exists ('a', 'nope')")
        assert self.kept(project)["properties"] == {"team": "data"}
        project.run_sql("drop view {schema}.seen")

    def test_of_a_temporary_view_and_a_table_nothing_is_kept(self, project: Any) -> None:
        project.run_sql(
            "create temporary view passing as select 1 as id; alter view passing as select 2 as id; "
            "create table {schema}.took using hudi as select id from passing"
        )
        assert project.run_sql("select id from {schema}.took", fetch="all") == [(2,)]
        project.run_sql("drop table {schema}.took")
        project.run_sql(
            "create table {schema}.logged using hudi tblproperties (type = 'mor', primaryKey = 'id') as select 1 as id"
        )
        with pytest.raises(Exception, match="is the Hudi table at .* ALTER TABLE alters it"):
            project.run_sql("alter view {schema}.logged set tblproperties ('team' = 'data')")
        for statement in (
            "alter view {schema}.logged_rt set tblproperties ('team' = 'data')",
            "alter view {schema}.logged_rt as select 2 as id",
            "create or replace view {schema}.logged_rt as select 2 as id",
        ):
            with pytest.raises(Exception, match="logged_rt is a read-only face of the Hudi table"):
                project.run_sql(statement)
        assert not list(Path(project.project_root).rglob("logged_rt.view.json"))
        assert project.run_sql("select id from {schema}.logged_rt", fetch="all") == [(1,)]
        project.run_sql("drop table {schema}.logged")
