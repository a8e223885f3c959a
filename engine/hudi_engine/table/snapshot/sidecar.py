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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.merge.slice_reader import SliceDelta, resolve_delta
from hudi_engine.format.parquet.file import RowGroup
from hudi_engine.format.parquet.writer import ChunkWriter, encoded
from hudi_engine.format.schema.casting import cast_table
from hudi_engine.format.storage.base import FileStatus, Storage
from hudi_engine.format.storage.damage import damaged_parquet
from hudi_engine.format.storage.paths import join
from hudi_engine.table.snapshot.derive import size_of, spark_writer
from hudi_engine.table.snapshot.mask import CHUNK_COLUMN, WORDS_COLUMN, mask_table, masked_rows

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
