"""The rows of a bucket put together; what is more than memory should hold goes to disk and is combined there by key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

import numpy as np
import pyarrow as pa

from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.merge.combine_batch import combine_batch
from hudi_engine.format.merge.delete_marker import can_delete
from hudi_engine.format.merge.key_sets import are_distinct
from hudi_engine.format.merge.modes.registry import merge_rule
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.merge.rows_at import taken
from hudi_engine.format.merge.spill import PLACE, SpillStore, first_places, ordered, shares_of
from hudi_engine.format.schema.meta_fields import RECORD_KEY
from hudi_engine.format.worker import memory_limit
from hudi_engine.table.lookup.unit import in_order

Fit = Callable[[pa.Table], pa.Table]
_NUMBER = "__hudi_number"
_SHARES = 61
"""Keys are combined one share of them after the other; a prime, or keys of digits would be in few shares by Java's hash."""
_PORTIONS = 8
"""Rows that spill are copied by a part of what memory may hold."""


def gathered(
    parts: Iterable[pa.Table], read: ReadContext, fit: Fit, *, combines: bool
) -> tuple[pa.Table, int]:
    """Return rows in the order of their DataFrame, and how many came.

    Rows beyond ``hoodie.memory.merge.max.size`` are mapped from temporary files, which have no name any more and end with the
    table. Also where all keys differ they have that order, and not the one in which they came.

    Args:
        fit: Gives rows the columns and types to be.
        combines: Whether rows with the same key are to be merged into one. That is done here to rows that spill, else by
            `combine_batch`.
    """
    most, held, size, rest = read.bytes_at_once, list[pa.Table](), 0, iter(parts)
    for part in rest:
        held.append(part)
        size += part.nbytes
        if size > most:
            return _spilled(_portions(held, rest, most // _PORTIONS), read, fit, combines)
    rows = in_order(fit(pa.concat_tables(held)))
    return rows, rows.num_rows


def _spilled(
    portions: Iterable[pa.Table], read: ReadContext, fit: Fit, combines: bool
) -> tuple[pa.Table, int]:
    """Do as `gathered` on disk."""
    # All that is mapped counts where the memory of workers is limited, so that keys are split as they come.
    came, files = 0, 1 if memory_limit() is None else _SHARES

    def fold(rows: pa.Table) -> Iterator[pa.Table] | None:
        several = combines and not are_distinct(rows.column(RECORD_KEY))
        return _one_a_key(read.config, _SHARES // files, rows) if several else None

    with SpillStore(read.spill_dir) as store:
        for portion in portions:
            came += portion.num_rows
            rows = fit(portion)
            splits = combines and files > 1
            store.add(rows, shares_of(rows.column(RECORD_KEY), files) if splits else None)
        return store.fold(fold), came


def _portions(held: list[pa.Table], rest: Iterator[pa.Table], size: int) -> Iterator[pa.Table]:
    """Yield tables put together to some bytes; those that are held are let go."""
    some, total = list[pa.Table](), 0
    for part in chain((held.pop(0) for _ in range(len(held))), rest):
        some.append(part)
        total += part.nbytes
        if total >= size:
            yield pa.concat_tables(some)
            some, total = [], 0
    if some:
        yield pa.concat_tables(some)


def _one_a_key(config: TableConfig, shares: int, rows: pa.Table) -> Iterator[pa.Table]:
    """Combine one share of the keys after the other, with the places that `combine_batch` gives rows when it gets all.

    Where rows win whole, only what decides is read of all.
    """
    keys, places = rows.column(RECORD_KEY), rows.column(PLACE).to_numpy()
    turns = np.argsort(places, kind="stable")
    share = shares_of(keys, shares)[turns]
    mine = [turns[share == number] for number in range(shares)]
    if merge_rule(config).sees_whole_rows:
        for numbers in filter(len, mine):
            part = taken(rows, numbers)
            combined = combine_batch(part.drop_columns([PLACE]), config)
            firsts = first_places(part, part.column(RECORD_KEY), combined.column(RECORD_KEY))
            yield combined.append_column(PLACE, firsts)
        return
    names = {RECORD_KEY, *config.ordering_fields}
    names.update(field.name for field in rows.schema if can_delete(pa.schema([field]), config))
    deciding = rows.select([name for name in rows.column_names if name in names])
    found = []
    for numbers in mine:
        part = taken(deciding, numbers).append_column(_NUMBER, pa.array(numbers))
        found.append(combine_batch(part, config).column(_NUMBER).to_numpy())
    winners = np.concatenate(found)
    yield from ordered([rows], winners[np.argsort(places[winners])])
