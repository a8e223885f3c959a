"""A rollback that Apache Hudi began of the run of a compaction or clustering, not of its plan."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.errors import ServiceError
from hudi_engine.format.filegroup.markers import write_marker
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.avro_file import encode_avro_file
from hudi_engine.format.timeline.instant import State
from hudi_engine.format.timeline.schemas import ROLLBACK_PLAN
from hudi_engine.table.services import (
    run_clustering,
    run_compaction,
    schedule_clustering,
    schedule_compaction,
    show_clusterings,
    show_compactions,
)
from hudi_engine.table.services.archive.execute import archive_instants
from hudi_engine.table.state import TableState
from hudi_engine.table.table_services import TableServices
from hudi_engine.table.txn.publication import UNPUBLISHED
from hudi_engine.table.txn.recovery import rollback_write
from hudi_engine.table.txn.removal import Removal

from tests.faults.scenarios import recover_now
from tests.helpers.handmade import HandmadeTable
from tests.helpers.owners import age
from tests.unit.services import tables
from tests.unit.services.tables import DAY_1, GROUP_1, MERGED, merge_on_read, options, rows

ROLLBACK = "20991231235959000"


def torn_base_file(storage: Storage, instant: str) -> str:
    """A base file that a run has left; return its name."""
    name = f"{GROUP_1}_9-9-9_{instant}.parquet"
    storage.create(f"{DAY_1}/{name}", b"PAR1 torn")
    return name


def begin_rollback(
    storage: LocalStorage,
    instant: str,
    action: str,
    *deleted: str,
    inflight: bool = False,
    young: bool = False,
) -> None:
    """Put a plan in flight and store Hudi's plan to roll that run back, a day ago unless it is to be young."""
    if not storage.exists(f".hoodie/{instant}.{action}.inflight"):
        storage.create(f".hoodie/{instant}.{action}.inflight", b"")
    request = {
        "partitionPath": DAY_1,
        "fileId": "",
        "latestBaseInstant": "",
        "filesToBeDeleted": [f"{storage.base}/{DAY_1}/{name}" for name in deleted],
        "logBlocksToBeDeleted": {},
    }
    plan = {
        "instantToRollback": {"commitTime": instant, "action": action},
        "RollbackRequests": [request],
        "version": 1,
    }
    storage.create(f".hoodie/{ROLLBACK}.rollback.requested", encode_avro_file(ROLLBACK_PLAN, plan))
    if inflight:
        storage.create(f".hoodie/{ROLLBACK}.rollback.inflight", b"")
    if not young:
        age(storage)


@pytest.fixture
def table(tmp_path: Path) -> HandmadeTable:
    return merge_on_read(tmp_path / "t")


@pytest.mark.parametrize("names_log", [False, True])
def test_its_end_leaves_a_planned_compaction_and_the_rows_that_were_written_behind_it(
    table: HandmadeTable, names_log: bool
) -> None:
    storage = table.storage
    planned = str(schedule_compaction(storage, options()).instant)
    tables.update(table, {(DAY_1, GROUP_1): {"a": 11}}, planned, instant=f"{int(planned) + 1}")
    (log,) = [each.name for each in storage.list(DAY_1) if f"_{planned}.log." in each.name]
    torn = torn_base_file(storage, planned)
    begin_rollback(storage, planned, "compaction", torn, *([log] if names_log else []))

    recover_now(storage)
    assert not storage.exists(f"{DAY_1}/{torn}")
    assert storage.exists(f".hoodie/{ROLLBACK}.rollback")
    assert [(each.instant, each.state) for each in show_compactions(storage)] == [(planned, State.REQUESTED)]
    assert rows(storage) == {**MERGED, "a": 11}
    assert run_compaction(storage, options(), instant=planned).state == "completed"
    assert rows(storage) == {**MERGED, "a": 11}


def test_its_end_leaves_a_clustering_that_was_in_flight_to_run_again(tmp_path: Path) -> None:
    table = merge_on_read(tmp_path / "t")
    storage, before = table.storage, rows(table.storage)
    planned = str(schedule_clustering(storage, options()).instant)
    begin_rollback(storage, planned, "replacecommit", torn_base_file(storage, planned))
    recover_now(storage)
    assert [(each.instant, each.state) for each in show_clusterings(storage)] == [(planned, State.REQUESTED)]
    assert run_clustering(storage, options(), instant=planned).state == "completed"
    assert rows(storage) == before


@pytest.mark.parametrize("begun", [False, True], ids=["not begun", "begun"])
def test_a_compaction_that_has_run_since_stays_unless_its_files_may_have_gone(
    table: HandmadeTable, begun: bool
) -> None:
    storage = table.storage
    planned = str(schedule_compaction(storage, options()).instant)
    assert run_compaction(storage, options(), instant=planned).state == "completed"
    files = [each.name for each in storage.list(DAY_1) if each.name.endswith(f"_{planned}.parquet")]
    begin_rollback(storage, planned, "compaction", *files, inflight=begun)
    recover_now(storage)
    states = [(each.instant, each.state) for each in show_compactions(storage)]
    assert states == [(planned, State.REQUESTED if begun else State.COMPLETED)]
    assert rows(storage) == MERGED


def test_what_ran_again_and_was_archived_keeps_the_files_that_its_markers_announce(
    table: HandmadeTable,
) -> None:
    storage = table.storage
    planned = str(schedule_compaction(storage, options()).instant)
    begin_rollback(storage, planned, "compaction")
    recover_now(storage)
    assert run_compaction(storage, options(), instant=planned).state == "completed"
    later = str(int(planned) + 1)
    tables.update(table, {(DAY_1, GROUP_1): {"a": 11}}, planned, instant=later)
    tables.update(table, {(DAY_1, GROUP_1): {"a": 12}}, planned, instant=str(int(planned) + 2))
    timeline = tables.timeline(storage)
    done = [each for each in timeline.completed_writes if each.requested_time < later]
    archive_instants(TableState.load(storage), done, options())
    (name,) = [each.name for each in storage.list(DAY_1) if each.name.endswith(f"_{planned}.parquet")]
    write_marker(storage, planned, DAY_1, name, "MERGE")
    recover_now(storage)
    assert storage.exists(f"{DAY_1}/{name}")
    assert rows(storage) == {**MERGED, "a": 12}


def test_its_end_killed_after_the_run_was_taken_out_of_flight_still_leaves_the_clustering(
    table: HandmadeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = table.storage
    planned = str(schedule_clustering(storage, options()).instant)
    begin_rollback(storage, planned, "replacecommit", torn_base_file(storage, planned))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Removal, "_delete_strays", killed)
        recover_now(storage)
    assert [(each.instant, each.state) for each in show_clusterings(storage)] == [(planned, State.REQUESTED)]
    age(storage)
    recover_now(storage)
    assert storage.exists(f".hoodie/{ROLLBACK}.rollback")
    assert run_clustering(storage, options(), instant=planned).state == "completed"
    assert rows(storage) == MERGED


@pytest.mark.parametrize("inflight", [False, True])
def test_a_young_one_of_a_clustering_that_is_out_of_flight_is_left_alone_too(
    table: HandmadeTable, inflight: bool
) -> None:
    storage = table.storage
    planned = str(schedule_clustering(storage, options()).instant)
    torn = torn_base_file(storage, planned)
    begin_rollback(storage, planned, "replacecommit", torn, inflight=inflight, young=True)
    storage.delete(f".hoodie/{planned}.replacecommit.inflight")
    recover_now(storage)
    assert storage.exists(f"{DAY_1}/{torn}") and not storage.exists(f".hoodie/{ROLLBACK}.rollback")
    age(storage)
    recover_now(storage)
    assert storage.exists(f".hoodie/{ROLLBACK}.rollback"), "who began it is gone"
    assert [each.instant for each in show_clusterings(storage)] == [planned] * inflight
    assert rows(storage) == MERGED


def test_a_run_that_is_being_rolled_back_is_not_said_to_be_run(table: HandmadeTable) -> None:
    storage = table.storage
    planned = str(schedule_clustering(storage, options()).instant)
    begin_rollback(storage, planned, "replacecommit", young=True)
    told = f"{planned} is being rolled back by rollback {ROLLBACK}, which another program began; the next writer ends it"
    with pytest.raises(ServiceError, match=told):
        run_clustering(storage, options(), instant=planned)
    with pytest.raises(ServiceError, match=told):
        TableServices(storage, options()).give_up_run(planned)


def test_a_clustering_whose_run_was_rolled_back_can_be_rolled_back_as_a_plan(table: HandmadeTable) -> None:
    storage = table.storage
    planned = str(schedule_clustering(storage, options()).instant)
    begin_rollback(storage, planned, "replacecommit")
    recover_now(storage)
    assert rollback_write(storage, options(), UNPUBLISHED, planned).instant == planned
    assert show_clusterings(storage) == []
    assert rows(storage) == MERGED


def test_a_log_compaction_goes_with_its_plan(table: HandmadeTable) -> None:
    storage, planned = table.storage, "20260101000009000"
    storage.create(f".hoodie/{planned}.logcompaction.requested", b"")
    begin_rollback(storage, planned, "logcompaction")
    recover_now(storage)
    assert not [each.name for each in storage.list(".hoodie") if each.name.startswith(planned)]
    assert rows(storage) == MERGED


@pytest.mark.parametrize("inflight", [False, True])
def test_one_that_another_program_may_be_at_is_left_alone_and_in_nobodys_way(
    table: HandmadeTable, inflight: bool
) -> None:
    storage = table.storage
    planned = str(schedule_compaction(storage, options()).instant)
    torn = torn_base_file(storage, planned)
    begin_rollback(storage, planned, "compaction", torn, inflight=inflight, young=True)
    storage.delete(f".hoodie/{planned}.compaction.inflight")  # as after the last step but one
    recover_now(storage)
    assert storage.exists(f"{DAY_1}/{torn}") and storage.exists(f".hoodie/{ROLLBACK}.rollback.requested")
    with pytest.raises(
        ServiceError, match=f"{planned} is being rolled back by rollback {ROLLBACK}, which another"
    ):
        run_compaction(storage, options(), instant=planned)
    assert rows(storage) == MERGED
    age(storage)
    assert run_compaction(storage, options(), instant=planned).state == "completed"
    assert not storage.exists(f"{DAY_1}/{torn}") and storage.exists(f".hoodie/{ROLLBACK}.rollback")
    assert rows(storage) == MERGED
