"""The next sidecar of a slice: the previous one, and what a batch adds to the slice's log.

No log is read, and of the base file at most the ordering columns. The result is that of merging all logs, for tables that
merge by commit time or by ordering values. Where that is not known, the answer is None, and all logs have to be merged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.merge.key_sets import are_distinct
from hudi_engine.format.merge.modes.registry import COMMIT_TIME, EVENT_TIME, merge_rule
from hudi_engine.format.merge.ordering import newer_wins
from hudi_engine.format.merge.rows_at import taken
from hudi_engine.format.merge.slice_reader import SliceDelta
from hudi_engine.format.schema.meta_fields import RECORD_KEY

Mask = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]

_MAX_ROWS = 2**28
"""Rows of a base file, a byte each, that one step may hold besides the rows of the batch."""


@dataclass(frozen=True)
class LogBatch:
    """What one write appends to the log of a slice: one change for a key.

    Args:
        changes: A row for each change with its record key and the ordering columns.
        rows: Those that do not delete, as they are written, in the same order; None for none.
        blocks: The data blocks of the log that hold them.
        hits: Row numbers of the base file whose key is changed.
        numbers: For each of them the number of its change.
        deletes_win: Whether deletes win whatever their ordering value.
    """

    changes: pa.Table
    deleted: Mask
    rows: pa.Table | None
    hits: Positions
    numbers: Positions
    deletes_win: bool = True
    blocks: Sequence[bytes] = ()


@dataclass(frozen=True)
class SidecarStep:
    """What a batch does to a sidecar.

    Args:
        masked: Row numbers of the base file that are masked afterwards, ascending.
        gone: Numbers of the previous live rows that are removed.
        added: Which rows of the batch are live.
    """

    masked: Positions
    gone: Positions
    added: Mask

    def taken(self, before: SliceDelta, batch: LogBatch) -> SliceDelta:
        """Return what the logs do to the base file afterwards."""
        keep = np.ones(before.live.num_rows, dtype=bool)
        keep[self.gone] = False
        live = before.live.filter(pa.array(keep))
        if batch.rows is not None:
            added = batch.rows.filter(pa.array(self.added))
            live = pa.concat_tables([live, added.select(live.column_names).cast(live.schema)])
        return SliceDelta(pa.array(self.masked, pa.int64()), live)


def has_steps(config: TableConfig) -> bool:
    """Return whether a table's sidecars can be made of those before."""
    return not config.keeps_operations and merge_rule(config) in (COMMIT_TIME, EVENT_TIME)


def next_step(
    config: TableConfig,
    before: SliceDelta,
    batch: LogBatch,
    stored: Callable[[list[str]], pa.Table],
) -> SidecarStep | None:
    """Return what a batch does to a sidecar, None when that is not known.

    Args:
        before: What the logs did before; of its live rows the record keys and ordering columns are enough.
        stored: Reads columns of the base file, one row each.
    """
    fields = [name for name in config.ordering_fields if name in batch.changes.column_names]
    compares = merge_rule(config).compares and bool(fields)
    if compares and batch.deleted.any() and not batch.deletes_win:
        return None
    live_keys = before.live.column(RECORD_KEY)
    if live_keys.null_count or not are_distinct(live_keys):
        return None
    if (np.bincount(batch.numbers) > 1).any():
        return None
    places = np.full(batch.changes.num_rows, -1, np.int64)
    places[batch.numbers] = batch.hits
    found = pc.index_in(batch.changes.column(RECORD_KEY), value_set=live_keys.combine_chunks())
    rows = np.asarray(pc.fill_null(found, -1)).astype(np.int64)
    hidden_before = before.masked_positions.to_numpy()
    last = int(max(places.max(initial=-1), hidden_before.max(initial=-1)))
    if last >= _MAX_ROWS or hidden_before.min(initial=0) < 0:
        return None
    hidden = np.zeros(last + 1, dtype=bool)
    hidden[hidden_before] = True
    in_base = places >= 0
    in_base[in_base] = ~hidden[places[in_base]]
    if (in_base & (rows >= 0)).any():
        return None
    wins = np.ones(len(places), dtype=bool)
    if compares:
        wins[rows >= 0] = _newer(before.live, rows[rows >= 0], batch.changes, rows >= 0, fields)
        if in_base.any():
            wins[in_base] = _newer(stored(fields), places[in_base], batch.changes, in_base, fields)
        wins |= batch.deleted
    hidden[places[wins & in_base]] = True
    return SidecarStep(np.flatnonzero(hidden), rows[wins & (rows >= 0)], wins[~batch.deleted])


def _newer(old: pa.Table, places: Positions, new: pa.Table, which: Mask, fields: list[str]) -> Mask:
    """Tell of some changes whether they are not older than the rows at ``places`` of ``old``."""
    known = taken(old.select(fields), places)
    coming = new.select(fields).filter(pa.array(which))
    return newer_wins([known.column(name) for name in fields], [coming.column(name) for name in fields])
