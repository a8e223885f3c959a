"""The records of a slice's logs, merged to one a key (source: Hudi table format, merging base and log records)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.logformat.blocks.delete import DeleteRecord, wrapper_of
from hudi_engine.format.logformat.blocks.delete import decode as decode_deletes
from hudi_engine.format.logformat.format import BlockType, LogBlock
from hudi_engine.format.logformat.reader import decode_data_block
from hudi_engine.format.merge.base_reader import select_schema
from hudi_engine.format.merge.delete_marker import delete_mask
from hudi_engine.format.merge.entries import Entries, concat_entries, plain_entries
from hudi_engine.format.merge.log_scanner import LogScan, load_blocks, scan_slice
from hudi_engine.format.merge.missing_columns import fill_defaults, refuse_to_fill
from hudi_engine.format.merge.ordering import is_default
from hudi_engine.format.merge.read_context import ReadContext, in_instant_range, range_allows
from hudi_engine.format.merge.record_keys import key_column_names, record_keys
from hudi_engine.format.merge.spill import PLACE, SpillStore, first_places, shares_of
from hudi_engine.format.merge.stored_columns import fit_columns, stored_names
from hudi_engine.format.schema.meta_fields import COMMIT_TIME, META_FIELDS, PARTITION_PATH, RECORD_KEY

_LOGGER = logging.getLogger(__name__)
_KEY, _FLAGS, _PROVIDED = "__hudi_key", "__hudi_flags", "__hudi_provided"
_DELETED, _ALWAYS, _SEVERED = 1, 2, 4


def _to_table(entries: Entries) -> pa.Table:
    flags = entries.deleted * _DELETED + entries.always * _ALWAYS + entries.severed * _SEVERED
    if entries.provided is None:
        provided = pa.nulls(len(entries), pa.binary())
    else:
        packed = np.packbits(entries.provided, axis=1)
        provided = pa.array([row.tobytes() for row in packed], pa.binary())
    table = entries.rows.append_column(_KEY, entries.keys)
    table = table.append_column(_FLAGS, pa.array(flags.astype(np.uint8)))
    return table.append_column(_PROVIDED, provided)


def _from_table(table: pa.Table) -> Entries:
    flags = table.column(_FLAGS).to_numpy()
    rows = table.drop_columns([_KEY, _FLAGS, _PROVIDED])
    packed = table.column(_PROVIDED)
    provided = None
    if packed.null_count < len(packed):
        width = rows.num_columns
        full = np.packbits(np.ones((1, width), dtype=bool), axis=1)[0].tobytes()
        bits = np.frombuffer(b"".join(packed.fill_null(full).to_pylist()), np.uint8).reshape(len(packed), -1)
        provided = np.unpackbits(bits, axis=1, count=width).astype(bool)
    return Entries(
        rows,
        table.column(_KEY),
        (flags & _DELETED) > 0,
        (flags & _ALWAYS) > 0,
        (flags & _SEVERED) > 0,
        provided,
    )


Combine = Callable[[Entries], Entries]

_MAX_PARTITIONS = 256
_DELETES_AT_ONCE = 65_536
"""Deletes of a block that are Python objects at once: a block may have millions, each hundreds of bytes as an object."""


@dataclass(frozen=True)
class LogRecords:
    """Winners of a slice's logs and what was read to find them.

    Attributes:
        winners: One entry for each key that the logs mention, in the order in which the logs first mention them.
    """

    winners: Entries
    total_records: int
    scan: LogScan


def read_log_records(
    context: ReadContext, file_slice: FileSlice, columns: Sequence[str], combine: Combine
) -> LogRecords:
    """Merge the logs of a slice.

    Args:
        columns: Columns to read; must hold those of :func:`needed_columns`.
        combine: Makes one entry a key out of entries in order, in the order in which the keys first come. It is called
            once, or, when the records are more than memory should hold, for one share of the keys after the other.
    """
    refuse_to_fill(context.config, context.defaults, columns)
    scan = scan_slice(context, file_slice)
    wanted = select_schema(context.schema, columns)
    parts: list[Entries] = []
    total = size = 0
    stream = _entries(context, file_slice, scan, wanted)
    for part in stream:
        parts.append(part)
        total += len(part)
        size += part.nbytes
        if size > context.bytes_at_once:
            return _spilled(context, scan, combine, parts, stream)
    if not parts:
        return LogRecords(_nothing(wanted), 0, scan)
    return LogRecords(combine(concat_entries(parts)), total, scan)


def needed_columns(context: ReadContext, columns: Sequence[str]) -> list[str]:
    """Return ``columns`` and what merging needs next to them: keys, ordering fields, the commit time for a range."""
    known = set(context.schema.names)
    extra = [*key_column_names(context.config), *context.config.ordering_fields]
    if context.instant_range is not None:
        extra.append(COMMIT_TIME)
    return list(dict.fromkeys([*columns, *(name for name in extra if name in known)]))


def _spilled(
    context: ReadContext, scan: LogScan, combine: Combine, parts: list[Entries], rest: Iterator[Entries]
) -> LogRecords:
    total = 0

    def fold(records: pa.Table) -> Iterator[pa.Table]:
        winners = combine(_from_table(records.drop_columns([PLACE])))
        places = first_places(records, records.column(_KEY), winners.keys)
        yield _to_table(winners).append_column(PLACE, places)

    stored = sum(block.place.content_length for block in scan.blocks)
    partitions = min(_MAX_PARTITIONS, max(2, 4 * stored // context.bytes_at_once + 2))
    with SpillStore(context.spill_dir) as store:
        for part in chain((parts.pop(0) for _ in range(len(parts))), rest):
            total += len(part)
            store.add(_to_table(part), shares_of(part.keys, partitions))
        winners = store.fold(fold)
    _LOGGER.info("merged log records on disk in %d parts", partitions)
    return LogRecords(_from_table(winners), total, scan)


def _entries(
    context: ReadContext, file_slice: FileSlice, scan: LogScan, wanted: pa.Schema
) -> Iterator[Entries]:
    for block in load_blocks(context, scan.blocks):
        if block.kind is BlockType.DELETE:
            if range_allows(block.instant_time, context.instant_range):
                records = decode_deletes(block.content)
                while run := list(islice(records, _DELETES_AT_ONCE)):
                    yield _deletes(context, block, run, wanted)
        else:
            part = _records(context, file_slice, block, wanted)
            if len(part):
                yield part


def block_rows(context: ReadContext, file_slice: FileSlice, block: LogBlock, wanted: pa.Schema) -> pa.Table:
    """Return rows of a data block in the columns of ``wanted``, as they were written."""
    return _fitted(context, file_slice, block, decode_data_block(block), wanted)[1]


def _fitted(
    context: ReadContext, file_slice: FileSlice, block: LogBlock, stored: pa.Table, wanted: pa.Schema
) -> tuple[dict[str, str], pa.Table]:
    """Return the stored name of each wanted column that the block has, and its rows under the wanted names and types."""
    stored = fill_defaults(stored, block.kind, context.fills_by, wanted)
    names = stored_names(context, stored.schema, block.instant_time, wanted)
    return names, fit_columns(context, stored, names, block.instant_time, file_slice.partition, wanted)


def _records(context: ReadContext, file_slice: FileSlice, block: LogBlock, wanted: pa.Schema) -> Entries:
    stored = decode_data_block(block)
    names, rows = _fitted(context, file_slice, block, stored, wanted)
    mask = delete_mask(stored, context.config)
    deleted = np.zeros(rows.num_rows, dtype=bool) if mask is None else np.asarray(mask)
    provided = None
    if block.is_partial:
        present = [name in names or name in META_FIELDS for name in wanted.names]
        provided = np.tile(np.array(present, dtype=bool), (rows.num_rows, 1))
    always = deleted & _has_default(context, rows)
    keys = record_keys(rows, context.config)
    if keys.null_count:
        raise CorruptTableError(
            f"the log block at byte {block.offset} of commit {block.instant_time}, in file group {file_slice.file_id!r} of "
            f"partition {file_slice.partition!r}, has {keys.null_count} records without a key: it was damaged. Restore the log "
            "file from a copy, or restore the table to a commit before that one (restore)"
        )
    entries = Entries(rows, keys, deleted, always, np.zeros(rows.num_rows, dtype=bool), provided)
    if context.instant_range is None:
        return entries
    inside = in_instant_range(rows.column(COMMIT_TIME), context.instant_range).to_numpy().astype(bool)
    return entries.take(np.flatnonzero(inside))


def _has_default(context: ReadContext, rows: pa.Table) -> npt.NDArray[Any]:
    columns = [rows.column(name) for name in context.config.ordering_fields if name in rows.column_names]
    return is_default(columns) if columns else np.ones(rows.num_rows, dtype=bool)


def _deletes(
    context: ReadContext, block: LogBlock, records: list[DeleteRecord], wanted: pa.Schema
) -> Entries:
    """Turn delete records into rows of keys and ordering values, everything else null."""
    count = len(records)
    keys = pa.chunked_array([pa.array([record.record_key for record in records], pa.string())])
    known: dict[str, pa.Array] = {
        RECORD_KEY: keys.combine_chunks(),
        PARTITION_PATH: pa.array([record.partition_path for record in records], pa.string()),
        COMMIT_TIME: pa.array([block.instant_time] * count, pa.string()),
    }
    fields = [name for name in context.config.ordering_fields if name in wanted.names]
    kinds = [wanted.field(name).type for name in fields]
    if context.config.merges_as_release_0 and kinds:
        records = _of_one_class(records, wrapper_of(kinds[0]))
    ordering = _ordering_columns(records, kinds)
    always = np.array([record.ordering_value is None for record in records], dtype=bool)
    if ordering is None:
        # Another type than the table's ordering field: such values cannot be compared, so the
        # delete wins, as in Hudi.
        always = np.ones(count, dtype=bool)
    else:
        known.update(zip(fields, ordering, strict=True))
    columns = [known.get(field.name, pa.nulls(count, field.type)) for field in wanted]
    rows = pa.Table.from_arrays(
        [column.cast(field.type) for column, field in zip(columns, wanted, strict=True)], schema=wanted
    )
    return plain_entries(rows, keys, np.ones(count, dtype=bool), always)


def _of_one_class(records: list[DeleteRecord], wrapper: str | None) -> list[DeleteRecord]:
    """Return deletes as Hudi 0.x takes them: with the default where values have another Java class than in the column's records."""
    return [each if each.wrapper == wrapper else replace(each, ordering_value=None) for each in records]


def _ordering_columns(records: list[DeleteRecord], kinds: list[pa.DataType]) -> list[pa.Array] | None:
    """Return the ordering values of deletes by field; None when they are of other types, or too many or few, to compare."""
    if not kinds:
        return []
    values = [record.ordering_value for record in records]
    if len(kinds) == 1:
        per_field = [[value[0] if isinstance(value, tuple) else value for value in values]]
    else:
        blank = (None,) * len(kinds)
        tuples = [value if isinstance(value, tuple) else blank for value in values]
        if any(len(value) != len(kinds) for value in tuples):
            return None
        per_field = [list(column) for column in zip(*tuples, strict=True)] or [[] for _ in kinds]
    try:
        return [_typed(column, kind) for column, kind in zip(per_field, kinds, strict=True)]
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return None


def _typed(values: list[object], kind: pa.DataType) -> pa.Array:
    """Return ordering values as the column's type; dates and timestamps may come as plain numbers."""
    found = pa.array(values)
    if pa.types.is_null(found.type):
        return pa.nulls(len(values), kind)
    if pa.types.is_date32(kind) and pa.types.is_integer(found.type):
        return found.cast(pa.int32()).cast(kind)
    return pc.cast(found, kind)


def _nothing(wanted: pa.Schema) -> Entries:
    return plain_entries(wanted.empty_table(), pa.chunked_array([], pa.string()), None, None)
