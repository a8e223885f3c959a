"""What the metadata table indexes of data files: rows and deletes of logs, record keys, bounds of columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_engine.format.config.enums import MergeMode
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.logformat.blocks import delete
from hudi_engine.format.logformat.format import BlockType
from hudi_engine.format.logformat.reader import decode_data_block, read_blocks
from hudi_engine.format.merge.delete_marker import delete_mask
from hudi_engine.format.merge.slice_reader import ReadContext, read_slice
from hudi_engine.format.merge.table_reader import read_context
from hudi_engine.format.metadata.secondary_index import IndexedRows
from hudi_engine.format.metadata.statistics import (
    Bounds,
    Kind,
    base_file_bounds,
    merged_bounds,
    values_bounds,
)
from hudi_engine.format.schema.meta_fields import META_FIELDS
from hudi_engine.format.schema.nested import nested_values, one_array
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.damage import damaged_parquet
from hudi_engine.format.timeline.active import Timeline

_KEY = META_FIELDS[2]
_BINARY = pa.binary()


@dataclass(frozen=True)
class LogContents:
    """What a write put into a log.

    Args:
        rows: Tables of the data blocks, without rows that mark a delete.
        deleted: Keys that it deletes, whatever the ordering values of their rows.
        late: Keys of deletes with an ordering value, which may be older than the row and leave it.
    """

    rows: list[pa.Table]
    deleted: pa.Array
    late: pa.Array


def read_log(storage: Storage, config: TableConfig, path: str, instant: str | None = None) -> LogContents:
    """Read a log.

    Args:
        instant: Only blocks of this instant; None for all of the log.
    """
    rows: list[pa.Table] = []
    deleted: list[pa.Array] = []
    late: list[pa.Array] = []
    ordered = bool(config.ordering_fields) and config.merge_mode is not MergeMode.COMMIT_TIME_ORDERING
    for block in read_blocks(storage.read(path)):
        if block.kind is BlockType.CORRUPT or (instant is not None and block.instant_time != instant):
            continue
        if block.kind is BlockType.DELETE:
            found = list(delete.decode(block.content))
            for into, wanted in ((deleted, False), (late, True)):
                keys = [each.record_key.encode() for each in found if _may_lose(each, ordered) is wanted]
                into.append(pa.array(keys, _BINARY))
        elif block.is_data:
            table = decode_data_block(block)
            marked = delete_mask(table, config)
            if marked is not None:
                (late if ordered else deleted).append(keys_of(table.filter(marked)))
                table = table.filter(pc.invert(marked))
            rows.append(table)
    return LogContents(rows, joined(deleted), joined(late))


def _may_lose(each: delete.DeleteRecord, ordered: bool) -> bool:
    return ordered and each.ordering_value not in (None, 0)


def log_bounds(log: LogContents, columns: Mapping[str, Kind]) -> dict[str, Bounds]:
    """Return the bounds of columns of a log's rows; of one that a block lacks, nulls."""
    return {
        name: merged_bounds(_column_bounds(table, name, kind) for table in log.rows)
        for name, kind in columns.items()
    }


def _column_bounds(table: pa.Table, name: str, kind: Kind) -> Bounds:
    steps = name.split(".")
    if steps[0] not in table.column_names:
        return Bounds(None, None, table.num_rows, table.num_rows)
    return values_bounds(nested_values(table, steps), kind)


def slice_file_bounds(
    storage: Storage, config: TableConfig, path: str, columns: Mapping[str, Kind]
) -> dict[str, Bounds]:
    """Return the bounds of columns of a base file or a log."""
    if ".log." in path.rpartition("/")[2]:
        return log_bounds(read_log(storage, config, path), columns)
    return base_file_bounds(storage, path, columns)


def file_rows(storage: Storage, path: str) -> int:
    """Return the number of rows of a base file, by its footer."""
    with storage.open_input(path) as source, damaged_parquet(f"base file {path!r}"):
        return int(pq.read_metadata(source).num_rows)


def file_keys(storage: Storage, path: str) -> pa.Array:
    """Return the record keys of a base file, as bytes."""
    with storage.open_input(path) as source, damaged_parquet(f"base file {path!r}"):
        keys = pq.read_table(source, columns=[_KEY]).column(_KEY)
    return keys.combine_chunks().cast(_BINARY)


def slice_keys(storage: Storage, timeline: Timeline, file_slice: FileSlice | None) -> pa.Array:
    """Return the keys of a slice's rows, its logs merged in."""
    if file_slice is None:
        return pa.array([], _BINARY)
    if file_slice.base_file is not None and not file_slice.log_files:
        return file_keys(storage, file_slice.base_file.path)
    context = read_context(storage, timeline.config, timeline)
    return keys_of(read_slice(context, file_slice, columns=[_KEY]))


def indexed_rows(
    context: ReadContext, file_slice: FileSlice | None, columns: Collection[str]
) -> dict[str, IndexedRows]:
    """Return what secondary indexes need of a slice's rows, its logs merged in, by column; nothing without a slice."""
    if file_slice is None:
        return {}
    rows = read_slice(context, file_slice, columns=[_KEY, *columns])
    keys = one_array(rows.column(_KEY))
    return {each: IndexedRows(one_array(rows.column(each)), keys) for each in columns}


def keys_of(rows: pa.Table) -> pa.Array:
    """Return the record keys of rows, as bytes."""
    return rows.column(_KEY).combine_chunks().cast(_BINARY)


def joined(parts: Sequence[pa.Array]) -> pa.Array:
    """Return keys as one array."""
    return pa.concat_arrays([*parts, pa.array([], _BINARY)])
