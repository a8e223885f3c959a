"""A change of version that is killed at any storage call leaves the old table or the new one, and the next run finishes it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from hudi_engine.errors import ConfigError, ServiceError, StorageError, TimelineError
from hudi_engine.format.config.own_keys import CHECKPOINT
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.archived import ArchivedTimeline
from hudi_engine.format.timeline.clock import parse_instant_time
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_engine.format.timeline.instant import parse_instant
from hudi_engine.table.inspect import validate
from hudi_engine.table.services import (
    archive,
    change_version,
    clean,
    run_clustering,
    run_compaction,
    schedule_clustering,
    schedule_compaction,
)
from hudi_engine.table.services.archive.execute import files_of
from hudi_engine.table.services.clustering.plan import show_clusterings
from hudi_engine.table.services.upgrade import VersionChange
from hudi_engine.table.snapshot.manifest import Publisher, find_newest
from hudi_engine.table.snapshot.publication import publication_of
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.metadata_conflicts import latest_checkpoint
from hudi_engine.table.txn.open_instant import OpenInstant
from hudi_engine.table.txn.publication import UNPUBLISHED
from hudi_engine.table.txn.restore import restore
from hudi_engine.table.txn.savepoint import create_savepoint, delete_savepoint, list_savepoints
from hudi_engine.table.txn.transaction import WriteTransaction

import tests.faults.mini_table as mini
from tests.faults.scenarios import COW, MOR, copy_of, killed
from tests.helpers.fault import FaultInjectingStorage
from tests.helpers.forms import in_turn
from tests.helpers.handmade import HandmadeTable
from tests.unit.services import tables
from tests.unit.services.tables import MERGED, options, rows

LIMITS = options(keep__min__commits=4, keep__max__commits=6, clean__commits__retained=2)


def change(storage: Storage, version: int) -> VersionChange:
    """Take a table to a version, one call after the other, so that calls have the same numbers in every run."""
    return change_version(
        storage, options(), publication_of(storage), version,
        run_tasks=lambda function, items: [function(item) for item in items],
    )  # fmt: skip


def version_of(storage: Storage) -> int:
    return TableConfig.load(storage).version


def instants(storage: Storage) -> list[tuple[str, str]]:
    """Requested time and action of every instant, active and archived."""
    config = TableConfig.load(storage)
    archived = ArchivedTimeline.load(storage, config).instants
    done = [each for each in archived if each.is_completed]
    return sorted((each.requested_time, each.action) for each in (*done, *tables.timeline(storage).instants))


def leftovers(storage: Storage) -> list[str]:
    """Return timeline files of the layout that the table does not have."""
    layout = TableConfig.load(storage).layout_version
    folder, other = (".hoodie/timeline", 2) if layout == 1 else (".hoodie", 1)
    return [each.path for each in storage.list(folder) if not each.is_dir and parse_instant(each.name, other)]


def with_history(path: Path, version: int) -> LocalStorage:
    """A copy-on-write table with cleans, archived writes and a savepoint."""
    table = tables.copy_on_write(path, 9)
    clean(table.storage, LIMITS, retain_commits=2)
    archive(table.storage, LIMITS)
    if version != 6:
        change(table.storage, version)
    return LocalStorage(str(path))


def with_logs(path: Path, version: int) -> LocalStorage:
    """A merge-on-read table with logs."""
    table = tables.merge_on_read(path)
    if version != 6:
        change(table.storage, version)
    return LocalStorage(str(path))


@dataclass(frozen=True)
class Case:
    name: str
    prepare: object
    before: int
    after: int


CASES = [
    Case("history up", with_history, 6, 9),
    Case("history down", with_history, 9, 6),
    Case("logs up", with_logs, 6, 8),
    Case("logs down", with_logs, 9, 6),
]


@pytest.mark.parametrize(
    ("case", "when"),
    in_turn(CASES, ("before", "after", "torn")),
    ids=lambda each: getattr(each, "name", each),
)
def test_killed_anywhere_the_table_is_whole_and_the_next_run_finishes(
    case: Case, when: str, tmp_path: Path
) -> None:
    template = case.prepare(tmp_path / "template", case.before)  # type: ignore[operator]
    expected, known = rows(template), set(instants(template))
    counting = FaultInjectingStorage(copy_of(template, tmp_path))
    change(counting, case.after)
    assert len(counting.calls) > 10
    for call, done in enumerate(counting.calls, 1):
        where = f"killed {when} call {call}: {done}"
        storage = copy_of(template, tmp_path)
        killed(storage, partial(change, version=case.after), call, when)
        assert version_of(storage) in (case.before, case.after), where
        assert rows(storage) == expected, where
        change(storage, case.after)
        assert version_of(storage) == case.after, where
        assert rows(storage) == expected, where
        assert known <= set(instants(storage)), where
        assert leftovers(storage) == [], where
        assert [each for each in validate(TableState.load(storage)) if each.kind != "unexplained"] == [], (
            where
        )


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_history_and_savepoints_are_the_same_in_every_version(table_type: str, tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path / "t"), table_type)
    written = [mini.write(storage, {"a": {"k": number}}) for number in range(9)]
    mini.savepoint(storage, written[6])
    archive(storage, LIMITS)
    known = instants(storage)
    states = {time: mini.content(storage, time) for time in written[5:]}
    for version in (8, 9, 6, 9):
        if table_type == MOR:
            # Its logs have no Parquet that a compaction reads.
            break
        change(storage, version)
        assert instants(storage) == known
        assert {time: mini.content(storage, time) for time in written[5:]} == states
        assert [each.instant for each in list_savepoints(storage)] == [written[6]]


def test_planned_clustering_runs_in_the_other_version(tmp_path: Path) -> None:
    storage = tables.merge_on_read(tmp_path / "t").storage
    by = options(clustering__plan__strategy__sort__columns="qty")
    change(storage, 8)
    planned = schedule_clustering(storage, by).instant
    change(storage, 9)
    change(storage, 6)
    assert [each.instant for each in show_clusterings(storage)] == [planned]
    change(storage, 9)

    done = run_clustering(storage, by)

    assert (done.instant, rows(storage)) == (planned, MERGED)


def append(table: HandmadeTable, values: tables.Rows, checkpoint: str = "") -> str:
    """Append rows to a slice of a table of version 9, with a checkpoint if wanted; return the instant."""
    storage, group = table.storage, tables.GROUP_1
    with WriteTransaction.begin(
        storage, TableConfig.load(storage), options(), publication_of(storage),
        action="deltacommit", operation="UPSERT",
    ) as transaction:  # fmt: skip
        transaction.inflight(CommitMetadata({tables.DAY_1: []}, {}, "UPSERT"))
        rows_of_day = tables.batch(values, tables.DAY_1)
        data = b"".join(table.data_blocks(tables.DAY_1, group, rows_of_day, transaction.instant))
        name = f".{group}_{transaction.instant}.log.1_0-0-0"
        storage.create(f"{tables.DAY_1}/{name}", data)
        newest = tables.timeline(storage).newest_metadata()
        assert newest is not None
        extra = {key: each for key, each in newest.extra_metadata.items() if key != CHECKPOINT}
        stat = WriteStat(
            file_id=group, path=f"{tables.DAY_1}/{name}", prev_commit=transaction.instant,
            num_writes=len(values), num_update_writes=len(values), total_write_bytes=len(data),
            file_size_in_bytes=len(data), partition_path=tables.DAY_1, log_version=1, log_offset=0,
            base_file="", log_files=[name],
        )  # fmt: skip
        extra |= {CHECKPOINT: checkpoint} if checkpoint else {}
        transaction.commit(CommitMetadata({tables.DAY_1: [stat]}, extra, "UPSERT"))
    return transaction.instant


def test_compaction_that_began_earlier_keeps_the_newest_checkpoint(tmp_path: Path) -> None:
    table = tables.merge_on_read(tmp_path / "t")
    change(table.storage, 9)
    append(table, {"a": 11}, "first")
    planned = schedule_compaction(table.storage, options()).instant
    append(table, {"a": 12}, "second")

    assert run_compaction(table.storage, options()).instant == planned

    found = latest_checkpoint(tables.timeline(table.storage))
    assert found is not None and found[1] == "second"
    assert rows(table.storage) == {**MERGED, "a": 12}


def test_states_from_before_a_downgrade_are_read_and_not_restored(tmp_path: Path) -> None:
    table = tables.merge_on_read(tmp_path / "t")
    change(table.storage, 9)
    appended = append(table, {"a": 11})
    before = rows(table.storage)
    saved = create_savepoint(table.storage, options(), UNPUBLISHED, appended)
    with pytest.raises(ServiceError, match="has savepoints"):
        change(table.storage, 6)
    delete_savepoint(table.storage, options(), saved.instant)

    change(table.storage, 6)

    assert rows(table.storage) == rows(table.storage, appended) == before
    with pytest.raises(TimelineError, match="it had version 8 or 9 then"):
        restore(table.storage, options(), UNPUBLISHED, appended)
    assert rows(table.storage) == before


def test_an_indexing_that_another_writer_left_is_rolled_back_before_a_change(tmp_path: Path) -> None:
    storage = tables.copy_on_write(tmp_path / "t", 2).storage
    change(storage, 9)
    before, instant = rows(storage), "20990101000000000"
    for state in ("requested", "inflight"):
        storage.create(f".hoodie/timeline/{instant}.indexing.{state}", b"")
    with pytest.raises(
        ServiceError, match=f"indexing {instant} is under way. Wait for its end, or roll it back"
    ):
        change(storage, 6)

    mini.rollback(storage, instant)
    change(storage, 6)

    assert (version_of(storage), rows(storage), validate(TableState.load(storage))) == (6, before, [])


def test_a_downgrade_that_is_refused_changes_nothing(tmp_path: Path) -> None:
    table = tables.merge_on_read(tmp_path / "t")
    change(table.storage, 9)
    create_savepoint(table.storage, options(), UNPUBLISHED, append(table, {"a": 11}))
    before = [each.file_name for each in tables.timeline(table.storage).instants]

    with pytest.raises(ServiceError, match="has savepoints"):
        change(table.storage, 6)

    assert [each.file_name for each in tables.timeline(table.storage).instants] == before


def test_a_downgrade_keeps_completion_times_as_times_of_files(tmp_path: Path) -> None:
    table = tables.merge_on_read(tmp_path / "t")
    change(table.storage, 9)
    append(table, {"a": 11})
    completed = {
        each.requested_time: each.completion_time for each in tables.timeline(table.storage).completed
    }

    change(table.storage, 6)

    timeline = tables.timeline(table.storage)
    files = {
        each.instant.requested_time: each.modified_ms
        for each in files_of(table.storage, timeline.config, timeline.completed)
        if each.instant.is_completed and each.instant.requested_time in completed
    }
    assert len(files) == len(completed)
    for time, modified_ms in files.items():
        assert parse_instant_time(completed[time] or "").timestamp() * 1000 == pytest.approx(
            modified_ms, abs=1
        )


def test_a_store_without_times_of_files_asks_for_a_clean_before_a_downgrade(tmp_path: Path) -> None:
    class Bucket(LocalStorage):
        sets_times = False

    table = tables.merge_on_read(tmp_path / "t")
    storage = Bucket(table.storage.base)
    change(storage, 9)
    append(table, {"a": 11})
    before = rows(storage)
    with pytest.raises(ServiceError, match="this store does not set. Compact and clean the table first"):
        change(storage, 6)
    newest = options(clean__policy="KEEP_LATEST_FILE_VERSIONS", clean__fileversions__retained=1)
    run_compaction(storage, options())
    clean(storage, newest)

    change(storage, 6)

    assert rows(storage) == before


def test_publisher_with_the_settings_of_before_shows_the_table(tmp_path: Path) -> None:
    storage = tables.copy_on_write(tmp_path / "t", 3).storage
    before = TableConfig.load(storage)
    assert Publisher(storage).publish(before).files == 1
    change(storage, 9)

    Publisher(storage).publish(before)

    newest = find_newest(storage).manifest
    assert newest is not None and len(newest.lines) == 1


def test_commit_that_landed_with_an_error_is_the_writers_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = tables.copy_on_write(tmp_path / "t", 2).storage
    config = TableConfig.load(storage)
    opened = OpenInstant.announce(
        storage, config, tables.timeline(storage), "replacecommit", owned_by=options()
    )
    opened.start(b"{}")
    with monkeypatch.context() as broken:
        create = storage.create

        def landing(path: str, data: bytes) -> None:
            create(path, data)
            broken.setattr(storage, "exists", lambda _: _raise(OSError("down")))
            raise OSError("timeout")

        broken.setattr(storage, "create", landing)
        with pytest.raises(StorageError, match="whether it landed"):
            opened.complete(b"{}")

    assert opened.is_ours()
    opened.void_late_commit()
    assert opened.is_completed()
    opened.release()


def _raise(error: Exception) -> bool:
    raise error


def test_version_does_not_change_under_a_writer(tmp_path: Path) -> None:
    table = tables.copy_on_write(tmp_path / "t", 2)
    writing = tables.writer_at_work(table, [tables.DAY_1])

    with pytest.raises(ServiceError, match=f"cannot get version 9 now: deltacommit {writing} is under way"):
        change(table.storage, 9)
    with pytest.raises(ConfigError, match="version is 7; legal values: 6, 8, 9"):
        change(table.storage, 7)
    assert version_of(table.storage) == 6
