"""A rebuild with another definition on a store that copies instead of renaming, killed at every call."""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hudi_engine.errors import StorageError, WriteConflictError
from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.storage.objects import ObjectStorage
from hudi_engine.table.txn import swap as swaps
from hudi_engine.table.txn.owner import Owner, register, unregister
from hudi_engine.table.txn.swap import (
    is_switched,
    mark_builder,
    recover_swap,
    side_folder,
    swap,
    swap_under_way,
    table_storage,
)
from hudi_engine.table.txn.table_folder import place_of

import tests.faults.mini_table as mini
from tests.helpers.s3_server import S3Server, running_s3_server

OLD = {("a", "old1"): 1, ("b", "old2"): 2}
NEW = {("a", "new1"): 1, ("b", "new2"): 2, ("c", "new3"): 3}
MARK = ".hoodie/.rebuild-owner"
MUTATIONS = ("create", "replace", "copy", "delete", "remove", "delete_tree")


class Killed(BaseException):
    """The process is gone."""


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with running_s3_server() as server:
        yield server


def make(base: str, content: mini.Content, model: Storage) -> Storage:
    """A table with some rows."""
    storage = open_storage(base)
    storage.create(PROPERTIES_PATH, model.read(PROPERTIES_PATH))
    rows: dict[str, dict[str, int]] = {}
    for (partition, key), value in content.items():
        rows.setdefault(partition, {})[key] = value
    mini.write(storage, rows)
    return storage


@pytest.fixture
def tables(s3: S3Server, tmp_path) -> tuple[str, str]:
    """An old table at a base path, and its successor built beside it."""
    model = mini.create_table(str(tmp_path))
    base = f"{s3.new_bucket()}/wh/orders"
    make(base, OLD, model)
    side = side_folder(base)
    mark_builder(make(side, NEW, model))
    return base, side


def seen(base: str) -> mini.Content:
    """What somebody reads who opens the table."""
    return mini.content(table_storage(base))


def names(base: str) -> list[str]:
    """What is in the folder above the table."""
    return sorted({each.path.split("/")[0] for each in open_storage(base.rpartition("/")[0]).list("", True)})


def builder_is_gone(side: str) -> None:
    """Let the mark in a side folder, if it is there still, be that of a process that has ended."""
    storage = open_storage(side)
    if storage.exists(MARK):
        storage.replace(MARK, Owner.current().to_json().replace(b'"started": "', b'"started": "0'))


def kill_at(monkeypatch: pytest.MonkeyPatch, number: int) -> list[str]:
    """Let the process end at its n-th change of the store; returns the changes."""
    calls: list[str] = []
    for method in MUTATIONS:
        real = getattr(ObjectStorage, method)

        def changed(storage, path, *more, _real=real, _method=method):
            calls.append(f"{_method} {path}")
            if len(calls) >= number:
                raise Killed
            return _real(storage, path, *more)

        monkeypatch.setattr(ObjectStorage, method, changed)
    return calls


def test_after_a_rebuild_the_new_table_is_there_and_nothing_else(tables: tuple[str, str]) -> None:
    base, side = tables
    swap(base, side)
    assert mini.content(open_storage(base)) == seen(base) == NEW
    assert names(base) == ["orders"]
    assert not open_storage(base).exists(MARK)


def killed_swap(
    monkeypatch: pytest.MonkeyPatch, base: str, side: str, number: int
) -> tuple[bool, str] | None:
    """Kill a swap at a call; return whether the new table counts by then, and the call. None where it has ended before."""
    with monkeypatch.context() as patched:
        calls = kill_at(patched, number)
        try:
            swap(base, side)
        except Killed:
            return "create .orders.swap" in calls[:-1], calls[-1]
    return None


def test_killed_at_any_call_readers_see_one_of_the_tables_whole_and_the_next_open_finishes(
    s3: S3Server, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = mini.create_table(str(tmp_path))
    steps = 0
    for number in range(2, 200, 7):
        base = f"{s3.new_bucket()}/kill-{number}/orders"
        make(base, OLD, model)
        side = side_folder(base)
        mark_builder(make(side, NEW, model))
        killed = killed_swap(monkeypatch, base, side, number)
        if killed is None:
            break
        switched, last = killed
        steps += 1
        where = f"killed at call {number}: {last}"
        found = seen(base)
        assert found == (NEW if switched else OLD), where
        assert mini.content(open_storage(base)) == found, where
        if found == OLD:
            swap(base, side)
        builder_is_gone(side)
        recover_swap(base)
        assert names(base) == ["orders"] and seen(base) == NEW, where
    assert steps > 3


@pytest.mark.parametrize("after", ["create .orders.swap", "copy "])
def test_a_table_removed_after_its_swap_was_killed_does_not_come_back(
    after: str, tables: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    base, side = tables
    with monkeypatch.context() as patched:
        real = ObjectStorage.remove

        def remove(storage, path):
            if any(call.startswith(after) for call in calls[:-1]):
                raise Killed
            real(storage, path)

        calls = kill_at(patched, 10_000)
        patched.setattr(ObjectStorage, "remove", remove)
        with pytest.raises(Killed):
            swap(base, side)
    assert {".orders.swap", "orders"} < {*names(base)}
    open_storage(base.rpartition("/")[0]).delete_tree("orders")

    assert not table_storage(base).exists(PROPERTIES_PATH)
    assert names(base) == []


def test_while_another_process_moves_the_new_table_readers_follow_the_record_and_nobody_writes(
    tables: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    base, side = tables
    looks: list[mini.Content] = []
    real = ObjectStorage.copy

    def copy(storage, source, target):
        looks.append(seen(base))
        with pytest.raises(WriteConflictError, match="another process is putting a rebuilt table"):
            recover_swap(base)
        with pytest.raises(StorageError, match="nothing can be written now: a rebuild is putting"):
            table_storage(base).create("x", b"")
        real(storage, source, target)

    monkeypatch.setattr(ObjectStorage, "copy", copy)
    swap(base, side)
    assert len(looks) > 5 and all(look == NEW for look in looks)
    assert mini.content(open_storage(base)) == NEW


def test_a_storage_error_before_the_switch_leaves_the_old_table_and_after_it_the_new(
    tables: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    base, side = tables

    def fails(*_):
        raise OSError("no route")

    for method, expected in (("replace", OLD), ("copy", NEW)):
        with monkeypatch.context() as patched:
            patched.setattr(ObjectStorage, method, fails)
            with pytest.raises(StorageError, match=r"no route.*'\.orders\.swap'"):
                swap(base, side)
        assert is_switched(base, side) == (expected == NEW)
        assert seen(base) == expected


def killed_at(monkeypatch: pytest.MonkeyPatch, base: str, side: str, method: str, path: str) -> None:
    """Let the process end at the first change of a kind in a swap."""
    with monkeypatch.context() as patched:
        real = getattr(ObjectStorage, method)

        def changed(storage, changing, *more):
            if changing == path:
                raise Killed
            return real(storage, changing, *more)

        patched.setattr(ObjectStorage, method, changed)
        with pytest.raises(Killed):
            swap(base, side)


def record_of(base: str) -> tuple[Storage, bytes]:
    """The folder above a table, and the record in it."""
    parent = open_storage(base.rpartition("/")[0])
    return parent, parent.read(".orders.swap")


def test_what_is_committed_after_the_last_file_was_moved_stays_when_the_swap_is_finished(
    tables: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    base, side = tables
    killed_at(monkeypatch, base, side, "remove", ".orders.swap")
    mini.write(open_storage(base), {"a": {"later": 9}})

    assert seen(base) == {**NEW, ("a", "later"): 9}
    assert names(base) == ["orders"]


def test_of_two_that_finish_a_swap_one_does_and_the_other_waits_for_it(
    tables: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    base, side = tables
    killed_at(monkeypatch, base, side, "copy", f"{side.rpartition('/')[2]}/{PROPERTIES_PATH}")
    parent, dead = record_of(base)
    alive = Owner.current()
    register(alive)
    real = ObjectStorage.take_over

    def another_is_faster(storage, path, before, data):
        real(storage, path, before, alive.to_json(new=side.rpartition("/")[2]))
        real(storage, path, before, data)

    try:
        with monkeypatch.context() as patched:
            patched.setattr(ObjectStorage, "take_over", another_is_faster)
            assert seen(base) == NEW
        assert not open_storage(base).exists(PROPERTIES_PATH), "the other one is at it"
        with pytest.raises(WriteConflictError, match="another process"):
            recover_swap(base)
    finally:
        unregister(alive)
    assert parent.read(".orders.swap") != dead
    assert seen(base) == mini.content(open_storage(base)) == NEW
    assert names(base) == ["orders"]


def test_whoever_wakes_when_another_has_finished_the_swap_deletes_nothing(
    tables: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    base, side = tables
    real, slept, place = ObjectStorage.list, [], place_of(base)
    assert place is not None

    def sleep_in_the_listing_of_the_old_table(storage, path, *more, **named):
        found = real(storage, path, *more, **named)
        if path == "orders" and not slept and swap_under_way(place) is not None:
            slept.append(path)
            with monkeypatch.context() as patched:
                patched.setattr(swaps.SwapRecord, "is_at_work", lambda *_: False)
                assert seen(base) == NEW
            mini.write(open_storage(base), {"a": {"later": 9}})
        return found

    monkeypatch.setattr(ObjectStorage, "list", sleep_in_the_listing_of_the_old_table)
    swap(base, side)
    assert seen(base) == {**NEW, ("a", "later"): 9}


def test_beats_of_another_machine_are_judged_by_the_clock_of_the_store(
    tables: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    base, side = tables
    parent = open_storage(base.rpartition("/")[0])
    owner = Owner.current()
    far = replace(owner, process=replace(owner.process, machine="another/1"))
    open_storage(base).replace(MARK, b"{}")
    parent.replace(".orders.swap", far.to_json(new=side.rpartition("/")[2]))
    monkeypatch.setattr("time.time", lambda real=time.time: real() + 24 * 3600)
    assert seen(base) == NEW and mini.content(open_storage(base)) == OLD
    with pytest.raises(WriteConflictError, match="another process"):
        recover_swap(base)


def test_a_swap_that_cannot_be_finished_is_named(
    tables: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    base, side = tables
    killed_at(monkeypatch, base, side, "copy", f"{side.rpartition('/')[2]}/{PROPERTIES_PATH}")

    def fails(*_):
        raise FileNotFoundError("gone")

    with monkeypatch.context() as patched:
        patched.setattr(ObjectStorage, "copy", fails)
        with pytest.raises(StorageError, match="was cut off cannot be finished now"):
            table_storage(base)
    assert seen(base) == NEW


@pytest.mark.parametrize("body", [b"", b"{}", b'{"new": "../elsewhere"}', b'{"new": ".other.rebuild-1"}'])
def test_a_damaged_record_is_refused_by_name(body: bytes, tables: tuple[str, str]) -> None:
    base, _ = tables
    open_storage(base.rpartition("/")[0]).replace(".orders.swap", body)
    with pytest.raises(Exception, match=r"\.orders\.swap.*delete the record"):
        table_storage(base)


def test_whoever_may_not_look_beside_a_table_reads_it(
    tables: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    base, _ = tables
    stat = ObjectStorage.stat

    def allowed(self: ObjectStorage, path: str) -> object:
        if self.base != base:
            raise PermissionError(errno.EACCES, "Access Denied", path)
        return stat(self, path)

    monkeypatch.setattr(ObjectStorage, "stat", allowed)
    assert seen(base) == OLD


def test_what_a_dead_builder_left_is_removed(tables: tuple[str, str]) -> None:
    base, side = tables
    builder_is_gone(side)
    recover_swap(base)
    assert names(base) == ["orders"] and seen(base) == OLD
    assert TableConfig.load(open_storage(base)).name == "mini"
