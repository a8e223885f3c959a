"""SQL on a source that another writer keeps: its name is the warehouse's, its files never are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from hudi_engine import HudiTable
from hudi_engine.format.storage import open_storage
from hudi_engine.spark.catalog.entry import NOTES_PATH, EntryNotes

pytestmark = pytest.mark.sampled

SOURCES = """
sources:
  - name: lake
    schema: lake
    tables: [{name: events, external: {location: "{{ env_var('TEST_TABLE_OF_ANOTHER') }}"}}]
"""


class TestStatements:
    @pytest.fixture(scope="class")
    def models(self, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
        os.environ["TEST_TABLE_OF_ANOTHER"] = str(tmp_path_factory.mktemp("lake") / "events")
        yield {"sources.yml": SOURCES, "read.sql": "select * from {{ source('lake', 'events') }}"}
        del os.environ["TEST_TABLE_OF_ANOTHER"]

    @pytest.fixture
    def outside(self, project: Any) -> Path:
        """The folder of the table of another writer, which the catalog shows as lake.events."""
        folder = Path(os.environ["TEST_TABLE_OF_ANOTHER"])
        if not folder.exists():
            with project.adapter.connection_named("writer"):
                with project.adapter.connections.get_thread_connection().handle.job("write") as session:
                    table = HudiTable.create(session, str(folder), name="events", record_key=["id"])
                    rows = session.sql("select 1 as id, 'a' as name")
                    table.upsert(rows, options={"hoodie.engine.publish.manifest": "false"})
        run_dbt(["run"])
        return folder

    @pytest.mark.parametrize(
        ("statement", "refused"),
        [
            ("comment on table lake.events is 'theirs'", ""),
            ("alter table lake.events add columns (qty int)", ""),
            ("alter table lake.events alter column name comment 'said'", "no comments are kept"),
            ("alter table lake.events rename to lake.mine", "lake.events cannot be renamed"),
        ],
    )
    def test_no_statement_makes_a_later_drop_remove_its_files(
        self, project: Any, outside: Path, statement: str, refused: str
    ) -> None:
        files = {path for path in outside.rglob("*") if path.is_file()}
        if refused:
            with pytest.raises(Exception, match=refused):
                project.run_sql(statement)
        else:
            project.run_sql(statement)
        project.run_sql("drop table if exists lake.events; drop schema lake cascade")
        assert files <= set(outside.rglob("*"))

    def test_a_column_of_which_its_writer_says_something_can_be_dropped(
        self, project: Any, outside: Path
    ) -> None:
        EntryNotes(column_comments={"spare": "no longer used"}).save(open_storage(str(outside)))
        notes = (outside / NOTES_PATH).read_bytes()
        project.run_sql("alter table lake.events add columns (spare int)")
        project.run_sql("alter table lake.events drop column spare")
        columns = {row[0] for row in project.run_sql("describe lake.events", fetch="all")}
        assert "name" in columns and "spare" not in columns
        assert (outside / NOTES_PATH).read_bytes() == notes

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {
            "say.sql": """{% macro say() %}
              {% do alter_column_comment(
                api.Relation.create(schema='lake', identifier='events'), {'name': {'description': 'x'}}
              ) %}
            {% endmacro %}"""
        }

    def test_a_macro_that_comments_its_columns_is_refused(self, project: Any, outside: Path) -> None:
        files = {path for path in outside.rglob("*") if path.is_file()}
        _, said = run_dbt_and_capture(["run-operation", "say"], expect_pass=False)
        assert "lake.events is the table of another writer" in said
        project.run_sql("drop table if exists lake.events")
        assert files == {path for path in outside.rglob("*") if path.is_file()}
