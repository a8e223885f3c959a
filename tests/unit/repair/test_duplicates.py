"""Keys that are there more than once: one row of each stays, the right one, and nothing else changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi_engine.cli import main
from hudi_engine.errors import ConfigError, WriteConflictError
from hudi_engine.format.filegroup.base_file import parse_base_file
from hudi_engine.format.storage.base import Storage
from hudi_engine.table.inspect import duplicate_keys, validate
from hudi_engine.table.operations.procedures import PROCEDURES
from hudi_engine.table.repair.duplicates import find_duplicates
from hudi_engine.table.state import TableState
from hudi_engine.table.table_services import TableServices

from tests.helpers.handmade import HandmadeTable, file_id
from tests.helpers.hudi_rs import rows_by_hudi_rs
from tests.helpers.read_table import read_table
from tests.unit.services import tables

SCHEMA = pa.schema([("id", pa.string()), ("at", pa.int64()), ("note", pa.string()), ("day", pa.string())])
BY_EVENT = {
    "hoodie.table.precombine.field": "at",
    "hoodie.table.ordering.fields": "at",
    "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
}
DAY = "day=1"


def batch(*rows: tuple[str, int, str]) -> pa.Table:
    columns = [list(each) for each in zip(*rows, strict=True)]
    return pa.table([*columns, ["1"] * len(rows)], schema=SCHEMA)


def services(storage: Storage) -> TableServices:
    return TableServices(storage, tables.options())


def notes(storage: Storage, column: str = "note") -> list[tuple[str, str]]:
    found = read_table(storage, columns=["id", column])
    return sorted(zip(found.column(0).to_pylist(), found.column(1).to_pylist(), strict=True))


@pytest.fixture
def table(tmp_path: Path) -> HandmadeTable:
    """Key a is in two file groups, b twice in one file, c once beside them, d alone in a file group."""
    table = HandmadeTable(tmp_path / "t", SCHEMA, ("day",), properties=BY_EVENT)
    alone, rest = batch(("d", 1, "d")), [("b", 2, "new"), ("b", 1, "old"), ("c", 1, "c")]
    table.commit({DAY: {file_id(): batch(("a", 9, "new"), *rest), file_id(): alone}})
    table.commit({DAY: {file_id(): batch(("a", 1, "late and old"))}})
    return table


WHOLE = [("a", "new"), ("b", "new"), ("c", "c"), ("d", "d")]


def test_the_row_with_the_highest_ordering_value_of_each_key_stays(table: HandmadeTable) -> None:
    storage = table.storage
    before = {each.file_id for each in TableState.load(storage).view().latest_slices()}

    (done,) = services(storage).repair(("duplicate_keys",), dry_run=False)

    assert (done.path, "2 rows taken out" in done.done) == (DAY, True)
    assert notes(storage) == WHOLE
    assert (
        duplicate_keys(TableState.load(storage), tables.options()) == [] == validate(TableState.load(storage))
    )
    kept = {each.file_id for each in TableState.load(storage).view().latest_slices()} & before
    assert len(kept) == 1, "a file group that has one row of each key stays"
    assert services(storage).repair(("duplicate_keys",), dry_run=False) == []


@pytest.mark.parametrize("somebody_writes", [False, True])
def test_keys_are_read_once_unless_somebody_writes_meanwhile(
    table: HandmadeTable, monkeypatch: pytest.MonkeyPatch, somebody_writes: bool
) -> None:
    looks = []

    def look(*given: Any) -> Any:
        looks.append(given)
        found = find_duplicates(*given)
        if somebody_writes and len(looks) == 1:
            table.commit({DAY: {file_id(): batch(("a", 10, "newest"))}})
        return found

    monkeypatch.setattr("hudi_engine.table.repair.duplicates.find_duplicates", look)
    services(table.storage).repair(("duplicate_keys",), dry_run=False)

    assert len(looks) == 1 + somebody_writes
    assert duplicate_keys(TableState.load(table.storage), tables.options()) == []


def test_hudi_rs_reads_the_repaired_table(table: HandmadeTable) -> None:
    services(table.storage).repair(("duplicate_keys",), dry_run=False)
    assert rows_by_hudi_rs(str(table.path), ["id", "note"]) == WHOLE


def test_a_look_says_what_would_go_and_changes_nothing(table: HandmadeTable) -> None:
    files = tables.data_files(table.storage)
    (told,) = services(table.storage).repair(("duplicate_keys",))
    assert told.done.startswith("2 rows")
    assert tables.data_files(table.storage) == files and len(tables.writes(table.storage)) == 2
    assert services(table.storage).repair(dry_run=False) == [], "only who names it has rows taken out"


def test_rows_that_stay_keep_the_time_of_their_commit(table: HandmadeTable) -> None:
    first = tables.writes(table.storage)[0]
    services(table.storage).repair(("duplicate_keys",), dry_run=False)
    assert {time for _, time in notes(table.storage, "_hoodie_commit_time")} == {first}


def test_the_repair_can_be_rolled_back(table: HandmadeTable) -> None:
    before = notes(table.storage)
    services(table.storage).repair(("duplicate_keys",), dry_run=False)
    services(table.storage).rollback(tables.writes(table.storage)[-1])
    assert notes(table.storage) == before


def test_without_ordering_the_row_committed_last_stays_and_other_partitions_are_left_alone(
    tmp_path: Path,
) -> None:
    table = HandmadeTable(tmp_path / "t", tables.SCHEMA, ("day",))
    for value in (1, 2):
        table.commit(
            {
                day: {file_id(): tables.batch({"a": value, f"only{value}": value}, day)}
                for day in (tables.DAY_1, tables.DAY_2)
            }
        )
    services(table.storage).repair(("duplicate_keys",), dry_run=False, partitions=[tables.DAY_1])
    found = read_table(table.storage, columns=["id", "qty", "day"]).to_pylist()
    assert sorted((row["id"], row["qty"]) for row in found if row["day"] == "1") == [
        ("a", 2),
        ("only1", 1),
        ("only2", 2),
    ]
    assert sorted(row["qty"] for row in found if row["day"] == "2") == [1, 1, 2, 2]


def test_rows_of_logs_count_in_a_merge_on_read_table(tmp_path: Path) -> None:
    table = tables.merge_on_read(tmp_path / "t")
    table.commit({tables.DAY_1: {file_id(): tables.batch({"a": 77, "x": 1}, tables.DAY_1)}})

    services(table.storage).repair(("duplicate_keys",), dry_run=False)

    assert tables.rows(table.storage) == {**tables.MERGED, "a": 77, "x": 1}
    assert tables.writes(table.storage)[-1] in str(tables.timeline(table.storage).completed_writes)


def test_a_file_group_of_a_bucket_keeps_the_number_of_its_bucket(tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t", tables.SCHEMA, ("day",))
    twice = pa.concat_tables(
        [tables.batch({"a": 1, "b": 1}, tables.DAY_1), tables.batch({"a": 2}, tables.DAY_1)]
    )
    table.commit({tables.DAY_1: {"00000003-0000-4000-8000-000000000000-0": twice}})
    services(table.storage).repair(("duplicate_keys",), dry_run=False)
    (piece,) = TableState.load(table.storage).view().latest_slices()
    assert piece.file_id.startswith("00000003-") and piece.base_file is not None
    assert parse_base_file(piece.base_file.path, tables.DAY_1) is not None


def test_file_groups_of_a_planned_clustering_are_left_alone(table: HandmadeTable) -> None:
    services(table.storage).schedule_clustering()
    with pytest.raises(WriteConflictError, match="is part of clustering"):
        services(table.storage).repair(("duplicate_keys",), dry_run=False)
    assert len(notes(table.storage)) == 6


def test_hudis_procedure_looks_first(table: HandmadeTable) -> None:
    call = PROCEDURES["repair_deduplicate"].call
    where = {"duplicated_partition_path": DAY, "repaired_output_path": "/tmp/unused"}  # noqa: S108
    ((told,),) = call(services(table.storage), where)
    assert told.startswith("dry run: 2 rows") and len(notes(table.storage)) == 6
    ((done,),) = call(services(table.storage), {**where, "dry_run": "false"})
    assert tables.writes(table.storage)[-1] in done and notes(table.storage) == WHOLE
    assert call(services(table.storage), where) == [("every key is there once",)]
    with pytest.raises(ConfigError, match="dedupe_type is 'best'; legal values: insert_type"):
        call(services(table.storage), {**where, "dedupe_type": "best"})
    with pytest.raises(ConfigError, match="partition 'day=9' has no rows"):
        call(services(table.storage), {"duplicated_partition_path": "day=9"})


def test_the_command_line_repairs(table: HandmadeTable, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(table.path)
    assert main([path, "validate", "--keys"]) == 1
    assert main([path, "repair", "duplicate_keys", "--dry-run"]) == 0
    assert "1 repairs would be made" in capsys.readouterr().out
    assert main([path, "repair", "duplicate_keys", "--partition", DAY]) == 0
    assert main([path, "validate", "--keys"]) == 0
    assert main([path, "repair", "everything"]) == 2
    assert "legal values: partition_metadata" in capsys.readouterr().err
