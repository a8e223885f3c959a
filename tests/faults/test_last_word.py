"""Columns and checkpoint of a table are those of the write that began last, whoever completes first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from hudi_engine.errors import ConsumedMeanwhileError, WriteConflictError
from hudi_engine.format.config.own_keys import CHECKPOINT
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_engine.table.changes.checkpoint import format_checkpoint, read_checkpoint
from hudi_engine.table.services import run_compaction, schedule_compaction
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.metadata_conflicts import same_schema
from hudi_engine.table.txn.publication import UNPUBLISHED
from hudi_engine.table.txn.retry import retried
from hudi_engine.table.txn.transaction import WriteTransaction
from hudi_engine.table.write.schema_change import alter_schema

import tests.faults.mini_table as mini
from tests.unit.services import tables

WIDER = mini.SCHEMA.replace('"fields":[]', '"fields":[{"name":"note","type":"string"}]')
C3, C4, C5 = ({"in": f"2026010100000000{number}"} for number in (3, 4, 5))


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    created = mini.create_table(str(tmp_path))
    insert(created, "first", checkpoint=C3)
    return created


@contextmanager
def under_way(
    storage: Storage,
    key: str,
    *,
    schema: str = mini.SCHEMA,
    checkpoint: dict[str, str] | None = None,
    follows: dict[str, str] | None = None,
) -> Iterator[None]:
    """An insert that has begun, and commits at the end of the block."""
    noted = {} if checkpoint is None else {CHECKPOINT: format_checkpoint(checkpoint)}
    with mini.begin(storage, "INSERT") as transaction:
        task = mini.work(storage, transaction, {"a": {key: 1}})
        task.metadata.extra_metadata.update(noted, schema=schema)
        transaction.inflight(task.profile())
        task.write_files()
        yield
        transaction.commit(task.metadata, follows=None if follows is None else format_checkpoint(follows))


def insert(
    storage: Storage, key: str, *, schema: str = mini.SCHEMA, checkpoint: dict[str, str] | None = None
) -> None:
    with under_way(storage, key, schema=schema, checkpoint=checkpoint):
        pass


def has_note(storage: Storage) -> bool:
    return same_schema(TableState.load(storage).schema_json(), WIDER)


def noted(storage: Storage) -> dict[str, str]:
    return read_checkpoint(TableState.load(storage))


def test_a_change_of_columns_that_a_later_write_would_hide_is_a_conflict(storage: LocalStorage) -> None:
    with pytest.raises(WriteConflictError, match="changes the table's columns"):
        with under_way(storage, "mine", schema=WIDER):
            insert(storage, "theirs")
    assert set(mini.content(storage)) == {("a", "first"), ("a", "theirs")}
    insert(storage, "mine", schema=WIDER)
    assert has_note(storage)


def test_writers_that_bring_the_same_columns_stand_beside_each_other(storage: LocalStorage) -> None:
    with under_way(storage, "mine", schema=WIDER):
        insert(storage, "theirs", schema=WIDER)
    assert has_note(storage)
    assert set(mini.content(storage)) == {("a", "first"), ("a", "mine"), ("a", "theirs")}


def test_columns_that_came_first_stay_when_a_later_write_has_the_old_ones(storage: LocalStorage) -> None:
    with under_way(storage, "mine"):
        with under_way(storage, "theirs"):
            insert(storage, "last", schema=WIDER)
    assert has_note(storage)


def test_a_checkpoint_is_not_hidden_by_a_write_that_began_later_and_came_first(
    storage: LocalStorage,
) -> None:
    with under_way(storage, "mine", checkpoint=C4):
        insert(storage, "theirs")
    assert noted(storage) == C4
    insert(storage, "later")
    assert noted(storage) == C4


def test_a_checkpoint_goes_on_while_nothing_is_under_way(storage: LocalStorage) -> None:
    insert(storage, "second")
    newest = TableState.load(storage).timeline.newest_metadata()
    assert newest is not None and newest.extra_metadata[CHECKPOINT] == format_checkpoint(C3)


def test_of_two_checkpoints_the_one_that_would_be_hidden_is_a_conflict(storage: LocalStorage) -> None:
    with pytest.raises(WriteConflictError, match="consumed of its inputs"):
        with under_way(storage, "mine", checkpoint=C5):
            insert(storage, "theirs", checkpoint=C4)
    assert noted(storage) == C4


def test_a_noted_checkpoint_does_not_hide_one_that_came_meanwhile_below_a_commit_that_carries_none(
    storage: LocalStorage,
) -> None:
    older, younger = under_way(storage, "second", checkpoint=C4), under_way(storage, "third")
    older.__enter__()
    with pytest.raises(WriteConflictError, match="noted a checkpoint"), mini.begin(storage, "UPSERT") as own:
        own.inflight(CommitMetadata(operation_type="UPSERT"))
        younger.__enter__()
        older.__exit__(None, None, None)
        younger.__exit__(None, None, None)
        told = {CHECKPOINT: format_checkpoint(C5), "schema": mini.SCHEMA}
        own.commit(CommitMetadata(extra_metadata=told, operation_type="UPSERT"))
    assert noted(storage) == C4


def test_a_checkpoint_follows_the_one_that_its_rows_were_taken_after(storage: LocalStorage) -> None:
    tries = []

    def write() -> None:
        tries.append(1)
        with under_way(storage, "mine", checkpoint=C4, follows=C3):
            insert(storage, "theirs", checkpoint=C5)

    with pytest.raises(ConsumedMeanwhileError, match="after the checkpoint"):
        retried(write, 2)
    assert noted(storage) == C5 and len(tries) == 1
    with pytest.raises(ConsumedMeanwhileError):
        with under_way(storage, "mine", checkpoint=C4, follows=C3):
            pass
    with under_way(storage, "mine", checkpoint=C3, follows=C5):
        insert(storage, "others")
    assert noted(storage) == C3


def test_a_checkpoint_that_was_taken_back_meanwhile_is_not_followed(tmp_path: Path) -> None:
    storage = tables.merge_on_read(tmp_path / "t").storage
    mini.rollback(storage, note(storage, C3))
    with pytest.raises(ConsumedMeanwhileError, match="the table has {} by now"):
        with begun(storage) as transaction:
            told = {CHECKPOINT: format_checkpoint(C4)}
            metadata = CommitMetadata(extra_metadata=told, operation_type="UPSERT")
            transaction.commit(metadata, follows=format_checkpoint(C3))
    assert noted(storage) == {}


def test_a_checkpoint_can_be_set_back(storage: LocalStorage) -> None:
    insert(storage, "second", checkpoint=C5)
    insert(storage, "third", checkpoint={})
    insert(storage, "fourth")
    assert noted(storage) == {}


def test_a_compaction_that_began_later_does_not_hide_a_checkpoint(tmp_path: Path) -> None:
    storage = tables.merge_on_read(tmp_path / "t").storage
    note(storage, C3)
    with begun(storage) as transaction:
        done = run_compaction(storage, tables.options())
        assert done.instant is not None and done.instant > transaction.instant
        commit_noted(transaction, C4)
    assert noted(storage) == C4


def test_a_checkpoint_is_taken_back_with_its_write_also_when_an_earlier_plan_ran_since(
    tmp_path: Path,
) -> None:
    storage = tables.merge_on_read(tmp_path / "t").storage
    note(storage, C3)
    planned = schedule_compaction(storage, tables.options())
    instant = note(storage, C4)
    assert run_compaction(storage, tables.options()).instant == planned.instant
    assert noted(storage) == C4
    mini.rollback(storage, instant)
    assert noted(storage) == C3


def test_columns_are_taken_back_with_their_write_also_when_an_earlier_plan_ran_since(tmp_path: Path) -> None:
    storage = tables.merge_on_read(tmp_path / "t").storage
    before = TableState.load(storage).data_schema()
    assert before is not None
    planned = schedule_compaction(storage, tables.options())
    changed = alter_schema(storage, before.append(pa.field("note", pa.string())), tables.options())
    assert run_compaction(storage, tables.options()).instant == planned.instant
    mini.rollback(storage, changed.instant)
    assert TableState.load(storage).data_schema() == before


def begun(storage: Storage) -> WriteTransaction:
    """A delta commit that has begun, in a partition of its own, and will touch nothing."""
    config = TableState.load(storage).config
    transaction = WriteTransaction.begin(
        storage, config, tables.options(), UNPUBLISHED, action="deltacommit", operation="UPSERT"
    )
    planned = {"day=9": [WriteStat(file_id="", num_inserts=1)]}
    transaction.inflight(CommitMetadata(planned, operation_type="UPSERT"))
    return transaction


def commit_noted(transaction: WriteTransaction, checkpoint: dict[str, str]) -> None:
    told = {CHECKPOINT: format_checkpoint(checkpoint)}
    transaction.commit(CommitMetadata(extra_metadata=told, operation_type="UPSERT"))


def note(storage: Storage, checkpoint: dict[str, str]) -> str:
    with begun(storage) as transaction:
        commit_noted(transaction, checkpoint)
    return transaction.instant
