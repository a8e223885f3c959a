"""Archiving: what leaves the active timeline, what stays, and that nothing of it changes a row."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hudi_engine.errors import ConfigError, WriteConflictError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.base_file import base_file_name
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.archive_files import entry_key, list_archive_files, read_archive_log
from hudi_engine.format.timeline.archived import ArchivedTimeline
from hudi_engine.table.operations.procedures import PROCEDURES
from hudi_engine.table.services import archive, clean, drop_savepoint
from hudi_engine.table.table_services import TableServices
from hudi_engine.table.txn.consumers import forget_consumer, register_consumer
from hudi_engine.table.txn.publication import UNPUBLISHED
from hudi_engine.table.txn.savepoint import create_savepoint

from tests.faults import mini_table as mini
from tests.helpers.fault import FaultInjectingStorage, FaultPlan, SimulatedCrash, raise_crash

LIMITS = {
    "hoodie__keep__min__commits": 4,
    "hoodie__keep__max__commits": 6,
    "hoodie__clean__commits__retained": 2,
}
DAY = "part=1"


def options(**more: object):
    return mini.options(**{**LIMITS, **more})


def timeline_of(storage: Storage) -> Timeline:
    return Timeline.load(storage, TableConfig.load(storage))


def active_writes(storage: Storage) -> list[str]:
    return [each.requested_time for each in timeline_of(storage).completed_writes]


def archived(storage: Storage) -> list[tuple[str, str]]:
    """(time, action) of the completed instants in the archive, oldest first."""
    found = ArchivedTimeline.load(storage, TableConfig.load(storage)).instants
    return [(each.requested_time, each.action) for each in found if each.is_completed]


def entries(storage: Storage) -> list[tuple[str, str, str]]:
    """Every entry as it is stored, duplicates included."""
    folder = TableConfig.load(storage).archive_folder
    return [
        entry_key(entry)
        for file in list_archive_files(storage, folder)
        for entry in read_archive_log(storage.read(file.path), file.path)
    ]


def upserts(storage: Storage, count: int, start: int = 0) -> list[str]:
    return [mini.write(storage, {DAY: {"a": start + number}}) for number in range(count)]


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request, tmp_path: Path) -> LocalStorage:
    return mini.create_table(str(tmp_path / "t"), request.param)


def test_the_oldest_writes_go_when_there_are_too_many_and_no_row_changes(table):
    written = upserts(table, 6)
    assert "6 completed commits" in archive(table, options()).reason
    written += upserts(table, 1, 6)
    before = mini.content(table)

    told = archive(table, options(), dry_run=True)
    result = archive(table, options())

    going = min(3, 7 - 5) if timeline_of(table).completed_writes[0].action == "deltacommit" else 3
    assert [name.partition(".")[0] for name in result.instants] == written[:going]
    assert told.instants == result.instants and told.file is None
    assert result.file == ".hoodie/archived/.commits_.archive.1_1-0-1"
    assert active_writes(table) == written[going:]
    assert [time for time, _ in archived(table)] == written[:going]
    assert mini.content(table) == before == {(DAY, "a"): 6}


def test_every_file_of_an_instant_becomes_an_entry_with_what_it_held(table):
    first, *_ = upserts(table, 7)
    metadata = timeline_of(table).commit_metadata(timeline_of(table).find(first))
    archive(table, options())

    action = "deltacommit" if "merge" in str(TableConfig.load(table).table_type).lower() else "commit"
    assert [key for key in entries(table) if key[0] == first] == [
        (first, action, state) for state in ("REQUESTED", "INFLIGHT", "COMPLETED")
    ]
    archive_of_table = ArchivedTimeline.load(table, TableConfig.load(table))
    kept = archive_of_table.commit_metadata(archive_of_table.instants[0])
    assert kept.schema_json == mini.SCHEMA
    assert [
        (partition, stat.path, stat.num_writes, stat.num_inserts) for partition, stat in kept.write_stats()
    ] == [
        (partition, stat.path, stat.num_writes, stat.num_inserts)
        for partition, stat in metadata.write_stats()
    ]
    assert kept.operation_type == "UPSERT"


def test_as_many_stay_as_the_cleaner_retains(table):
    upserts(table, 12)
    assert "retains every commit" in archive(table, options(hoodie__clean__commits__retained=50)).reason
    assert "above 13" in archive(table, options(hoodie__clean__commits__retained=9)).reason
    archive(table, options(hoodie__clean__commits__retained=7))
    assert len(active_writes(table)) == 9


def test_a_maximum_that_is_no_greater_than_the_minimum_is_refused():
    with pytest.raises(ConfigError, match=r"hoodie\.keep\.max\.commits is 4"):
        options(hoodie__keep__max__commits=4)


def test_nothing_at_or_after_a_savepoint_goes_unless_the_option_says_so(table):
    written = upserts(table, 3)
    create_savepoint(table, options(), UNPUBLISHED, written[2])
    written += upserts(table, 8, 3)
    archive(table, options())
    assert active_writes(table) == written[2:]

    archive(table, options(hoodie__archive__beyond__savepoint="true"))
    assert active_writes(table)[0] == written[2] and len(active_writes(table)) < 9
    assert mini.content(table) == {(DAY, "a"): 10}


def test_what_a_registered_reader_has_not_taken_stays(tmp_path):
    table = mini.create_table(str(tmp_path / "t"), "COPY_ON_WRITE")
    written = upserts(table, 9)
    register_consumer(table, "daily", written[1], 1)
    archive(table, options())
    assert active_writes(table)[-8:] == written[1:]
    forget_consumer(table, "daily")
    archive(table, options())
    assert active_writes(table)[0] > written[1]


def test_the_write_before_a_pending_one_stays(table):
    written = upserts(table, 3)
    transaction = mini.begin(table)
    with transaction:
        transaction.inflight(mini.work(table, transaction, {"part=2": {"b": 1}}).profile())
        written += upserts(table, 7, 3)
        archive(table, options(hoodie__clean__policy="KEEP_LATEST_FILE_VERSIONS"))
        assert active_writes(table) == written[2:]
        task = mini.work(table, transaction, {"part=2": {"b": 1}})
        task.write_files()
        transaction.commit(task.metadata)
    assert mini.content(table) == {(DAY, "a"): 9, ("part=2", "b"): 1}


def test_an_index_build_that_died_holds_nothing(table):
    upserts(table, 3)
    for state in ("requested", "inflight"):
        table.create(f".hoodie/20200101000000000.indexing.{state}", b"")
    before = len(upserts(table, 7, 3))
    result = archive(table, options(hoodie__clean__policy="KEEP_LATEST_FILE_VERSIONS"))
    assert before and result.instants, result.reason


def test_a_replacecommit_stays_until_the_files_it_replaced_are_gone(table):
    upserts(table, 1)
    replaced = mini.write(table, {DAY: {"z": 1}}, "INSERT_OVERWRITE")
    for number in range(9):
        mini.write(table, {f"part={number + 2}": {"a": number}})
    before = mini.content(table)
    archive(table, options())
    assert replaced in active_writes(table)
    assert mini.content(table) == before

    assert clean(table, options()).files_deleted == 1
    archive(table, options())
    assert replaced not in active_writes(table)
    assert mini.content(table) == before and (DAY, "a") not in before


def test_cleans_go_once_they_are_older_than_every_write_that_stays(tmp_path):
    storage = mini.create_table(str(tmp_path / "t"))
    for number in range(30):
        upserts(storage, 1, number)
        clean(storage, options())
        archive(storage, options())
    cleans = [each for each in timeline_of(storage).completed if each.action == "clean"]
    assert 4 <= len(cleans) <= 7
    assert 4 <= len(active_writes(storage)) <= 7
    assert {action for _, action in archived(storage)} == {"commit", "clean"}
    assert len(entries(storage)) == len(set(entries(storage)))
    assert mini.content(storage) == {(DAY, "a"): 29}


def test_a_late_file_of_a_rolled_back_write_never_becomes_visible(tmp_path):
    storage = mini.create_table(str(tmp_path / "t"))
    upserts(storage, 2)
    dead = mini.write(storage, {DAY: {"dead": 1}})
    mini.rollback(storage)
    storage.create(f"{DAY}/{base_file_name('late-0', '0-0-0', dead)}", b'{"dead": 2}')
    upserts(storage, 9, 2)
    archive(storage, options())
    assert timeline_of(storage).first_write_time > dead
    assert mini.content(storage) == {(DAY, "a"): 10}


@pytest.mark.parametrize("action", ["clean", "rollback"])
def test_an_empty_file_of_a_clean_or_rollback_stops_no_archive_and_no_clean(tmp_path, action):
    storage = mini.create_table(str(tmp_path / "t"))
    upserts(storage, 4)
    if action == "clean":
        clean(storage, options())
    else:
        mini.write(storage, {DAY: {"dead": 1}})
        mini.rollback(storage)
    (done,) = (each for each in timeline_of(storage).completed if each.action == action)
    storage.replace(f".hoodie/{done.file_name}", b"")
    upserts(storage, 9, 4)
    archive(storage, options())
    assert len(active_writes(storage)) < 13
    assert clean(storage, options()).files_deleted
    assert mini.content(storage) == {(DAY, "a"): 12}


@pytest.mark.parametrize(("action", "procedure"), [("clean", "show_cleans"), ("rollback", "show_rollbacks")])
def test_an_empty_file_of_a_clean_or_rollback_is_passed_over_where_they_are_listed(
    tmp_path, action, procedure
):
    storage = mini.create_table(str(tmp_path / "t"))
    for number in range(2):
        upserts(storage, 4, 4 * number)
        mini.write(storage, {DAY: {"dead": 1}})
        mini.rollback(storage)
        clean(storage, options())
    done = [each for each in timeline_of(storage).completed if each.action == action]
    assert len(done) == 2
    storage.replace(f".hoodie/{done[0].file_name}", b"")
    rows = PROCEDURES[procedure].call(TableServices(storage, options()), {})
    assert [str(row[0]) for row in rows] == [done[1].requested_time]


def prepared(path: Path) -> LocalStorage:
    storage = mini.create_table(str(path))
    mini.write(storage, {DAY: {"a": 1}}, "INSERT_OVERWRITE")
    for number in range(12):
        upserts(storage, 1, number)
        clean(storage, options())
        if number in (7, 9):
            archive(storage, options(hoodie__keep__max__commits=5))
    return storage


@pytest.mark.parametrize("when", ["before", "after", "torn"])
def test_killed_anywhere_no_instant_is_lost_or_doubled(when, tmp_path):
    template = prepared(tmp_path / "template")
    few = options(hoodie__keep__max__commits=5)
    everything = sorted({(each.requested_time, each.action) for each in timeline_of(template).completed})
    everything = sorted({*everything, *archived(template)})
    counting = FaultInjectingStorage(copy_of(template, tmp_path))
    assert archive(counting, few).instants
    for call in range(1, len(counting.calls) + 1):
        storage = copy_of(template, tmp_path)
        try:
            archive(FaultInjectingStorage(storage, FaultPlan(call, when, crash=raise_crash)), few)
        except SimulatedCrash:
            pass
        where = f"killed {when} call {call}: {counting.calls[call - 1]}"
        active = {(each.requested_time, each.action) for each in timeline_of(storage).completed}
        assert sorted({*archived(storage), *active}) == everything, where
        assert mini.content(storage) == {(DAY, "a"): 11}, where

        upserts(storage, 2, 12)
        archive(storage, few)
        active = {(each.requested_time, each.action) for each in timeline_of(storage).completed}
        assert len(active) < len(everything) and {*archived(storage), *active} >= set(everything), where
        assert mini.content(storage) == {(DAY, "a"): 13}, where
        assert len(entries(storage)) == len(set(entries(storage))), where
        assert mini.leftovers(storage) == [], where


def copy_of(template: LocalStorage, root: Path) -> LocalStorage:
    shutil.rmtree(root / "copy", ignore_errors=True)
    shutil.copytree(template.base, root / "copy", copy_function=shutil.copy2)
    return LocalStorage(os.fspath(root / "copy"))


def test_a_deleted_savepoint_goes_to_the_archive_when_younger_writes_went_before_it(tmp_path):
    storage = mini.create_table(str(tmp_path / "t"))
    written = upserts(storage, 3)
    create_savepoint(storage, options(), UNPUBLISHED, written[1])
    mini.write(storage, {"part=2": {"b": 1}})
    upserts(storage, 9, 3)
    archive(storage, options(hoodie__archive__beyond__savepoint="true"))
    before = mini.content(storage)
    assert before == {(DAY, "a"): 11, ("part=2", "b"): 1}
    drop_savepoint(storage, options(), written[1])
    assert mini.content(storage) == before
    assert active_writes(storage)[0] > written[1] in [time for time, _ in archived(storage)]


def test_what_was_committed_and_archived_while_a_write_was_under_way_conflicts_with_it(tmp_path):
    storage = mini.create_table(str(tmp_path / "t"))
    upserts(storage, 2)
    older = mini.begin(storage)
    with older:
        first = mini.work(storage, older, {DAY: {"a": 10}})
        older.inflight(first.profile())
        mini.write(storage, {"part=2": {"b": 1}})
        late = mini.begin(storage)
        with late:
            mine = mini.work(storage, late, {DAY: {"a": 20}})
            late.inflight(mine.profile())
            first.write_files()
            older.commit(first.metadata)
            for number in range(7):
                mini.write(storage, {"part=2": {"b": number}})
            archive(storage, options(hoodie__clean__policy="KEEP_LATEST_FILE_VERSIONS"))
            assert older.instant not in active_writes(storage)
            mine.write_files()
            with pytest.raises(WriteConflictError, match=older.instant):
                late.commit(mine.metadata)
    assert mini.content(storage)[(DAY, "a")] == 10


def test_limits_come_from_the_call_or_from_the_options(table):
    upserts(table, 9)
    services = TableServices(table, options(hoodie__clean__policy="KEEP_LATEST_FILE_VERSIONS"))
    assert "begins above 20" in services.archive(max_commits=20).reason
    assert len(services.archive(dry_run=True).instants) > 0
