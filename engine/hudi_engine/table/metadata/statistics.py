"""Statistics that a metadata table keeps: of the columns of files and of partitions, and of expressions over a column.

Source: Hudi metadata table format, ``column_stats``, ``partition_stats`` and ``expr_index_*``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.metadata.definitions import IndexDefinitions
from hudi_engine.format.metadata.expressions import Expression
from hudi_engine.format.metadata.keys import (
    column_stats_key,
    expression_partition_key,
    partition_stats_key,
)
from hudi_engine.format.metadata.records import MetadataPartition, Record
from hudi_engine.format.metadata.statistics import (
    Bounds,
    Kind,
    base_file_bounds,
    bounds_of_record,
    indexed_columns,
    merged_bounds,
    statistics_record,
)
from hudi_engine.format.parallel import on_threads
from hudi_engine.format.schema.avro import without_meta_fields
from hudi_engine.table.metadata.data_files import log_bounds, slice_file_bounds
from hudi_engine.table.metadata.written import Changes, Written

_COLUMN_STATS, _PARTITION_STATS = (
    MetadataPartition.COLUMN_STATS.value,
    MetadataPartition.PARTITION_STATS.value,
)
ColumnBounds = Mapping[str, Bounds]
"""Bounds of the columns of one file."""


@dataclass(frozen=True)
class StatisticsIndex:
    """One index of smallest and largest values.

    Args:
        of_files: Partition of the metadata table with the records of files.
        of_partitions: The one with those of partitions; "" where there are none.
        columns: The columns that it is over, and how their values are stored.
        expression: What its values are; None for those of the columns.
    """

    of_files: str
    of_partitions: str
    columns: Mapping[str, Kind]
    is_v2: bool
    expression: Expression | None = None

    def file_keys(self, partition: str, names: Collection[str]) -> list[str]:
        """Return the keys of the records of some files of a partition."""
        return [column_stats_key(column, partition, name) for name in names for column in self.columns]

    def file_records(self, partition: str, path: str, bounds: ColumnBounds) -> dict[str, Record]:
        """Return the records of one file."""
        name = path.rpartition("/")[2]
        return {
            column_stats_key(column, partition, name): self._record(column, name, bounds[column])
            for column in self.columns
        }

    def put_partitions(
        self,
        changes: Changes,
        slices: Mapping[str, Sequence[FileSlice]],
        bounds: Mapping[str, ColumnBounds],
    ) -> None:
        """Add the records of partitions; those of a partition without files are deleted.

        Args:
            bounds: Bounds by path of all files of the slices.
        """
        key = partition_stats_key if self.expression is None else expression_partition_key
        for partition, some in slices.items():
            paths = [path for each in some for path in each.row_paths]
            if not paths:
                changes.delete(key(column, partition) for column in self.columns)
                continue
            merged = {
                column: merged_bounds(bounds[path][column] for path in paths) for column in self.columns
            }
            changes.put(
                {
                    key(column, partition): self._record(column, partition, each, of_partition=True)
                    for column, each in merged.items()
                }
            )

    def _record(self, column: str, name: str, bounds: Bounds, *, of_partition: bool = False) -> Record:
        kind, expression = self.columns[column], self.expression
        if expression is not None:
            bounds, kind = expression.bounds(kind, bounds), expression.kind(is_v2=self.is_v2)
        return statistics_record(
            column,
            name,
            kind,
            bounds,
            is_v2=self.is_v2,
            of_partition=of_partition,
            of_expression=expression is not None,
        )


def statistics_indexes(
    partitions: Collection[str], definitions: IndexDefinitions, schema: Mapping[str, Any]
) -> list[StatisticsIndex]:
    """Return the indexes of statistics that a metadata table has.

    Args:
        partitions: Partitions of the metadata table.
        schema: Avro schema of the table, without meta columns.
    """
    found = []
    if _COLUMN_STATS in partitions:
        of_partitions = _PARTITION_STATS if _PARTITION_STATS in partitions else ""
        columns = stats_columns(definitions, schema)
        found.append(StatisticsIndex(_COLUMN_STATS, of_partitions, columns, definitions.is_v2(_COLUMN_STATS)))
    for name, expression in definitions.expressions.items():
        is_v2 = definitions.is_v2(name)
        kind = source_kind(expression, schema, is_v2=is_v2) if name in partitions else None
        if kind is not None:
            found.append(StatisticsIndex(name, name, {expression.column: kind}, is_v2, expression))
    return found


def source_kind(expression: Expression, schema: Mapping[str, Any], *, is_v2: bool) -> Kind | None:
    """Return how the column of an expression is stored; None where a table has none of a type that its function takes."""
    source = indexed_columns(schema, [expression.column], is_v2=is_v2).get(expression.column)
    return source if source is not None and expression.takes(source) else None


def lost_expressions(definitions: IndexDefinitions, schema: str) -> list[str]:
    """Return the expression indexes whose column a table does not have, or has with a type that their function does not take.

    Args:
        schema: Avro schema of the table.
    """
    expressions = definitions.expressions
    columns = without_meta_fields(schema) if expressions else {}
    return [
        name
        for name, each in expressions.items()
        if source_kind(each, columns, is_v2=definitions.is_v2(name)) is None
    ]


def stats_columns(definitions: IndexDefinitions, schema: Mapping[str, Any]) -> dict[str, Kind]:
    """Return the columns of ``column_stats``."""
    fields = definitions.source_fields(_COLUMN_STATS)
    return indexed_columns(schema, fields, is_v2=definitions.is_v2(_COLUMN_STATS))


def put_statistics(written: Written, found: Mapping[str, Changes]) -> None:
    """Add what a write changes in indexes of statistics; each file is read once for all of them."""
    indexes = statistics_indexes(written.table.partitions, written.definitions, written.schema)
    if not indexes:
        return
    columns = {column: kind for each in reversed(indexes) for column, kind in each.columns.items()}
    files = [(partition, str(stat.path), stat.is_log_file) for partition, stat in written.stats]

    def look(each: tuple[str, str, bool]) -> dict[str, Bounds]:
        _, path, is_log = each
        if is_log:
            return log_bounds(written.logs[path], columns)
        return base_file_bounds(written.storage, path, columns)

    known: dict[str, dict[str, Bounds]] = {}
    for (partition, path, _), bounds in zip(files, on_threads(look, files), strict=True):
        known[path] = bounds
        for each in indexes:
            found[each.of_files].put(each.file_records(partition, path, bounds))
    with_partitions = [each for each in indexes if each.of_partitions]
    if with_partitions:
        slices = {each: written.after.latest_slices(each) for each in written.partitions}
        known |= _kept_bounds(written, [each for some in slices.values() for each in some], columns, known)
    for each in with_partitions:
        each.put_partitions(found[each.of_partitions], slices, known)


def _kept_bounds(
    written: Written,
    slices: Sequence[FileSlice],
    columns: Mapping[str, Kind],
    known: Collection[str],
) -> dict[str, dict[str, Bounds]]:
    """Return the bounds of files that were there before, as the metadata table has them, else from the files.

    Those of a column whose type was changed are read again: 0.1 as a float is none as the double it is read as.
    """
    files = [(each.partition, path) for each in slices for path in each.row_paths if path not in known]
    keys = {
        (path, column): column_stats_key(column, partition, path.rpartition("/")[2])
        for partition, path in files
        for column in columns
    }
    records = written.table.lookup(MetadataPartition.COLUMN_STATS.value, list(keys.values()))
    found: dict[str, dict[str, Bounds]] = {}
    for _, path in files:
        kept = {
            column: bounds
            for column, kind in columns.items()
            if (record := records.get(keys[path, column])) is not None
            and (bounds := bounds_of_record(record, kind)) is not None
        }
        if len(kept) < len(columns):
            kept = slice_file_bounds(written.storage, written.config, path, columns)
        found[path] = kept
    return found
