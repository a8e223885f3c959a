"""Names whose tables get another place, or another name, killed on the way: what is dropped stays dropped, and nothing comes back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt
from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.storage.local import LocalStorage

from tests.functional.names_on_disk import NamesOnDisk

pytestmark = pytest.mark.sampled


class Killed(BaseException):
    """The process is gone."""


class TestNamesThatMove(NamesOnDisk):
    def killed(self, monkeypatch: pytest.MonkeyPatch, method: str, path: str, statement: str) -> None:
        """Run a statement and end it before the storage changes a path."""
        real = getattr(LocalStorage, method)
        hit = []

        def changed(storage: LocalStorage, at: str, *more: Any, **named: Any) -> Any:
            if hit or at.endswith(path):
                hit.append(at)
                raise Killed
            return real(storage, at, *more, **named)

        with monkeypatch.context() as patched:
            patched.setattr(LocalStorage, method, changed)
            try:
                self.do(statement, fails="")
            except BaseException:  # whatever dbt makes of it
                pass
        assert hit

    @pytest.mark.parametrize("after", ["drop table {}.t", "alter table {}.t rename to {}.u; drop table {}.u"])
    def test_a_table_that_moved_by_sql_leaves_nothing_that_has_its_name(
        self, project: Any, folder: Path, tmp_path: Path, after: str
    ) -> None:
        schema, outside = folder.name, tmp_path / "t"
        self.do(f"create table {schema}.t using hudi as select 1 as id")
        self.do(f"create or replace table {schema}.t using hudi location '{outside}' as select 7 as id")
        assert self.named(folder) == {"t": str(outside)} and not (folder / "t").exists()
        for statement in after.split(";"):
            self.do(statement.format(*[schema] * 2))
        assert self.named(folder) == {} and not outside.exists()

    def test_a_table_that_moved_by_its_model_is_gone_when_it_is_dropped(
        self, project: Any, folder: Path, tmp_path: Path
    ) -> None:
        run_dbt(["run"])
        run_dbt(["run", "--full-refresh", "--vars", f"{{root: {tmp_path}, id: 7}}"])
        assert self.named(folder) == {"orders": str(tmp_path / "orders")}
        assert not (folder / "orders").exists() and "  7 |" in self.rows(f"{folder.name}.orders")
        self.do(f"drop table {folder.name}.orders")
        assert self.named(folder) == {}

    def test_a_table_that_moves_out_and_back_leaves_the_files_of_its_location(
        self, project: Any, folder: Path, tmp_path: Path
    ) -> None:
        schema, outside = folder.name, tmp_path / "t"
        self.do(f"create table {schema}.t using hudi location '{outside}' as select 1 as id")
        self.do(f"create or replace table {schema}.t using hudi as select 7 as id")
        assert self.named(folder) == {"t": str(folder / "t")} and (outside / PROPERTIES_PATH).is_file()
        self.do(f"drop table {schema}.t")

    @pytest.mark.parametrize(("method", "path"), [("replace", "t.table.json"), ("rename", "t")])
    @pytest.mark.parametrize("after", ["drop table {}.t", "alter table {}.t rename to {}.u; drop table {}.u"])
    def test_killed_while_it_moves_it_is_old_or_new_and_what_is_dropped_stays_so(
        self,
        project: Any,
        folder: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        method: str,
        path: str,
        after: str,
    ) -> None:
        schema, outside = folder.name, tmp_path / "t"
        self.do(f"create table {schema}.t using hudi as select 1 as id")
        moves = f"create or replace table {schema}.t using hudi location '{outside}' as select 7 as id"
        self.killed(monkeypatch, method, path, moves)
        is_new = (folder / "t.table.json").is_file()
        assert f"  {7 if is_new else 1} |" in self.rows(f"{schema}.t")
        assert (folder / "t").is_dir()
        for statement in after.split(";"):
            self.do(statement.format(*[schema] * 2))
        assert self.named(folder) == {}

    def test_rename_that_was_cut_off_leaves_two_names(
        self, project: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        schema, outside = folder.name, tmp_path / "t"
        self.do(f"create table {schema}.t using hudi location '{outside}' as select 1 as id")
        rename = f"alter table {schema}.t rename to {schema}.u"
        self.killed(monkeypatch, "delete", "/t.table.json", rename)
        assert self.named(folder) == {"t": str(outside), "u": str(outside)}
        self.do(rename, fails=f"{schema}.u already exists; drop it first")
        self.do(f"drop table {schema}.t")
        assert self.named(folder) == {"u": str(outside)} and "  1 |" in self.rows(f"{schema}.u")

        self.do(f"create table {schema}.t using hudi as select 2 as id")
        self.do(rename, fails=f"{schema}.u already exists; drop it first")
        self.do(f"drop table {schema}.t")
        self.killed(monkeypatch, "delete", "/u.table.json", f"alter table {schema}.u rename to {schema}.t")
        self.do(f"drop table {schema}.u")
        assert self.named(folder) == {"t": str(outside)} and "  1 |" in self.rows(f"{schema}.t")
        self.do(f"drop table {schema}.t")

    def test_a_drop_that_was_cut_off_leaves_room_for_the_next_table(
        self, project: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        create = f"create table {folder.name}.t using hudi as select 1 as id"
        self.do(create)
        self.killed(monkeypatch, "delete_tree", "", f"drop table {folder.name}.t")
        assert self.named(folder) == {}
        self.do(create)
        assert "  1 |" in self.rows(f"{folder.name}.t") and not list(folder.glob(".t.*"))
        self.do(f"drop table {folder.name}.t")

    def test_a_first_build_directly_below_the_root_that_was_cut_off_is_done_again(
        self, project: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        own = folder.parent / "own"
        create = f"create table {folder.name}.t using hudi location '{own}' as select 1 as id"
        own.mkdir()
        self.do("select 1")
        assert (own / ".managed").is_dir()
        self.do(create)
        assert "  1 |" in self.rows(f"{folder.name}.t")
        self.do(f"drop table {folder.name}.t")
        assert not own.exists()

    @pytest.mark.parametrize("new", ["Inside", "inside"])
    @pytest.mark.parametrize("where", ["", "location '{}'"])
    def test_a_table_is_not_renamed_to_its_own_name_whatever_its_case(
        self, project: Any, folder: Path, tmp_path: Path, where: str, new: str
    ) -> None:
        schema = folder.name
        self.do(f"create table {schema}.inside using hudi {where.format(tmp_path / 't')} as select 1 as id")
        before = self.named(folder)
        self.do(f"alter table {schema}.inside rename to {schema}.{new}", fails="that is the name it has")
        assert self.named(folder) == before and "  1 |" in self.rows(f"{schema}.inside")
        self.do(f"drop table {schema}.inside")
