"""Procedures about files and whole tables: what they tell is what is there, what they take is what was named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi_engine.errors import ConfigError, HudiError, ServiceError, TimelineError
from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.filegroup.base_file import base_file_name
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.table.inspect import file_facts
from hudi_engine.table.operations.procedures import PROCEDURES, find_procedure
from hudi_engine.table.state import TableState
from hudi_engine.table.table_services import TableServices
from hudi_engine.table.txn.owner import Owner, register, unregister

from tests.helpers.handmade import HandmadeTable
from tests.helpers.owners import write_owner
from tests.unit.services import tables
from tests.unit.services.tables import DAY_1, DAY_2, MERGED


@pytest.fixture
def services(tmp_path: Path) -> TableServices:
    storage = tables.merge_on_read(tmp_path / "t").storage
    return TableServices(storage, tables.options(engine__publish__manifest="false"))


def call(services: TableServices, name: str, **given: str) -> list[dict[str, Any]]:
    procedure = PROCEDURES[name]
    columns = [column.split()[0].strip("`") for column in procedure.columns.split(", ")]
    return [dict(zip(columns, row, strict=True)) for row in procedure.call(services, given)]


def on_disk(storage: Storage, name: str) -> int:
    (path,) = Path(storage.base).rglob(name.rpartition("/")[2])
    return path.stat().st_size


def test_the_newest_slices_are_those_that_a_snapshot_reads(services: TableServices) -> None:
    rows = call(services, "show_fsview_latest")
    facts = file_facts(TableState.load(services.storage))
    assert {row["data_file"] for row in rows} == {each.uri for each in facts if each.kind == "base"}
    assert sum(row["num_delta_files"] for row in rows) == sum(each.kind == "log" for each in facts) == 3
    for row in rows:
        assert row["data_file_size"] == on_disk(services.storage, row["data_file"])
        assert row["total_delta_file_size"] == row["delta_size_compaction_scheduled"]
        ratio = row["delta_to_base_radio_compaction_scheduled"]
        assert ratio == row["total_delta_file_size"] / row["data_file_size"]
    assert {row["partition"] for row in call(services, "show_fsview_latest", partition_path=DAY_2)} == {DAY_2}
    assert len(call(services, "show_fsview_latest", limit="1")) == 1


def test_logs_after_a_planned_compaction_are_separate(services: TableServices) -> None:
    services.schedule_compaction()
    table = services.storage
    instant = tables.timeline(table).pending[0].requested_time
    row = next(each for each in call(services, "show_fsview_latest") if each["num_delta_files"] == 2)
    assert row["delta_size_compaction_unscheduled"] == 0 and instant > row["base_instant"]


def test_older_slices_are_shown_until_they_are_cleaned(services: TableServices) -> None:
    assert len(call(services, "show_fsview_all")) == 3
    services.compact()
    assert len(call(services, "show_fsview_all")) == 5
    assert len(call(services, "show_fsview_latest")) == 3


def test_file_sizes_by_commit_and_in_total(services: TableServices) -> None:
    sizes = sorted(path.stat().st_size for path in Path(services.storage.base).glob("*/*[0-9].parquet"))
    sizes += [path.stat().st_size for path in Path(services.storage.base).glob("*/.*log*")]
    *commits, total = call(services, "stats_file_sizes")
    assert len(commits) == 1 and total["commit_time"] == "ALL"
    assert (total["num_files"], total["min"], total["max"]) == (6, min(sizes), max(sizes))
    assert total["avg"] == pytest.approx(sum(sizes) / 6)
    assert total["min"] <= total["10th"] <= total["50th"] <= total["95th"] <= total["max"]


def test_files_that_are_no_parquet_are_named(services: TableServices) -> None:
    assert call(services, "show_invalid_parquet") == []
    path = next(Path(services.storage.base).glob("day=2/*.parquet"))
    path.write_bytes(b"PAR1 torn")
    assert [row["path"].rpartition("/")[2] for row in call(services, "show_invalid_parquet")] == [path.name]


def test_files_of_commits_are_newest_first(services: TableServices) -> None:
    rows = call(services, "show_commits_metadata", limit="100")
    writes = tables.writes(services.storage)
    assert list(dict.fromkeys(row["commit_time"] for row in rows)) == writes[::-1]
    assert sum(row["num_writes"] for row in rows if row["commit_time"] == writes[0]) == 5
    assert len(call(services, "show_commits_metadata", limit="2")) == 2
    assert call(services, "show_archived_commits_metadata") == []


def test_restores_to_a_commit_without_savepoint(services: TableServices) -> None:
    first, *_ = tables.writes(services.storage)
    (row,) = call(services, "restore_to_instant", instant_time=first)
    assert row["restore_result"] is True and row["instants_rolled_back"] == 2
    assert row["start_restore_time"] > first and row["time_taken_in_millis"] >= 0
    assert tables.rows(services.storage) == {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}


def test_drop_partition_and_truncate(services: TableServices) -> None:
    assert call(services, "drop_partition", partition=DAY_2) == [{"result": "Success"}]
    assert tables.rows(services.storage) == {key: MERGED[key] for key in "ac"}
    with pytest.raises(ConfigError, match="hold no rows"):
        call(services, "drop_partition", partition=DAY_2)
    (done,) = call(services, "truncate_table")
    assert (done["result"], tables.rows(services.storage)) == ("SUCCESS", {})
    writes = tables.writes(services.storage)
    assert call(services, "truncate_table")[0]["result"] == "SUCCESS"
    assert tables.writes(services.storage) == writes, "an empty table gets no commit"
    assert tables.rows(services.storage, as_of=writes[0])["b"] == 2


def test_some_partitions_are_emptied(services: TableServices) -> None:
    call(services, "truncate_table", partitions=f"{DAY_1}, {DAY_2}")
    assert tables.rows(services.storage) == {}


@pytest.mark.parametrize(
    ("named", "left"),
    [
        ("Washington, DC", {"DC", "Bern"}),
        ("DC, Washington, DC", {"Bern"}),
        ("Bern,Washington, DC", {"DC"}),
        ("DC,Bern", {"Washington, DC"}),
    ],
)
def test_partition_path_may_contain_a_comma(tmp_path: Path, named: str, left: set[str]) -> None:
    services = towns(tmp_path, "Washington, DC", "DC", "Bern")
    call(services, "drop_partition", partition=named)
    slices = TableState.load(services.storage).view().latest_slices()
    assert {each.partition for each in slices} == left


def test_ambiguous_partition_paths_are_refused(tmp_path: Path) -> None:
    services = towns(tmp_path, "Washington, DC", "Washington", "DC")
    with pytest.raises(ConfigError, match=r"can be the partitions \[.*\] or \[.*DELETE FROM"):
        call(services, "drop_partition", partition="Washington, DC")


def towns(tmp_path: Path, *partitions: str) -> TableServices:
    """A table with a row in each of some partitions."""
    schema = pa.schema([("id", pa.int64()), ("city", pa.string())])
    plain = {"hoodie.datasource.write.hive_style_partitioning": "false"}
    table = HandmadeTable(tmp_path / "t", schema, ("city",), properties=plain)
    table.commit(
        {
            partition: {f"f-{number}": pa.table({"id": [number], "city": [partition]})}
            for number, partition in enumerate(partitions)
        }
    )
    return TableServices(table.storage, tables.options())


def test_orphan_files_are_named_first(services: TableServices) -> None:
    instant = "29990101000000000"
    name = base_file_name("stray-0", "0-0-0", instant)
    services.storage.create(f"{DAY_1}/{name}", b"{}")
    expected = {"partition": DAY_1, "file_name": name, "instant_time": instant, "backup_path": ""}
    assert call(services, "repair_orphan_files") == [{**expected, "status": "IDENTIFIED"}]
    assert call(services, "repair_orphan_files", partition=DAY_2) == []
    with pytest.raises(ConfigError, match="nothing is copied"):
        call(services, "repair_orphan_files", dry_run="false", backup_path="/elsewhere")
    with pytest.raises(ConfigError, match="partition narrows only"):
        call(services, "repair_orphan_files", dry_run="false", partition=DAY_2)
    assert services.storage.exists(f"{DAY_1}/{name}")
    assert call(services, "repair_orphan_files", dry_run="false") == [{**expected, "status": "DELETED"}]
    assert not services.storage.exists(f"{DAY_1}/{name}")


def test_markers_go_only_when_their_write_is_over(tmp_path: Path) -> None:
    table = tables.merge_on_read(tmp_path / "t")
    services = TableServices(table.storage, tables.options())
    busy = tables.writer_at_work(table, [DAY_1])
    for instant in (busy, "20200101000000000"):
        table.storage.create(f".hoodie/.temp/{instant}/{DAY_1}/x.parquet.marker.CREATE", b"")
    call(services, "delete_marker", instant_time="20200101000000000")
    assert not table.storage.exists(".hoodie/.temp/20200101000000000")
    with pytest.raises(ConfigError, match=f"{busy} is under way"):
        call(services, "delete_marker", instant_time=busy)
    with pytest.raises(ConfigError, match=r"instant_time is '\.\./x'"):
        call(services, "delete_marker", instant_time="../x")


def test_metadata_table_is_deleted(
    services: TableServices,
) -> None:
    services.storage.create(".hoodie/metadata/.hoodie/hoodie.properties", b"")
    ((said,),) = PROCEDURES["delete_metadata_table"].call(services, {})
    assert said.startswith("Deleted Metadata Table at '")
    assert not services.storage.exists(".hoodie/metadata")
    with pytest.raises(ConfigError, match="writes keep that up to date by themselves"):
        find_procedure("init_metadata_table")


def test_log_blocks_and_records_are_shown(services: TableServices) -> None:
    rows = call(services, "show_logfile_metadata", log_file_path_pattern=f"{DAY_1}/*")
    assert [(row["block_type"], row["record_count"]) for row in rows] == [
        ("AVRO_DATA_BLOCK", 1),
        ("AVRO_DATA_BLOCK", 1),
        ("DELETE_BLOCK", 0),
    ]
    writes = tables.writes(services.storage)
    assert [row["instant_time"] for row in rows] == [writes[1], writes[2], writes[2]]
    assert json.loads(rows[0]["header_metadata"])["INSTANT_TIME"] == writes[1]

    pattern = f"{services.storage.base}/*/.*.log.*"
    records = [
        json.loads(row["records"])
        for row in call(services, "show_logfile_records", log_file_path_pattern=pattern, limit="2")
    ]
    assert [(row["id"], row["qty"]) for row in records] == [("a", 9), ("a", 10)]
    with pytest.raises(
        ConfigError, match="which no log file of the table fits; one of its log files is: day=1"
    ):
        call(services, "show_logfile_records", log_file_path_pattern="../*")


def test_file_group_history_shows_deleted_and_replaced_files(tmp_path: Path) -> None:
    storage = tables.copy_on_write(tmp_path / "t", 3).storage
    services = TableServices(storage, tables.options())
    services.clean(1)
    call(services, "truncate_table")
    rows = call(services, "show_file_group_history", file_group_id=tables.GROUP_1)
    assert [row["instant_time"] for row in rows] == tables.writes(storage)[2::-1]
    assert [row["was_deleted"] for row in rows][-1] is True and rows[-1]["delete_action"] == "clean"
    assert {row["replace_instant"] for row in rows} == {tables.writes(storage)[-1]}
    assert call(services, "show_file_group_history", file_group_id=tables.GROUP_1, partition=DAY_2) == []
    (plan,) = call(services, "show_clean_plans")
    assert plan["state"] == "COMPLETED"
    assert plan["policy"] == "KEEP_LATEST_COMMITS" and plan["total_partitions_to_clean"] == 1
    assert plan["plan_time"] == rows[-1]["delete_instant"]


def test_commits_compare_counts_missing_commits(services: TableServices, tmp_path: Path) -> None:
    shutil.copytree(services.storage.base, tmp_path / "copy")
    call(services, "drop_partition", partition=DAY_2)
    newest = tables.writes(services.storage)[-1]
    (ahead,) = call(services, "commits_compare", path=str(tmp_path / "copy"))
    assert ahead["compare_detail"] == (
        f"Source handmade is ahead by 1 commits. Commits to catch up - [{newest}]"
    )
    copy = TableServices(open_storage(str(tmp_path / "copy")), services.options)
    (behind,) = call(copy, "commits_compare", path=services.storage.base)
    assert "is behind by 1 commits" in behind["compare_detail"]


def begun_compaction(services: TableServices) -> str:
    """Leave a compaction in flight whose process is gone, with a file that it wrote."""
    planned = str(services.schedule_compaction().instant)
    services.storage.create(f".hoodie/{planned}.compaction.inflight", b"")
    write_owner(services.storage, planned, Owner.current())
    services.storage.create(f"{DAY_1}/{base_file_name(tables.GROUP_1, '1-0-1', planned)}", b"cut short")
    return planned


def test_inflight_compaction_is_rolled_back_and_can_run_again(services: TableServices) -> None:
    name, files = "run_rollback_inflight_tableservice", sorted(Path(services.storage.base).rglob("*.parquet"))
    with pytest.raises(
        TimelineError, match="no compaction or clustering 1 is in flight; in flight are: none"
    ):
        call(services, name, pending_instant="1")
    planned = begun_compaction(services)
    (row,) = call(services, name, pending_instant=planned)
    assert row["instant"] == planned and int(row["time_cost"]) >= 0
    assert sorted(Path(services.storage.base).rglob("*.parquet")) == files
    assert [str(each.state) for each in services.compactions()] == ["REQUESTED"]
    assert services.compact(planned).state == "completed"
    assert tables.rows(services.storage) == MERGED


def test_compaction_plan_with_later_logs_is_kept(tmp_path: Path) -> None:
    table = tables.merge_on_read(tmp_path / "t")
    services = TableServices(table.storage, tables.options(engine__publish__manifest="false"))
    given = {"delete_request_instant_file": "true"}
    call(services, "run_rollback_inflight_tableservice", pending_instant=begun_compaction(services), **given)
    assert services.compactions() == [] and tables.rows(table.storage) == MERGED
    planned = begun_compaction(services)
    tables.update(table, {(DAY_1, tables.GROUP_1): {"a": 11}}, planned, instant=str(int(planned) + 1000))
    with pytest.raises(
        TimelineError, match=rf"named after it: {DAY_1}/.*{planned}.*; run the compaction instead"
    ):
        call(services, "run_rollback_inflight_tableservice", pending_instant=planned, **given)
    assert services.compact(planned).state == "completed"
    assert tables.rows(table.storage) == {**MERGED, "a": 11}


def test_running_compaction_is_not_rolled_back(services: TableServices) -> None:
    planned, owner = begun_compaction(services), Owner.current()
    register(owner)
    write_owner(services.storage, planned, owner)
    try:
        with pytest.raises(ServiceError, match="being run by another process"):
            call(services, "run_rollback_inflight_tableservice", pending_instant=planned)
    finally:
        unregister(owner)


def test_properties_are_overwritten_from_a_file(services: TableServices, tmp_path: Path) -> None:
    name, file = "repair_overwrite_hoodie_props", tmp_path / "new.properties"
    before = services.storage.read(PROPERTIES_PATH)
    for content, why in (
        (b"hoodie.table.name=t", "has version 0"),
        (before.replace(b"hoodie.table.version=6", b"hoodie.table.version=8"), "version"),
    ):
        file.write_bytes(b"\n".join(line for line in content.split(b"\n") if b"checksum" not in line))
        with pytest.raises(HudiError, match=why):
            call(services, name, new_props_file_path=str(file))
    with pytest.raises(ConfigError, match="where there is no file"):
        call(services, name, new_props_file_path=str(tmp_path / "nothing"))
    assert services.storage.read(PROPERTIES_PATH) == before

    lines = [
        line for line in before.decode().splitlines() if "table.name" not in line and "checksum" not in line
    ]
    file.write_text("\n".join([*lines, "hoodie.table.name=renamed", "hoodie.note=new"]))
    rows = {
        row["property"]: (row["old_value"], row["new_value"])
        for row in call(services, name, new_props_file_path=str(file))
    }
    assert rows["hoodie.table.name"][1] == "renamed" and rows["hoodie.note"] == ("null", "new")
    assert rows["hoodie.table.type"] == ("MERGE_ON_READ", "MERGE_ON_READ")
    assert TableState.load(services.storage).config.name == "renamed"
    assert tables.rows(services.storage) == MERGED
