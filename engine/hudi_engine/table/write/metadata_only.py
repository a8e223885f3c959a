"""Commits that write no data file: dropping partitions, changing the schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.declared.engine_options import WriterOptions
from hudi_engine.format.config.enums import WriteOperation
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.own_keys import CHECKPOINT, ORIGIN
from hudi_engine.format.keygen.partition_path import check_partition_path
from hudi_engine.format.spelling import no_such_partitions
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.planned import PlanWish, plan_wish
from hudi_engine.format.telemetry.figures import WriteFigures
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, Content
from hudi_engine.table.snapshot.publication import publication_of
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.planned import PlannedTransaction
from hudi_engine.table.txn.receipts import newest_write
from hudi_engine.table.txn.retry import retried
from hudi_engine.table.txn.transaction import WriteTransaction
from hudi_engine.table.write.define.table_options import check_same_definition
from hudi_engine.table.write.operation import write_action
from hudi_engine.table.write.plan import planned_result
from hudi_engine.table.write.result import WriteResult, summarise


@dataclass(frozen=True)
class Change:
    """A commit without data files."""

    operation: WriteOperation
    action: str
    metadata: Callable[[TableState], CommitMetadata]


def delete_partitions(storage: Storage, partitions: Sequence[str], options: Options) -> WriteResult:
    """Take every file group of some partitions out of the table in one replace instant.

    Args:
        partitions: Partition paths such as ``dt=2026-01-01``; ``"dt=2026-*"`` is not expanded.
    """

    def change(state: TableState) -> Change:
        wanted = partitions_there(state, partitions)
        return Change(
            WriteOperation.DELETE_PARTITION,
            "replacecommit",
            lambda now: CommitMetadata(
                extra_metadata=now.schema_texts(), partition_to_replace_file_ids=_file_ids(now, wanted)
            ),
        )

    return commit_without_files(storage, options, change)


def empty_table(storage: Storage, options: Options) -> WriteResult:
    """Take every file group out of the table in one replace instant."""
    return commit_without_files(
        storage,
        options,
        lambda _: Change(
            WriteOperation.INSERT_OVERWRITE_TABLE,
            "replacecommit",
            lambda now: CommitMetadata(
                extra_metadata=now.schema_texts(),
                partition_to_replace_file_ids=_file_ids(now, None),
                content=Content(0, 0, whole=True),
            ),
        ),
    )


def note_checkpoint(storage: Storage, noted: Callable[[TableState], str], options: Options) -> WriteResult:
    """Write a checkpoint in a commit of its own; no row and no column changes."""
    return commit_without_files(
        storage,
        options,
        lambda state: Change(
            WriteOperation.UPSERT,
            write_action(state.config.table_type),
            lambda now: CommitMetadata(
                extra_metadata={**now.schema_texts(), CHECKPOINT: noted(now)}, content=Content(0, 0)
            ),
        ),
    )


def note_receipt(
    storage: Storage, counted: Callable[[TableState], tuple[int, int]], options: Options
) -> WriteResult:
    """Write the receipt of a table in a commit of its own; no row and no column changes.

    Args:
        counted: Counts the rows of a state, and the sum of their hashes.
    """

    def change(state: TableState) -> Change:
        at = newest_write(state.timeline)
        rows, found = counted(state)
        return Change(
            WriteOperation.UPSERT,
            write_action(state.config.table_type),
            lambda now: CommitMetadata(
                extra_metadata=now.schema_texts(), content=Content(rows, found, counted_at=at)
            ),
        )

    return commit_without_files(storage, options, change)


def commit_without_files(
    storage: Storage, options: Options, change_of: Callable[[TableState], Change]
) -> WriteResult:
    """Commit the change that ``change_of`` derives from the table's state; after a conflict it is derived again and retried."""

    def attempt() -> WriteResult:
        state = TableState.load(storage)
        state.config.check_writable()
        change = change_of(state)
        operation = change.operation.value
        if (wish := plan_wish()) is not None:
            return _planned(state, change, wish)
        with WriteTransaction.begin(
            storage,
            state.config,
            options,
            publication_of(storage),
            action=change.action,
            operation=operation,
        ) as transaction:
            check_same_definition(state.config, transaction.config, transaction.instant)
            transaction.inflight(CommitMetadata(operation_type=operation))
            now = TableState(storage, transaction.config, transaction.timeline)
            metadata = replace(change.metadata(now), operation_type=operation)
            # not all notes of a write: what a checkpoint or a batch says comes with rows
            origin = {key: options.raw[key] for key in ORIGIN if key in options.raw}
            metadata = replace(metadata, extra_metadata={**origin, **metadata.extra_metadata})
            rows = rows_of_groups(now, metadata.partition_to_replace_file_ids or {})
            transaction.commit(metadata)
        return summarise(transaction.instant, metadata, "metadata", rows)

    return retried(attempt, options[WriterOptions.CONFLICT_RETRIES])


def _planned(state: TableState, change: Change, wish: PlanWish) -> WriteResult:
    metadata = replace(change.metadata(state), operation_type=change.operation.value)
    rows = rows_of_groups(state, metadata.partition_to_replace_file_ids or {})
    begun = PlannedTransaction.begin(state.config, state.timeline, change.action)
    result = summarise(None, metadata, "metadata", rows)
    figures = WriteFigures.of(metadata, 0, shuffled=False)
    return planned_result(state, begun, replace(result, figures=figures), wish)


def partitions_there(state: TableState, partitions: Sequence[str]) -> list[str]:
    """Return the partitions as they are on storage."""
    given = [partitions] if isinstance(partitions, str) else list(partitions or ())
    if not given or any(not isinstance(each, str) for each in given):
        raise ConfigError(
            f"delete_partitions was given {partitions!r}; it needs at least one partition path, such as 'dt=2026-01-01'"
        )
    wanted = list(dict.fromkeys(each.strip("/") for each in given))
    if not state.config.is_partitioned:
        raise ConfigError(
            f"table {state.config.name!r} has no partitions; use delete(keys) or insert_overwrite_table instead"
        )
    for partition in wanted:
        check_partition_path(partition)
    known = {each.partition for each in state.view().latest_slices()}
    missing = [partition for partition in wanted if partition not in known]
    if missing:
        raise ConfigError(no_such_partitions(missing, known, state.config.name))
    return wanted


def rows_of_groups(state: TableState, groups: Mapping[str, Sequence[str]]) -> int:
    """Return rows that file groups hold, by their newest base files' write stats; log records are not counted."""
    wanted = {(partition, file_id) for partition, ids in groups.items() for file_id in ids}
    rows = 0
    for instant in reversed(state.timeline.completed_writes):
        if not wanted:
            break
        for partition, stat in state.timeline.commit_metadata(instant).write_stats():
            if (partition, stat.file_id) in wanted and not stat.is_log_file:
                wanted.discard((partition, stat.file_id or ""))
                rows += stat.num_writes or 0
    return rows


def rows_of_table(state: TableState) -> int:
    """Return rows that a table holds, by the write stats of its newest base files; log records are not counted."""
    return rows_of_groups(state, _file_ids(state, None))


def _file_ids(state: TableState, partitions: Iterable[str] | None) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in state.view(partitions).latest_slices():
        found.setdefault(each.partition, []).append(each.file_id)
    return {partition: sorted(ids) for partition, ids in found.items()}
