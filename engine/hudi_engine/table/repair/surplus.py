"""Rows that others of their key outlive, found by the keys alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_engine.format.config.options import Options
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.merge.modes.fold import key_codes
from hudi_engine.format.merge.modes.registry import merge_rule
from hudi_engine.format.merge.ordering import ordering_ranks
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.merge.rows_at import taken
from hudi_engine.format.merge.slice_reader import read_slice
from hudi_engine.format.schema.meta_fields import COMMIT_TIME, RECORD_KEY
from hudi_engine.table.state import TableState

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Surplus:
    """What one slice has too much.

    Args:
        rows: Numbers of the rows that go, in the order in which the slice is read.
    """

    piece: FileSlice
    rows: Positions
    keys: pa.Array


def find_surplus(state: TableState, options: Options, partitions: Sequence[str] | None) -> list[Surplus]:
    """Return the rows whose key another row of the partition has too, but for the one that stays.

    Of the rows of a key the one with the highest ordering value stays, where the table's merge mode compares them; of
    these the one that was committed last.

    Args:
        partitions: Partition paths to look at; None for all.
    """
    schema = state.data_schema()
    if schema is None:
        return []
    context = state.read_context(schema, options)
    return [each for slices in _by_partition(state, partitions) for each in _of_partition(context, slices)]


def _by_partition(state: TableState, partitions: Sequence[str] | None) -> Iterator[list[FileSlice]]:
    view = state.view(partitions)
    yield from (slices for partition in view.partitions if (slices := view.latest_slices(partition)))


def _of_partition(context: ReadContext, slices: Sequence[FileSlice]) -> list[Surplus]:
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
        found.append(Surplus(slices[number], own - first, keys))
    return found


def _losing(rows: pa.Table, compared: Sequence[str]) -> Positions:
    """Return the numbers of the rows that go, ascending."""
    codes, distinct = key_codes(rows.column(RECORD_KEY))
    repeated = np.flatnonzero(np.bincount(codes, minlength=distinct)[codes] > 1)
    if not len(repeated):
        return repeated
    few, codes = taken(rows, repeated), codes[repeated]
    ranks = ordering_ranks([few.column(name) for name in (*compared, COMMIT_TIME)])
    order = np.lexsort((np.arange(len(codes)), *reversed(ranks), codes))
    last_of_key = np.r_[np.diff(codes[order]) != 0, True]
    return np.sort(repeated[order[~last_of_key]])
