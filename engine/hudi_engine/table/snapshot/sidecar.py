"""Delta sidecars: what the logs of a file slice change, in a form that Spark reads natively.

A merge-on-read slice with logs gets one small Parquet file with the rows the logs add or replace ("live" rows), and which rows
of the base file they replace or delete (the mask, see `mask`).

Sidecars are in the partition folder, since Spark takes partition values from the path. They are named like a
base file with another extension, so that Hudi readers that parse a name for its instant can, and those that
look for ``.parquet`` or ``.log`` ignore them.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.merge.key_sets import are_distinct
from hudi_engine.format.merge.modes.registry import COMMIT_TIME, EVENT_TIME, merge_rule
from hudi_engine.format.merge.ordering import newer_wins
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.merge.rows_at import taken
from hudi_engine.format.merge.slice_reader import SliceDelta, resolve_delta
from hudi_engine.format.parquet.file import RowGroup
from hudi_engine.format.parquet.writer import ChunkWriter, encoded
from hudi_engine.format.schema.casting import cast_table
from hudi_engine.format.schema.meta_fields import RECORD_KEY
from hudi_engine.format.storage.base import FileStatus, Storage
from hudi_engine.format.storage.damage import damaged_parquet
from hudi_engine.format.storage.paths import join
from hudi_engine.table.snapshot.derive import size_of, spark_writer

CHUNK_COLUMN = "_hoodie_delta_chunk"
WORDS_COLUMN = "_hoodie_delta_words"
MASK_COLUMNS = (CHUNK_COLUMN, WORDS_COLUMN)
CHUNK_BITS = 12
"""A mask row covers 2 ** CHUNK_BITS rows of the base file."""

WORD_BITS = 6
"""A word covers 2 ** WORD_BITS rows."""

_WORDS = 1 << (CHUNK_BITS - WORD_BITS)


def mask_table(positions: pa.Array | pa.ChunkedArray, schema: pa.Schema) -> pa.Table:
    """Turn row numbers of a base file, each once, into mask rows of a sidecar's schema."""
    # Mostly they are in order, which this kind of sorting only has to see.
    rows = np.sort(np.asarray(positions.to_numpy(zero_copy_only=False), dtype=np.int64), kind="stable")
    begins = np.diff(rows >> CHUNK_BITS, prepend=-1) != 0
    chunks = rows[begins] >> CHUNK_BITS
    flags = np.zeros((len(chunks), 1 << CHUNK_BITS), dtype=bool)
    flags[np.cumsum(begins) - 1, rows & ((1 << CHUNK_BITS) - 1)] = True
    bits = np.packbits(flags, axis=1, bitorder="little").view("<i8")
    offsets = pa.array(np.arange(len(chunks) + 1) * _WORDS, pa.int32())
    lists = pa.ListArray.from_arrays(offsets, pa.array(bits.ravel()))
    columns: list[pa.Array] = [pa.nulls(len(chunks), field.type) for field in schema][:-2]
    return pa.Table.from_arrays(
        [*columns, pa.array(chunks), lists.cast(schema.field(WORDS_COLUMN).type)], schema=schema
    )


def masked_rows(mask: pa.Table) -> pa.Int64Array:
    """Turn mask rows back into row numbers of a base file, ascending."""
    if not mask.num_rows:
        return pa.array([], pa.int64())
    chunks = mask.column(CHUNK_COLUMN).to_numpy()
    words = pc.list_flatten(mask.column(WORDS_COLUMN).combine_chunks()).to_numpy(zero_copy_only=False)
    bits = np.unpackbits(
        words.astype("<i8").view(np.uint8).reshape(len(chunks), -1), axis=1, bitorder="little"
    )
    which, places = np.nonzero(bits)
    return pa.array(np.sort((chunks[which] << CHUNK_BITS) + places, kind="stable"), pa.int64())


def read_mask_words(storage: Storage, path: str, most: int) -> npt.NDArray[np.int64] | None:
    """Read the mask of a sidecar; word ``n`` covers rows ``64 n`` to ``64 n + 63``, the lowest bit the first of them.

    Returns:
        The words up to the last masked row, and at most 63 more; None for more than ``most``.
    """
    with storage.open_input(path) as source, damaged_parquet(f"sidecar {path!r} of {storage.base!r}"):
        file = pq.ParquetFile(source, page_checksum_verification=True)
        mask = file.read_row_groups(_groups_of_mask(file.metadata), [CHUNK_COLUMN, WORDS_COLUMN])
    mask = mask.filter(pc.is_valid(mask.column(CHUNK_COLUMN)))
    chunks = mask.column(CHUNK_COLUMN).to_numpy()
    count = int(chunks.max(initial=-1)) + 1
    if count * _WORDS > most:
        return None
    words = np.zeros((count, _WORDS), dtype=np.int64)
    words[chunks] = pc.list_flatten(mask.column(WORDS_COLUMN)).to_numpy().reshape(len(chunks), _WORDS)
    return words.ravel()


def _groups_of_mask(footer: pq.FileMetaData) -> list[int]:
    places = [n for n in range(footer.num_columns) if footer.schema.column(n).path == CHUNK_COLUMN]
    groups = []
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        nulls = [group.column(place).statistics for place in places]
        if not all(each is not None and each.null_count == group.num_rows for each in nulls):
            groups.append(number)
    return groups


EXTENSION = "delta"
_ROWS_PER_GROUP = 256 * 1024
_NAME = re.compile(r"^([^_/]+)_(\d+-\d+-\d+)_(\d+)\.delta$")


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A sidecar file: the slice it belongs to and the newest instant its logs hold."""

    partition: str
    file_id: str
    instant: str
    path: str
    size: int = 0
    modified_ms: int = 0


@dataclass(frozen=True)
class SidecarTask:
    """Building one sidecar at ``path`` of ``target``; picklable."""

    context: ReadContext
    file_slice: FileSlice
    target: Storage
    path: str

    @property
    def size_bytes(self) -> int:
        """Bytes of the logs to read."""
        return sum(log.size for log in self.file_slice.log_files)

    def run(self) -> int | None:
        """Merge the logs and write the sidecar; returns its bytes, None when the logs change nothing."""
        delta = resolve_delta(self.context, self.file_slice)
        return write_sidecar(self.target, self.path, self.context.schema, delta)


def write_sidecar(target: Storage, path: str, schema: pa.Schema, delta: SliceDelta) -> int | None:
    """Write a sidecar; returns its bytes, None when the logs change nothing and no file is needed."""
    if delta.live.num_rows == 0 and len(delta.masked_positions) == 0:
        return None
    schema = sidecar_schema(schema)
    mask, live = mask_table(delta.masked_positions, schema), _live_table(delta.live, schema)
    with (
        target.open_output(path) as sink,
        spark_writer(sink, schema, live if live.num_rows else mask, live) as writer,
    ):
        for part in (mask, live):
            if part.num_rows:
                writer.write_table(part, row_group_size=_ROWS_PER_GROUP)
    return size_of(target, path)


def write_sidecar_groups(
    target: Storage,
    path: str,
    schema: pa.Schema,
    masked: pa.Array,
    groups: Iterable[RowGroup],
) -> int:
    """Write a sidecar of encoded row groups, columns that they lack being null, and masked rows; returns its bytes."""
    mask = mask_table(masked, schema)
    with target.open_output(path) as sink:
        writer = ChunkWriter(sink, schema)
        for group in (*([encoded_rows(mask)] if mask.num_rows else []), *groups):
            lacking = [field for field in schema if field.name not in group.chunks]
            nothing = [pa.nulls(group.rows, field.type) for field in lacking]
            chunks = dict(group.chunks)
            if lacking:
                empty = pa.Table.from_arrays(nothing, schema=pa.schema(lacking))
                chunks.update(encoded_rows(empty).chunks)
            writer.add(group.rows, [chunk for name in schema.names for chunk in chunks[name]])
        writer.close({})
    return size_of(target, path)


def is_live(group: RowGroup) -> bool:
    """Return whether a row group, of a sidecar or of a log, has live rows; otherwise it is of a mask."""
    nulls = {chunk.nulls for chunk in group.chunks.get(CHUNK_COLUMN, [])}
    if not nulls <= {0, group.rows}:
        raise CorruptTableError("a sidecar does not say which of its rows are of the mask")
    return 0 not in nulls


def encoded_rows(rows: pa.Table) -> RowGroup:
    """Return rows, at least one, as a row group of a sidecar."""
    return encoded(rows, lambda sink: spark_writer(sink, rows.schema, rows, rows))


def encoded_live_rows(tables: Sequence[pa.Table], schema: pa.Schema) -> list[RowGroup]:
    """Return live rows, with at least the columns of the table, as row groups."""
    if not any(each.num_rows for each in tables):
        return []
    rows = pa.concat_tables([_live_table(each, schema) for each in tables])
    starts = range(0, rows.num_rows, _ROWS_PER_GROUP)
    return [encoded_rows(rows.slice(start, _ROWS_PER_GROUP)) for start in starts]


def read_sidecar(
    storage: Storage, path: str, schema: pa.Schema, columns: Sequence[str] | None = None
) -> SliceDelta:
    """Read a sidecar back; ``columns`` of its live rows are read, None for all of the table's schema."""
    with storage.open_input(path) as source, damaged_parquet(f"sidecar {path!r} of {storage.base!r}"):
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns])
        file = pq.ParquetFile(source, page_checksum_verification=True)
        content = file.read(columns=[*schema.names, CHUNK_COLUMN, WORDS_COLUMN])
    is_live = pc.is_null(content.column(CHUNK_COLUMN))
    live = cast_table(content.filter(is_live), schema)
    return SliceDelta(masked_rows(content.filter(pc.invert(is_live))), live)


def sidecar_path(file_slice: FileSlice, instant: str) -> str:
    """Return a fresh path for a sidecar of this slice; two builders never choose the same."""
    token = f"{secrets.randbelow(10**9)}-0-1"
    return join(file_slice.partition, f"{file_slice.file_id}_{token}_{instant}.{EXTENSION}")


def parse_sidecar(path: str, partition: str, status: FileStatus | None = None) -> Sidecar | None:
    """Parse the name of a sidecar, with or without folders; None for every other file."""
    name = path.rpartition("/")[2]
    match = _NAME.match(name)
    if match is None:
        return None
    size, modified_ms = (status.size, status.modified_ms) if status is not None else (0, 0)
    return Sidecar(partition, match[1], match[3], join(partition, name), size, modified_ms)


def slice_digest(file_slice: FileSlice, pending_writes: Iterable[str], schema_digest: str) -> str:
    """Return the identity of what a sidecar of this slice would hold.

    Pending deltacommits that may have written to its logs are part of it: their blocks may become visible without a new log.
    """
    base = file_slice.base_file.name if file_slice.base_file is not None else ""
    logs = [f"{log.name}:{log.size}" for log in file_slice.log_files]
    text = "\n".join([schema_digest, base, *logs, "", *sorted(pending_writes)])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def sidecar_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns of a sidecar: the meta and data columns of the table, then the mask."""
    return schema.append(pa.field(CHUNK_COLUMN, pa.int64())).append(
        pa.field(WORDS_COLUMN, pa.list_(pa.field("element", pa.int64())))
    )


def _live_table(live: pa.Table, schema: pa.Schema) -> pa.Table:
    data = live.select(schema.names[:-2])
    columns = [*data.columns, pa.nulls(len(data), pa.int64()), pa.nulls(len(data), schema.field(-1).type)]
    return pa.table(columns, names=schema.names).cast(schema)


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
        removed: Numbers of the previous live rows that are removed.
        added: Which rows of the batch are live.
    """

    masked: Positions
    removed: Positions
    added: Mask

    def taken(self, before: SliceDelta, batch: LogBatch) -> SliceDelta:
        """Return what the logs do to the base file afterwards."""
        keep = np.ones(before.live.num_rows, dtype=bool)
        keep[self.removed] = False
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
    """Return which changes are not older than the rows at ``places`` of ``old``."""
    known = taken(old.select(fields), places)
    coming = new.select(fields).filter(pa.array(which))
    return newer_wins([known.column(name) for name in fields], [coming.column(name) for name in fields])
