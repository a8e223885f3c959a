"""Compaction keeps every row, whoever writes meanwhile and whatever fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hudi_engine.errors import ConfigError, CorruptTableError, ServiceError, TimelineError, WriteConflictError
from hudi_engine.format.filegroup.view import FileSystemView
from hudi_engine.format.timeline.avro_file import decode_avro_file, encode_avro_file
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_engine.format.timeline.schemas import COMPACTION_PLAN
from hudi_engine.table.services import run_compaction, schedule_compaction, show_compactions
from hudi_engine.table.services.compaction.plan import CompactionPlan
from hudi_engine.table.txn.owner import Owner, register, unregister
from hudi_engine.table.txn.publication import UNPUBLISHED
from hudi_engine.table.txn.transaction import WriteTransaction

from tests.helpers.handmade import HandmadeTable
from tests.helpers.hudi_rs import rows_by_hudi_rs
from tests.helpers.owners import write_owner
from tests.unit.services import tables
from tests.unit.services.tables import (
    DAY_1,
    DAY_2,
    GROUP_1,
    GROUP_3,
    MERGED,
    data_files,
    options,
    rows,
    timeline,
)

pytestmark = pytest.mark.usefixtures("coded_texts", "carried_columns")


def test_a_plan_names_base_and_log_files_as_hudi_does(table: HandmadeTable) -> None:
    result = schedule_compaction(table.storage, options())
    record = decode_avro_file(table.storage.read(f".hoodie/{result.instant}.compaction.requested"))
    assert (result.state, result.file_groups) == ("scheduled", 2)
    assert (record["version"], record["strategy"], record["extraMetadata"]) == (2, None, {})
    first = record["operations"][0]
    assert first["fileId"] == GROUP_1
    assert first["partitionPath"] == DAY_1
    assert first["baseInstantTime"] == "20260101000001000"
    assert first["dataFilePath"] == f"{GROUP_1}_0-1-1_20260101000001000.parquet"
    assert [name[-11:] for name in first["deltaFilePaths"]] == ["log.1_0-1-1", "log.2_0-1-1"]
    assert first["metrics"]["TOTAL_LOG_FILES"] == 2.0
    assert first["metrics"]["TOTAL_IO_MB"] == 0.0


def test_after_compaction_base_files_hold_what_base_and_logs_held(table: HandmadeTable) -> None:
    assert rows(table.storage) == MERGED
    result = run_compaction(table.storage, options())
    assert (result.state, result.file_groups, result.files_compacted, result.rows) == ("completed", 2, 5, 3)
    assert rows(table.storage) == MERGED
    assert rows(table.storage, read_optimized=True) == MERGED
    assert rows_by_hudi_rs(str(table.path), ["id", "qty"]) == sorted(MERGED.items())


def test_a_read_as_of_before_the_compaction_still_finds_its_logs(table: HandmadeTable) -> None:
    before = {instant: rows(table.storage, instant) for instant in tables.writes(table.storage)}
    run_compaction(table.storage, options())
    assert {instant: rows(table.storage, instant) for instant in before} == before


def test_rows_keep_commit_time_and_number_and_learn_their_new_file(table: HandmadeTable) -> None:
    result = run_compaction(table.storage, options())
    (name,) = [
        name for name in data_files(table.storage) if name.startswith(GROUP_1) and str(result.instant) in name
    ]
    found = pq.read_table(table.path / DAY_1 / name, partitioning=None).to_pylist()
    assert [row["_hoodie_file_name"] for row in found] == [name]
    assert [row["_hoodie_commit_time"] for row in found] == ["20260101000003000"]
    assert [row["_hoodie_commit_seqno"] for row in found] == ["20260101000003000_0_0"]


def test_the_commit_says_what_was_compacted(table: HandmadeTable) -> None:
    result = run_compaction(table.storage, options())
    found = timeline(table.storage)
    metadata = found.commit_metadata(found.find(str(result.instant), "commit"))
    assert (metadata.operation_type, metadata.compacted) == ("COMPACT", True)
    assert metadata.schema_json is not None
    (stat,) = metadata.partition_to_write_stats[DAY_1]
    assert (stat.file_id, stat.prev_commit, stat.num_writes) == (GROUP_1, "20260101000001000", 1)
    assert (stat.num_update_writes, stat.num_deletes, stat.num_inserts) == (1, 1, 0)
    assert (stat.total_log_files_compacted, stat.total_log_blocks) == (2, 3)
    assert stat.file_size_in_bytes == table.storage.stat(str(stat.path)).size  # type: ignore[union-attr]


def test_a_group_without_base_file_gets_one(table: HandmadeTable) -> None:
    instant = table.next_instant()
    tables.update(table, {(DAY_2, tables.GROUP_2): {"z": 26}}, instant, instant=instant)
    expected = {**MERGED, "z": 26}
    assert rows(table.storage) == expected
    run_compaction(table.storage, options())
    assert rows(table.storage, read_optimized=True) == expected


def test_a_group_of_which_no_row_is_left_becomes_an_empty_file(table: HandmadeTable) -> None:
    base = "20260101000001000"
    tables.update(table, {(DAY_2, GROUP_3): {"d": 5}}, base, deletes={(DAY_2, GROUP_3): ["d", "e"]})
    expected = {key: value for key, value in MERGED.items() if key not in ("d", "e")}
    assert rows(table.storage) == expected
    run_compaction(table.storage, options())
    assert rows(table.storage, read_optimized=True) == expected
    assert rows_by_hudi_rs(str(table.path), ["id", "qty"]) == sorted(expected.items())


def test_with_nothing_in_logs_there_is_nothing_to_do(table: HandmadeTable) -> None:
    run_compaction(table.storage, options())
    again = run_compaction(table.storage, options())
    assert (again.instant, again.state) == (None, "none")
    assert again.reason.startswith("no file slice has log files (updates and deletes write them")


def test_a_copy_on_write_table_is_refused(tmp_path: Path) -> None:
    table = tables.copy_on_write(tmp_path / "cow", 1)
    for call in (schedule_compaction, run_compaction):
        with pytest.raises(ConfigError, match="COPY_ON_WRITE; only MERGE_ON_READ tables have log files"):
            call(table.storage, options())


def test_writers_go_on_between_plan_and_run(table: HandmadeTable) -> None:
    planned = str(schedule_compaction(table.storage, options()).instant)
    later = f"{int(planned) + 1}"
    tables.update(table, {(DAY_1, GROUP_1): {"a": 11}}, planned, instant=later)
    expected = {**MERGED, "a": 11}
    assert rows(table.storage) == expected
    result = run_compaction(table.storage, options(), instant=planned)
    assert result.instant == planned
    assert rows(table.storage) == expected
    assert rows(table.storage, read_optimized=True) == MERGED
    assert rows_by_hudi_rs(str(table.path), ["id", "qty"]) == sorted(expected.items())


def test_partitions_of_a_writer_at_work_are_left_out(table: HandmadeTable) -> None:
    tables.writer_at_work(table, [DAY_1])
    result = schedule_compaction(table.storage, options())
    assert [each.file_groups for each in show_compactions(table.storage)] == [1]
    plan = CompactionPlan.from_bytes(
        table.storage.read(f".hoodie/{result.instant}.compaction.requested"), "plan"
    )
    assert [operation.partition for operation in plan.operations] == [DAY_2]


def test_nothing_is_planned_while_a_writer_has_not_said_where_it_writes(table: HandmadeTable) -> None:
    tables.writer_at_work(table, None)
    result = run_compaction(table.storage, options())
    assert result.instant is None
    assert result.reason.startswith("a write is under way")


def test_a_group_is_planned_once(table: HandmadeTable) -> None:
    schedule_compaction(table.storage, options())
    again = schedule_compaction(table.storage, options())
    assert again.instant is None
    assert again.reason == "every file slice with log files is being compacted, clustered or written to"


@pytest.mark.parametrize(("order", "first"), [("FIFO", 0), ("LIFO", 1)])
def test_pending_plans_run_in_the_wanted_order(table: HandmadeTable, order: str, first: int) -> None:
    limited = options(compaction__strategy="DayBased", compaction__daybased__target__partitions=1)
    planned = [schedule_compaction(table.storage, limited).instant for _ in range(2)]
    assert run_compaction(table.storage, options(compaction__order=order)).instant == planned[first]
    assert rows(table.storage) == MERGED


def test_a_plan_that_is_not_there_is_refused_by_name(table: HandmadeTable) -> None:
    planned = schedule_compaction(table.storage, options()).instant
    with pytest.raises(TimelineError, match=f"'20260101000000000' is not planned; planned are: {planned}"):
        run_compaction(table.storage, options(), instant="20260101000000000")


def failing(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Run one task, then fail."""
    function(items[0])
    raise OSError("disk full")


def test_a_failed_run_leaves_the_plan_and_no_file(table: HandmadeTable) -> None:
    before = data_files(table.storage)
    with pytest.raises(ServiceError, match="taken back; its plan is kept and can be run again: disk full"):
        run_compaction(table.storage, options(), run_tasks=failing)
    assert [each.state for each in show_compactions(table.storage)] == ["REQUESTED"]
    assert data_files(table.storage) == before
    assert table.storage.list(".hoodie/.heartbeat") == []
    assert table.storage.list(".hoodie/.temp", recursive=True) == []
    assert rows(table.storage) == MERGED
    assert run_compaction(table.storage, options()).state == "completed"
    assert rows(table.storage, read_optimized=True) == MERGED


def test_tasks_that_get_lost_or_come_twice_are_no_commit(table: HandmadeTable) -> None:
    with pytest.raises(ServiceError, match="planned 2 file groups, 1 came back"):
        run_compaction(table.storage, options(), run_tasks=lambda function, items: [function(items[0])])
    with pytest.raises(ServiceError, match="planned 2 file groups, 2 came back"):
        run_compaction(table.storage, options(), run_tasks=lambda function, items: [function(items[0])] * 2)
    assert rows(table.storage) == MERGED


def test_files_of_repeated_attempts_are_removed(table: HandmadeTable) -> None:
    def twice(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        for item in items:
            function(item)
        return [function(item) for item in items]

    result = run_compaction(table.storage, options(), run_tasks=twice)
    assert sum(str(result.instant) in name for name in data_files(table.storage)) == 2
    assert rows(table.storage) == MERGED


def running_elsewhere(table: HandmadeTable, owner: Owner) -> str:
    """Put a planned compaction in flight for an owner."""
    planned = str(schedule_compaction(table.storage, options()).instant)
    table.storage.create(f".hoodie/{planned}.compaction.inflight", b"")
    write_owner(table.storage, planned, owner)
    return planned


def test_a_compaction_that_is_running_is_left_alone(table: HandmadeTable) -> None:
    owner = Owner.current()
    register(owner)
    try:
        planned = running_elsewhere(table, owner)
        with pytest.raises(ServiceError, match="being run by another process"):
            run_compaction(table.storage, options(), instant=planned)
        assert run_compaction(table.storage, options()).instant is None
    finally:
        unregister(owner)


def test_a_compaction_whose_process_is_gone_runs_again(table: HandmadeTable) -> None:
    planned = running_elsewhere(table, Owner.current())
    stray = f"{GROUP_3}_7-7-7_{planned}.parquet"
    table.storage.create(f"{DAY_2}/{stray}", b"cut short")
    assert rows(table.storage) == MERGED
    assert run_compaction(table.storage, options()).instant == planned
    assert stray not in data_files(table.storage)
    assert rows(table.storage, read_optimized=True) == MERGED


def test_a_run_that_was_taken_for_dead_commits_nothing(table: HandmadeTable) -> None:
    def overtaken(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        found = [function(item) for item in items]
        (pending,) = [each for each in timeline(table.storage).pending if each.action == "compaction"]
        write_owner(table.storage, pending.requested_time, Owner.current())
        return found

    with pytest.raises(WriteConflictError, match="taken over by another process"):
        run_compaction(table.storage, options(), run_tasks=overtaken)
    assert rows(table.storage) == MERGED
    assert run_compaction(table.storage, options()).state == "completed"
    assert rows(table.storage, read_optimized=True) == MERGED


def test_a_missing_log_file_fails_the_run_by_name(table: HandmadeTable) -> None:
    schedule_compaction(table.storage, options())
    (log,) = [name for name in data_files(table.storage) if name.startswith(f".{GROUP_3}")]
    table.storage.delete(f"{DAY_2}/{log}")
    with pytest.raises(CorruptTableError, match=f"needs '{log}' in partition 'day=2', which is missing"):
        run_compaction(table.storage, options())


@pytest.mark.parametrize(
    "change",
    [
        {"partitionPath": "../../home"},
        {"dataFilePath": "passwd"},
        {"deltaFilePaths": [".other-group-0_20260101000001000.log.1_0-1-1"]},
        {"fileId": ""},
    ],
)
def test_a_forged_plan_touches_nothing(table: HandmadeTable, change: dict[str, object]) -> None:
    planned = schedule_compaction(table.storage, options()).instant
    path = f".hoodie/{planned}.compaction.requested"
    record = decode_avro_file(table.storage.read(path))
    record["operations"][0].update(change)
    table.storage.replace(path, encode_avro_file(COMPACTION_PLAN, record))
    before = data_files(table.storage)
    with pytest.raises((CorruptTableError, ValueError)):
        run_compaction(table.storage, options())
    assert data_files(table.storage) == before


@pytest.mark.parametrize("length", [0, 30, -1])
def test_a_plan_that_was_cut_short_is_dropped_and_planned_anew(table: HandmadeTable, length: int) -> None:
    torn = schedule_compaction(table.storage, options()).instant
    path = f".hoodie/{torn}.compaction.requested"
    table.storage.replace(path, table.storage.read(path)[:length])
    result = run_compaction(table.storage, options())
    assert result.state == "completed"
    assert not table.storage.exists(path)
    assert rows(table.storage, read_optimized=True) == MERGED


def test_a_plan_without_operations_completes(table: HandmadeTable) -> None:
    table.storage.create(".hoodie/20260101000009000.compaction.requested", CompactionPlan(()).to_bytes())
    result = run_compaction(table.storage, options())
    assert (result.instant, result.file_groups, result.rows) == ("20260101000009000", 0, 0)
    assert rows_by_hudi_rs(str(table.path), ["id", "qty"]) == sorted(MERGED.items())


def test_logs_beyond_the_memory_limit_give_the_same_rows(table: HandmadeTable) -> None:
    run_compaction(table.storage, options(memory__compaction__max__size=1))
    assert rows(table.storage, read_optimized=True) == MERGED


def test_the_new_base_file_is_the_latest_slice_and_has_no_logs(table: HandmadeTable) -> None:
    result = run_compaction(table.storage, options())
    view = FileSystemView.build(table.storage, table.config, timeline(table.storage))
    found = {each.file_id: (each.base_instant, len(each.log_files)) for each in view.latest_slices()}
    assert found[GROUP_1] == (result.instant, 0)
    assert found[GROUP_3] == (result.instant, 0)


def begun_upsert(table: HandmadeTable) -> WriteTransaction:
    """Begin a delta commit that is going to change group 1."""
    transaction = WriteTransaction.begin(
        table.storage, table.config, options(), UNPUBLISHED, action="deltacommit", operation="UPSERT"
    )
    transaction.inflight(CommitMetadata({DAY_1: [WriteStat(file_id=GROUP_1)]}, {}, "UPSERT"))
    return transaction


def append_and_commit(table: HandmadeTable, transaction: WriteTransaction, base_instant: str) -> None:
    """Write row a=11 into a log of group 1 and commit."""
    blocks = table.data_blocks(DAY_1, GROUP_1, tables.batch({"a": 11}, DAY_1), transaction.instant)
    stat = table.append_log(DAY_1, GROUP_1, base_instant, blocks, transaction.instant)
    transaction.commit(CommitMetadata({DAY_1: [stat]}, {"schema": table.avro_text()}, "UPSERT"))


def test_a_writer_that_knows_the_plan_commits_after_the_compaction(table: HandmadeTable) -> None:
    planned = str(schedule_compaction(table.storage, options()).instant)
    with begun_upsert(table) as transaction:
        assert run_compaction(table.storage, options()).instant == planned
        append_and_commit(table, transaction, planned)
    assert rows(table.storage) == {**MERGED, "a": 11}
    assert rows(table.storage, read_optimized=True) == MERGED


def test_a_writer_that_does_not_know_the_plan_keeps_its_groups_out_of_it(table: HandmadeTable) -> None:
    with begun_upsert(table) as transaction:
        result = run_compaction(table.storage, options())
        assert result.file_groups == 1
        append_and_commit(table, transaction, "20260101000001000")
    assert rows(table.storage) == {**MERGED, "a": 11}
    assert run_compaction(table.storage, options()).file_groups == 1
    assert rows(table.storage, read_optimized=True) == {**MERGED, "a": 11}


def test_a_compaction_does_not_undo_a_rollback_that_happened_meanwhile(table: HandmadeTable) -> None:
    def rolled_back_meanwhile(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        found = [function(item) for item in items]
        newest = tables.writes(table.storage)[-1]
        table.storage.delete(f".hoodie/{newest}.deltacommit")
        return found

    with pytest.raises(WriteConflictError, match="was rolled back meanwhile"):
        run_compaction(table.storage, options(), run_tasks=rolled_back_meanwhile)
    assert rows(table.storage) == {"a": 9, "b": 2, "c": 3, "d": 40, "e": 5}
    assert run_compaction(table.storage, options()).state == "completed"
    assert rows(table.storage, read_optimized=True) == {"a": 9, "b": 2, "c": 3, "d": 40, "e": 5}
