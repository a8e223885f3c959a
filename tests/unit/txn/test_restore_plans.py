"""What a restore takes back besides writes, and plans of one that cannot be carried out."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.errors import TimelineError
from hudi_engine.services.clean.execute import clean
from hudi_engine.storage.base import Storage
from hudi_engine.storage.local import LocalStorage
from hudi_engine.timeline.avro_file import encode_avro_file
from hudi_engine.timeline.instant import State
from hudi_engine.timeline.schemas import RESTORE_PLAN
from hudi_engine.txn.recovery import next_instant

import tests.faults.mini_table as mini
from tests.faults.scenarios import recover_now
from tests.unit.txn.rollback_records import LATER, files, timeline
from tests.unit.txn.test_rollback_and_clean import newest_version_only


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return mini.create_table(str(tmp_path))


def build_index(storage: Storage, time: str, *states: State) -> None:
    """Leave files of a builder of indexes, which are no commit metadata."""
    for state in states:
        body = b"" if state is State.INFLIGHT else b"of an index"
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
    going = [(each, "commit") for each in later] + [(indexing, "indexing")]
    record = {
        "instantsToRollback": [{"commitTime": time, "action": action} for time, action in going],
        "savepointToRestoreTimestamp": target,
    }
    storage.create(
        mini.timeline_path(LATER, "restore", State.REQUESTED), encode_avro_file(RESTORE_PLAN, record)
    )
    storage.create(mini.timeline_path(LATER, "restore", State.INFLIGHT), b"")
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
        patch.setattr("hudi_engine.txn.restore_steps.plan_removal", refused)
        mini.restore(storage, first)
    assert files(storage) == before
    mini.restore(storage, first)
    assert mini.content(storage) == {("a", "k1"): 1}
