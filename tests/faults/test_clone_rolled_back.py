"""Rows that were taken back stay away from a clone, whenever their rollback came."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.logformat.reader import read_blocks
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.table.clone import clone_table
from hudi_engine.table.state import TableState
from hudi_engine.table.table_services import TableServices

import tests.faults.mini_table as mini
from tests.faults.scenarios import MOR

ROWS = {"a": {"k1": 1, "k2": 2}}


def failed_write_between_others(storage: Storage) -> tuple[str, str]:
    """A write that others overtake and that is rolled back after them; return its instant and that of the last before that."""
    mini.write(storage, ROWS)
    failed = mini.begin(storage)
    task = mini.work(storage, failed, {"a": {"k1": 666}})
    failed.inflight(task.profile())
    task.write_files()
    mini.write(storage, {"a": {"k2": 20}})
    last = mini.write(storage, {"a": {"k2": 30}})
    failed.abort()
    mini.write(storage, {"a": {"k2": 35}})
    mini.write(storage, {"a": {"k2": 40}})
    return failed.instant, last


def archive_all_before_the_failed_write(storage: Storage) -> None:
    due = {"hoodie.clean.commits.retained": 1, "hoodie.compact.inline.max.delta.commits": 1}
    assert TableServices(storage, resolve_options(due)).archive(3, 4).instants


def in_one_log(storage: Storage) -> None:
    """Bring the blocks into one file, as a file system that appends has them."""
    logs = sorted(each.path for each in storage.list("a") if ".log." in each.name)
    storage.replace(logs[0], b"".join(storage.read(each) for each in logs))
    for each in logs[1:]:
        storage.delete(each)


@pytest.mark.parametrize("appended", [False, True])
def test_rows_that_were_taken_back_after_the_moment_stay_out_of_its_clone(
    tmp_path: Path, appended: bool
) -> None:
    original = mini.create_table(str(tmp_path / "orders"), MOR)
    failed, moment = failed_write_between_others(original)
    archive_all_before_the_failed_write(original)
    if appended:
        in_one_log(original)
    timeline = TableState.load(original).timeline
    assert failed < str(timeline.first_write_time) <= moment
    rows = {("a", "k1"): 1, ("a", "k2"): 30}
    assert mini.content(original, as_of=moment) == rows

    clone = open_storage(clone_table(original, str(tmp_path / "clone"), at=moment).path)
    assert mini.content(clone) == rows
    logs = [each for each in clone.list("a") if ".log." in each.name]
    blocks = [block for log in logs for block in read_blocks(clone.read(log.path))]
    assert failed not in {block.instant_time for block in blocks}
    assert not any(block.is_rollback for block in blocks)
    mini.write(clone, {"a": {"k1": 7}})
    assert mini.content(clone) == {("a", "k1"): 7, ("a", "k2"): 30}
    assert mini.content(original, as_of=moment) == rows


def test_the_clone_of_the_newest_state_has_what_its_original_has_while_a_write_is_under_way(
    tmp_path: Path,
) -> None:
    original: LocalStorage = mini.create_table(str(tmp_path / "orders"), MOR)
    failed_write_between_others(original)
    archive_all_before_the_failed_write(original)
    with mini.begin(original) as transaction:
        clone = open_storage(clone_table(original, str(tmp_path / "clone")).path)
        assert mini.content(clone) == mini.content(original) == {("a", "k1"): 1, ("a", "k2"): 40}
        transaction.abort()
