"""Tables that are removed, killed at every call: nobody reads a part of one, and the next table can be made in the place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hudi_engine.errors import StorageError, TableExistsError
from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.table.txn.owner import Owner, register, unregister
from hudi_engine.table.txn.swap import recover_swap, swap
from hudi_engine.table.txn.table_folder import REMOVER, delete_table
from hudi_engine.table.write.define.create_table import create_table

import tests.faults.mini_table as mini
from tests.faults.scenarios import killed
from tests.faults.test_rebuild_on_flat_store import NEW, OLD, make, names
from tests.helpers.s3_server import S3Server

KEPT = "notes/of/people.txt"
CALLS = 40


@pytest.fixture(params=["disk", "flat"])
def above(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A folder for tables."""
    if request.param == "disk":
        return str(tmp_path / "wh")
    server: S3Server = request.getfixturevalue("s3_server")
    return f"{server.new_bucket()}/wh"


def remove(storage: Storage) -> None:
    """Remove the table."""
    delete_table(storage, "orders")


def make_again(base: str, model: Storage) -> None:
    """Make another table in the place, with rows."""
    create_table(open_storage(base), TableConfig.load(model))
    mini.write(open_storage(base), {"a": {"new1": 1}, "b": {"new2": 2}, "c": {"new3": 3}})


@pytest.mark.parametrize("when", ["before", "torn", "after"])
def test_killed_at_any_call_it_is_whole_or_gone_and_another_can_be_made(
    when: str, above: str, model: Storage
) -> None:
    seen = set()
    for call in range(1, CALLS):
        base = f"{above}/{call}/orders"
        make(base, OLD, model)
        if not killed(open_storage(f"{above}/{call}"), remove, call, when):
            break
        is_there = open_storage(base).exists(PROPERTIES_PATH)
        seen.add(is_there)
        if is_there:
            assert mini.content(open_storage(base)) == OLD
            remove(open_storage(f"{above}/{call}"))
        make_again(base, model)
        assert mini.content(open_storage(base)) == NEW, call
        assert names(base) == ["orders"] and mini.leftovers(open_storage(base)) == [], call
        assert not open_storage(base).exists(REMOVER)
    assert False in seen and call < CALLS - 1


def half_removed(above: str, model: Storage, call: int) -> Storage:
    """A table whose removal was cut off."""
    make(f"{above}/orders", OLD, model)
    assert killed(open_storage(above), remove, call, "after")
    return open_storage(f"{above}/orders")


def test_the_next_to_look_at_the_names_clears_what_was_put_aside(tmp_path: Path, model: Storage) -> None:
    half_removed(str(tmp_path / "wh"), model, 1)
    (aside,) = (tmp_path / "wh").iterdir()
    assert aside.name.startswith(".orders.removed-")
    recover_swap(str(tmp_path / "wh" / "orders"))
    assert not list((tmp_path / "wh").iterdir())


def test_a_folder_that_cannot_be_put_aside_is_removed_where_it_is(
    tmp_path: Path, model: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = str(tmp_path / "wh" / "orders")
    make(base, OLD, model)

    def refused(*_: Any) -> None:
        raise PermissionError("Permission denied")

    above = open_storage(str(tmp_path / "wh"))
    monkeypatch.setattr(type(above), "rename", refused)
    assert killed(above, remove, 4, "after")
    make_again(base, model)
    assert mini.content(open_storage(base)) == NEW


def test_a_removal_that_goes_on_is_not_finished_by_another_and_nothing_is_made_there(
    s3_server: S3Server, model: Storage
) -> None:
    table = half_removed(f"{s3_server.new_bucket()}/wh", model, 3)
    owner = Owner.current()
    register(owner)
    table.replace(REMOVER, owner.to_json())
    before = {each.path for each in table.list("", recursive=True)}
    try:
        with pytest.raises(TableExistsError, match="but no readable Hudi table"):
            make_again(table.base, model)
    finally:
        unregister(owner)
    assert {each.path for each in table.list("", recursive=True)} == before


def test_a_folder_without_a_mark_that_its_table_was_being_removed_is_left_alone(
    above: str, model: Storage
) -> None:
    base = f"{above}/orders"
    open_storage(base).create(KEPT, b"1")
    for mark in (None, b"", b"{}"):
        if mark is not None:
            open_storage(base).replace(REMOVER, mark)
        with pytest.raises(TableExistsError, match="but no readable Hudi table"):
            make_again(base, model)
        assert open_storage(base).read(KEPT) == b"1"


def test_a_hidden_folder_without_files_does_not_hold_a_table_up(tmp_path: Path, model: Storage) -> None:
    base = tmp_path / "wh" / "own"
    (base / ".managed").mkdir(parents=True)
    make_again(str(base), model)
    assert mini.content(open_storage(str(base))) == NEW

    other = tmp_path / "wh" / "other"
    (other / ".managed" / "parquet").mkdir(parents=True)
    with pytest.raises(TableExistsError, match=r"holds 1 file\(s\) or folder\(s\) \(.managed\)"):
        make_again(str(other), model)


def test_plans_beside_other_files_are_left_alone(above: str, model: Storage) -> None:
    base = open_storage(f"{above}/orders")
    for path in (KEPT, ".hoodie/20260101093000000.clean.requested"):
        base.create(path, b"1")
    with pytest.raises(TableExistsError, match="but no readable Hudi table"):
        make_again(base.base, model)
    assert base.exists(".hoodie/20260101093000000.clean.requested")


def test_a_table_is_not_replaced_with_another_in_its_folder(above: str, model: Storage) -> None:
    base = f"{above}/orders"
    for path in (base, f"{base}/lines", f"{above}/.orders.build-1"):
        make(path, OLD, model)
    with pytest.raises(TableExistsError, match=r"lies another Hudi table, at \S+/orders/lines, whose rows"):
        swap(base, f"{above}/.orders.build-1")
    for path in (base, f"{base}/lines"):
        assert mini.content(open_storage(path)) == OLD


def test_a_table_whose_folder_cannot_be_looked_into_is_not_replaced(
    above: str, model: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, side = f"{above}/orders", f"{above}/.orders.build-1"
    for path in (base, side):
        make(path, OLD, model)

    def refused(*_: Any, **__: Any) -> None:
        raise PermissionError("Permission denied")

    with (
        monkeypatch.context() as patched,
        pytest.raises(StorageError, match="The old table is still in place"),
    ):
        patched.setattr(type(open_storage(above)), "list", refused)
        swap(base, side)
    assert mini.content(open_storage(base)) == OLD
