"""Which leftovers of other writers a new write cleans up, and which it leaves alone."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hudi_engine.errors import (
    ConfigError,
    PathEscapeError,
    TableNotFoundError,
    TimelineError,
    UnsupportedTableError,
)
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.markers import marker_folder
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.avro_file import decode_avro_file, encode_avro_file
from hudi_engine.format.timeline.instant import State
from hudi_engine.format.timeline.schemas import COMPACTION_PLAN, REQUESTED_REPLACE_METADATA
from hudi_engine.table.services.upgrade import change_version
from hudi_engine.table.snapshot.publication import publication_of
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.owner import Owner, ProcessIdentity, heartbeat_path
from hudi_engine.table.txn.publication import UNPUBLISHED
from hudi_engine.table.txn.recovery import rollback_write
from hudi_engine.table.txn.transaction import WriteTransaction

import tests.faults.mini_table as mini
from tests.faults.scenarios import MOR, die_before_commit, upsert_first
from tests.helpers.owners import age, write_owner

PENDING = "20260101000000001"


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return mini.create_table(str(tmp_path))


def pend(
    storage: LocalStorage,
    action: str,
    requested: bytes = b"",
    inflight: bytes | None = None,
    *,
    age_seconds: float = 86_400,
) -> None:
    """Leave a pending instant of another program behind."""
    bodies = {State.REQUESTED: requested, State.INFLIGHT: inflight}
    for state, body in bodies.items():
        if body is not None:
            path = mini.timeline_path(PENDING, action, state)
            storage.create(path, body)
            age(storage, path, seconds=age_seconds)


def beat(storage: LocalStorage, age_seconds: int) -> None:
    """Leave the empty heartbeat file of another program, ``age_seconds`` old."""
    path = f"{storage.base}/{heartbeat_path(PENDING)}"
    storage.create(heartbeat_path(PENDING), b"")
    modified = os.stat(path).st_mtime - age_seconds
    os.utime(path, (modified, modified))


def rolled_back(storage: LocalStorage, policy: str = "EAGER") -> tuple[str, ...]:
    """Begin a write, give it up, and return what it rolled back."""
    more = {"hoodie__cleaner__policy__failed__writes": policy}
    with mini.begin(storage, **more) as transaction:
        return transaction.rolled_back


@pytest.mark.parametrize(
    ("policy", "age_seconds", "expected"),
    [
        ("EAGER", None, True),
        ("EAGER", 10, False),
        ("EAGER", 130, True),
        ("LAZY", None, False),
        ("LAZY", 10, False),
        ("LAZY", 130, True),
        ("NEVER", None, False),
        ("NEVER", 130, False),
    ],
)
@pytest.mark.parametrize("action", ["commit", "replacecommit"])
def test_a_write_of_another_program_is_rolled_back_by_policy_and_heartbeat(
    storage: LocalStorage, action: str, policy: str, age_seconds: int | None, expected: bool
) -> None:
    pend(storage, action, inflight=mini.CommitMetadata().to_json())
    if age_seconds is not None:
        beat(storage, age_seconds)
    assert rolled_back(storage, policy) == ((PENDING,) if expected else ())
    found = mini.Timeline.load(storage, mini.TableConfig.load(storage)).pending
    assert [instant.requested_time for instant in found] == ([] if expected else [PENDING])


@pytest.mark.parametrize("policy", ["EAGER", "LAZY", "NEVER"])
@pytest.mark.parametrize("inflight", [None, b""], ids=["requested", "inflight"])
def test_a_young_write_of_a_program_that_keeps_no_heartbeat_is_left_alone(
    storage: LocalStorage, inflight: bytes | None, policy: str
) -> None:
    """Apache Hudi with a single writer, and Flink, write none."""
    pend(storage, "commit", inflight=inflight, age_seconds=60)
    assert rolled_back(storage, policy) == ()


def test_a_write_without_a_heartbeat_is_as_young_as_its_newest_marker(storage: LocalStorage) -> None:
    pend(storage, "commit", inflight=b"{}")
    storage.create(f"{marker_folder(PENDING)}/a/x_0-0-0_{PENDING}.parquet.marker.CREATE", b"")
    assert rolled_back(storage) == ()


def test_how_long_a_write_without_a_heartbeat_is_respected_is_an_option(storage: LocalStorage) -> None:
    pend(storage, "commit", inflight=b"{}", age_seconds=60)
    brief = {"hoodie__client__heartbeat__interval_in_ms": 10_000}
    with mini.begin(storage, **brief) as transaction:
        assert transaction.rolled_back == (PENDING,)


@pytest.mark.parametrize("until", ["requested", "inflight", "files"])
def test_a_writer_of_this_engine_that_died_is_rolled_back_however_far_it_came(
    storage: LocalStorage, until: str
) -> None:
    upsert_first(storage)
    expected = mini.content(storage)
    die_before_commit(storage, until)
    assert len(rolled_back(storage, "LAZY")) == 1
    assert mini.content(storage) == expected
    assert mini.leftovers(storage) == []


def test_several_dead_writers_are_rolled_back_newest_first(storage: LocalStorage) -> None:
    upsert_first(storage)
    never = {"hoodie__cleaner__policy__failed__writes": "NEVER"}
    for _ in range(3):
        transaction = mini.begin(storage, **never)
        transaction._end()
    config = mini.TableConfig.load(storage)
    dead = [instant.requested_time for instant in mini.Timeline.load(storage, config).pending]
    assert rolled_back(storage) == tuple(reversed(dead))


CLUSTERING = {"operationType": "CLUSTER", "clusteringPlan": {"inputGroups": []}}


@pytest.mark.parametrize("inflight", [None, b""], ids=["requested", "inflight"])
def test_a_planned_clustering_is_nobodys_leftover(storage: LocalStorage, inflight: bytes | None) -> None:
    pend(storage, "replacecommit", encode_avro_file(REQUESTED_REPLACE_METADATA, CLUSTERING), inflight)
    assert rolled_back(storage) == ()


def test_a_clustering_whose_plan_is_unreadable_is_known_by_its_empty_inflight_file(
    storage: LocalStorage,
) -> None:
    pend(storage, "replacecommit", b"Obj", b"")
    assert rolled_back(storage) == ()


def test_an_overwrite_that_died_before_it_was_in_flight_is_rolled_back(storage: LocalStorage) -> None:
    pend(storage, "replacecommit", encode_avro_file(REQUESTED_REPLACE_METADATA, {}))
    assert rolled_back(storage) == (PENDING,)


@pytest.mark.parametrize("action", ["compaction", "logcompaction", "clean", "indexing"])
@pytest.mark.parametrize("inflight", [None, b""], ids=["requested", "inflight"])
def test_planned_services_are_nobodys_leftover(
    storage: LocalStorage, action: str, inflight: bytes | None
) -> None:
    pend(storage, action, encode_avro_file(COMPACTION_PLAN, {}), inflight)
    assert rolled_back(storage) == ()


def test_a_deltacommit_of_another_program_is_rolled_back(tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path / "mor"), MOR)
    pend(storage, "deltacommit", inflight=b"{}")
    assert rolled_back(storage) == (PENDING,)


def test_an_unreadable_workload_does_not_stop_a_rollback(storage: LocalStorage) -> None:
    upsert_first(storage)
    stray = f"b/group-9_0-0-0_{PENDING}.parquet"
    storage.create(stray, b"{}")
    pend(storage, "commit", inflight=b'{"partitionToWri')
    assert rolled_back(storage) == (PENDING,)
    assert not storage.exists(stray)


def test_markers_that_lead_out_of_the_table_stop_the_rollback(storage: LocalStorage) -> None:
    pend(storage, "commit", inflight=b"{}")
    storage.create(f"{marker_folder(PENDING)}/MARKERS0", b"../../x_0-0-0_1.parquet.marker.CREATE\n")
    age(storage)
    with pytest.raises(PathEscapeError):
        mini.begin(storage)


def test_markers_of_instants_that_are_done_or_gone_are_removed(storage: LocalStorage) -> None:
    done = mini.write(storage, {"a": {"k": 1}})
    for instant in (done, "20200101000000000"):
        storage.create(f"{marker_folder(instant)}/a/x.marker.CREATE", b"")
        write_owner(storage, instant, Owner.current())
    age(storage)
    rolled_back(storage)
    assert storage.list(".hoodie/.temp") == []
    assert mini.leftovers(storage) == []


def test_a_heartbeat_that_still_beats_is_left_alone_even_without_an_instant(storage: LocalStorage) -> None:
    """Another program writes its heartbeat before its instant."""
    beat(storage, 1)
    elsewhere = replace(Owner.current(), process=ProcessIdentity("other-host/boot/pid:[1]", 1, "1"))
    write_owner(storage, "20260101000000002", elsewhere)
    rolled_back(storage)
    assert [status.name for status in storage.list(".hoodie/.heartbeat")] == [PENDING, "20260101000000002"]


def test_other_files_below_hoodie_are_left_alone(storage: LocalStorage) -> None:
    for path in (".hoodie/.temp/readme", ".hoodie/.temp/other/x", ".hoodie/.heartbeat/readme"):
        storage.create(path, b"")
    rolled_back(storage)
    assert storage.exists(".hoodie/.temp/readme") and storage.exists(".hoodie/.temp/other/x")


def test_a_new_instant_has_an_owner_before_it_is_requested(storage: LocalStorage) -> None:
    order = []

    class Watched(LocalStorage):
        def create(self, path: str, data: bytes) -> None:
            order.append(path)
            super().create(path, data)

    with mini.begin(Watched(storage.base)) as transaction:
        expected = [heartbeat_path(transaction.instant), f".hoodie/{transaction.instant}.commit.requested"]
        assert order[1:] == expected


def test_an_overwrite_is_requested_with_an_empty_plan(storage: LocalStorage) -> None:
    with mini.begin(storage, "INSERT_OVERWRITE") as transaction:
        path = mini.timeline_path(transaction.instant, "replacecommit", State.REQUESTED)
        assert set(decode_avro_file(storage.read(path)).values()) == {None, 1}


def test_an_action_that_is_no_write_is_refused_by_name(storage: LocalStorage) -> None:
    config = mini.TableConfig.load(storage)
    with pytest.raises(ConfigError, match="action 'clean' is no write; legal values: commit, deltacommit"):
        WriteTransaction.begin(storage, config, mini.options(), UNPUBLISHED, action="clean", operation="X")


def test_a_table_that_was_dropped_meanwhile_is_not_brought_back(storage: LocalStorage) -> None:
    config = mini.TableConfig.load(storage)
    storage.delete(".hoodie/hoodie.properties")
    with pytest.raises(TableNotFoundError):
        WriteTransaction.begin(
            storage, config, mini.options(), UNPUBLISHED, action="commit", operation="UPSERT"
        )


def test_a_table_that_was_upgraded_meanwhile_is_written_in_its_version(storage: LocalStorage) -> None:
    config = mini.TableConfig.load(storage)
    change_version(storage, mini.options(), UNPUBLISHED, 9)

    transaction = WriteTransaction.begin(
        storage, config, mini.options(), UNPUBLISHED, action="commit", operation="UPSERT"
    )
    with transaction:
        task = mini.work(storage, transaction, {"a": {"k": 1}})
        transaction.inflight(task.profile())
        task.write_files()
        transaction.commit(task.metadata)

    assert transaction.config.version == 9
    assert mini.content(storage) == {("a", "k"): 1}
    assert [each.name for each in storage.list(".hoodie/timeline") if each.name.endswith(".commit")]


def test_a_transaction_that_has_ended_does_nothing_more(storage: LocalStorage) -> None:
    with mini.begin(storage) as transaction:
        task = mini.work(storage, transaction, {"a": {"k": 1}})
        with pytest.raises(TimelineError, match="must be inflight"):
            transaction.commit(task.metadata)
        transaction.inflight(task.profile())
        task.write_files()
        transaction.commit(task.metadata)
        transaction.abort(ValueError("too late"))
        with pytest.raises(TimelineError, match="it is ended"):
            transaction.commit(task.metadata)
    assert mini.content(storage) == {("a", "k"): 1}


def test_leaving_the_block_without_a_commit_rolls_the_write_back(storage: LocalStorage) -> None:
    with mini.begin(storage) as transaction:
        task = mini.work(storage, transaction, {"a": {"k": 1}})
        transaction.inflight(task.profile())
        task.write_files()
    assert mini.content(storage) == {}
    assert mini.leftovers(storage) == []


@pytest.mark.parametrize(("age_seconds", "expected"), [(60, True), (86_400, False)])
def test_a_savepoint_that_was_begun_long_ago_is_dropped(
    storage: LocalStorage, age_seconds: float, expected: bool
) -> None:
    saved = mini.write(storage, {"a": {"k": 1}})
    path = mini.timeline_path(saved, "savepoint", State.INFLIGHT)
    storage.create(path, b"")
    age(storage, path, seconds=age_seconds)
    rolled_back(storage)
    assert storage.exists(path) == expected


NON_BLOCKING = {"hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"}


def test_non_blocking_writes_are_refused_by_name(tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path))
    mini.write(storage, {"a": {"k": 1}})
    options = mini.options(**NON_BLOCKING)
    before = [each.path for each in storage.list("", recursive=True)]
    with pytest.raises(ConfigError, match=r"mode is NON_BLOCKING_CONCURRENCY_CONTROL.*OPTIMISTIC"):
        rollback_write(storage, options, publication_of(storage))
    TableConfig.load(storage).with_properties(NON_BLOCKING).save(storage)
    with pytest.raises(UnsupportedTableError, match="concurrency.mode=NON_BLOCKING_CONCURRENCY_CONTROL"):
        mini.write(storage, {"a": {"k": 2}})
    assert [each.path for each in storage.list("", recursive=True)] == before
    assert mini.content(storage) == {("a", "k"): 1}


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_starts_that_failed_are_rolled_back_once_each(tmp_path: Path, table_type: str) -> None:
    storage = mini.create_table(str(tmp_path / table_type), table_type)
    upsert_first(storage)
    rollbacks = []
    for _ in range(4):
        die_before_commit(storage)
    for _ in range(3):
        upsert_first(storage)
        timeline = TableState.load(storage).timeline
        rollbacks.append(sum(each.action == "rollback" for each in timeline.instants))
        assert timeline.pending == ()
    assert rollbacks == [4, 4, 4]
