"""What a restore takes back besides writes, and plans of one that cannot be carried out."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.errors import CorruptTableError, TimelineError, WriteConflictError
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.avro_file import encode_avro_file
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.format.timeline.instant import State
from hudi_engine.format.timeline.schemas import INDEX_PLAN, RESTORE_PLAN
from hudi_engine.table.services.clean.execute import clean
from hudi_engine.table.txn.recovery import next_instant
from hudi_engine.table.txn.transaction import WriteTransaction

import tests.faults.mini_table as mini
from tests.faults.scenarios import COW, MOR, recover_now
from tests.unit.txn.rollback_records import LATER, damage, files, timeline
from tests.unit.txn.test_rollback_and_clean import newest_version_only


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return mini.create_table(str(tmp_path))


def build_index(storage: Storage, time: str, *states: State) -> None:
    """Leave files of a builder of indexes of Apache Hudi, which are no commit metadata."""
    plan = encode_avro_file(INDEX_PLAN, {"indexPartitionInfos": [{"metadataPartitionPath": "record_index"}]})
    for state in states:
        body = b"" if state is State.INFLIGHT else plan
        storage.create(mini.timeline_path(time, "indexing", state), body)


def indexed_and_cleaned(storage: Storage, *states: State) -> tuple[str, str]:
    """A saved commit, the build of an index, a write and a clean; returns the instants of the commit and of the build."""
    target = mini.write(storage, {"a": {"k1": 1}})
    mini.savepoint(storage)
    indexing = next_instant(timeline(storage))
    build_index(storage, indexing, *states)
    mini.write(storage, {"a": {"k1": 2}})
    mini.write(storage, {"a": {"k1": 3}})
    clean(storage, newest_version_only())
    return target, indexing


def begin_restore(
    storage: Storage, target: str, *going: tuple[str, str], state: State = State.INFLIGHT
) -> None:
    """Leave a restore that was cut off before anything had gone."""
    record = {
        "instantsToRollback": [{"commitTime": time, "action": action} for time, action in going],
        "savepointToRestoreTimestamp": target,
    }
    storage.create(
        mini.timeline_path(LATER, "restore", State.REQUESTED), encode_avro_file(RESTORE_PLAN, record)
    )
    if state is State.INFLIGHT:
        storage.create(mini.timeline_path(LATER, "restore", state), b"")


def test_an_index_that_was_built_since_stays_and_holds_no_restore_up(storage: LocalStorage) -> None:
    target, indexing = indexed_and_cleaned(storage, *State)
    assert mini.restore(storage, target).taken_back
    assert mini.content(storage) == {("a", "k1"): 1}
    assert storage.exists(mini.timeline_path(indexing, "indexing", State.COMPLETED))
    assert mini.restore(storage, target).restore_time is None


@pytest.mark.parametrize("states", [(State.REQUESTED,), (State.REQUESTED, State.INFLIGHT)])
def test_one_that_is_being_built_goes(storage: LocalStorage, states: tuple[State, ...]) -> None:
    target, indexing = indexed_and_cleaned(storage, *states)
    assert indexing in mini.restore(storage, target).taken_back
    assert mini.content(storage) == {("a", "k1"): 1} and mini.leftovers(storage) == []
    assert indexing not in {each.requested_time for each in timeline(storage).instants}


def test_a_begun_restore_that_names_a_built_index_is_finished(storage: LocalStorage) -> None:
    target, indexing = indexed_and_cleaned(storage, *State)
    later = [
        each.requested_time for each in timeline(storage).completed_writes if each.requested_time > target
    ]
    begin_restore(storage, target, *((each, "commit") for each in later), (indexing, "indexing"))
    recover_now(storage)
    assert mini.content(storage) == {("a", "k1"): 1} and mini.leftovers(storage) == []


def test_a_restore_that_cannot_be_planned_is_not_begun(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = mini.write(storage, {"a": {"k1": 1}})
    mini.write(storage, {"a": {"k1": 2}})
    before = files(storage)

    def refused(*_: object) -> None:
        raise TimelineError("a file of it cannot be read")

    with monkeypatch.context() as patch, pytest.raises(TimelineError, match="cannot be read"):
        patch.setattr("hudi_engine.table.txn.rollback.plan_removal", refused)
        mini.restore(storage, first)
    assert files(storage) == before
    mini.restore(storage, first)
    assert mini.content(storage) == {("a", "k1"): 1}


def begun_before(storage: Storage, action: str = "commit") -> tuple[WriteTransaction, CommitMetadata]:
    """A write in another partition that has written its files."""
    transaction = mini.begin(storage)
    assert transaction.action == action
    task = mini.work(storage, transaction, {"b": {"k2": 2}})
    transaction.inflight(task.profile())
    task.write_files()
    return transaction, task.metadata


@pytest.mark.parametrize(("table_type", "action"), [(COW, "commit"), (MOR, "deltacommit")])
def test_an_unfinished_write_from_before_goes_with_a_restore_of_newer_hudi(
    tmp_path: Path, table_type: str, action: str
) -> None:
    storage = mini.create_table(str(tmp_path), table_type)
    older, _ = begun_before(storage, action)
    target = mini.write(storage, {"a": {"k1": 1}})
    older._end()
    later = mini.write(storage, {"a": {"k1": 2}})
    begin_restore(storage, target, (later, action), (older.instant, action))
    recover_now(storage)
    assert mini.content(storage) == {("a", "k1"): 1} and mini.leftovers(storage) == []
    assert [each.requested_time for each in timeline(storage).completed_writes] == [target]


@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
def test_a_write_that_such_a_restore_is_about_to_take_back_is_not_committed(
    storage: LocalStorage, state: State
) -> None:
    older, metadata = begun_before(storage)
    target = mini.write(storage, {"a": {"k1": 1}})
    begin_restore(storage, target, (older.instant, "commit"), state=state)
    with pytest.raises(WriteConflictError, match=f"rolled back by restore {LATER}"), older:
        older.commit(metadata)
    recover_now(storage)
    assert mini.content(storage) == {("a", "k1"): 1} and mini.leftovers(storage) == []


@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
def test_a_completed_write_from_before_the_target_stays(storage: LocalStorage, state: State) -> None:
    older = mini.write(storage, {"b": {"k2": 2}})
    target = mini.write(storage, {"a": {"k1": 1}})
    begin_restore(storage, target, (older, "commit"), state=state)
    before = files(storage)
    with pytest.raises(
        CorruptTableError, match=f"wants to take back commit {older}.*let Apache Hudi"
    ) as told:
        recover_now(storage)
    assert "remove it" not in str(told.value)
    assert files(storage) == before


def test_a_compaction_that_was_planned_before_the_target_stays(tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path), MOR)
    planned = next_instant(timeline(storage))
    storage.create(mini.timeline_path(planned, "compaction", State.REQUESTED), b"")
    target = mini.write(storage, {"a": {"k1": 1}})
    begin_restore(storage, target, (planned, "compaction"))
    with pytest.raises(CorruptTableError, match=f"compaction {planned}"):
        recover_now(storage)


def test_an_older_instant_that_has_gone_already_is_not_missed(storage: LocalStorage) -> None:
    target = mini.write(storage, {"a": {"k1": 1}})
    begin_restore(storage, target, ("20200101000000000", "commit"))
    recover_now(storage)
    assert mini.content(storage) == {("a", "k1"): 1} and mini.leftovers(storage) == []


def test_a_damaged_rollback_from_before_holds_no_restore_up(storage: LocalStorage) -> None:
    target = mini.write(storage, {"a": {"k1": 1}})
    mini.write(storage, {"a": {"k1": 2}})
    undone = mini.rollback(storage)
    damage(storage, undone.rollback_time)
    later = mini.write(storage, {"a": {"k1": 3}})
    begin_restore(storage, target, (later, "commit"), state=State.REQUESTED)
    recover_now(storage)
    assert mini.content(storage) == {("a", "k1"): 1} and mini.leftovers(storage) == []
