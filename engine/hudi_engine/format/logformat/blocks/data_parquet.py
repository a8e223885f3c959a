"""Parquet data block: a complete Parquet file, columns as in a base file (source: Hudi table format, Parquet data block)."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.config.enums import ParquetCodec
from hudi_engine.format.schema.avro import avro_to_arrow
from hudi_engine.format.schema.leaves import dictionary_leaves, leaves_with_statistics
from hudi_engine.format.schema.time_units import as_meant, check_calendar, is_in_old_calendar, is_of_others
from hudi_engine.format.storage.damage import DAMAGE


def decode(content: memoryview, schema: str | None = None) -> pa.Table:
    """Return rows of the block with the types the file gives them, but for times that it declares in a wrong unit."""
    try:
        file = pq.ParquetFile(
            pa.BufferReader(pa.py_buffer(content)),
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=True,
        )
        rows, created_by = file.read(), file.metadata.created_by
    except DAMAGE as error:
        raise CorruptTableError(
            f"a Parquet log block of {len(content)} bytes cannot be read: {error}"
        ) from error
    if schema is not None and is_of_others(created_by):
        rows = as_meant(rows, created_by, {field.name: field.type for field in avro_to_arrow(schema)})
    if is_in_old_calendar(file.metadata):
        check_calendar(rows, "a Parquet log block")
    return rows


def encode(table: pa.Table, codec: ParquetCodec) -> bytes:
    """Return content of a block that holds the rows of ``table``; laid out as a base file, since what Spark reads is made of it."""
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        compression=codec.arrow_name,
        use_dictionary=dictionary_leaves(table.schema, table),
        write_statistics=leaves_with_statistics(table.schema, table),
        store_schema=False,
        row_group_size=max(table.num_rows, 1),
        version="2.6",
        write_page_checksum=True,
    )
    return bytes(sink.getvalue())
