"""Tables whose folders have other names than Spark gives them: what renames them moves them, and no DROP takes another name's rows."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.storage.base import FileStatus
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.spark.catalog import DirectoryCatalog

from tests.functional.conftest import CATALOG

pytestmark = pytest.mark.sampled

DO = "{% macro do(statement) %}{% do run_query(statement) %}{% endmacro %}"


@pytest.mark.skipif(CATALOG != "directory", reason="a metastore says where a table lies")
class TestAFolderInUpperCase:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"orders.sql": "{{ config(materialized='table') }} select 1 as id"}

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"do.sql": DO}

    @pytest.fixture
    def folder(self, project: Any) -> Path:
        """The folder of a schema with one table, whose folder is spelled as another program has done it."""
        run_dbt(["run"])
        folder = Path(project.project_root) / "warehouse" / project.test_schema
        (folder / "orders").rename(folder / "Orders")
        return folder

    def do(self, statement: str, fails: str | None = None) -> None:
        """Run a statement in a session that is filled anew."""
        args = ["run-operation", "do", "--args", f"{{statement: '{statement}'}}"]
        _, told = run_dbt_and_capture(args, expect_pass=fails is None)
        assert fails is None or fails in " ".join(told.split())

    def rows(self, name: str) -> str:
        return run_dbt_and_capture(["show", "--quiet", "--inline", f"select id from {name}"])[1]

    def named(self, folder: Path) -> dict[str, str | None]:
        """The tables that the next process would show."""
        names = DirectoryCatalog(str(folder.parent)).names(folder.name)
        return {name.name: base and base.rpartition("/")[2] for name, base in names.items()}

    def test_it_moves_with_its_table_so_that_the_old_name_leads_nowhere(
        self, project: Any, folder: Path
    ) -> None:
        schema = folder.name
        self.do(f"alter table {schema}.orders rename to {schema}.bills")
        assert self.named(folder) == {"bills": "bills"}
        self.do(f"drop table if exists {schema}.orders")
        assert "  1 |" in self.rows(f"{schema}.bills")
        self.do(f"drop table {schema}.bills")
        assert self.named(folder) == {}

    @pytest.mark.parametrize("other", ["", "_other"])
    def test_what_another_name_shows_too_stays_until_that_has_gone(
        self, project: Any, folder: Path, other: str
    ) -> None:
        schema, second = folder.name, f"{folder.name}{other}"
        catalog = DirectoryCatalog(str(folder.parent))
        catalog.create_schema(second)
        catalog.save_pointer(second, "bills", str(folder / "Orders"))
        shown = f"is or holds the table {second}.bills too"
        self.do(f"drop table {schema}.orders", fails=shown)
        self.do(f"alter table {schema}.orders rename to {schema}.sales", fails=shown)
        if other:
            self.do(f"drop schema {schema} cascade", fails=f"is the table {second}.bills too")
        assert "  1 |" in self.rows(f"{second}.bills")

        self.do(f"drop table {second}.bills")
        assert (folder / "Orders" / PROPERTIES_PATH).is_file() and self.named(folder) == {"Orders": "Orders"}
        self.do(f"drop table {schema}.orders")
        assert self.named(folder) == {}

    def test_a_schema_goes_with_two_names_of_one_folder_in_it(self, project: Any, folder: Path) -> None:
        DirectoryCatalog(str(folder.parent)).save_pointer(folder.name, "bills", str(folder / "Orders"))
        self.do(f"drop schema {folder.name} cascade")
        assert not folder.exists()

    def test_a_schema_whose_folder_may_not_be_looked_at_keeps_no_table_from_being_renamed_or_dropped(
        self, project: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        schema, locked = folder.name, folder.parent / "locked"
        (locked / "orders").mkdir(parents=True)
        looked = LocalStorage.list

        def refused(storage: LocalStorage, path: str, *more: Any, **named: Any) -> list[FileStatus]:
            if f"{storage.base}/{path}".startswith(str(locked)):
                raise PermissionError(errno.EACCES, "Permission denied", str(locked))
            return looked(storage, path, *more, **named)

        monkeypatch.setattr(LocalStorage, "list", refused)
        self.do(f"alter table {schema}.orders rename to {schema}.bills")
        assert self.named(folder) == {"bills": "bills"}
        assert f"the names in {locked} are not looked at" in caplog.text
        self.do(f"drop table {schema}.bills")
        self.do(f"drop schema {schema} cascade")
        assert not folder.exists()
