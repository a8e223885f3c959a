"""Reading one file slice: the base file with its logs merged in, in every way Hudi offers.

Source: Hudi table format, reading. Each base row is looked up by itself, so a key that a base file holds
twice stays there twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import ConfigError
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.merge.base_reader import (
    BaseFileRows,
    read_base_file,
    scan_base_file,
    select_schema,
)
from hudi_engine.format.merge.entries import Entries, concat_entries, plain_entries
from hudi_engine.format.merge.filters import columns_of
from hudi_engine.format.merge.log_records import LogRecords, block_rows, needed_columns, read_log_records
from hudi_engine.format.merge.log_scanner import load_blocks, scan_slice
from hudi_engine.format.merge.modes.fold import as_first_named, fold, key_codes, turns_of
from hudi_engine.format.merge.modes.registry import merge_rule
from hudi_engine.format.merge.modes.rule import MergeRule
from hudi_engine.format.merge.read_context import ReadContext, in_instant_range, rows_in_range
from hudi_engine.format.merge.record_keys import key_column_names, record_keys
from hudi_engine.format.merge.rows_at import taken
from hudi_engine.format.schema.meta_fields import COMMIT_TIME


def read_unmerged_logs(context: ReadContext, file_slice: FileSlice) -> pa.Table:
    """Return rows of the data blocks of a slice's logs in the order in which they apply; delete blocks hold no rows."""
    return pa.concat_tables([context.schema.empty_table(), *_blocks(context, file_slice)])


def read_changes(
    context: ReadContext, file_slice: FileSlice, *, is_first: bool, skips_base: bool = False
) -> pa.Table:
    """Return what the writes of a slice did: new rows of its base file, then the records of its logs.

    Args:
        is_first: It is the oldest one left of its file group, so that rows that its base file took over from older
            slices are reported nowhere else.
        skips_base: The rows of its base file are reported elsewhere, all of them.
    """
    parts = [context.schema.empty_table()]
    base = file_slice.base_file
    if base is not None and not skips_base:
        rows = read_base_file(context, base)
        if not is_first:
            rows = rows.filter(pc.equal(rows.column(COMMIT_TIME), base.instant))
        parts.append(rows_in_range(context, rows))
    parts.extend(_blocks(context, file_slice))
    return pa.concat_tables(parts)


def _blocks(context: ReadContext, file_slice: FileSlice) -> Iterator[pa.Table]:
    with_rows = [each for each in scan_slice(context, file_slice).blocks if each.place.is_data]
    for block in load_blocks(context, with_rows):
        yield rows_in_range(context, block_rows(context, file_slice, block, context.schema))


__all__ = [
    "MERGE_TYPES",
    "ReadContext",
    "SliceDelta",
    "read_base_file",
    "read_slice",
    "resolve_delta",
    "scan_logs",
]

PAYLOAD_COMBINE, SKIP_MERGE, BASE_ONLY, LOG_ONLY = "payload_combine", "skip_merge", "base_only", "log_only"
MERGE_TYPES = (PAYLOAD_COMBINE, SKIP_MERGE, BASE_ONLY, LOG_ONLY)

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class SliceDelta:
    """What the logs of a slice do to its base file.

    Attributes:
        masked_positions: Row numbers of the base file that are replaced or deleted, ascending.
        live: Rows to add, in the table's schema. The base rows without the masked ones, and these, are the
            slice.
        logs: What was read from the logs, for statistics; None when there are none.
        replacing: How many of ``live`` replace a masked row; the others have new keys. None where that is not known.
        places: Places of the rows that the first of ``live`` replace, ascending; None where it is not known.
    """

    masked_positions: pa.Int64Array
    live: pa.Table
    logs: LogRecords | None = None
    replacing: int | None = None
    places: pa.Int64Array | None = None


def read_slice(
    context: ReadContext,
    file_slice: FileSlice,
    *,
    columns: Sequence[str] | None = None,
    merge_type: str = PAYLOAD_COMBINE,
    filters: pc.Expression | None = None,
) -> pa.Table:
    """Return rows of a slice, in an order that neither the columns change nor the memory that merging them may take.

    Args:
        columns: Columns in the wanted order, None for all of the table.
        merge_type: ``payload_combine`` merges the logs into the base file; ``skip_merge`` gives base rows and
            log records side by side; ``base_only`` and ``log_only`` give one of the two.
        filters: Only rows for which this is true. Without logs it is pushed down to the row groups of the base file;
            else rows are merged first.
    """
    if merge_type not in MERGE_TYPES:
        raise ConfigError(f"merge type {merge_type!r} is not known; legal values: {', '.join(MERGE_TYPES)}")
    wanted = list(context.schema.names if columns is None else columns)
    select_schema(context.schema, wanted)
    if filters is None:
        return _read(context, file_slice, wanted, merge_type).select(wanted)
    plain = merge_type == BASE_ONLY or (not file_slice.log_files and merge_type != LOG_ONLY)
    if plain and context.instant_range is None and file_slice.base_file is not None:
        return scan_base_file(context, file_slice.base_file, wanted, filters)
    looked_at = list(dict.fromkeys([*wanted, *columns_of(filters, context.schema)]))
    return _read(context, file_slice, looked_at, merge_type).filter(filters).select(wanted)


def scan_logs(
    context: ReadContext, file_slice: FileSlice, *, columns: Sequence[str] | None = None
) -> LogRecords:
    """Return records of the slice's logs, merged to one a key; deletes are among them with their ordering values."""
    rule = merge_rule(context.config)
    wanted = context.schema.names if columns is None else columns
    return _scan(context, file_slice, rule, _merged_columns(context, rule, wanted))


def resolve_delta(
    context: ReadContext, file_slice: FileSlice, opened: BaseFileRows | None = None
) -> SliceDelta:
    """Return what the logs do to the base file, which may be open already: row numbers that go, rows that come."""
    rule = merge_rule(context.config)
    names = context.schema.names
    needed = needed_columns(context, names)
    records: LogRecords | None = None
    places: pa.Int64Array | None = None
    if not file_slice.log_files:
        base = _read_base(context, file_slice, key_column_names(context.config), opened)
        masked, live, replacing = np.zeros(base.num_rows, dtype=bool), context.schema.empty_table(), 0
    elif rule.fills_one_by_one:
        base = _read_base(context, file_slice, needed, opened)
        masked, records = _fill_into(context, file_slice, base, rule)
        live = _live(records.winners)
        replacing = _count_known(context, base, live)
    else:
        records = _scan(context, file_slice, rule, needed)
        base = _read_base(context, file_slice, _columns_of_old(context, rule, records.winners, names), opened)
        masked, live, places = _merge_into(context, base, records.winners, rule)
        replacing = len(places)
    if context.instant_range is not None:
        masked |= ~_inside(context, base)
    return SliceDelta(
        pa.array(np.flatnonzero(masked), pa.int64()), live.select(names), records, replacing, places
    )


def _count_known(context: ReadContext, base: pa.Table, live: pa.Table) -> int:
    """Return how many of some rows have the key of a base row."""
    stored = record_keys(base, context.config).combine_chunks()
    return pc.sum(pc.is_in(record_keys(live, context.config), value_set=stored)).as_py() or 0


def _read(context: ReadContext, file_slice: FileSlice, wanted: list[str], merge_type: str) -> pa.Table:
    """Read a slice by its merge type; without logs the base file alone, with fewer columns, is enough."""
    if merge_type == BASE_ONLY or not file_slice.log_files:
        if merge_type == LOG_ONLY:
            return select_schema(context.schema, wanted).empty_table()
        columns = wanted if context.instant_range is None else needed_columns(context, wanted)
        return rows_in_range(context, _read_base(context, file_slice, columns))
    rule = merge_rule(context.config)
    needed = _merged_columns(context, rule, wanted)
    if merge_type == LOG_ONLY:
        return _live(_scan(context, file_slice, rule, needed).winners)
    base = rows_in_range(context, _read_base(context, file_slice, needed))
    if merge_type == SKIP_MERGE:
        return pa.concat_tables([base, _live(_scan(context, file_slice, rule, needed).winners)])
    if rule.fills_one_by_one:
        masked, records = _fill_into(context, file_slice, base, rule)
        live = _live(records.winners)
    else:
        masked, live, _ = _merge_into(context, base, _scan(context, file_slice, rule, needed).winners, rule)
    kept = base.filter(pa.array(~masked)) if masked.any() else base
    return pa.concat_tables([kept, live])


def _merged_columns(context: ReadContext, rule: MergeRule, wanted: Sequence[str]) -> list[str]:
    """Return the columns that are read for some to be merged: a rule of the user's own may look at any of them."""
    return needed_columns(context, context.schema.names if rule.asks_each_pair else wanted)


def _scan(context: ReadContext, file_slice: FileSlice, rule: MergeRule, columns: Sequence[str]) -> LogRecords:
    fields = [name for name in context.config.ordering_fields if name in columns]
    return read_log_records(context, file_slice, columns, lambda entries: fold(entries, rule.in_logs, fields))


def _live(entries: Entries) -> pa.Table:
    return entries.rows.filter(pa.array(~entries.deleted))


def _read_base(
    context: ReadContext, file_slice: FileSlice, columns: Sequence[str], opened: BaseFileRows | None = None
) -> pa.Table:
    if opened is not None:
        return opened.read(columns)
    if file_slice.base_file is None:
        return select_schema(context.schema, columns).empty_table()
    return read_base_file(context, file_slice.base_file, columns)


def _inside(context: ReadContext, base: pa.Table) -> Mask:
    if context.instant_range is None:
        return np.ones(base.num_rows, dtype=bool)
    return np.asarray(in_instant_range(base.column(COMMIT_TIME), context.instant_range)).astype(bool)


def _columns_of_old(
    context: ReadContext, rule: MergeRule, winners: Entries, names: Sequence[str]
) -> list[str]:
    if winners.provided is not None:
        return list(names)
    fields = [name for name in context.config.ordering_fields if name in context.schema.names]
    columns = [*key_column_names(context.config), *rule.needs_old(fields, names)]
    if context.instant_range is not None:
        columns.append(COMMIT_TIME)
    return list(dict.fromkeys(columns))


def _merge_into(
    context: ReadContext, base: pa.Table, winners: Entries, rule: MergeRule
) -> tuple[Mask, pa.Table, pa.Int64Array]:
    """Return which base rows go, which rows replace them or are new, and the places that are replaced."""
    masked = np.zeros(base.num_rows, dtype=bool)
    places = np.full(base.num_rows, -1, np.int64)
    if len(winners) and base.num_rows:
        found = pc.index_in(record_keys(base, context.config), value_set=winners.keys)
        places = pc.fill_null(found, -1).to_numpy().astype(np.int64)
    hits = np.flatnonzero((places >= 0) & _inside(context, base))
    new = winners.take(places[hits])
    merged, changed = _merge_pairs(context, base, hits, new, rule)
    masked[hits[changed]] = True
    fresh = ~winners.deleted
    fresh[places[hits]] = False
    stays = changed & ~merged.deleted
    live = pa.concat_tables([merged.rows.filter(pa.array(stays)), winners.rows.filter(pa.array(fresh))])
    return masked, live, pa.array(hits[stays], pa.int64())


def _fill_into(
    context: ReadContext, file_slice: FileSlice, base: pa.Table, rule: MergeRule
) -> tuple[Mask, LogRecords]:
    """As :func:`_merge_into`, for rules that fill gaps: the stored row is the first record of its key.

    Filling is not associative when rows come late, so records are merged one after the other into the stored
    row, as a rewrite of the base file with each commit would have done.
    """
    fields = [name for name in context.config.ordering_fields if name in base.column_names]
    inside = np.flatnonzero(_inside(context, base))
    stored = plain_entries(base, record_keys(base, context.config), None, None)
    if len(inside) < base.num_rows:
        stored = stored.take(inside)
    turns = turns_of(key_codes(stored.keys)[0])
    masked = np.zeros(base.num_rows, dtype=bool)

    def combine(entries: Entries) -> Entries:
        known = np.asarray(pc.is_in(stored.keys, value_set=entries.keys.combine_chunks())).astype(bool)
        masked[inside[known]] = True
        fresh = ~np.asarray(pc.is_in(entries.keys, value_set=stored.keys.combine_chunks())).astype(bool)
        results = [fold(entries.take(np.flatnonzero(fresh)), rule, fields)]
        for turn in range(int(turns[known].max(initial=-1)) + 1):
            olds = stored.take(np.flatnonzero(known & (turns == turn)))
            news = pc.is_in(entries.keys, value_set=olds.keys.combine_chunks())
            results.append(
                fold(
                    concat_entries([olds, entries.take(np.flatnonzero(np.asarray(news).astype(bool)))]),
                    rule,
                    fields,
                )
            )
        return as_first_named(entries.keys, concat_entries(results))

    columns = base.column_names
    return masked, read_log_records(context, file_slice, columns, combine)


def _merge_pairs(
    context: ReadContext, base: pa.Table, hits: npt.NDArray[np.int64], new: Entries, rule: MergeRule
) -> tuple[Entries, Mask]:
    everything = np.ones(len(hits), dtype=bool)
    fields = [name for name in context.config.ordering_fields if name in new.rows.column_names]
    if new.provided is None and not rule.sees_whole_rows:
        if not rule.compares or not fields:
            return new, everything
        old = _entries_of(base, fields, hits)
        return new, rule.first(old, new, fields)
    old = _entries_of(base, new.rows.column_names, hits)
    changed = everything if rule.composes else rule.first(old, new, fields)
    return rule.merge(old, new, fields), changed


def _entries_of(base: pa.Table, columns: Sequence[str], hits: npt.NDArray[np.int64]) -> Entries:
    rows = taken(base.select(list(columns)), hits)
    return plain_entries(rows, pa.chunked_array([pa.nulls(len(hits), pa.string())]), None, None)
