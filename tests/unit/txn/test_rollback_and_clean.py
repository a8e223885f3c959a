"""A rollback and a clean: what the one needs, and the other takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.errors import CorruptTableError, TimelineError
from hudi_engine.format.config.options import Options
from hudi_engine.format.filegroup.base_file import base_file_name
from hudi_engine.format.filegroup.log_file import log_file_name
from hudi_engine.format.logformat.format import BlockType, HeaderKey
from hudi_engine.format.logformat.writer import encode_block
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_engine.format.timeline.instant import State
from hudi_engine.table.services.clean.execute import clean

import tests.faults.mini_table as mini
from tests.faults.scenarios import COW, MOR
from tests.faults.test_archive_gaps import archive_to
from tests.helpers.fault import Interrupted, SimulatedCrash
from tests.unit.txn.rollback_records import refusal, timeline


def newest_version_only() -> Options:
    return mini.options(
        hoodie__clean__policy="KEEP_LATEST_FILE_VERSIONS", hoodie__clean__fileversions__retained=1
    )


def test_a_commit_is_not_rolled_back_while_a_clean_deletes_what_was_there_before_it(tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path))
    for number in range(3):
        mini.write(storage, {"a": {"k": number}})
    with pytest.raises(SimulatedCrash):
        clean(Interrupted(storage.base, "delete", ".parquet"), newest_version_only())
    (pending,) = timeline(storage).pending
    with pytest.raises(TimelineError, match=f"clean {pending.requested_time}, which is under way.*run clean"):
        mini.rollback(storage)
    assert mini.content(storage) == {("a", "k"): 2}
    clean(storage, newest_version_only())
    later = mini.write(storage, {"a": {"k": 3}})
    assert mini.rollback(storage).instant == later
    assert mini.content(storage) == {("a", "k"): 2}


def test_a_commit_after_a_clean_that_was_cut_off_is_rolled_back(tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path))
    for number in range(3):
        mini.write(storage, {"a": {"k": number}})
    with pytest.raises(SimulatedCrash):
        clean(Interrupted(storage.base, "delete", ".parquet"), newest_version_only())
    mini.write(storage, {"a": {"k": 3}})
    mini.rollback(storage)
    assert mini.content(storage) == {("a", "k"): 2}


def write_base_files(storage: LocalStorage, rows: mini.Rows) -> None:
    """Write new base files over the slices of a merge-on-read table, as a compaction does."""
    with mini.begin(storage) as transaction:
        task = mini.Work(storage, transaction, rows)
        transaction.inflight(task.profile())
        task.write_files()
        transaction.commit(task.metadata)


def test_logs_that_a_clean_has_left_are_no_slice_to_go_back_to(tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path), MOR)
    first = mini.write(storage, {"a": {"k1": 1, "k2": 2}})
    mini.write(storage, {"a": {"k1": 10}})
    write_base_files(storage, {"a": {"k1": 11}})
    (old,) = [each.path for each in storage.list("a") if each.name.endswith(f"_{first}.parquet")]
    storage.delete(old)
    assert "were cleaned" in refusal(storage)
    with pytest.raises(TimelineError, match="has lost the slice"):
        mini.restore(storage, first)


def test_a_file_group_that_began_with_logs_is_one_to_go_back_to(tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path), MOR)
    mini.write(storage, {"a": {"k1": 1}})
    with mini.begin(storage) as transaction:
        transaction.inflight(CommitMetadata())
        path = f"a/{log_file_name('bucket-0', transaction.instant, 1, '0-0-0')}"
        storage.create(
            path,
            encode_block(BlockType.AVRO_DATA, [(HeaderKey.INSTANT_TIME, transaction.instant)], b'{"k2": 2}'),
        )
        stat = WriteStat("bucket-0", path, prev_commit=transaction.instant, num_writes=1, log_version=1)
        transaction.commit(CommitMetadata({"a": [stat]}, {"schema": mini.SCHEMA}))
    before = mini.content(storage)
    write_base_files(storage, {"a": {"k2": 20}})
    mini.rollback(storage)
    assert mini.content(storage) == before == {("a", "k1"): 1, ("a", "k2"): 2}


def replaced_and_cleaned(storage: LocalStorage) -> str:
    """Take out a file group of which a clean then leaves no more than its saved older slice; returns the write that did it."""
    mini.write(storage, {"a": {"k1": 1}})
    mini.savepoint(storage)
    mini.write(storage, {"a": {"k1": 10}})
    for number in range(2):
        mini.write(storage, {"b": {"k2": number}})
    replacing = mini.write(storage, {"a": {"k3": 3}}, "INSERT_OVERWRITE")
    clean(storage, newest_version_only())
    assert len([each for each in storage.list("a") if each.name.endswith(".parquet")]) == 2
    return replacing


def test_a_replaced_group_of_which_a_savepoint_keeps_an_older_slice_is_none_to_go_back_to(
    tmp_path: Path,
) -> None:
    storage = mini.create_table(str(tmp_path))
    replacing = replaced_and_cleaned(storage)
    before = mini.content(storage)
    assert f"replacecommit {replacing} cannot be rolled back: the files of file group" in refusal(storage)
    assert mini.content(storage) == before


def test_nor_is_one_whose_newest_write_is_archived(tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path))
    replacing = replaced_and_cleaned(storage)
    _, newest_of_group, *_ = timeline(storage).completed_writes
    archive_to(storage, 3)
    left = [each.requested_time for each in timeline(storage).completed_writes]
    assert newest_of_group.requested_time not in left and len(left) == 3
    assert f"replacecommit {replacing} cannot be rolled back: the files of file group" in refusal(storage)


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_replaced_groups_that_are_whole_come_back(tmp_path: Path, table_type: str) -> None:
    storage = mini.create_table(str(tmp_path), table_type)
    mini.write(storage, {"a": {"k1": 1}})
    mini.savepoint(storage)
    mini.write(storage, {"a": {"k1": 10}})
    before = mini.content(storage)
    mini.write(storage, {"a": {"k3": 3}}, "INSERT_OVERWRITE")
    mini.rollback(storage)
    assert mini.content(storage) == before == {("a", "k1"): 10}


def empty_group(storage: LocalStorage, partition: str) -> None:
    """Delete all rows of the only file group of a partition, which leaves a base file without rows."""
    with mini.begin(storage) as transaction:
        task = mini.work(storage, transaction, {})
        (group,) = [each for each in task.slices if each.partition == partition]
        transaction.inflight(task.profile())
        name = base_file_name(group.file_id, "0-0-0", transaction.instant)
        path = task._put(partition, name, "MERGE", b"{}")
        task._stat(partition, group.file_id, path, group.base_instant)
        transaction.commit(task.metadata)


def test_a_group_whose_rows_were_all_deleted_does_not_come_back_with_those_of_a_savepoint(
    tmp_path: Path,
) -> None:
    storage = mini.create_table(str(tmp_path))
    mini.write(storage, {"a": {"k1": 1}})
    mini.savepoint(storage)
    empty_group(storage, "a")
    for number in range(2):
        mini.write(storage, {"b": {"k2": number}})
    mini.write(storage, {"a": {"k3": 3}}, "INSERT_OVERWRITE")
    clean(storage, newest_version_only())
    assert "were cleaned" in refusal(storage)
    assert mini.content(storage) == {("a", "k3"): 3, ("b", "k2"): 1}


def test_a_group_without_rows_is_one_to_go_back_to(tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path))
    mini.write(storage, {"a": {"k1": 1}})
    empty_group(storage, "a")
    mini.write(storage, {"b": {"k2": 2}})
    clean(storage, newest_version_only())
    mini.write(storage, {"a": {"k3": 3}}, "INSERT_OVERWRITE")
    mini.rollback(storage)
    assert mini.content(storage) == {("b", "k2"): 2}


@pytest.mark.parametrize("cleaned", [False, True])
def test_a_damaged_commit_between_matters_only_where_a_clean_came_since(
    tmp_path: Path, cleaned: bool
) -> None:
    storage = mini.create_table(str(tmp_path))
    mini.write(storage, {"a": {"k1": 1}})
    mini.savepoint(storage)
    damaged = mini.write(storage, {"b": {"k2": 2}})
    for number in range(2):
        mini.write(storage, {"c": {"k4": number}})
    before = mini.content(storage)
    mini.write(storage, {"a": {"k3": 3}}, "INSERT_OVERWRITE")
    if cleaned:
        clean(storage, newest_version_only())
    storage.replace(mini.timeline_path(damaged, "commit", State.COMPLETED), b'{"partitionToWr')
    if cleaned:
        with pytest.raises(CorruptTableError, match=f"{damaged}.commit"):
            mini.rollback(storage)
    else:
        mini.rollback(storage)
        assert mini.content(storage) == before
