"""A clone comes to no place that is its original's under another name, and takes none from a table at which somebody works."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hudi_engine.errors import ConfigError, WriteConflictError
from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.table.clone import clone_table
from hudi_engine.table.services import clean
from hudi_engine.table.services.clean import execute

import tests.faults.mini_table as mini
from tests.faults.scenarios import die_before_commit, upsert_both
from tests.helpers.s3_server import S3Server


@pytest.fixture
def original(tmp_path: Path) -> Storage:
    storage = mini.create_table(str(tmp_path / "wh" / "orders"))
    upsert_both(storage)
    return storage


@pytest.mark.parametrize(
    ("link", "leads_to", "target"),
    [
        ("link", "wh/orders", "link"),
        ("link", "wh/orders", "link/inside"),
        ("other", "wh", "other/orders"),
        ("other", "wh", "other"),
    ],
)
def test_a_link_to_the_original_is_the_original(
    original: Storage, tmp_path: Path, link: str, leads_to: str, target: str
) -> None:
    (tmp_path / link).symlink_to(tmp_path / leads_to)
    rows = mini.content(original)
    for source, path in ((original.base, target), (str(tmp_path / target), "wh/orders")):
        with pytest.raises(ConfigError, match="choose a folder outside it"):
            clone_table(open_storage(source), str(tmp_path / path), replace=True)
    assert mini.content(original) == rows
    assert sorted(os.listdir(tmp_path)) == sorted(["wh", link]) and os.listdir(tmp_path / "wh") == ["orders"]


def test_a_clone_may_come_where_a_link_leads_to_another_table(original: Storage, tmp_path: Path) -> None:
    other = mini.create_table(str(tmp_path / "old"))
    (tmp_path / "link").symlink_to("old")
    clone_table(original, str(tmp_path / "link"), replace=True)
    assert mini.content(other) == mini.content(original)
    assert (tmp_path / "link").is_symlink() and sorted(os.listdir(tmp_path)) == ["link", "old", "wh"]


@pytest.mark.parametrize("place", ["disk", "S3"])
def test_a_clean_of_an_old_clone_deletes_nothing_from_the_one_that_would_take_its_place(
    tmp_path: Path, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    folder = str(tmp_path) if place == "disk" else f"{s3_server.new_bucket()}/wh"
    model = mini.create_table(str(tmp_path / "model"))
    original, path = open_storage(f"{folder}/orders"), f"{folder}/clone"
    original.create(PROPERTIES_PATH, model.read(PROPERTIES_PATH))
    upsert_both(original)
    clone_table(original, path)
    old = open_storage(path)
    for number in range(2):
        mini.write(old, {"a": {"k1": number, "k2": number, "k4": number}})
    rows, refused, delete_all = mini.content(old), list[str](), execute._delete_all

    def replaced_first(storage: Storage, paths: Iterable[str]) -> Any:
        names = set(paths)
        assert {each for each in names if original.exists(each)}, "files of the original's names"
        with pytest.raises(WriteConflictError, match="cannot be replaced while clean") as error:
            clone_table(original, path, options=mini.options(), replace=True)
        refused.append(str(error.value))
        return delete_all(storage, names)

    monkeypatch.setattr(execute, "_delete_all", replaced_first)
    clean(old, mini.options(), retain_commits=1)
    assert refused and mini.content(old) == rows
    clone_table(original, path, options=mini.options(), replace=True)
    assert mini.content(open_storage(path)) == mini.content(original)
    assert mini.leftovers(open_storage(path)) == []
    assert not [each.name for each in open_storage(folder).list("") if each.name.startswith(".")]


def test_a_table_is_not_replaced_by_a_clone_while_its_lock_is_held_or_somebody_writes(
    original: Storage, tmp_path: Path
) -> None:
    old = mini.create_table(str(tmp_path / "old"))
    mini.write(old, {"a": {"k": 1}})
    with mini.begin(old) as transaction:
        with pytest.raises(WriteConflictError, match=f"while commit {transaction.instant} of another"):
            clone_table(original, old.base, options=mini.options(), replace=True)
        task = mini.work(old, transaction, {"a": {"k": 2}})
        transaction.inflight(task.profile())
        task.write_files()
        transaction.commit(task.metadata)
    assert mini.content(old) == {("a", "k"): 2}
    held = open_storage(old.base)
    held.create(".hoodie/lock", b"of another program")
    with pytest.raises(WriteConflictError, match="was not free"):
        clone_table(
            original, old.base, options=mini.options(hoodie__write__lock__wait_time_ms=1), replace=True
        )
    assert mini.content(old) == {("a", "k"): 2}
    assert sorted(os.listdir(tmp_path)) == ["old", "wh"]


@pytest.mark.parametrize("left", ["a dead writer", "damaged properties", "a table of another version"])
def test_what_nobody_works_on_is_replaced_whatever_state_it_is_in(
    original: Storage, tmp_path: Path, left: str
) -> None:
    old = mini.create_table(str(tmp_path / "old"))
    mini.write(old, {"a": {"k": 1}})
    if left == "a dead writer":
        die_before_commit(old)
    else:
        text = old.read(PROPERTIES_PATH).replace(b"hoodie.table.version=6", b"hoodie.table.version=5")
        old.replace(PROPERTIES_PATH, b"junk" if left == "damaged properties" else text)
    clone_table(original, old.base, options=mini.options(), replace=True)
    assert mini.content(open_storage(old.base)) == mini.content(original)
    assert sorted(os.listdir(tmp_path)) == ["old", "wh"]
