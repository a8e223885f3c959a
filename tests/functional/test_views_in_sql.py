"""What SQL says of views is kept for the processes that come later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt
from dbt_common.exceptions import DbtBaseException

from tests.functional.conftest import CATALOG

pytestmark = pytest.mark.sampled


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

    @pytest.mark.skipif(CATALOG != "directory", reason="another catalog keeps views itself")
    def test_one_that_could_not_be_restored_is_dropped(self, project: Any) -> None:
        project.run_sql("create table {schema}.below using hudi as select 1 as id")
        project.run_sql("create view {schema}.seen as select id from {schema}.below")
        with project.adapter.connection_named("elsewhere"):
            connections = project.adapter.connections
            with connections.work("another process") as session:
                session.sql(f"drop view {project.test_schema}.seen")
        assert self.kept(project)
        project.run_sql("drop view {schema}.SEEN; drop table {schema}.below")
        with pytest.raises(FileNotFoundError):
            self.kept(project)
        with pytest.raises(DbtBaseException, match="seen.* cannot be found"):
            project.run_sql("drop view {schema}.seen")

    @pytest.mark.skipif(CATALOG != "directory", reason="another catalog keeps views itself")
    def test_a_view_is_renamed_without_its_schema_too_and_a_temporary_one_is_sparks(
        self, project: Any
    ) -> None:
        project.run_sql(
            "create view {schema}.old as select 1 as id; use {schema}; alter view old rename to renamed; "
            "create temporary view brief as select 2 as id; alter view brief rename to renamed_too"
        )
        folder = Path(project.project_root) / "warehouse" / project.test_schema
        assert [each.name for each in folder.glob("*.view.json")] == ["renamed.view.json"]
        assert project.run_sql("select id from {schema}.renamed", fetch="all") == [(1,)]
        project.run_sql("drop view {schema}.renamed")

    @pytest.mark.skipif(CATALOG != "directory", reason="another catalog keeps views itself")
    def test_one_that_another_process_has_made_meanwhile_stays_where_it_is_not_to_be_replaced(
        self, project: Any
    ) -> None:
        folder = Path(project.project_root) / "warehouse" / project.test_schema
        told = {"format": 1, "database": project.test_schema, "columns": [], "comment": "", "properties": {}}
        (folder / "meanwhile.view.json").write_text(json.dumps({**told, "query": "select 1 as id"}))
        project.run_sql("create view if not exists {schema}.Meanwhile as select 2 as id")
        assert project.run_sql("select id from {schema}.meanwhile", fetch="all") == [(1,)]
        assert json.loads((folder / "meanwhile.view.json").read_text())["query"] == "select 1 as id"
        broken = json.dumps({**told, "query": "select id from nowhere.at_all"})
        (folder / "broken.view.json").write_text(broken)
        with pytest.raises(
            DbtBaseException, match="view .*broken is there, .*CREATE OR REPLACE VIEW replaces it"
        ):
            project.run_sql("create view if not exists {schema}.broken as select 2 as id")
        assert (folder / "broken.view.json").read_text() == broken
        project.run_sql(
            "create or replace view {schema}.broken as select 2 as id; drop view {schema}.broken; drop view {schema}.meanwhile"
        )

    def test_of_a_temporary_view_and_a_table_nothing_is_kept(self, project: Any) -> None:
        project.run_sql(
            "create temporary view passing as select 1 as id; alter view passing as select 2 as id; "
            "create table {schema}.took using hudi as select id from passing"
        )
        assert project.run_sql("select id from {schema}.took", fetch="all") == [(2,)]
        project.run_sql("drop table {schema}.took")

    def test_the_views_and_files_behind_a_merge_on_read_table_are_no_target(self, project: Any) -> None:
        project.run_sql(
            "create table {schema}.logged using hudi tblproperties (type = 'mor', primaryKey = 'id') as select 1 as id, 'a' as name"
        )
        for statement in (
            "drop view {schema}.logged",
            "alter view {schema}.logged as select 1 as id",
            "alter view {schema}.logged set tblproperties ('team' = 'data')",
            "create or replace view {schema}.logged as select 1 as id",
        ):
            with pytest.raises(
                DbtBaseException,
                match="logged is the Hudi table at .* ALTER TABLE alters it, DROP TABLE drops it",
            ):
                project.run_sql(statement)
        project.run_sql("create view if not exists {schema}.logged as select 5 as id")
        for statement in (
            "alter view {schema}.logged_rt set tblproperties ('team' = 'data')",
            "alter view {schema}.logged_rt as select 2 as id",
            "create or replace view {schema}.logged_rt as select 2 as id",
            "with n as (select 2 as id, 'b' as name) insert into {schema}.logged_ro select * from n",
        ):
            with pytest.raises(DbtBaseException, match="logged_r[to] is a read-only face of the Hudi table"):
                project.run_sql(statement)
        assert not list(Path(project.project_root).rglob("logged*.view.json"))
        assert project.run_sql("select id, name from {schema}.logged_rt", fetch="all") == [(1, "a")]
        for statement in (
            "delete from {schema}.logged__hudi_files",
            "insert into {schema}.logged__hudi_files values (2, 'b')",
            "truncate table {schema}.logged__hudi_files",
            "drop table {schema}.logged__hudi_files",
            "with n as (select 2 as id, 'b' as name) insert into {schema}.logged__hudi_files select * from n",
        ):
            with pytest.raises(DbtBaseException, match="logged__hudi_files is a part of the Hudi table"):
                project.run_sql(statement)
            assert project.run_sql("select id, name from {schema}.logged", fetch="all") == [(1, "a")]
        project.run_sql("drop table {schema}.logged")


class TestAViewWithNoNameOfSpark:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"spaced.sql": "{{ config(materialized='view', alias='My View') }} select 1 as id"}

    def test_it_is_refused_as_a_table_of_that_name_is(self, project: Any) -> None:
        (result,) = run_dbt(["run"], expect_pass=False)
        assert "the name is 'My View'; Spark's names hold letters, digits and _ only" in result.message

    @pytest.mark.parametrize(
        "statement",
        [
            "create table {schema}.m__hudi_files using hudi as select 1 as id",
            "create view {schema}.m__hudi_files as select 1 as id",
            "alter table {schema}.t rename to m__HUDI_files",
        ],
    )
    def test_the_name_of_the_files_of_a_table_is_kept_for_them(self, project: Any, statement: str) -> None:
        project.run_sql("drop table if exists {schema}.t")
        project.run_sql("create table {schema}.t using hudi as select 1 as id")
        with pytest.raises(DbtBaseException, match="that end in __hudi_files are kept"):
            project.run_sql(statement)
