from __future__ import annotations

import errno

import pytest
from hudi_engine.errors import ConfigError, CorruptTableError
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.spark.catalog.directory import DirectoryCatalog, all_pointers
from hudi_engine.spark.catalog.sql_text import TableName

from tests.helpers.handmade import HandmadeTable
from tests.unit.publish.conftest import SCHEMA, rows


@pytest.fixture
def catalog(tmp_path):
    """A warehouse with the empty schema ``sales``."""
    found = DirectoryCatalog(str(tmp_path / "warehouse"))
    found.create_schema("sales")
    return found


def test_a_warehouse_that_does_not_exist_has_no_schemas(tmp_path):
    assert DirectoryCatalog(str(tmp_path / "none")).schemas() == []


def test_schemas_are_the_folders_that_are_not_hidden(catalog, tmp_path):
    catalog.create_schema("sales")
    catalog.create_schema("x y")
    (tmp_path / "warehouse" / ".tmp").mkdir()
    assert catalog.schemas() == ["sales", "x y"]


def test_a_table_in_its_folder_is_found_and_a_folder_without_one_is_not(catalog, tmp_path):
    assert catalog.table_base("sales", "orders") is None
    HandmadeTable(tmp_path / "warehouse" / "sales" / "orders", SCHEMA)
    assert catalog.table_base("sales", "orders") == f"{catalog.root}/sales/orders"


def test_a_table_is_found_by_its_name_in_capitals_and_one_in_a_folder_with_capitals_by_that(
    catalog, tmp_path
):
    for name in ("orders", "Events"):
        HandmadeTable(tmp_path / "warehouse" / "sales" / name, SCHEMA)
    assert catalog.table_base("sales", "Orders") == f"{catalog.root}/sales/orders"
    assert catalog.table_base("sales", "Events") == f"{catalog.root}/sales/Events"


def test_a_pointer_leads_to_a_table_elsewhere_whatever_the_case_of_its_name(catalog, tmp_path):
    HandmadeTable(tmp_path / "elsewhere", SCHEMA)
    catalog.save_pointer("sales", "Orders", str(tmp_path / "elsewhere"))
    assert catalog.table_base("sales", "orders") == str(tmp_path / "elsewhere")
    catalog.remove_pointer("sales", "orders")
    catalog.remove_pointer("sales", "orders")
    assert catalog.table_base("sales", "orders") is None


def test_definition_files_do_not_say_how_to_get_in_to_a_store(catalog, tmp_path):
    catalog.save_pointer("sales", "orders", "s3://key:verysecret@lake/orders?endpoint=http://here:9")
    catalog.save_source("sales", "events", "s3://key:verysecret@lake/events")
    bodies = [path.read_text() for path in (tmp_path / "warehouse" / "sales").glob("*.json")]
    assert len(bodies) == 2 and all('"s3://lake/' in body for body in bodies)


def test_a_pointer_to_nowhere_is_no_table(catalog, tmp_path):
    catalog.save_pointer("sales", "orders", str(tmp_path / "gone"))
    assert catalog.table_base("sales", "orders") is None


def test_a_table_of_another_writer_is_remembered_until_its_schema_goes(catalog, tmp_path):
    note = tmp_path / "warehouse" / "sales" / "events.source.json"
    catalog.save_source("sales", "Events", "s3a://lake/events")
    written = note.stat().st_mtime_ns
    catalog.save_source("sales", "Events", "s3a://lake/events")
    assert note.stat().st_mtime_ns == written
    assert catalog.table_base("sales", "events") is None
    catalog.drop_schema("sales")
    assert not note.exists()


def test_a_damaged_pointer_is_named(catalog, tmp_path):
    (tmp_path / "warehouse" / "sales" / "orders.table.json").write_text("{")
    with pytest.raises(CorruptTableError, match=r"orders\.table\.json"):
        catalog.table_base("sales", "orders")


def test_dropping_a_schema_removes_definitions_and_refuses_tables(catalog, tmp_path):
    catalog.save_pointer("sales", "orders", "/elsewhere")
    table = HandmadeTable(tmp_path / "warehouse" / "sales" / "t", SCHEMA)
    with pytest.raises(ConfigError, match="still holds files"):
        catalog.drop_schema("sales")
    table.storage.delete(".hoodie/hoodie.properties")
    catalog.drop_schema("sales")
    assert catalog.schemas() == []
    catalog.drop_schema("sales")


@pytest.mark.parametrize("name", ["", "..", ".hidden", "a/b", "/abs", "a\0b"])
def test_names_that_cannot_be_folders_are_refused(catalog, name):
    with pytest.raises(ConfigError):
        catalog.create_schema(name)
    with pytest.raises(ConfigError):
        catalog.table_base("sales", name)
    with pytest.raises(ConfigError):
        catalog.save_pointer("sales", name, "/x")


@pytest.mark.parametrize("name", ["50% off", "ünï", "a?b#c", "x.table.json"])
def test_odd_names_have_a_pointer_of_their_own(catalog, tmp_path, name):
    HandmadeTable(tmp_path / "elsewhere", SCHEMA)
    catalog.save_pointer("sales", name, str(tmp_path / "elsewhere"))
    assert catalog.table_base("sales", name) == str(tmp_path / "elsewhere")


def test_a_place_that_cannot_be_looked_at_keeps_no_other_table_from_being_found(
    catalog, tmp_path, monkeypatch
):
    for name in ("orders", "secret"):
        table = HandmadeTable(tmp_path / "warehouse" / "sales" / name, SCHEMA)
        table.commit({"dt=x": {"f-0": rows(1)}})
    catalog.save_pointer("sales", "far", "s5://nowhere/far")
    catalog.save_pointer("sales", "refused", str(tmp_path / "refused"))
    looked = LocalStorage.stat

    def refused(self, path):
        where = f"{self.base}/{path}"
        if "/secret/" in where or "/refused/" in where:
            raise PermissionError(errno.EACCES, "Permission denied", where)
        return looked(self, path)

    monkeypatch.setattr(LocalStorage, "stat", refused)
    assert [name.name for name in catalog.names("sales")] == ["orders"]
    look = catalog._look([])
    assert len(catalog._places("sales", catalog._storage.list("sales"), look)) == 1
    assert sorted(text.split(" ")[0] for text in look.warnings) == [
        "sales.far",
        "sales.refused",
        "sales.secret",
    ]


def test_pointers_that_may_not_be_read_hide_no_others_and_are_told_of(catalog, tmp_path, monkeypatch, caplog):
    for schema, table in (("sales", "orders"), ("sales", "secret"), ("locked", "orders")):
        catalog.create_schema(schema)
        catalog.save_pointer(schema, table, str(tmp_path / table))

    def refusing(method):
        real = getattr(LocalStorage, method)

        def call(self, path, *more):
            if path.startswith(("locked", "sales/secret")):
                raise PermissionError(errno.EACCES, "Permission denied", path)
            return real(self, path, *more)

        monkeypatch.setattr(LocalStorage, method, call)

    refusing("list")
    refusing("read")
    assert all_pointers(catalog) == {TableName("sales", "orders"): str(tmp_path / "orders")}
    assert f"the names in {catalog.root}/locked are not looked at" in caplog.text
    assert f"where {catalog.root}/sales/secret.table.json leads is not looked at" in caplog.text
