"""Tables in the folder of another table: none is built there, and one that lies there goes with no other name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt
from hudi_engine.spark.catalog import DirectoryCatalog

from tests.functional.names_on_disk import NamesOnDisk

pytestmark = pytest.mark.sampled


class TestTablesInTables(NamesOnDisk):
    def test_no_table_is_built_in_the_folder_of_another(self, project: Any, folder: Path) -> None:
        schema = folder.name
        run_dbt(["run"])
        told = f"in the folder of the Hudi table at {folder / 'orders'}, and would go with that one"
        words = ["--vars", f"{{root: {folder / 'orders' / 'v2'}, id: 7}}"]
        (result,) = run_dbt(["run", "--full-refresh", *words], expect_pass=False)
        assert told in result.message
        assert "  1 |" in self.rows(f"{schema}.orders") and not (folder / "orders" / "v2").exists()
        inside = f"create table {schema}.t using hudi location '{folder / 'orders' / 'id' / 't'}' as select 1 as id"
        self.do(inside, fails=told)
        self.do(f"drop table {schema}.orders")

    def nested(self, folder: Path, of: str, at: str = "inner") -> None:
        """Give a table a name that lies in the folder of another, as earlier versions let it be made."""
        self.do(f"create table {folder.name}.made using hudi as select 7 as id")
        (folder / of / at).mkdir()
        (folder / "made").rename(folder / of / at / "t")
        DirectoryCatalog(str(folder.parent)).save_pointer(folder.name, at, str(folder / of / at / "t"))

    def test_a_table_in_whose_folder_another_lies_stays_where_it_is(self, project: Any, folder: Path) -> None:
        schema = folder.name
        self.do(f"create table {schema}.outer using hudi as select 1 as id")
        self.nested(folder, "outer")
        told = f"is or holds the table {schema}.inner too, at"
        self.do(f"drop table {schema}.outer", fails=told)
        self.do(f"alter table {schema}.outer rename to {schema}.other", fails=told)
        assert "  1 |" in self.rows(f"{schema}.outer") and "  7 |" in self.rows(f"{schema}.inner")
        self.do(f"drop table {schema}.inner")
        self.do(f"drop table {schema}.outer")
        assert self.named(folder) == {}

    def test_a_schema_in_whose_tables_one_of_another_schema_lies_stays(
        self, project: Any, folder: Path
    ) -> None:
        catalog, schema = DirectoryCatalog(str(folder.parent)), folder.name
        self.do(f"create table {schema}.outer using hudi as select 1 as id")
        self.nested(folder, "outer")
        catalog.create_schema("other")
        catalog.save_pointer("other", "inner", str(folder / "outer" / "inner" / "t"))
        catalog.remove_pointer(schema, "inner")
        self.do(f"drop schema {schema} cascade", fails="is the table other.inner too")
        assert "  7 |" in self.rows("other.inner")
        self.do("drop schema other cascade")
        self.do(f"drop table {schema}.outer")

    def test_a_table_that_lies_in_the_former_folder_of_its_name_stays_when_that_changes(
        self, project: Any, folder: Path
    ) -> None:
        schema = folder.name
        self.do(f"create table {schema}.inner using hudi as select 1 as id")
        self.nested(folder, "inner")
        place = str(folder / "inner" / "inner" / "t")
        assert self.named(folder) == {"inner": place}
        told = self.do(f"alter table {schema}.inner rename to {schema}.renamed")
        assert "  7 |" in self.rows(f"{schema}.renamed")
        assert f"the files at {folder / 'inner'} stay" in told
        self.do(f"alter table {schema}.renamed rename to {schema}.Inner", fails="already exists")
        assert self.named(folder) == {"inner": str(folder / "inner"), "renamed": place}
        self.do(f"drop table {schema}.renamed")
        self.do(f"drop table {schema}.inner")
        assert self.named(folder) == {}

    def test_a_dropped_name_takes_its_table_and_the_one_around_it_that_it_hid(
        self, project: Any, folder: Path
    ) -> None:
        schema = folder.name
        self.do(f"create table {schema}.inner using hudi as select 1 as id")
        self.nested(folder, "inner")
        told = self.do(f"drop table {schema}.inner")
        assert f"the files at {folder / 'inner'}, which {schema}.inner did not show, are removed" in told
        assert self.named(folder) == {} and not (folder / "inner").exists()
