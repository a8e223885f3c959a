"""DROP SCHEMA and notes of tables, as later processes find them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hudi_engine.format.storage import open_storage
from hudi_engine.spark.catalog.entry import EntryNotes
from hudi_engine.spark.sql import ddl

from tests.functional.conftest import CATALOG

pytestmark = pytest.mark.sampled


class TestSchemas:
    @pytest.fixture
    def emptied(self, project: Any) -> Path:
        """The folder of a schema that this session knows as empty."""
        project.run_sql("drop schema if exists other cascade; create schema other")
        return Path(project.project_root) / "warehouse" / "other"

    @pytest.fixture
    def told(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """What statements warn of."""
        said: list[str] = []
        monkeypatch.setattr(ddl._log, "warning", lambda text, *names: said.append(text % names))
        return said

    @pytest.mark.parametrize("kind", ["table", "damaged table", "pointer", "view", "other files"])
    def test_a_schema_with_what_another_process_has_made_is_not_dropped(
        self, project: Any, emptied: Path, kind: str
    ) -> None:
        files = {
            "table": "made/.hoodie/hoodie.properties",
            "damaged table": "made/.hoodie/20260101000000000.commit",
            "pointer": "made.table.json",
            "view": "made.view.json",
            "other files": "made/landing.csv",
        }
        path = emptied / files[kind]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}", "utf-8")
        with pytest.raises(Exception, match="SCHEMA_NOT_EMPTY.*holds made .*CASCADE"):
            project.run_sql("drop schema other")
        assert path.exists()
        project.run_sql("drop schema other cascade")
        assert not emptied.exists()

    def test_a_schema_with_tables_of_this_session_is_not_dropped_and_an_empty_one_is(
        self, project: Any, emptied: Path
    ) -> None:
        project.run_sql("create table other.t using hudi as select 1 as id")
        with pytest.raises(Exception, match="SCHEMA_NOT_EMPTY.*holds t "):
            project.run_sql("drop schema other")
        project.run_sql("drop table other.t; drop schema other")
        assert not emptied.exists()

    def test_what_is_said_of_a_schema_is_kept_as_long_as_its_catalog_keeps_it(
        self, project: Any, told: list[str]
    ) -> None:
        project.run_sql("drop schema if exists said cascade")
        project.run_sql("create schema said comment 'it\\'s so' with dbproperties ('team' = 'a')")
        shown = dict(map(tuple, project.run_sql("describe schema extended said", fetch="all")))
        assert "s so" in shown["Comment"] and "team" in shown["Properties"]
        assert [text[:18] for text in told] == ["CREATE SCHEMA said"] * (CATALOG == "directory")
        project.run_sql("drop schema said")

    @pytest.mark.parametrize("words", ["in other compute statistics", "compute statistics noscan"])
    def test_all_tables_of_a_schema_are_analysed_and_those_of_hudi_are_not_measured_by_spark(
        self, project: Any, emptied: Path, words: str
    ) -> None:
        """Of their folders Spark would measure 0 bytes."""
        tables = "create table other.t using hudi as select 1 id; create table other.plain using csv as select 1 id"
        project.run_sql(f"{tables}; use other; analyze tables {words}; use {project.test_schema}")
        known = {}
        for name in ("t", "plain"):
            told = project.run_sql(f"describe extended other.{name}", fetch="all")
            known[name] = {row[0]: row[1] for row in told}.get("Statistics")
        project.run_sql("drop schema other cascade")
        assert not str(known["t"]).startswith("0 bytes")
        assert str(known["plain"]).startswith("2 bytes")

    def test_the_schema_that_spark_keeps_loses_nothing_when_it_is_to_be_dropped(self, project: Any) -> None:
        project.run_sql("create table default.kept using hudi as select 1 as id")
        with pytest.raises(Exception, match="schema default cannot be dropped"):
            project.run_sql("drop schema DEFAULT cascade")
        assert project.run_sql("select id from default.kept", fetch="all") == [(1,)]
        project.run_sql("drop table default.kept")


@pytest.mark.parametrize("kind", ["cow", "mor"])
class TestProperties:
    def test_properties_are_kept_with_the_table(self, project: Any, kind: str) -> None:
        name = f"noted_{kind}"
        project.run_sql(
            f"create table {{schema}}.{name} using hudi options (primaryKey 'id', type '{kind}') tblproperties ('team' = 'a') "
            "as select 1 as id"
        )
        project.run_sql(
            f"alter table {{schema}}.{name} set tblproperties ('owner.team' = 'data', 'comment' = 'what it is')"
        )

        def kept() -> EntryNotes:
            place = Path(project.project_root) / "warehouse" / project.test_schema / name
            return EntryNotes.load(open_storage(str(place)))

        assert (kept().properties, kept().comment) == ({"team": "a", "owner.team": "data"}, "what it is")
        shown = dict(map(tuple, project.run_sql(f"show tblproperties {{schema}}.{name}", fetch="all")))
        assert shown["owner.team"] == "data" and shown["team"] == "a"
        project.run_sql(f"alter table {{schema}}.{name} unset tblproperties if exists ('team', 'nope')")
        assert kept().properties == {"owner.team": "data"}
        shown = dict(map(tuple, project.run_sql(f"show tblproperties {{schema}}.{name}", fetch="all")))
        assert "team" not in shown
