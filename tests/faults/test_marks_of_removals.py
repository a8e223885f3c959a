"""Removals that did not come to the properties, in a store: the table lives on, and nothing takes the mark for its end."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import pytest
from hudi_engine.errors import TableExistsError
from hudi_engine.format.config.properties_file import BACKUP_PATH, PROPERTIES_PATH
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.storage.objects import ObjectStorage
from hudi_engine.table.txn.owner import Owner
from hudi_engine.table.txn.swap import (
    mark_builder,
    move_table,
    recover_swap,
    side_folder,
    swap,
    table_storage,
)
from hudi_engine.table.txn.table_folder import REMOVER, delete_table
from hudi_engine.table.write.define.create_table import create_table

import tests.faults.mini_table as mini
from tests.faults.test_rebuild_on_flat_store import (
    MUTATIONS,
    NEW,
    OLD,
    Killed,
    kill_at,
    killed_swap,
    make,
    names,
)
from tests.helpers.s3_server import S3Server


@pytest.fixture
def base(s3_server: S3Server, model: Storage) -> str:
    """A table with the mark of a removal that was killed right after it."""
    return marked(f"{s3_server.new_bucket()}/wh/orders", model)


def marked(base: str, model: Storage) -> str:
    """Make a table that has the mark of a process that has ended."""
    make(base, OLD, model).replace(REMOVER, Owner.current().to_json())
    return base


def above(base: str) -> Storage:
    """The folder above a table."""
    return open_storage(base.rpartition("/")[0])


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("refused", [PROPERTIES_PATH, BACKUP_PATH])
def test_a_removal_that_is_refused_leaves_its_mark_where_the_table_has_gone_only(
    refused: str, is_done: bool, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ObjectStorage.remove

    def remove(storage: ObjectStorage, path: str) -> None:
        if not (path.endswith(refused) and not is_done):
            real(storage, path)
        if path.endswith(refused):
            raise PermissionError(errno.EACCES, "AccessDenied", path)

    with monkeypatch.context() as patched:
        patched.setattr(ObjectStorage, "remove", remove)
        with pytest.raises(PermissionError):
            delete_table(above(base), "orders")
    table = open_storage(base)
    is_there = table.exists(PROPERTIES_PATH)
    assert is_there == (not is_done or refused == BACKUP_PATH)
    assert table.exists(REMOVER) is not is_there
    assert not is_there or mini.content(table) == OLD


def test_a_table_with_a_dead_mark_is_built_anew_killed_at_any_call(
    s3_server: S3Server, model: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    for number in range(1, 100):
        base = marked(f"{s3_server.new_bucket()}/wh/orders", model)
        side = side_folder(base)
        mark_builder(make(side, NEW, model))
        killed = killed_swap(monkeypatch, base, side, number)
        if killed is None:
            break
        switched, last = killed
        seen.append(switched)
        assert mini.content(table_storage(base)) == (NEW if switched else OLD), last
        recover_swap(base)
        with pytest.raises(TableExistsError):
            create_table(open_storage(base), TableConfig.load(model))
    assert {*seen} == {True, False}
    assert names(base) == ["orders"] and not open_storage(base).exists(REMOVER)


def test_a_new_table_in_the_place_of_a_removed_one_stays_when_its_move_was_killed(
    base: str, model: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_storage(base).remove(PROPERTIES_PATH)
    side = side_folder(base)
    mark_builder(make(side, NEW, model))
    with monkeypatch.context() as patched:
        real = ObjectStorage.list

        def listed(storage: ObjectStorage, *more: Any, **named: Any) -> Any:
            if open_storage(base.rpartition("/")[0]).exists(".orders.swap"):
                raise Killed
            return real(storage, *more, **named)

        patched.setattr(ObjectStorage, "list", listed)
        with pytest.raises(Killed):
            swap(base, side)
    assert mini.content(table_storage(base)) == NEW
    assert names(base) == ["orders"]


@pytest.mark.parametrize("method", MUTATIONS)
def test_nobody_takes_the_copy_of_a_table_with_a_dead_mark_for_a_removed_one(
    method: str, base: str, model: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    bills = f"{base.rpartition('/')[0]}/bills"
    real = getattr(ObjectStorage, method)
    refused = []

    def then(storage: ObjectStorage, *more: Any) -> Any:
        done = real(storage, *more)
        if open_storage(base).exists(PROPERTIES_PATH) and open_storage(bills).exists(""):
            with pytest.raises(TableExistsError):
                create_table(open_storage(bills), TableConfig.load(model))
            refused.append(more[0])
        return done

    monkeypatch.setattr(ObjectStorage, method, then)
    move_table(above(base), "orders", "bills", mini.options())
    assert names(base) == ["bills"] and mini.content(open_storage(bills)) == OLD
    assert not open_storage(bills).exists(REMOVER)
    assert refused or method not in ("create", "copy")


def by_backup(base: str) -> None:
    """Leave a table as Hudi has it while it changes the properties."""
    table = open_storage(base)
    table.create(BACKUP_PATH, table.read(PROPERTIES_PATH))
    table.remove(PROPERTIES_PATH)


@pytest.mark.parametrize("look", [recover_swap, table_storage])
def test_a_table_whose_properties_are_being_changed_is_not_a_removed_one(
    look: Callable[[str], object], base: str, model: Storage
) -> None:
    by_backup(base)
    look(base)
    with pytest.raises(TableExistsError):
        create_table(open_storage(base), TableConfig.load(model))
    assert mini.content(open_storage(base)) == OLD


def test_a_removed_table_leaves_no_backup_of_its_properties_that_is_read(
    s3_server: S3Server, model: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, 100):
        base = f"{s3_server.new_bucket()}/wh/orders"
        table = make(base, OLD, model)
        table.create(BACKUP_PATH, table.read(PROPERTIES_PATH))
        with monkeypatch.context() as patched:
            calls = kill_at(patched, number)
            try:
                delete_table(above(base), "orders")
            except Killed:
                pass
            else:
                break
        if table.exists(PROPERTIES_PATH) or table.exists(BACKUP_PATH):
            assert mini.content(table) == OLD, calls[-1]
        else:
            create_table(table, TableConfig.load(model))
            assert mini.content(table) == {}, calls[-1]
    assert number > 3
