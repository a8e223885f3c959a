"""Writes beside a young instant of a program that keeps no heartbeat, and so may be at work or dead."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.errors import WriteConflictError
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_engine.format.timeline.instant import State

import tests.faults.mini_table as mini
from tests.helpers.owners import age

OTHERS = "20260101000000001"


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    created = mini.create_table(str(tmp_path))
    mini.write(created, {"a": {"k1": 1}, "b": {"k2": 2}})
    return created


def others_upsert(storage: LocalStorage, partition: str | None) -> None:
    """Put another program's upsert in flight: into the file group of a partition, or with no word about where."""
    timeline = mini.Timeline.load(storage, mini.TableConfig.load(storage))
    written = timeline.completed_writes[0].requested_time
    body = b""
    if partition is not None:
        stat = WriteStat(file_id=f"group-{written}-{partition}-0", prev_commit=written, num_update_writes=1)
        body = CommitMetadata({partition: [stat]}, operation_type="UPSERT").to_json()
    storage.create(mini.timeline_path(OTHERS, "commit", State.REQUESTED), b"")
    storage.create(mini.timeline_path(OTHERS, "commit", State.INFLIGHT), body)


@pytest.mark.parametrize("partition", ["a", None], ids=["same file group", "workload unknown"])
def test_a_write_that_could_get_into_its_way_is_refused_and_names_it(
    storage: LocalStorage, partition: str | None
) -> None:
    others_upsert(storage, partition)
    with pytest.raises(
        WriteConflictError, match=f"commit {OTHERS} of another program, which keeps no heartbeat"
    ):
        mini.write(storage, {"a": {"k1": 10}})
    assert mini.content(storage) == {("a", "k1"): 1, ("b", "k2"): 2}
    assert storage.exists(mini.timeline_path(OTHERS, "commit", State.INFLIGHT))


def test_a_write_of_other_file_groups_is_committed_beside_it(storage: LocalStorage) -> None:
    others_upsert(storage, "b")
    mini.write(storage, {"a": {"k1": 10}})
    assert mini.content(storage)[("a", "k1")] == 10
    assert storage.exists(mini.timeline_path(OTHERS, "commit", State.INFLIGHT))


def test_an_insert_of_new_file_groups_is_committed_beside_one_that_does_not_say_where(
    storage: LocalStorage,
) -> None:
    others_upsert(storage, None)
    mini.write(storage, {"c": {"k3": 3}}, "INSERT")
    assert mini.content(storage)[("c", "k3")] == 3


def test_once_it_is_old_it_is_rolled_back_and_stands_in_nobodys_way(storage: LocalStorage) -> None:
    others_upsert(storage, "a")
    age(storage)
    mini.write(storage, {"a": {"k1": 10}})
    assert mini.content(storage)[("a", "k1")] == 10
    assert mini.leftovers(storage) == []


@pytest.mark.parametrize("policy", ["LAZY", "NEVER"])
def test_an_old_one_that_the_policy_leaves_alone_stands_in_nobodys_way_either(
    storage: LocalStorage, policy: str
) -> None:
    others_upsert(storage, "a")
    age(storage)
    with mini.begin(storage, hoodie__cleaner__policy__failed__writes=policy) as transaction:
        task = mini.work(storage, transaction, {"a": {"k1": 10}})
        transaction.inflight(task.profile())
        task.write_files()
        transaction.commit(task.metadata)
    assert mini.content(storage)[("a", "k1")] == 10
