"""Writing base files: Parquet with Hudi's meta columns first and its index data in the footer.

Every column is optional, decimals are fixed-length byte arrays, timestamps have the unit of the table's schema and lists have
three levels, as Hudi's own writers produce them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_engine.errors import SchemaError
from hudi_engine.format.index.filters.bloom import BloomFilter
from hudi_engine.format.index.filters.footer import KeyCollector
from hudi_engine.format.schema.coded import coded_like, with_used_values
from hudi_engine.format.schema.leaves import dictionary_leaves, leaves_with_statistics
from hudi_engine.format.schema.meta_fields import FILE_NAME, META_FIELDS, RECORD_KEY
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.worker import rows_at_once
from hudi_engine.table.handles.base_file_options import BaseFileOptions

_GROUP_SLACK = 1.25


@dataclass(frozen=True)
class BaseFileInfo:
    """A written base file; its keys are None without rows, and in the order of Java strings."""

    path: str
    size: int
    rows: int
    min_key: str | None
    max_key: str | None


def write_base_file(
    storage: Storage,
    path: str,
    table: pa.Table | Iterable[pa.RecordBatch | pa.Table],
    *,
    avro_schema_with_meta: Mapping[str, object],
    options: BaseFileOptions,
    before_publish: Callable[[], None] | None = None,
    reuse_bloom: BloomFilter | None = None,
) -> BaseFileInfo:
    """Write one base file; it gets its name only when it is complete and durable.

    Args:
        table: The rows, the five meta columns filled. Batches are written as they come; only their keys stay in memory.
        avro_schema_with_meta: The table's Avro record schema with the meta fields, for the footer.
        before_publish: Called when the file is durable and before it gets its name; an error cancels it.
        reuse_bloom: A filter that holds every key of the file when its last row has come; None builds one.

    Raises:
        InvalidKeyError: A row has no record key.
        SchemaError: The meta columns are missing, or batches differ in schema.
    """
    tables = _as_tables(table)
    if storage.is_planned:
        return BaseFileInfo(path, 0, sum(each.num_rows for each in tables), None, None)
    first = next(tables)
    schema = file_schema(first.schema)
    collector = KeyCollector(options, reuse_bloom)
    with storage.open_output(path, before_publish=before_publish) as sink:
        rows = 0
        groups = _row_groups(chain((first,), tables), schema, rows_at_once(options.row_group_bytes))
        held = list(islice(groups, 1))
        statistics = leaves_with_statistics(schema, _all_rows(held, schema))
        with open_writer(sink, schema, first, options, statistics) as writer:
            # Nothing keeps rows that are written, while those that follow are gathered.
            del table, first
            while held:
                part, _ = held.pop()
                collector.add(part.column(RECORD_KEY))
                writer.write_table(with_used_values(part), row_group_size=max(part.num_rows, 1))
                rows += part.num_rows
                del part
                held.extend(islice(groups, 1))
            writer.add_key_value_metadata(footer_entries(collector, avro_schema_with_meta))
        size = sink.tell()
    return BaseFileInfo(path, size, rows, collector.min_key, collector.max_key)


def footer_entries(collector: KeyCollector, avro_schema_with_meta: Mapping[str, object]) -> dict[str, str]:
    """Return the key-value entries of a base file's footer (Hudi table spec, base files)."""
    return {
        **collector.footer(),
        "parquet.avro.schema": json.dumps(avro_schema_with_meta, separators=(",", ":")),
        "writer.model.name": "avro",
    }


def attach_meta_columns(
    table: pa.Table,
    *,
    commit_time: str,
    seqno_prefix_task: int,
    keys: pa.Array | pa.ChunkedArray,
    partition: str,
    file_name: str,
    start_row: int = 0,
) -> pa.Table:
    """Put the five meta columns before the columns of new rows; existing ones are replaced.

    Args:
        seqno_prefix_task: Number of the writing task, the middle part of ``_hoodie_commit_seqno``.
        file_name: Name of the base file (for rows of a log: the file id).
        start_row: Number of the first row in ``_hoodie_commit_seqno``.
    """
    count = table.num_rows
    numbers = pc.cast(pa.array(np.arange(start_row, start_row + count, dtype=np.int64)), pa.string())
    prefix = pa.scalar(f"{commit_time}_{seqno_prefix_task}_")
    meta = [
        _repeated(commit_time, count),
        pc.binary_join_element_wise(prefix, numbers, ""),
        pc.cast(keys, pa.string()),
        _repeated(partition, count),
        _repeated(file_name, count),
    ]
    names = [name for name in table.column_names if name not in META_FIELDS]
    columns = [*meta, *(table.column(name) for name in names)]
    fields = [pa.field(name, pa.string()) for name in META_FIELDS]
    return pa.Table.from_arrays(columns, schema=pa.schema([*fields, *map(table.schema.field, names)]))


def with_file_name(rows: pa.Table, name: str) -> pa.Table:
    """Return rows with the name of the file that they lie in by now, whether they had one or not; the rest of them stays."""
    position = rows.schema.get_field_index(FILE_NAME)
    column = constant(name, rows.num_rows)
    if position >= 0:
        return rows.set_column(position, FILE_NAME, column)
    return rows.add_column(META_FIELDS.index(FILE_NAME), FILE_NAME, column)


def without_file_name(schema: pa.Schema) -> list[str]:
    """Return the columns to read of rows that go to another file: the name of the one they lie in is not one of them."""
    return [name for name in schema.names if name != FILE_NAME]


def constant(text: str, count: int) -> pa.DictionaryArray:
    """Return a text column with one value in all rows, which costs a few bytes a row whatever the text's length."""
    return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), count), pa.array([text]))


def _repeated(text: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), count)


def _as_tables(rows: pa.Table | Iterable[pa.RecordBatch | pa.Table]) -> Iterator[pa.Table]:
    if isinstance(rows, pa.Table):
        yield rows
        return
    schema = None
    for batch in rows:
        schema = batch.schema
        yield batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
    if schema is None:
        raise SchemaError("a base file cannot be written from no batches at all; pass one batch without rows")


def _all_rows(head: list[tuple[pa.Table, bool]], schema: pa.Schema) -> pa.Table | None:
    """Return the rows of a file when its first row group is its last."""
    if not head:
        return schema.empty_table()
    rows, is_last = head[0]
    return rows if is_last else None


def file_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns of a base file, all optional; raises SchemaError unless the meta columns come first."""
    if tuple(schema.names[: len(META_FIELDS)]) != META_FIELDS:
        raise SchemaError(
            f"rows for a base file begin with the columns {schema.names[: len(META_FIELDS)]}; "
            f"the meta columns {list(META_FIELDS)} must come first"
        )
    return pa.schema([pa.field(field.name, field.type, nullable=True) for field in schema])


def _row_groups(
    parts: Iterator[pa.Table], schema: pa.Schema, group_bytes: int
) -> Iterator[tuple[pa.Table, bool]]:
    """Yield the rows as tables of about the size of a row group, each with whether it is the last one."""
    waiting: list[pa.Table] = []
    waiting_bytes = 0
    for part in parts:
        if part.num_rows == 0:
            continue
        for piece in pieces(_conform(part, schema), group_bytes):
            if waiting and waiting_bytes + piece.nbytes > group_bytes * _GROUP_SLACK:
                yield pa.concat_tables(waiting), False
                waiting, waiting_bytes = [], 0
            waiting.append(piece)
            waiting_bytes += piece.nbytes
    if waiting:
        yield pa.concat_tables(waiting), True


def pieces(part: pa.Table, group_bytes: int) -> Iterator[pa.Table]:
    """Cut rows to whole row groups of equal size: a last group of a few rows would cost every reader a round trip."""
    return cut(part, max(1, round(part.nbytes / group_bytes)))


def cut(rows: pa.Table, count: int) -> Iterator[pa.Table]:
    """Cut rows into so many parts of equal size."""
    size = -(-rows.num_rows // max(count, 1)) or 1
    return (rows.slice(start, size) for start in range(0, rows.num_rows, size))


def _conform(part: pa.Table, schema: pa.Schema) -> pa.Table:
    if part.schema.equals(schema, check_metadata=False):
        return part
    if part.schema.names != schema.names:
        raise SchemaError(
            f"rows of one base file differ in columns: {part.schema.names} after {schema.names}"
        )
    return coded_like(part, schema)


def open_writer(
    sink: BinaryIO | pa.NativeFile,
    schema: pa.Schema,
    sample: pa.Table,
    options: BaseFileOptions,
    statistics: list[str],
) -> pq.ParquetWriter:
    """Return pyarrow's writer with the layout of base files."""
    return pq.ParquetWriter(
        sink,
        schema,
        compression=options.parquet_codec,
        compression_level=options.compression_level,
        use_dictionary=dictionary_leaves(schema, sample) if options.dictionary else False,
        data_page_size=options.page_bytes,
        write_statistics=statistics,
        store_schema=False,
        write_page_checksum=True,
    )
