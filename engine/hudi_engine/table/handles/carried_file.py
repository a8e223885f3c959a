"""Writing a base file of which much is copied from another one: column chunks are carried, the others encoded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import BinaryIO

import pyarrow as pa

from hudi_engine.format.index.filters.bloom import BloomFilter
from hudi_engine.format.index.filters.footer import KeyCollector
from hudi_engine.format.parquet.chunk import Chunk
from hudi_engine.format.parquet.writer import ChunkWriter, encoded
from hudi_engine.format.schema.coded import coded_like, decoded, with_used_values
from hudi_engine.format.schema.leaves import leaves_with_statistics
from hudi_engine.format.schema.meta_fields import RECORD_KEY
from hudi_engine.format.storage.base import Storage
from hudi_engine.table.handles.base_file_options import BaseFileOptions
from hudi_engine.table.handles.base_file_writer import BaseFileInfo, footer_entries, open_writer, pieces
from hudi_engine.table.handles.carried import GroupRows, OldGroups

_FULL_GROUP = 1.25


def write_carried_file(
    storage: Storage,
    path: str,
    old: OldGroups,
    groups: Iterable[GroupRows],
    *,
    avro_schema_with_meta: Mapping[str, object],
    before_publish: Callable[[], None] | None = None,
    reuse_bloom: BloomFilter | None = None,
) -> BaseFileInfo:
    """Write a base file by row group, as `write_base_file` does.

    Args:
        groups: Its rows, row group by row group, new ones last; those join the last row group while it has room.
    """
    collector = KeyCollector(old.options, reuse_bloom)
    rows = 0
    with storage.open_output(path, before_publish=before_publish) as sink:
        writer = _GroupWriter(sink, old.schema, old.options)
        for group, more in _with_new_rows(groups, old.options.row_group_bytes):
            for part in (group.rows, more):
                if part is not None:
                    collector.add(part.column(RECORD_KEY))
                    rows += part.num_rows
            writer.write(group, more)
        writer.close(footer_entries(collector, avro_schema_with_meta))
        size = sink.tell()
    return BaseFileInfo(path, size, rows, collector.min_key, collector.max_key)


def _with_new_rows(
    groups: Iterable[GroupRows], group_bytes: int
) -> Iterator[tuple[GroupRows, pa.Table | None]]:
    """Yield row groups, the last old one with the new rows that find room in it."""
    last: GroupRows | None = None
    for group in groups:
        if group.group is not None:
            if last is not None:
                yield last, None
            last = group
            continue
        if not group.rows.num_rows:
            continue
        joins = last is not None and _has_room(last, group.rows, group_bytes)
        if last is not None:
            yield last, group.rows if joins else None
            last = None
        if not joins:
            for piece in pieces(group.rows, group_bytes):
                yield GroupRows(piece), None
    if last is not None:
        yield last, None


def _has_room(last: GroupRows, more: pa.Table, group_bytes: int) -> bool:
    """Return whether new rows, at least one, join a row group, which is held in memory whole when its rows change."""
    if last.group is None:
        return False
    in_memory = last.group.rows * more.nbytes // more.num_rows
    return bool(max(last.group.size, in_memory) + more.nbytes <= group_bytes * _FULL_GROUP)


class _GroupWriter:
    """A file to which row groups are added, each of carried and of new column chunks."""

    def __init__(self, sink: BinaryIO, schema: pa.Schema, options: BaseFileOptions) -> None:
        self._writer = ChunkWriter(sink, schema)
        self._names = schema.names
        self._options = options

    def write(self, group: GroupRows, more: pa.Table | None) -> None:
        """Add a row group, with the pages of new rows behind its own."""
        rows = group.rows.num_rows + (more.num_rows if more is not None else 0)
        if not rows:
            return
        written = group.rows.select([name for name in self._names if name not in group.carried])
        if more is not None:
            written = pa.concat_tables([written, coded_like(more, written.schema)])
        chunks = self._encoded(written)
        if group.group is not None:
            chunks.update({name: group.group.chunks[name] for name in group.carried})
        if more is not None and group.carried:
            chunks.update(self._followed(chunks, more.select(sorted(group.carried))))
        self._writer.add(rows, [chunk for name in self._names for chunk in chunks[name]])

    def close(self, entries: Mapping[str, str]) -> None:
        """Write the footer."""
        self._writer.close(entries)

    def _followed(self, chunks: dict[str, list[Chunk]], more: pa.Table) -> dict[str, list[Chunk]]:
        new = self._encoded(decoded(more), dictionary=False)
        followed = {}
        for name in more.column_names:
            leaves = zip(chunks[name], new[name], self._writer.file.leaves(name), strict=True)
            followed[name] = [chunk.followed_by(pages, element) for chunk, pages, element in leaves]
        return followed

    def _encoded(self, rows: pa.Table, *, dictionary: bool = True) -> dict[str, list[Chunk]]:
        """Return the chunks of a row group that is encoded into memory."""
        options = self._options if dictionary else replace(self._options, dictionary=False)
        told = leaves_with_statistics(rows.schema, rows)
        used = with_used_values(rows)
        return encoded(used, lambda sink: open_writer(sink, rows.schema, rows, options, told)).chunks
