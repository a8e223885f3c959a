"""Tables with marks of folders, which Hadoop and the stores' consoles put beside files: empty objects that end with a slash."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hudi_engine.errors import TableExistsError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage import open_storage
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.paths import parent
from hudi_engine.spark.catalog.directory import held_in
from hudi_engine.table.inspect.validation import validate
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.table_folder import delete_table
from hudi_engine.table.write.define.create_table import check_absent, create_table

import tests.faults.mini_table as mini
from tests.faults.scenarios import die_before_commit
from tests.faults.test_moves_on_flat_store import clone_over, move, rebuild
from tests.faults.test_rebuild_on_flat_store import NEW, OLD, make
from tests.helpers.s3_server import S3Server

MARKED = ("", ".hoodie/", ".hoodie/archived/", ".hoodie/.temp/", "a/", "none/", "none/inside/")
"""Folders that Hudi makes with a table, a partition with files, and such as have none."""


@pytest.fixture
def base(s3_server: S3Server, model: Storage) -> str:
    """A table with rows and marks."""
    base = f"{s3_server.new_bucket()}/wh/orders"
    make(base, OLD, model)
    for folder in MARKED:
        s3_server.put(base.split("/")[2], f"wh/orders/{folder}")
    return base


def test_a_mark_is_a_folder_in_every_listing_and_an_empty_file_is_none(base: str) -> None:
    storage = open_storage(base)
    storage.create("b/empty", b"")

    for listed in (storage.list("", recursive=True), storage.list("")):
        folders = {each.path for each in listed if each.is_dir}
        assert folders >= {".hoodie", "a", "b", "none"}
    everything = {each.path: each.is_dir for each in storage.list("", recursive=True)}
    assert everything[".hoodie/archived"] and everything["none/inside"]
    assert not everything["b/empty"] and storage.stat("b/empty") is not None


def test_marks_cost_one_request_for_each_folder_that_may_have_some(base: str, s3_server: S3Server) -> None:
    with s3_server.counted() as requests:
        open_storage(base).list("", recursive=True)
    assert len(requests) <= 1 + len({"", ".hoodie", "none"})


def test_a_file_and_a_mark_of_one_name_are_both_deleted_or_copied_as_the_file(s3_server: S3Server) -> None:
    bucket = s3_server.new_bucket()
    for key in ("wh/one/name", "wh/one/name/"):
        s3_server.put(bucket[5:], key)
    storage = open_storage(f"{bucket}/wh")

    storage.rename("one", "two")
    assert storage.read("two/name") == b"1" and not storage.exists("one")


@pytest.mark.parametrize("change", [move, rebuild, clone_over])
def test_a_table_with_marks_is_moved_built_anew_and_replaced(
    change: Callable[[str, Storage], None], base: str, model: Storage
) -> None:
    change(base, model)

    place = f"{parent(base)}/bills" if change is move else base
    assert mini.content(open_storage(place)) == (OLD if change is move else NEW)
    mini.write(open_storage(place), {"a": {"late": 9}})
    assert mini.leftovers(open_storage(place)) == []


def test_marks_beside_a_dead_writers_markers_hold_nothing_up_and_are_no_finding(
    base: str, s3_server: S3Server
) -> None:
    storage = open_storage(base)
    die_before_commit(storage)
    (dead,) = (each.name for each in storage.list(".hoodie/.temp"))
    for folder in (f".hoodie/.temp/{dead}/", f".hoodie/.temp/{dead}/a/"):
        s3_server.put(base.split("/")[2], f"wh/orders/{folder}")

    mini.write(storage, {"a": {"late": 9}})

    assert mini.content(storage) == {**OLD, ("a", "late"): 9}
    assert validate(TableState.load(storage)) == []


def test_a_removed_table_leaves_no_more_than_marks_where_another_can_be_made_or_moved_to(
    base: str, model: Storage, s3_server: S3Server
) -> None:
    above, storage = open_storage(parent(base)), open_storage(base)
    delete_table(above, "orders")

    keys = [each["Key"] for each in s3_server.client.list_objects_v2(Bucket=base.split("/")[2])["Contents"]]
    assert all(key.endswith("/") for key in keys)
    assert held_in(above.base) == [] and storage.stat("") is None
    create_table(storage, TableConfig.load(model))
    mini.write(storage, {"a": {"new": 1}})
    assert held_in(above.base) == ["orders"]
    delete_table(above, "orders")

    make(f"{above.base}/other", NEW, model)
    above.rename("other", "orders")
    assert mini.content(storage) == NEW


@pytest.mark.parametrize("name", ["{}.csv", "{}/part.csv"])
def test_a_folder_of_many_others_is_refused_without_a_look_at_each(name: str, s3_server: S3Server) -> None:
    bucket = s3_server.new_bucket()
    names = [name.format(number) for number in range(40)]
    for each in names:
        s3_server.put(bucket[5:], f"wh/orders/{each}")
    storage = open_storage(f"{bucket}/wh/orders")

    with s3_server.counted() as requests, pytest.raises(TableExistsError) as refused:
        check_absent(storage)

    assert len(requests) < 20
    told = ", ".join(sorted(each.split("/")[0] for each in names)[:3])
    assert f"holds at least 3 file(s) or folder(s) ({told}) but no" in str(refused.value)
