"""What a clean takes and what it never takes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import hudi_engine
import pyarrow as pa
import pytest
from hudi_engine.errors import ConfigError, CorruptTableError, PathEscapeError, ServiceError, TimelineError
from hudi_engine.format.storage import open_storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.avro_file import decode_avro_file, encode_avro_file
from hudi_engine.format.timeline.clock import parse_instant_time
from hudi_engine.format.timeline.schemas import CLEANER_PLAN, SAVEPOINT_METADATA
from hudi_engine.table.services import Publication, clean, run_compaction, schedule_compaction
from hudi_engine.table.services.clean.plan import CleanPlan
from hudi_engine.table.txn.open_instant import OpenInstant
from hudi_engine.table.txn.owner import Owner, register, unregister

from tests.helpers.handmade import HandmadeTable
from tests.helpers.hudi_rs import rows_by_hudi_rs
from tests.helpers.owners import age, write_owner
from tests.unit.services import tables
from tests.unit.services.tables import (
    DAY_1,
    DAY_2,
    GROUP_1,
    GROUP_3,
    MERGED,
    batch,
    data_files,
    options,
    rows,
)


@pytest.fixture
def five(tmp_path: Path) -> HandmadeTable:
    """A copy-on-write file group with five versions."""
    return tables.copy_on_write(tmp_path / "five", 5)


def versions(table: HandmadeTable) -> list[int]:
    """Which of the versions of the one file group are there, as numbers from 1."""
    names = [name for name in data_files(table.storage) if name.startswith(GROUP_1)]
    return sorted(int(name.rpartition("_")[2][12:14]) for name in names)


def save(table: HandmadeTable, instant: str, files: dict[str, list[str]]) -> None:
    """Make a savepoint that holds files, by partition."""
    record = {
        "savepointedBy": "",
        "savepointedAt": 0,
        "comments": "",
        "partitionMetadata": {
            partition: {"partitionPath": partition, "savepointDataFile": names}
            for partition, names in files.items()
        },
    }
    table.storage.create(f".hoodie/{instant}.savepoint.inflight", b"")
    table.storage.create(f".hoodie/{instant}.savepoint", encode_avro_file(SAVEPOINT_METADATA, record))


def test_by_commits_the_slice_before_the_oldest_retained_commit_stays(five: HandmadeTable) -> None:
    result = clean(five.storage, options(clean__commits__retained=2))
    assert (result.files_deleted, result.files_kept, result.partitions) == (2, 0, 1)
    assert result.earliest_retained == "20260101000004000"
    assert versions(five) == [3, 4, 5]
    assert rows(five.storage) == {"a": 5}
    assert rows(five.storage, "20260101000004000") == {"a": 4}
    with pytest.raises(
        TimelineError, match="cleaned up to 20260101000004000; read as of that instant or a later"
    ):
        rows(five.storage, "20260101000003999")


def test_no_more_commits_than_retained_is_nothing_to_do(five: HandmadeTable) -> None:
    result = clean(five.storage, options(clean__commits__retained=5))
    assert (result.instant, result.reason) == (None, "KEEP_LATEST_COMMITS retains every commit there is")
    assert versions(five) == [1, 2, 3, 4, 5]


def test_the_number_of_commits_can_be_given_with_the_call(five: HandmadeTable) -> None:
    assert (
        clean(
            five.storage, options(clean__policy="KEEP_LATEST_FILE_VERSIONS"), retain_commits=1
        ).files_deleted
        == 3
    )
    with pytest.raises(ConfigError, match="hoodie.clean.commits.retained is 0; legal values"):
        clean(five.storage, options(), retain_commits=0)


def test_by_file_versions_a_number_of_slices_stays(five: HandmadeTable) -> None:
    policy = options(clean__policy="KEEP_LATEST_FILE_VERSIONS", clean__fileversions__retained=2)
    result = clean(five.storage, policy)
    assert (result.files_deleted, result.earliest_retained) == (3, None)
    assert versions(five) == [4, 5]
    assert clean(five.storage, policy).reason == "no file slice is obsolete"


@pytest.mark.parametrize(
    ("hours", "seconds_late", "kept"),
    [
        (1, 0, [1, 2, 3, 4, 5]),
        (1, 3601.5, [1, 2, 3, 4, 5]),
        (1, 3602.5, [2, 3, 4, 5]),
        *[(hours, 3602.5, [1, 2, 3, 4, 5]) for hours in (9_999_999, 10**9, 10**18)],
    ],
)
def test_by_hours_what_a_reader_of_the_last_hours_needs_stays(
    five: HandmadeTable, hours: int, seconds_late: float, kept: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = parse_instant_time("20260101000000000") + timedelta(seconds=seconds_late)
    monkeypatch.setattr("hudi_engine.format.timeline.clock._utc_now", lambda: now)
    clean(five.storage, options(clean__policy="KEEP_LATEST_BY_HOURS", clean__hours__retained=hours))
    assert versions(five) == kept


def test_plan_and_result_are_what_hudi_writes(five: HandmadeTable) -> None:
    result = clean(five.storage, options(clean__commits__retained=2))
    gone = [f"{GROUP_1}_0-1-{number}_2026010100000{number}000.parquet" for number in (2, 1)]
    requested = five.storage.read(f".hoodie/{result.instant}.clean.requested")
    plan = decode_avro_file(requested)
    assert plan["earliestInstantToRetain"] == {
        "timestamp": "20260101000004000",
        "action": "commit",
        "state": "COMPLETED",
    }
    assert plan["lastCompletedCommitTimestamp"] == "20260101000005000"
    assert (plan["version"], plan["policy"], plan["filesToBeDeletedPerPartition"]) == (
        2,
        "KEEP_LATEST_COMMITS",
        {},
    )
    assert plan["filePathsToBeDeletedPerPartition"][DAY_1] == [
        {"filePath": f"file:{five.path}/{DAY_1}/{name}", "isBootstrapBaseFile": False} for name in gone
    ]
    assert five.storage.read(f".hoodie/{result.instant}.clean.inflight") == requested
    done = decode_avro_file(five.storage.read(f".hoodie/{result.instant}.clean"))
    assert done["startCleanTime"] == result.instant
    assert (done["totalFilesDeleted"], done["earliestCommitToRetain"]) == (2, "20260101000004000")
    assert done["partitionMetadata"][DAY_1] == {
        "partitionPath": DAY_1,
        "policy": "KEEP_LATEST_COMMITS",
        "deletePathPatterns": gone,
        "successDeleteFiles": gone,
        "failedDeleteFiles": [],
        "isPartitionDeleted": False,
    }


def test_log_files_go_with_their_base_file(table: HandmadeTable) -> None:
    run_compaction(table.storage, options())
    commit = table.storage.list(".hoodie")
    assert clean(table.storage, options(), retain_commits=1).files_deleted == 0, commit
    newest = tables.writes(table.storage)[-1]
    later = str(int(newest) + 1)
    tables.update(table, {(DAY_1, GROUP_1): {"a": 11}}, newest, instant=later)
    result = clean(table.storage, options(), retain_commits=1)
    assert result.files_deleted == 5
    assert [name for name in data_files(table.storage) if ".log." in name] == [
        f".{GROUP_1}_{newest}.log.1_0-1-1"
    ]
    assert rows(table.storage) == {**MERGED, "a": 11}
    assert rows_by_hudi_rs(str(table.path), ["id", "qty"]) == sorted(rows(table.storage).items())


def test_replaced_groups_go_when_no_retained_commit_sees_them(five: HandmadeTable) -> None:
    five.commit({DAY_2: {GROUP_3: batch({"b": 1}, DAY_2)}}, replaced={DAY_1: [GROUP_1]})
    clean(five.storage, options(), retain_commits=1)
    assert sum(name.startswith(GROUP_1) for name in data_files(five.storage)) > 0, (
        "a reader of it may be at work"
    )
    five.commit({DAY_2: {GROUP_3: batch({"b": 2}, DAY_2)}})
    clean(five.storage, options(), retain_commits=1)
    assert not any(name.startswith(GROUP_1) for name in data_files(five.storage))
    assert rows(five.storage) == {"b": 2}


def test_files_of_a_savepoint_stay_until_it_goes(five: HandmadeTable) -> None:
    save(five, "20260101000001000", {DAY_1: [f"{GROUP_1}_0-1-1_20260101000001000.parquet"]})
    clean(five.storage, options(), retain_commits=1)
    assert versions(five) == [1, 4, 5]
    assert rows(five.storage, "20260101000001000") == {"a": 1}
    for state in ("savepoint", "savepoint.inflight"):
        five.storage.delete(f".hoodie/20260101000001000.{state}")
    five.commit({DAY_2: {GROUP_3: batch({"b": 1}, DAY_2)}})
    clean(five.storage, options(), retain_commits=1)
    assert 1 not in versions(five)


def test_a_savepoint_that_cannot_be_read_stops_the_clean(five: HandmadeTable) -> None:
    five.storage.create(".hoodie/20260101000001000.savepoint", b"cut")
    with pytest.raises(CorruptTableError, match="20260101000001000.savepoint"):
        clean(five.storage, options(), retain_commits=1)
    assert versions(five) == [1, 2, 3, 4, 5]


def test_files_of_a_planned_compaction_stay(table: HandmadeTable) -> None:
    planned = str(schedule_compaction(table.storage, options()).instant)
    before = data_files(table.storage)
    for step in range(1, 4):
        table.commit({DAY_1: {tables.GROUP_2: batch({"c": step}, DAY_1)}})
    policy = options(clean__policy="KEEP_LATEST_FILE_VERSIONS", clean__fileversions__retained=1)
    clean(table.storage, policy)
    kept = {name for name in before if not name.startswith(tables.GROUP_2)}
    assert kept <= set(data_files(table.storage))
    assert run_compaction(table.storage, options()).instant == planned


def test_nothing_later_than_a_pending_write_is_given_up(five: HandmadeTable) -> None:
    five.storage.create(".hoodie/20260101000003500.commit.requested", b"")
    owner = Owner.current()
    register(owner)
    try:
        write_owner(five.storage, "20260101000003500", owner)
        result = clean(five.storage, options(), retain_commits=1)
        assert result.earliest_retained == "20260101000003000"
        assert versions(five) == [2, 3, 4, 5]
    finally:
        unregister(owner)


def publication(
    live: Callable[[], set[str]], publish: Callable[[object], object] = lambda _: None
) -> Publication:
    return Publication(publish, live)


def test_files_that_readers_hold_on_to_stay_and_are_looked_at_again(five: HandmadeTable) -> None:
    held = f"{DAY_1}/{GROUP_1}_0-1-1_20260101000001000.parquet"
    clean(five.storage, options(), retain_commits=1, publish=publication(lambda: {held}))
    assert versions(five) == [1, 4, 5]
    five.commit({DAY_2: {GROUP_3: batch({"b": 1}, DAY_2)}})
    clean(five.storage, options(), retain_commits=1, publish=publication(set))
    assert 1 not in versions(five)


def no_space(_: object) -> None:
    raise OSError("no space")


def test_a_list_that_names_what_is_to_go_is_renewed_before_anything_goes(five: HandmadeTable) -> None:
    held = f"{DAY_1}/{GROUP_1}_0-1-1_20260101000001000.parquet"
    with pytest.raises(ServiceError, match="nothing was cleaned.*no space"):
        clean(five.storage, options(), retain_commits=1, publish=publication(lambda: {held}, no_space))
    assert versions(five) == [1, 2, 3, 4, 5]


def test_a_renewed_list_lets_the_files_go_in_the_same_clean(five: HandmadeTable) -> None:
    live = {f"{DAY_1}/{GROUP_1}_0-1-1_20260101000001000.parquet"}
    clean(
        five.storage, options(), retain_commits=1, publish=publication(lambda: live, lambda _: live.clear())
    )
    assert versions(five) == [4, 5]


@pytest.mark.parametrize(("retained", "left"), [(1, [4, 5]), (5, [1, 2, 3, 4, 5])])
def test_on_a_full_disk_a_clean_of_files_that_no_list_names_publishes_nothing(
    five: HandmadeTable, retained: int, left: list[int]
) -> None:
    clean(five.storage, options(), retain_commits=retained, publish=publication(set, no_space))
    assert versions(five) == left


def test_files_made_for_readers_go_when_no_list_needs_them(five: HandmadeTable) -> None:
    five.storage.create(f"{DAY_1}/side.delta", b"")
    five.storage.create(f"{DAY_1}/live.delta", b"")
    asked: list[tuple[list[str], str]] = []

    def obsolete(partitions: object, keep_from: str) -> list[str]:
        asked.append((list(partitions), keep_from))  # type: ignore[call-overload]
        return [f"{DAY_1}/side.delta", f"{DAY_1}/live.delta"]

    clean(
        five.storage,
        options(),
        retain_commits=2,
        publish=Publication(lambda _: None, lambda: {f"{DAY_1}/live.delta"}, obsolete),
    )
    assert asked == [([DAY_1], "20260101000004000")]
    assert "live.delta" in data_files(five.storage)
    assert "side.delta" not in data_files(five.storage)


def test_a_clean_that_was_killed_is_finished_from_its_plan(five: HandmadeTable) -> None:
    name = f"{GROUP_1}_0-1-1_20260101000001000.parquet"
    plan = CleanPlan("KEEP_LATEST_COMMITS", None, "20260101000005000", {DAY_1: (name,)})
    five.storage.create(".hoodie/20260101000006000.clean.requested", plan.to_bytes(five.storage))
    age(five.storage, ".hoodie/20260101000006000.clean.requested")
    five.storage.delete(f"{DAY_1}/{name}")
    result = clean(five.storage, options())
    assert (result.instant, result.files_deleted) == ("20260101000006000", 1)
    assert five.storage.exists(".hoodie/20260101000006000.clean")
    assert versions(five) == [2, 3, 4, 5]


def test_a_plan_that_was_cut_short_is_dropped(five: HandmadeTable) -> None:
    plan = CleanPlan("KEEP_LATEST_COMMITS", None, "", {DAY_1: ()}).to_bytes(five.storage)
    five.storage.create(".hoodie/20260101000006000.clean.requested", plan[:-20])
    age(five.storage, ".hoodie/20260101000006000.clean.requested")
    assert clean(five.storage, options(), retain_commits=1).files_deleted == 3
    assert not five.storage.exists(".hoodie/20260101000006000.clean.requested")


def test_one_clean_at_a_time(five: HandmadeTable) -> None:
    plan = CleanPlan("KEEP_LATEST_COMMITS", None, "", {})
    five.storage.create(".hoodie/20260101000006000.clean.requested", plan.to_bytes(five.storage))
    owner = Owner.current()
    register(owner)
    try:
        write_owner(five.storage, "20260101000006000", owner)
        result = clean(five.storage, options(), retain_commits=1)
        assert (result.instant, result.reason) == (
            None,
            "clean 20260101000006000 is being run by another process",
        )
    finally:
        unregister(owner)
    assert versions(five) == [1, 2, 3, 4, 5]


def stored_plan(table: HandmadeTable, partition: str, path: str) -> None:
    """Put a clean on the timeline that wants to delete one path."""
    record = {
        "policy": "KEEP_LATEST_COMMITS",
        "version": 2,
        "filePathsToBeDeletedPerPartition": {partition: [{"filePath": path, "isBootstrapBaseFile": False}]},
    }
    table.storage.create(".hoodie/20260101000006000.clean.requested", encode_avro_file(CLEANER_PLAN, record))
    age(table.storage, ".hoodie/20260101000006000.clean.requested")


@pytest.mark.parametrize(
    ("partition", "path"),
    [
        ("..", "../victim.parquet"),
        ("../victims", "x"),
        (".hoodie", "hoodie.properties"),
        (DAY_1, "file:/elsewhere/day=2/victim.parquet"),
        (DAY_1, ".hoodie_partition_metadata"),
        (DAY_1, "notes.txt"),
    ],
)
def test_a_forged_plan_deletes_nothing(five: HandmadeTable, partition: str, path: str) -> None:
    victim = five.path.parent / "victim.parquet"
    victim.write_text("precious")
    stored_plan(five, partition, path)
    before = data_files(five.storage)
    with pytest.raises((CorruptTableError, PathEscapeError)):
        clean(five.storage, options())
    assert data_files(five.storage) == before
    assert victim.exists()


def test_a_stored_plan_cannot_take_the_newest_slice(five: HandmadeTable) -> None:
    stored_plan(five, DAY_1, f"/old/place/{DAY_1}/{GROUP_1}_0-1-5_20260101000005000.parquet")
    result = clean(five.storage, options())
    assert (result.files_deleted, result.files_kept) == (0, 1)
    assert rows(five.storage) == {"a": 5}
    done = decode_avro_file(five.storage.read(".hoodie/20260101000006000.clean"))
    assert len(done["partitionMetadata"][DAY_1]["failedDeleteFiles"]) == 1


class CountingStorage(LocalStorage):
    """Remembers which partitions were listed."""

    def __init__(self, base: str) -> None:
        super().__init__(base)
        self.listed: list[str] = []

    def list(self, path: str, recursive: bool = False, skip: frozenset[str] = frozenset()):  # type: ignore[no-untyped-def]
        if not path.startswith(".hoodie"):
            self.listed.append(path)
        return super().list(path, recursive, skip)


def test_the_next_clean_looks_only_where_something_became_obsolete(five: HandmadeTable) -> None:
    clean(five.storage, options(), retain_commits=1)
    five.commit({DAY_2: {GROUP_3: batch({"b": 1}, DAY_2)}})
    five.commit({DAY_2: {GROUP_3: batch({"b": 2}, DAY_2)}})
    five.commit({DAY_2: {GROUP_3: batch({"b": 3}, DAY_2)}})
    storage = CountingStorage(str(five.path))
    assert clean(storage, options(), retain_commits=1).files_deleted == 2
    assert set(storage.listed) == {DAY_1, DAY_2}
    storage.listed.clear()
    five.commit({DAY_2: {GROUP_3: batch({"b": 4}, DAY_2)}})
    assert clean(storage, options(), retain_commits=1).files_deleted == 1
    assert set(storage.listed) == {DAY_2}


def test_after_a_clean_there_is_nothing_to_do_and_nothing_is_listed(five: HandmadeTable) -> None:
    clean(five.storage, options(), retain_commits=1)
    storage = CountingStorage(str(five.path))
    result = clean(storage, options(), retain_commits=1)
    assert (result.instant, result.reason) == (None, "no file has become obsolete since the last clean")
    assert storage.listed == []


def test_a_file_that_cannot_be_deleted_is_reported_and_tried_again(
    five: HandmadeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    stubborn = f"{DAY_1}/{GROUP_1}_0-1-1_20260101000001000.parquet"
    real = LocalStorage.delete

    def delete(self: LocalStorage, path: str) -> bool:
        if path == stubborn:
            raise PermissionError("read only")
        return real(self, path)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, "delete", delete)
        result = clean(five.storage, options(), retain_commits=1)
    assert (result.files_deleted, result.files_kept) == (2, 1)
    assert versions(five) == [1, 4, 5]
    five.commit({DAY_2: {GROUP_3: batch({"b": 1}, DAY_2)}})
    clean(five.storage, options(), retain_commits=1)
    assert 1 not in versions(five)


def test_a_first_look_at_very_many_partitions_is_not_made_again(tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t", tables.SCHEMA, ("day",))
    table.commit({f"day={day}": {f"g{day}-0": batch({"k": day}, f"{day}")} for day in range(201)})
    for value in (1, 2):
        table.commit({"day=1": {"g1-0": batch({"k": value}, "1")}})

    assert clean(table.storage, options(), retain_commits=2).instant is not None
    again = clean(table.storage, options(), retain_commits=2)
    assert again.reason == "no file has become obsolete since the last clean"


def test_all_partitions_are_looked_at_when_a_clean_is_not_incremental(five: HandmadeTable) -> None:
    clean(five.storage, options(), retain_commits=1)
    five.commit({DAY_2: {GROUP_3: batch({"b": 1}, DAY_2)}})
    five.commit({DAY_2: {GROUP_3: batch({"b": 2}, DAY_2)}})
    clean(five.storage, options(), retain_commits=1)
    five.commit({DAY_2: {GROUP_3: batch({"b": 3}, DAY_2)}})
    storage = CountingStorage(str(five.path))
    every = options(clean__incremental__enabled="false")
    assert clean(storage, every, retain_commits=1).files_deleted == 1
    assert storage.listed == [""]


def test_what_killed_writers_left_under_temporary_names_goes_once_it_is_old(five: HandmadeTable) -> None:
    names = [f".tmp-{each * 32}" for each in "abc"]
    old, young, folder = f".hoodie/{names[0]}", f".hoodie/{names[1]}", f".hoodie/{names[2]}"
    data, foreign = f"{DAY_1}/{names[0]}", f"{DAY_1}/.tmp-of-somebody-else"
    for path in (old, young, data, foreign):
        five.storage.create(path, b"half")
        age(five.storage, path, seconds=3_000 if path == young else 3_700)
    (Path(five.storage.base) / folder).mkdir()
    clean(five.storage, options(clean__commits__retained=2))
    there = [each for each in (old, young, data, foreign, folder) if five.storage.exists(each)]
    assert there == [young, foreign, folder]


def test_a_clean_records_what_it_deleted_under_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = hudi_engine.create_table(
        str(tmp_path / "t"),
        name="t",
        record_key=["id"],
        precombine_field="ts",
        options={"hoodie.metadata.enable": "true", "hoodie.clean.automatic": "false"},
    )
    for ts in range(4):
        table.upsert(pa.table({"id": ["a"], "ts": [ts]}))
    storage = open_storage(table.path)
    complete, held = OpenInstant.complete, []

    def looked(opened: OpenInstant, body: bytes) -> object:
        held.append(storage.exists(".hoodie/lock"))
        return complete(opened, body)

    monkeypatch.setattr(OpenInstant, "complete", looked)
    assert table.clean(retain_commits=1).instant is not None
    assert held == [True]
