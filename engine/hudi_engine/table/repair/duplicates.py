"""Deleting rows whose key another row has, in one replace instant.

The file groups that lose rows are replaced by new ones with the rest of their rows, which keep their commit times: who
reads the table by commits sees no row that is new. A file group that has one row of each key stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_engine.errors import ConfigError, ServiceError
from hudi_engine.format.config.enums import WriteOperation
from hudi_engine.format.config.options import Options
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.layout.layout import RowLayout
from hudi_engine.format.merge.modes.fold import key_codes
from hudi_engine.format.merge.modes.registry import merge_rule
from hudi_engine.format.merge.ordering import ordering_ranks
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.merge.rows_at import taken
from hudi_engine.format.merge.slice_reader import read_slice
from hudi_engine.format.parallel import run_in_threads
from hudi_engine.format.schema.meta_fields import COMMIT_TIME, RECORD_KEY
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_engine.table.handles.write_task import WriteTask
from hudi_engine.table.services.clustering.write_group import ClusteringContext, write_new_group
from hudi_engine.table.services.planned import by_partition
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.conflict import planned_groups, reject_planned_groups
from hudi_engine.table.txn.owner import Liveness
from hudi_engine.table.txn.publication import Publication
from hudi_engine.table.txn.transaction import WriteTransaction

Positions = npt.NDArray[np.int64]
_AT_ONCE = 4
"""Slices that are in memory at once."""


@dataclass(frozen=True)
class Duplicates:
    """The rows of one slice that are deleted."""

    piece: FileSlice
    rows: Positions  # their numbers, in the order in which the slice is read
    keys: pa.Array


def find_duplicates(
    state: TableState, options: Options, partitions: Sequence[str] | None
) -> list[Duplicates]:
    """Return the rows whose key another row of the partition has too, but for the one that stays.

    Of the rows of a key the one with the highest ordering value stays, where the table's merge mode compares them; of
    these the one that was committed last.
    """
    schema = state.data_schema()
    if schema is None:
        return []
    context = state.read_context(schema, options)
    view = state.view(partitions)
    slices_of = [found for partition in view.partitions if (found := view.latest_slices(partition))]
    return [each for slices in slices_of for each in _of_partition(context, slices)]


def _of_partition(context: ReadContext, slices: Sequence[FileSlice]) -> list[Duplicates]:
    fields = [name for name in context.config.ordering_fields if name in context.schema.names]
    compared = fields if merge_rule(context.config).compares else []
    columns = list(dict.fromkeys([RECORD_KEY, COMMIT_TIME, *compared]))
    parts = [read_slice(context, each, columns=columns) for each in slices]
    rows = pa.concat_tables(parts)
    losing = _losing(rows, compared)
    ends = np.cumsum([part.num_rows for part in parts])
    owners = np.searchsorted(ends, losing, side="right")
    found = []
    for number in np.unique(owners):
        own = losing[owners == number]
        first = ends[number] - parts[number].num_rows
        keys = rows.column(RECORD_KEY).take(pa.array(own)).combine_chunks()
        found.append(Duplicates(slices[number], own - first, keys))
    return found


def _losing(rows: pa.Table, compared: Sequence[str]) -> Positions:
    """Return the numbers of the rows that are deleted, ascending."""
    codes, distinct = key_codes(rows.column(RECORD_KEY))
    repeated = np.flatnonzero(np.bincount(codes, minlength=distinct)[codes] > 1)
    if not len(repeated):
        return repeated
    few, codes = taken(rows, repeated), codes[repeated]
    ranks = ordering_ranks([few.column(name) for name in (*compared, COMMIT_TIME)])
    order = np.lexsort((np.arange(len(codes)), *reversed(ranks), codes))
    last_of_key = np.r_[np.diff(codes[order]) != 0, True]
    return np.sort(repeated[order[~last_of_key]])


def look_for_duplicates(
    storage: Storage, options: Options, partitions: Sequence[str] | None
) -> tuple[TableState, list[Duplicates]]:
    """Return the table and what a repair would delete."""
    state = TableState.load(storage)
    state.config.check_writable()
    if partitions is not None:
        known = {each.partition for each in state.view(partitions).latest_slices()}
        missing = [each for each in partitions if each not in known]
        if missing:
            raise ConfigError(
                f"partition {missing[0]!r} has no rows; legal values: partition paths of the table, '' where it has none"
            )
    return state, find_duplicates(state, options, partitions)


def delete_duplicates(
    storage: Storage, options: Options, publication: Publication, partitions: Sequence[str] | None = None
) -> tuple[str | None, list[Duplicates]]:
    """Delete duplicates; return the instant and the rows, or None where there was nothing to do."""
    looked, found = look_for_duplicates(storage, options, partitions)
    if not found:
        return None, []
    looked.check_rows_writable()
    config, operation = looked.config, WriteOperation.DELETE.value
    with WriteTransaction.begin(
        storage, config, options, publication, action="replacecommit", operation=operation
    ) as transaction:
        state = TableState(storage, transaction.config, transaction.timeline)
        others = [each for each in state.timeline.instants if each.requested_time != transaction.instant]
        if others != list(looked.timeline.instants):
            found = find_duplicates(state, options, partitions)
        if not found:
            return None, []
        groups = [(each.piece.partition, each.piece.file_id) for each in found]
        liveness = Liveness(storage, state.config, options)
        reject_planned_groups(groups, planned_groups(state.timeline, options, liveness))
        planned: dict[str, list[WriteStat]] = {each.piece.partition: [] for each in found}
        transaction.inflight(CommitMetadata(planned, operation_type=operation))
        context = _context(state, options, transaction)
        work = list(enumerate(found))
        stats = run_in_threads(partial(_rewritten, context), work, most=_AT_ONCE)
        transaction.commit(_metadata(state, found, [each for each in stats if each is not None]))
    return transaction.instant, found


def _context(state: TableState, options: Options, transaction: WriteTransaction) -> ClusteringContext:
    schema = state.data_schema()
    assert schema is not None
    read = state.read_context(schema, options)
    instant, action, operation = transaction.instant, transaction.action, transaction.operation
    write = state.write_context(options, schema, read, instant=instant, action=action, operation=operation)
    return ClusteringContext(write, RowLayout())


def _rewritten(context: ClusteringContext, work: tuple[int, Duplicates]) -> WriteStat | None:
    """Write a new file group with the rows that stay; None when none does."""
    number, duplicates = work
    rows = read_slice(context.write.read, duplicates.piece)
    if not rows.column(RECORD_KEY).take(pa.array(duplicates.rows)).combine_chunks().equals(duplicates.keys):
        raise ServiceError(
            f"file group {duplicates.piece.file_id!r} was not read twice in one order; nothing was changed"
        )
    stays = np.ones(rows.num_rows, dtype=bool)
    stays[duplicates.rows] = False
    rows = rows.filter(pa.array(stays))
    if not rows.num_rows:
        return None
    writer = WriteTask(context.write, number)
    # The file groups of a bucket index begin with the number of their bucket.
    head = duplicates.piece.file_id[:8]
    stat = write_new_group(
        context,
        writer,
        duplicates.piece.partition,
        rows.combine_chunks().to_batches(),
        bucket=head if head.isdigit() else "",
    )
    return replace(stat, num_inserts=0, num_deletes=len(duplicates.rows))


def _metadata(state: TableState, found: Sequence[Duplicates], stats: Sequence[WriteStat]) -> CommitMetadata:
    replaced: dict[str, list[str]] = {}
    for each in found:
        replaced.setdefault(each.piece.partition, []).append(each.piece.file_id)
    operation = WriteOperation.DELETE.value
    return CommitMetadata(
        by_partition(stats), state.schema_texts(), operation, partition_to_replace_file_ids=replaced
    )
