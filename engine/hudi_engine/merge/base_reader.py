"""Reading base files into the table's schema (Parquet; both list and both decimal encodings)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_engine.errors import CorruptTableError, SchemaError, TimelineError, UnsupportedTableError
from hudi_engine.filegroup.base_file import BaseFile
from hudi_engine.merge.read_context import ReadContext
from hudi_engine.merge.stored_columns import fit_columns, stored_names

BLOCK_ROWS = 65_536
"""Rows of a block: small enough to be rewritten in memory that is used again, large enough to be worth a call."""


def read_base_file(
    context: ReadContext, base_file: BaseFile, columns: Sequence[str] | None = None
) -> pa.Table:
    """Rows of a base file in file order.

    Args:
        context: The read; its instant range is not applied here.
        base_file: The file.
        columns: Columns in the wanted order, None for all of the table. A column that the file lacks is null.

    Raises:
        CorruptTableError: The file is no readable Parquet file.
        SchemaError: A column is unknown, or stored with a type that cannot be read as the table's.
        TimelineError: The file has gone since it was listed.
        UnsupportedTableError: The file is not Parquet.
    """
    wanted = select_schema(context.schema, columns)
    with _opened(context, base_file) as file:
        names = stored_names(context, file.schema_arrow, base_file.instant, wanted)
        stored = file.read(columns=list(dict.fromkeys(names.values())))
    return fit_columns(context, stored, names, base_file.instant, base_file.partition, wanted)


def read_base_blocks(
    context: ReadContext, base_file: BaseFile, columns: Sequence[str] | None = None, rows: int = BLOCK_ROWS
) -> Iterator[pa.Table]:
    """The rows of `read_base_file` in blocks, at least one, so that what is done to them stays small in memory.

    Args:
        context: The read.
        base_file: The file.
        columns: As in read_base_file.
        rows: Rows a block holds at most.
    """
    wanted = select_schema(context.schema, columns)
    with _opened(context, base_file) as file:
        names = stored_names(context, file.schema_arrow, base_file.instant, wanted)
        stored = list(dict.fromkeys(names.values()))
        if not stored or file.metadata.num_rows == 0:
            blocks: Iterable[pa.Table] = [file.read(columns=stored)]
        else:
            blocks = (pa.Table.from_batches([each]) for each in file.iter_batches(rows, columns=stored))
        for block in blocks:
            yield fit_columns(context, block, names, base_file.instant, base_file.partition, wanted)


@contextmanager
def _opened(context: ReadContext, base_file: BaseFile) -> Iterator[pq.ParquetFile]:
    if base_file.extension != "parquet":
        raise UnsupportedTableError(
            f"base file {base_file.path!r} has the format {base_file.extension!r}; only parquet "
            "can be read. Rewrite the table in Parquet with the writer that made it"
        )
    try:
        with context.storage.open_input(base_file.path) as source:
            yield pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
    except FileNotFoundError as error:
        raise TimelineError(
            f"base file {base_file.path!r} has gone since the table was listed: it was cleaned or "
            "rolled back meanwhile. Read the table again"
        ) from error
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise CorruptTableError(f"base file {base_file.path!r} cannot be read: {error}") from error


def select_schema(schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    """The named fields of ``schema`` in the wanted order.

    Args:
        schema: Columns of the table.
        columns: Names, None for all.

    Raises:
        SchemaError: A name is not a column of the table.
    """
    if columns is None:
        return schema
    unknown = [name for name in columns if schema.get_field_index(name) < 0]
    if unknown:
        raise SchemaError(
            f"unknown columns {', '.join(map(repr, unknown))}; the table has {', '.join(schema.names)}"
        )
    return pa.schema([schema.field(name) for name in columns])
