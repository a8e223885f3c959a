"""What of a base file may be copied into the next one: column chunks of its row groups, neither decoded nor encoded again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import BinaryIO, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.config.enums import ParquetCodec
from hudi_engine.format.filegroup.base_file import BaseFile
from hudi_engine.format.index.filters.bloom import BloomFilter
from hudi_engine.format.index.filters.footer import KeyCollector
from hudi_engine.format.merge.base_reader import BaseFileRows
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.merge.row_equality import unchanged_columns
from hudi_engine.format.merge.rows_at import taken
from hudi_engine.format.parquet.chunk import Chunk
from hudi_engine.format.parquet.file import ChunkFile, RowGroup
from hudi_engine.format.parquet.writer import ChunkWriter, columns_as_stored, encoded
from hudi_engine.format.schema.casting import with_values
from hudi_engine.format.schema.coded import coded_like, decoded, with_used_values
from hudi_engine.format.schema.leaves import leaves_with_statistics
from hudi_engine.format.schema.meta_fields import FILE_NAME, RECORD_KEY
from hudi_engine.format.storage.base import Storage
from hudi_engine.table.handles.base_file_options import BaseFileOptions
from hudi_engine.table.handles.base_file_writer import (
    BaseFileInfo,
    constant,
    file_schema,
    footer_entries,
    open_writer,
    pieces,
    with_file_name,
    without_file_name,
)

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Block:
    """Some rows of the new file.

    Args:
        same: Columns that are unchanged in all of them, if none of the rows was deleted.
    """

    rows: pa.Table
    same: frozenset[str] = frozenset()
    updated: int = 0
    deleted: int = 0

    @classmethod
    def untouched(cls, rows: pa.Table) -> Block:
        """Return rows that are as they were."""
        return cls(rows, frozenset(rows.column_names))


class Changer(Protocol):
    """What happens to the rows of a file."""

    def touches(self, first_row: int, rows: int) -> bool:
        """Return whether one of some rows may become another one."""

    def apply(self, block: pa.Table, first_row: int) -> Block:
        """Return what becomes of a block that begins with a row of the file."""


def changed_blocks(
    changer: Changer, blocks: Iterable[pa.Table], name: str, first_row: int = 0
) -> Iterator[Block]:
    """Yield the rows of a file after a change, block by block, with the name of the new file."""
    for block in blocks:
        part = changer.apply(block, first_row)
        first_row += block.num_rows
        yield replace(part, rows=with_file_name(part.rows, name))


def without_rows(block: pa.Table, removed: Places) -> Block:
    """Return a block without some of its rows."""
    keep = np.ones(block.num_rows, dtype=bool)
    keep[removed] = False
    return Block(block.filter(pa.array(keep)), deleted=len(removed))


def with_rows_at(block: pa.Table, places: Places, before: pa.Table, rows: pa.Table, removed: Places) -> Block:
    """Return a block with ``rows`` at ``places`` and without the rows ``removed``; order is kept."""
    if len(removed):
        return Block(_spliced(block, places, rows, removed), updated=len(places), deleted=len(removed))
    same = unchanged_columns(before, rows)
    others = [name for name in block.column_names if name not in same]
    spliced = _spliced(block.select(others), places, rows, removed)
    block = with_values(block, dict(zip(others, spliced.columns, strict=True)))
    return Block(block, same, updated=len(places))


def _spliced(block: pa.Table, places: Places, rows: pa.Table, removed: Places) -> pa.Table:
    """Return the block with other rows in some places; one take over both."""
    order: Places = np.arange(block.num_rows, dtype=np.int64)
    order[places] = block.num_rows + np.arange(len(places))
    if len(removed):
        keep = np.ones(block.num_rows, dtype=bool)
        keep[removed] = False
        order = order[keep]
    return taken(pa.concat_tables([block, coded_like(rows, block.schema)]), order)


_OWN_WRITER = "parquet-cpp-arrow"
_CODECS = {
    ParquetCodec.UNCOMPRESSED: 0,
    ParquetCodec.SNAPPY: 1,
    ParquetCodec.GZIP: 2,
    ParquetCodec.ZSTD: 6,
    ParquetCodec.LZ4: 7,
}
"""Numbers of ``parquet.thrift``, CompressionCodec; pyarrow's lz4 is LZ4_RAW."""
_MIN_BYTES = 64 * 1024
"""Row groups of which less could be carried are encoded again: looking at them costs as much."""
_MIN_CHUNK_BYTES = 4 * 1024
"""The same for a column's chunk: to encode less takes no longer than to read where it lies in the footer."""
_LARGEST_GROUP = 2.0
_ENOUGH_ROWS = 65_536
"""Row groups of so many rows are not too small, however few bytes their dictionaries make of them."""
_FREE_PAGES, _ROWS_A_PAGE = 16, 4096
"""New rows come as a page of their own, and a chunk of too many small pages is encoded again."""


@dataclass(frozen=True)
class GroupRows:
    """Rows of a new base file.

    Args:
        group: The row group of the old file they come from; None for new rows.
        carried: Columns that are copied from it; ``rows`` has the values of all other columns, and the record key.
    """

    rows: pa.Table
    group: RowGroup | None = None
    carried: frozenset[str] = frozenset()

    @property
    def nbytes(self) -> int:
        """Bytes of the rows in memory."""
        return int(self.rows.nbytes)


class OldGroups:
    """The row groups of a base file that is to be followed by another one."""

    def __init__(
        self, context: ReadContext, file: BaseFileRows, chunks: ChunkFile, options: BaseFileOptions
    ) -> None:
        self.groups = chunks.groups
        self.schema = file_schema(context.schema)
        self.options = options
        self._file = file
        self._is_near = context.storage.is_near
        new = columns_as_stored(self.schema).elements
        self._same = {name for name, found in new.items() if chunks.elements.get(name) == found}
        self._columns = frozenset(new) - {FILE_NAME}

    @classmethod
    def of(
        cls, context: ReadContext, file: BaseFileRows, base: BaseFile, options: BaseFileOptions
    ) -> OldGroups | None:
        """Return a base file's row groups; None where the new file is to have others, or its columns are not known by name."""
        by_name = context.schema_history is None and not context.config.drop_partition_columns
        least = max(_MIN_BYTES, _MIN_CHUNK_BYTES * len(context.schema))
        is_wanted = options.carry_columns and by_name and base.size >= least
        if not is_wanted or file.is_in_old_calendar:
            return None
        try:
            chunks = ChunkFile(file.source)
        except CorruptTableError:
            return None  # what reads it can do more than this
        if not chunks.created_by.startswith(_OWN_WRITER) or not _are_as_wanted(chunks.groups, options):
            return None
        return cls(context, file, chunks, options)

    def may_carry(self, group: RowGroup, *, is_touched: bool, grows: bool) -> frozenset[str]:
        """Return the columns of a row group that are copied unless a value of them changes.

        Args:
            is_touched: Whether its values have to be read.
            grows: Whether new rows come after its own.
        """
        if not group.rows or (is_touched and not self._is_near):
            return frozenset()
        found = {name for name in self._same & self._columns if self._fits(group, name, grows)}
        size = sum(chunk.size for name in found for chunk in group.chunks[name])
        return frozenset(found) if size >= _MIN_BYTES else frozenset()

    def followed(self, changer: Changer, name: str, *, grows: bool) -> Iterator[GroupRows]:
        """Yield the file's rows as they are to be, row group by row group, with the name of the new file."""
        columns = without_file_name(self.schema)
        end = 0
        for number, group in enumerate(self.groups):
            if not group.rows:
                continue
            start, end = end, end + group.rows
            is_touched = changer.touches(start, group.rows)
            is_last = number == len(self.groups) - 1
            carried = self.may_carry(group, is_touched=is_touched, grows=grows and is_last)
            bounded = self._bounded(group, carried)
            if not is_touched and carried >= self._columns:
                keys = pa.concat_tables(self._file.blocks([RECORD_KEY, *bounded], number))
                if not any(_has_nan(keys, each) for each in bounded):
                    named = keys.append_column(FILE_NAME, constant(name, keys.num_rows))
                    yield GroupRows(named, group, carried)
                    continue
            blocks = list(changed_blocks(changer, self._file.blocks(columns, number), name, start))
            carried = carried.intersection(*(block.same for block in blocks))
            rows = pa.concat_tables([block.rows for block in blocks])
            wrong = {each for each in bounded if each in carried and _has_nan(rows, each)}
            yield GroupRows(rows, group, carried - wrong)

    def _bounded(self, group: RowGroup, carried: frozenset[str]) -> list[str]:
        """Return the carried columns of floating point numbers with bounds; other writers leave NaN out of them."""
        return sorted(
            name
            for name in carried
            if any(each.is_floating and each.has_bounds for each in group.chunks[name])
        )

    def _fits(self, group: RowGroup, name: str, grows: bool) -> bool:
        """Return whether a column's chunks have the layout of this engine's and not too many small pages."""
        chunks = group.chunks.get(name, [])
        codec = _CODECS[self.options.codec]
        most = _FREE_PAGES + group.rows // _ROWS_A_PAGE
        return bool(chunks) and all(
            each.codec == codec
            and (self.options.dictionary or not each.has_dictionary)
            and not (each.is_floating and (each.has_dictionary or (each.has_bounds and each.is_nested)))
            and (not grows or (each.data_pages is not None and each.data_pages < most))
            for each in chunks
        )


def _has_nan(rows: pa.Table, name: str) -> bool:
    return bool(pc.any(pc.is_nan(rows.column(name))).as_py())


def _are_as_wanted(groups: list[RowGroup], options: BaseFileOptions) -> bool:
    """Return whether row groups are neither too small nor too large for the layout of today."""
    if not groups:
        return False
    whole, rows = (sum(values) for values in zip(*((each.size, each.rows) for each in groups), strict=True))
    most = max(1, round(whole / options.row_group_bytes)) + 1
    are_few = len(groups) <= most or rows >= _ENOUGH_ROWS * len(groups)
    return are_few and max(each.size for each in groups) <= _LARGEST_GROUP * options.row_group_bytes


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
        statistics = leaves_with_statistics(rows.schema, rows)
        used = with_used_values(rows)
        return encoded(used, lambda sink: open_writer(sink, rows.schema, rows, options, statistics)).chunks
