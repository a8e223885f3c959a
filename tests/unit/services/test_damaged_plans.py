"""A plan of a compaction that cannot be read, and that later writes go by."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.errors import CorruptTableError
from hudi_engine.format.filegroup.base_file import base_file_name
from hudi_engine.table.services import run_compaction, schedule_compaction
from hudi_engine.table.table_services import TableServices

from tests.unit.services import tables
from tests.unit.services.tables import DAY_1, GROUP_1, MERGED, data_files, options, rows


@pytest.mark.parametrize("length", [0, 30, -1])
def test_a_damaged_plan_stays_while_logs_are_named_after_it(tmp_path: Path, length: int) -> None:
    table = tables.merge_on_read(tmp_path / "t")
    planned = schedule_compaction(table.storage, options()).instant
    tables.update(table, {(DAY_1, GROUP_1): {"a": 11}}, str(planned), instant=str(int(str(planned)) + 1000))
    path = f".hoodie/{planned}.compaction.requested"
    whole, files = table.storage.read(path), data_files(table.storage)
    table.storage.replace(path, whole[:length])
    services = TableServices(table.storage, options(engine__publish__manifest="false"))

    with pytest.raises(CorruptTableError, match=f"named after it: {DAY_1}/.*{planned}.*Put the file back"):
        run_compaction(table.storage, options())
    for dry_run in (True, False):
        (kept,) = services.repair(("damaged_plans",), dry_run=dry_run)
        assert kept.path == path and kept.done.startswith("kept: ") and "named after it" in kept.done
    assert table.storage.exists(path) and data_files(table.storage) == files
    assert rows(table.storage) == {**MERGED, "a": 11}

    table.storage.replace(path, whole)
    assert run_compaction(table.storage, options()).instant == planned
    assert rows(table.storage) == {**MERGED, "a": 11}


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_damaged_plan_that_stays_keeps_no_other_repair_from_running(tmp_path: Path, dry_run: bool) -> None:
    table = tables.merge_on_read(tmp_path / "t")
    planned = schedule_compaction(table.storage, options()).instant
    tables.update(table, {(DAY_1, GROUP_1): {"a": 11}}, str(planned), instant=str(int(str(planned)) + 1000))
    table.storage.replace(f".hoodie/{planned}.compaction.requested", b"Obj")
    orphan = f"{DAY_1}/{base_file_name('stray-0', '0-0-0', '29990101000000000')}"
    table.storage.create(orphan, b"{}")
    services = TableServices(table.storage, options(engine__publish__manifest="false"))
    found = {each.kind: each for each in services.repair(dry_run=dry_run)}
    assert set(found) == {"damaged_plans", "orphan_files"}
    assert found["orphan_files"].path == orphan
    assert table.storage.exists(orphan) is dry_run


def test_a_damaged_plan_that_nobody_goes_by_is_dropped_by_a_repair(tmp_path: Path) -> None:
    table = tables.merge_on_read(tmp_path / "t")
    planned = schedule_compaction(table.storage, options()).instant
    table.storage.replace(f".hoodie/{planned}.compaction.requested", b"Obj")
    services = TableServices(table.storage, options(engine__publish__manifest="false"))
    (done,) = services.repair(("damaged_plans",), dry_run=False)
    assert done.done == f"dropped compaction {planned}, whose plan was cut short"
    assert run_compaction(table.storage, options()).state == "completed"
    assert rows(table.storage, read_optimized=True) == MERGED
