"""What of a base file may be copied into the next one: column chunks of its row groups, neither decoded nor encoded again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.config.enums import ParquetCodec
from hudi_engine.format.filegroup.base_file import BaseFile
from hudi_engine.format.merge.base_reader import BaseFileRows
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.parquet.file import ChunkFile, RowGroup
from hudi_engine.format.parquet.writer import columns_as_stored
from hudi_engine.format.schema.meta_fields import FILE_NAME, RECORD_KEY
from hudi_engine.table.handles.base_file_options import BaseFileOptions
from hudi_engine.table.handles.base_file_writer import constant, file_schema, without_file_name
from hudi_engine.table.handles.blocks import Changer, changed_blocks

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
"""Row groups of which less could be carried are made anew: looking at them costs as much."""
_LARGEST_GROUP = 2.0
_ENOUGH_ROWS = 65_536
"""Row groups of so many rows are not too small, however few bytes their dictionaries make of them."""
_FREE_PAGES, _ROWS_A_PAGE = 16, 4096
"""New rows come as a page of their own, and a chunk of too many small pages is made anew."""


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
        is_wanted = options.carry_columns and by_name and base.size >= _MIN_BYTES
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
    """Tell whether row groups are neither too small nor too large for the layout of today."""
    if not groups:
        return False
    whole, rows = (sum(values) for values in zip(*((each.size, each.rows) for each in groups), strict=True))
    most = max(1, round(whole / options.row_group_bytes)) + 1
    are_few = len(groups) <= most or rows >= _ENOUGH_ROWS * len(groups)
    return are_few and max(each.size for each in groups) <= _LARGEST_GROUP * options.row_group_bytes
