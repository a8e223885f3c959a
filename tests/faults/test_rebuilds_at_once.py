"""Two that replace one table at once on a store that copies: one of both tables is there in the end, whole, and the other is told."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hudi_engine.errors import HudiError, WriteConflictError
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.storage.objects import ObjectStorage
from hudi_engine.spark.catalog import DirectoryCatalog, TableName
from hudi_engine.spark.catalog.rebuilds import Settling
from hudi_engine.spark.front.rebuild import _swap_unless_overtaken
from hudi_engine.table.clone import _put
from hudi_engine.table.state import TableState
from hudi_engine.table.txn import lock
from hudi_engine.table.txn import swap as swaps
from hudi_engine.table.txn.lock import LOCK_PATH, TableLock
from hudi_engine.table.txn.swap import is_switched, mark_builder, recover_swap, side_folder, swap

import tests.faults.mini_table as mini
from tests.faults.test_rebuild_on_flat_store import (
    NEW,
    OLD,
    Killed,
    builder_is_gone,
    kill_at,
    make,
    names,
    seen,
)
from tests.helpers.s3_server import S3Server

OTHER = {("a", "other1"): 7, ("d", "other2"): 8}
LATER = {("a", "later"): 9}
SAME_NAME = ("a/.file-1_20240101000000000.log.2_1-0-1", "a/.hoodie_partition_metadata")
"""Files whose names and lengths two clones of one table may share, and not what is in them."""


@pytest.fixture
def base(s3_server: S3Server, model: Storage) -> str:
    """A table with some rows."""
    base = f"{s3_server.new_bucket()}/wh/orders"
    make(base, OLD, model)
    return base


def built(base: str, content: mini.Content, model: Storage) -> str:
    """A successor beside the table."""
    side = side_folder(base)
    mark_builder(make(side, content, model))
    return side


Put = Callable[[str], None]


@pytest.fixture
def at_first(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str, Callable[[], None]], None]:
    """Do something right before the first change of a kind that a path begins with."""

    def do(method: str, start: str, action: Callable[[], None]) -> None:
        real, done = getattr(ObjectStorage, method), []

        def changed(storage: ObjectStorage, path: str, *more: Any) -> Any:
            if path.startswith(start) and not done:
                done.append(path)
                action()
            return real(storage, path, *more)

        monkeypatch.setattr(ObjectStorage, method, changed)

    return do


class Elsewhere:
    """Work of another process, whose locks are not those of this one."""

    def __init__(self, base: str, work: Put) -> None:
        self.error: HudiError | None = None
        self._thread = threading.Thread(target=self._run, args=(base, work))
        self.waits = threading.Event()

    def begin(self, patch: pytest.MonkeyPatch) -> None:
        """Go on as soon as it has ended or waits for the lock."""
        real = TableLock._acquire_file

        def acquire(taken: TableLock, deadline: float) -> None:
            self.waits.set()
            real(taken, deadline)

        patch.setattr(TableLock, "_acquire_file", acquire)
        lock._locals.clear()
        self._thread.start()
        self.waits.wait(60)

    def end(self) -> None:
        self._thread.join(60)

    def _run(self, base: str, work: Put) -> None:
        try:
            work(base)
        except HudiError as error:
            self.error = error
        self.waits.set()


@pytest.fixture
def replaced(base: str, model: Storage) -> Iterator[Put]:
    """A rebuild of the table that nothing holds up."""
    looked, side = TableState.load(open_storage(base)), built(base, NEW, model)
    yield lambda base: _swap_unless_overtaken(looked, mini.options(), base, side)


@pytest.mark.parametrize("moment", [("create", ".orders.swap"), ("copy", ".orders.rebuild-")])
def test_of_two_rebuilds_at_once_one_is_a_conflict_and_the_other_ones_table_is_whole(
    moment: tuple[str, str],
    base: str,
    model: Storage,
    replaced: Put,
    at_first: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked, side = TableState.load(open_storage(base)), built(base, OTHER, model)
    other = Elsewhere(base, lambda base: _swap_unless_overtaken(looked, mini.options(), base, side))
    at_first(*moment, lambda: other.begin(monkeypatch))
    replaced(base)
    other.end()
    assert isinstance(other.error, WriteConflictError), other.error
    assert mini.content(open_storage(base)) == seen(base) == NEW
    assert not is_switched(base, side) and not open_storage(base).exists(LOCK_PATH)


def test_a_clone_takes_no_place_into_which_another_process_is_moving_a_table(
    base: str, model: Storage, replaced: Put, at_first: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    side = built(base, OTHER, model)
    other = Elsewhere(base, lambda base: _put(open_storage(base), mini.options(), True, base, side))
    at_first("copy", ".orders.rebuild-", lambda: other.begin(monkeypatch))
    replaced(base)
    other.end()
    assert isinstance(other.error, WriteConflictError), other.error
    assert mini.content(open_storage(base)) == seen(base) == NEW


def test_the_record_of_a_swap_is_not_written_over_that_of_another(
    base: str, model: Storage, at_first: Callable[..., None]
) -> None:
    side, others = built(base, NEW, model), built(base, OTHER, model)

    def put() -> None:
        with pytest.raises(WriteConflictError, match="another process is putting a rebuilt table"):
            swap(base, others)

    at_first("copy", ".orders.rebuild-", put)
    swap(base, side)
    assert mini.content(open_storage(base)) == seen(base) == NEW


def test_whoever_holds_the_lock_of_a_table_that_moves_holds_it_until_the_end(
    base: str, replaced: Put, at_first: Callable[..., None]
) -> None:
    held: list[bool] = []
    at_first("copy", ".orders.rebuild-", lambda: held.append(open_storage(base).exists(LOCK_PATH)))
    replaced(base)
    assert held == [True] and names(base) == ["orders"]


def test_a_table_that_was_removed_while_its_successor_was_built_is_built_anew(
    base: str, replaced: Put
) -> None:
    open_storage(base.rpartition("/")[0]).delete_tree("orders")
    replaced(base)
    assert mini.content(open_storage(base)) == NEW and names(base) == ["orders"]


def test_a_table_that_was_removed_after_a_rebuild_that_was_killed_does_not_come_back_beside_another_rebuild(
    base: str, model: Storage, replaced: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = built(base, OTHER, model)
    with monkeypatch.context() as patched, pytest.raises(Killed):
        kill_at(patched, 4)
        swap(base, killed)
    assert is_switched(base, killed), "its record stands"
    builder_is_gone(killed)
    open_storage(base.rpartition("/")[0]).delete_tree("orders")
    replaced(base)
    assert mini.content(open_storage(base)) == seen(base) == NEW and names(base) == ["orders"]


def test_a_table_that_was_removed_and_made_again_meanwhile_is_not_replaced(
    base: str, model: Storage, replaced: Put
) -> None:
    open_storage(base.rpartition("/")[0]).delete_tree("orders")
    make(base, OTHER, model)
    with pytest.raises(WriteConflictError):
        replaced(base)
    assert mini.content(open_storage(base)) == OTHER


@pytest.mark.parametrize("start", ["a/", ".hoodie/"])
def test_whoever_wakes_in_the_middle_of_a_swap_that_another_has_finished_changes_nothing_more(
    start: str, base: str, model: Storage, monkeypatch: pytest.MonkeyPatch, at_first: Callable[..., None]
) -> None:
    side = built(base, NEW, model)

    def sleep() -> None:
        with monkeypatch.context() as patched:
            patched.setattr(swaps.SwapRecord, "is_at_work", lambda *_: False)
            assert seen(base) == NEW
        mini.write(open_storage(base), {"a": {"later": 9}})

    at_first("copy", f"{side.rpartition('/')[2]}/{start}", sleep)
    swap(base, side)
    assert seen(base) == {**NEW, **LATER} and names(base) == ["orders"]


@pytest.mark.parametrize("killed", [False, True])
def test_a_file_of_the_old_table_with_the_name_and_length_of_a_new_one_does_not_stay(
    killed: bool, base: str, model: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    side = built(base, NEW, model)
    for path in SAME_NAME:
        open_storage(base).replace(path, b"of the old one")
        open_storage(side).replace(path, b"of the new one")
    if killed:
        with monkeypatch.context() as patched, pytest.raises(Killed):
            kill_at(patched, 4)
            swap(base, side)
        builder_is_gone(side)
        recover_swap(base)
    else:
        swap(base, side)
    assert {open_storage(base).read(path) for path in SAME_NAME} == {b"of the new one"}


@pytest.mark.parametrize("pointed", [False, True])
def test_a_session_that_starts_while_a_table_moves_waits_for_it_and_shows_it(
    pointed: bool, base: str, replaced: Put, at_first: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, schema, _ = base.rsplit("/", 2)
    if pointed:
        root, schema = f"{root}/warehouse", "sales"
        DirectoryCatalog(root).save_pointer(schema, "orders", base)
    catalog = DirectoryCatalog(root, recover=recover_swap)
    found: list[dict[TableName, str | None]] = []
    other = Elsewhere(base, lambda _: found.append(catalog.names(schema)))

    def pause(seconds: float) -> None:
        other.waits.set()
        sleep(seconds)

    sleep = time.sleep
    monkeypatch.setattr("hudi_engine.spark.catalog.rebuilds.time.sleep", pause)
    at_first("copy", ".orders.rebuild-", lambda: other.begin(monkeypatch))
    replaced(base)
    other.end()
    assert found == [{TableName(schema, "orders"): base}]


def test_a_session_that_starts_while_a_table_moves_for_long_says_that_it_is_left_out(
    base: str, model: Storage, at_first: Callable[..., None]
) -> None:
    warnings: list[str] = []
    side = built(base, NEW, model)
    at_first(
        "copy",
        ".orders.rebuild-",
        lambda: Settling(recover_swap, warnings, set(), wait_s=0).settle({"wh.orders": base}),
    )
    swap(base, side)
    (told,) = warnings
    assert told.startswith("wh.orders was not registered: another process is putting a rebuilt table")
