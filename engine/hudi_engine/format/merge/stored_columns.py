"""From the columns a file holds to the columns a read wants.

Three things lie between them: columns renamed or dropped since the file was written (schema on read),
partition columns that the table leaves out of its files, and types that were widened. Source: Hudi table
format, snapshot read; table config, ``hoodie.datasource.write.drop.partition.columns``.
"""

from __future__ import annotations

import pyarrow as pa

from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.keygen.partition_path import split_partition_path
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.schema.casting import cast_array, cast_table
from hudi_engine.format.schema.internal_schema import rename_nested, restore_names


def stored_names(context: ReadContext, stored: pa.Schema, instant: str, wanted: pa.Schema) -> dict[str, str]:
    """Name in the file of each wanted column that the file holds."""
    history = context.schema_history
    if history is None:
        return {field.name: field.name for field in wanted if stored.get_field_index(field.name) >= 0}
    return restore_names(stored, history.version_at(instant), history.newest(context.as_of), wanted)


def fit_columns(
    context: ReadContext,
    table: pa.Table,
    names: dict[str, str],
    instant: str,
    partition: str,
    wanted: pa.Schema,
) -> pa.Table:
    """Give stored rows the names, types and order of ``wanted``."""
    found = {
        name: _current_names(context, table.column(stored), name, stored, instant)
        for name, stored in names.items()
    }
    if context.config.drop_partition_columns:
        missing = [field for field in wanted if field.name not in found]
        found.update(_partition_columns(context.config, partition, missing, table.num_rows))
    if not found:
        nothing = [pa.nulls(table.num_rows, field.type) for field in wanted]
        return pa.Table.from_arrays(nothing, schema=wanted)
    return cast_table(pa.table(found), wanted)


def partition_values(config: TableConfig, partition: str) -> dict[str, str | None]:
    """Return text of each partition column in a partition path; empty when the path does not map to the columns."""
    fields = [field.name for field in config.partition_fields]
    values = split_partition_path(
        partition, fields, hive_style=config.hive_style, url_encode=config.url_encode
    )
    if values is None and len(fields) == 1 and partition:
        # One column whose value holds slashes, or dashes that the folders have as slashes: the whole path is the value.
        if config.slashed_dates and not config.hive_style:
            return {fields[0]: partition.replace("/", "-")}
        prefix = f"{fields[0]}=" if config.hive_style else ""
        return {fields[0]: partition[len(prefix) :]} if partition.startswith(prefix) else {}
    return values or {}


def _partition_columns(
    config: TableConfig, partition: str, missing: list[pa.Field], rows: int
) -> dict[str, pa.ChunkedArray]:
    values = partition_values(config, partition)
    columns = {}
    for field in missing:
        if field.name in values:
            value = cast_array(pa.array([values[field.name]], pa.string()), field.type, field.name)
            columns[field.name] = pa.chunked_array([pa.repeat(value[0], rows)])
    return columns


def _current_names(
    context: ReadContext, column: pa.ChunkedArray, name: str, stored: str, instant: str
) -> pa.ChunkedArray:
    history = context.schema_history
    if history is None or not pa.types.is_nested(column.type):
        return column
    written = history.version_at(instant).child(stored)
    wanted = history.newest(context.as_of).child(name)
    if written is None or wanted is None or column.num_chunks == 0:
        return column
    return pa.chunked_array([rename_nested(chunk, written, wanted) for chunk in column.chunks])
