"""Whether Spark may take partition values from folder names.

With hive-style folders Spark prunes partitions before it opens a file, but it believes the text. Where that text is not the
stored value, the table is published flat: values come from the files and pruning is left to Parquet statistics.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_engine.format.config.table_config import PartitionField, TableConfig
from hudi_engine.format.keygen.partition_path import DEFAULT_PARTITION_VALUE, unescape_partition_value
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.damage import damaged_parquet
from hudi_engine.table.snapshot.manifest_file import Layout

_INTEGER = re.compile(r"0|-?[1-9]\d*", re.ASCII)
_DIGITS = re.compile(r"-?\d+", re.ASCII)
_DECIMAL = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_TEXTS: Mapping[pa.DataType, re.Pattern[str]] = {
    pa.string(): re.compile(r".+", re.DOTALL),
    pa.int32(): _INTEGER,
    pa.int64(): _INTEGER,
    pa.date32(): re.compile(r"\d{4}-\d\d-\d\d", re.ASCII),
    pa.bool_(): re.compile(r"true|false"),
}
"""Types whose text in a folder name Spark parses back to the stored value, and that text: others, such as the number of a
day, Spark takes for other values."""


def folders_hold_values(config: TableConfig, schema: pa.Schema | None) -> bool:
    """Return whether the table's settings make folder names that say each partition value truly."""
    if not config.is_partitioned or not config.hive_style or not config.folders_say_values:
        return False
    if schema is None:
        return True
    return all(_may_be_inferred(field, schema) for field in config.partition_fields)


def inferred_columns(
    config: TableConfig, schema: pa.Schema, values: Iterable[Mapping[str, str | None]]
) -> list[str]:
    """Return the partition columns whose stored value a cast in Spark makes of the text in every partition path.

    Args:
        values: Text of each partition column, one mapping a path; None for null.
    """
    if not config.folders_say_values:
        return []
    simple = [field for field in config.partition_fields if _is_simple(field, schema)]
    patterns = {field.name: _cast_text(schema.field(field.name).type) for field in simple}
    for texts in values:
        patterns = {
            name: text
            for name, text in patterns.items()
            if text is not None and (texts[name] is None or text.fullmatch(texts[name] or ""))
        }
    return [name for name, text in patterns.items() if text is not None]


def _cast_text(kind: pa.DataType) -> re.Pattern[str] | None:
    """Return the texts that a cast makes the stored value of, more than those whose type Spark finds in a folder's name."""
    if pa.types.is_decimal(kind):
        return _DECIMAL
    return _DIGITS if _TEXTS.get(kind) is _INTEGER else _TEXTS.get(kind)


def _may_be_inferred(field: PartitionField, schema: pa.Schema) -> bool:
    return _is_simple(field, schema) and schema.field(field.name).type in _TEXTS


def _is_simple(field: PartitionField, schema: pa.Schema) -> bool:
    return field.kind == "simple" and schema.get_field_index(field.name) >= 0


def path_holds_values(config: TableConfig, schema: pa.Schema | None, partition: str) -> bool:
    """Return whether Spark reads each value of one partition path as it is stored; see `null_folder_columns` for nulls."""
    names = [field.name for field in config.partition_fields]
    segments = partition.split("/")
    if len(segments) != len(names):
        return False
    for name, segment in zip(names, segments, strict=True):
        column, equals, value = segment.partition("=")
        if column != name or not equals or not value:
            return False
        if not config.url_encode and unescape_partition_value(value) != value:
            return False
        if schema is not None and value != DEFAULT_PARTITION_VALUE:
            if not _TEXTS[schema.field(name).type].fullmatch(value):
                return False
    return True


def null_folder_columns(config: TableConfig, schema: pa.Schema | None, partition: str) -> list[str]:
    """Return the string columns whose folder name means either null or the empty string."""
    if schema is None:
        return []
    found = []
    for field, segment in zip(config.partition_fields, partition.split("/"), strict=True):
        value = segment.partition("=")[2]
        if value == DEFAULT_PARTITION_VALUE and schema.field(field.name).type == pa.string():
            found.append(field.name)
    return found


def choose_layout(
    config: TableConfig,
    schema: pa.Schema | None,
    partitions: Iterable[str],
    all_null: Callable[[str, str], bool],
) -> Layout:
    """Decide how a table is published; ``all_null(partition, column)`` is true for a column without a value in the partition."""
    hive = folders_hold_values(config, schema) and all(
        path_holds_values(config, schema, partition)
        and all(all_null(partition, column) for column in null_folder_columns(config, schema, partition))
        for partition in partitions
    )
    return Layout.HIVE if hive else Layout.FLAT


def column_is_null(storage: Storage, path: str, column: str) -> bool:
    """Return whether the statistics of a Parquet file prove that a column holds nothing but nulls."""
    with storage.open_input(path) as source, damaged_parquet(f"base file {path!r} of {storage.base!r}"):
        footer = pq.read_metadata(source)
    if footer.num_rows == 0:
        return True
    positions = [n for n in range(footer.num_columns) if footer.schema.column(n).path == column]
    if not positions:
        return True
    for group in range(footer.num_row_groups):
        statistics = footer.row_group(group).column(positions[0]).statistics
        if (
            statistics is None
            or not statistics.has_null_count
            or statistics.null_count != footer.row_group(group).num_rows
        ):
            return False
    return True
