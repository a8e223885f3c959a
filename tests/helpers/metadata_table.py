"""Compares a metadata table with the files and rows of its table."""

from __future__ import annotations

import datetime

import pyarrow as pa
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.view import FileSystemView
from hudi_engine.format.hfile.file import HFile
from hudi_engine.format.logformat.reader import read_blocks
from hudi_engine.format.merge.slice_reader import read_slice
from hudi_engine.format.merge.table_reader import read_context
from hudi_engine.format.metadata.definitions import IndexDefinitions
from hudi_engine.format.metadata.keys import (
    column_stats_key,
    expression_partition_key,
    groups_of,
    partition_stats_key,
)
from hudi_engine.format.metadata.locations import Location, location_of
from hudi_engine.format.metadata.record_index import locations
from hudi_engine.format.metadata.records import MetadataPartition
from hudi_engine.format.metadata.secondary_index import split_secondary_key
from hudi_engine.format.metadata.statistics import bounds_of_record, merged_bounds
from hudi_engine.format.metadata.table import MetadataTable
from hudi_engine.format.schema.avro import without_meta_fields
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.table.metadata.changes import filter_records
from hudi_engine.table.metadata.data_files import slice_file_bounds, slice_keys
from hudi_engine.table.metadata.statistics import statistics_indexes, stats_columns


def group_of(key: str, groups: int) -> int:
    """Return the number of the file group that holds a key."""
    return int(groups_of(pa.array([key], pa.string()), groups)[0])


def open_metadata(storage: Storage) -> MetadataTable | None:
    """Open the metadata table of a table."""
    config = TableConfig.load(storage)
    return MetadataTable.open(storage, config, Timeline.load(storage, config))


def differences(storage: Storage) -> list[str]:
    """Return what a metadata table has otherwise than the table; empty when they agree."""
    config = TableConfig.load(storage)
    timeline = Timeline.load(storage, config)
    table = MetadataTable.open(storage, config, timeline)
    if table is None:
        return ["there is no metadata table"]
    view = FileSystemView.build(storage, config, timeline)
    slices = [each for partition in view.partitions for each in view.latest_slices(partition)]
    found = _files(table, view)
    if MetadataPartition.COLUMN_STATS.value in table.partitions:
        found += _statistics(storage, config, table, slices)
    if MetadataPartition.BLOOM_FILTERS.value in table.partitions:
        filters = dict(table.records(MetadataPartition.BLOOM_FILTERS.value))
        bases = [each.base_file for each in slices if each.base_file is not None]
        found += [
            f"no Bloom filter of {each.path}"
            for each in bases
            if filter_records(storage, [(each.partition, each.path)], "").keys() - filters.keys()
        ]
    if MetadataPartition.RECORD_INDEX.value in table.partitions:
        found += _locations(storage, timeline, table, slices)
    definitions = IndexDefinitions.load(storage, config)
    for name in table.partitions:
        if MetadataPartition.of(name) is MetadataPartition.SECONDARY_INDEX:
            found += _values(storage, timeline, table, slices, name, definitions)
    if any(name in table.partitions for name in definitions.expressions):
        found += _expressions(storage, config, table, slices, definitions)
    return found


def _expressions(storage, config, table, slices, definitions) -> list[str]:
    """Compare expression indexes with the bounds of their column: those of files and partitions, which may be wider."""
    schema, found = without_meta_fields(table.table_timeline.table_schema_json()), []
    for index in statistics_indexes(table.partitions, definitions, schema):
        if index.expression is None:
            continue
        ((column, kind),) = index.columns.items()
        records = dict(table.records(index.of_files))
        own = index.expression.kind(is_v2=index.is_v2)
        for each in slices:
            for path in (path for path in each.row_paths if _counts(storage, table.table_timeline, path)):
                bounds = slice_file_bounds(storage, config, path, index.columns)[column]
                # of a writer that took one zone for the times, the middle of what this one writes
                truth = index.expression.bounds(kind, bounds)
                for key in (
                    column_stats_key(column, each.partition, path.rpartition("/")[2]),
                    expression_partition_key(column, each.partition),
                ):
                    kept = bounds_of_record(records[key], own) if key in records else None
                    narrow = kept is None or (truth.low is not None and not _overlap(kept, truth))
                    if narrow and truth.values:
                        found.append(f"{index.expression} in {path}: {kept} for {truth}")
    return found


def _overlap(one, other) -> bool:
    return one.low is not None and one.low <= other.high and one.high >= other.low


def _values(storage, timeline, table, slices, name, definitions) -> list[str]:
    """Compare a secondary index with the rows, and each key's file group with that of its hash."""
    column = definitions.secondary_columns[name]
    context = read_context(storage, timeline.config, timeline)
    kept = {
        group.file_id: set(table._merged(name, group, HFile.cells).result()) for group in table.groups(name)
    }
    truth = set()
    for each in slices:
        rows = read_slice(context, each, columns=["_hoodie_record_key", column]).to_pydict()
        for key, value in zip(rows["_hoodie_record_key"], rows[column], strict=True):
            truth.add((None if value is None else _text(value), key))
    found = [each for keys in kept.values() for each in keys]
    wrong = [
        f"{name} has {key!r} in {file_id}"
        for number, (file_id, keys) in enumerate(kept.items())
        for key in keys
        if group_of(key[: _end(key)] if definitions.is_v2(name) else key, len(kept)) != number
    ]
    if len(found) > len(set(found)):
        wrong.append(f"{name} has keys in two file groups")
    pairs = {split_secondary_key(key) for key in found}
    wrong += [f"{name} lacks {each}" for each in truth - pairs]
    return wrong + [f"{name} has {each}" for each in pairs - truth]


def _text(value) -> str:
    if isinstance(value, datetime.datetime):
        return str(
            (value - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc))
            // datetime.timedelta(microseconds=1)
        )
    if isinstance(value, datetime.date):
        return str((value - datetime.date(1970, 1, 1)).days)
    return str(value)


def _end(key: str) -> int:
    """Return the length of a secondary key's value with the sign after it."""
    at = 0
    while key[at] != "$":
        at += 2 if key[at] == "\\" else 1
    return at + 1


def _files(table, view) -> list[str]:
    listed = {
        partition: {
            path.rpartition("/")[2]
            for each in view.every_slice()
            if each.partition == partition
            for path in each.paths
        }
        for partition in view.partitions
    }
    known = {
        partition: {status.name: status.size for status in files}
        for partition, files in table.table_files(table.table_partitions()).items()
    }
    sizes = {
        (partition, each.name): each.size for partition in view.partitions for each in view.files(partition)
    }
    found = []
    for partition in {*listed, *known}:
        there, written = listed.get(partition, set()), known.get(partition, {})
        found += [f"files lacks {partition}/{name}" for name in there - written.keys()]
        found += [f"files has {partition}/{name}" for name in written.keys() - there]
        found += [
            f"{partition}/{name} has {sizes[partition, name]} bytes, not {written[name]}"
            for name in there & written.keys()
            if sizes[partition, name] != written[name]
        ]
    return found


def _statistics(storage, config, table, slices) -> list[str]:
    definitions = IndexDefinitions.load(storage, config)
    schema = without_meta_fields(table.table_timeline.table_schema_json())
    columns = stats_columns(definitions, schema)
    records = dict(table.records(MetadataPartition.COLUMN_STATS.value))
    found, of_partitions = [], {}
    for each in slices:
        for path in (path for path in each.row_paths if _counts(storage, table.table_timeline, path)):
            bounds = slice_file_bounds(storage, config, path, columns)
            of_partitions.setdefault(each.partition, []).append(bounds)
            for column, kind in columns.items():
                record = records.get(column_stats_key(column, each.partition, path.rpartition("/")[2]))
                if record is None and not bounds[column].values:
                    continue  # Apache Hudi leaves files without rows out
                if record is None or bounds_of_record(record, kind) != bounds[column]:
                    found.append(f"statistics of {column} in {path}: {record} instead of {bounds[column]}")
    if MetadataPartition.PARTITION_STATS.value in table.partitions:
        records = dict(table.records(MetadataPartition.PARTITION_STATS.value))
        for partition, parts in of_partitions.items():
            for column, kind in columns.items():
                record = records.get(partition_stats_key(column, partition))
                truth = merged_bounds(part[column] for part in parts)
                kept = None if record is None else bounds_of_record(record, kind)
                narrow = kept is None or (
                    truth.low is not None
                    and (kept.low is None or kept.low > truth.low or kept.high < truth.high)
                )
                if narrow:
                    found.append(f"statistics of {column} in partition {partition}: {kept} for {truth}")
    return found


def _locations(storage, timeline, table, slices) -> list[str]:
    records = list(table.records(MetadataPartition.RECORD_INDEX.value))
    kept = {(key, location_of(record)) for key, record in records}
    truth = {
        (key.decode(), Location(each.partition, each.file_id))
        for each in slices
        for key in slice_keys(storage, timeline, each).to_pylist()
    }
    keys = pa.array(sorted({key for key, _ in records}), pa.string())
    found = {(key, Location(*place)) for key, place in locations(table, keys)}
    wrong = [f"the index finds {each} where it does not have it" for each in found ^ kept]
    wrong += [f"the index has {each}" for each in kept - truth]
    return wrong + [f"the index lacks {each}" for each in truth - kept]


def missing_rows(storage: Storage) -> list[str]:
    """Return the files of newest slices that a reader by the metadata table does not see with their bytes."""
    config = TableConfig.load(storage)
    timeline = Timeline.load(storage, config)
    table = MetadataTable.open(storage, config, timeline)
    if table is None:
        return []
    known = {
        each.path: each.size
        for files in table.table_files(table.table_partitions()).values()
        for each in files
    }
    view = FileSystemView.build(storage, config, timeline)
    sizes = {each.path: each.size for partition in view.partitions for each in view.files(partition)}
    slices = [each for partition in view.partitions for each in view.latest_slices(partition)]
    missing = [path for each in slices for path in each.paths if known.get(path) != sizes[path]]
    return [path for path in missing if _counts(storage, timeline, path)]


def _counts(storage: Storage, timeline: Timeline, path: str) -> bool:
    """Return whether a file has rows of a completed write; in version 6 a log's name does not say it."""
    if timeline.config.table_version.names_logs_by_write or ".log." not in path:
        return True
    return any(timeline.is_committed(each.instant_time) for each in read_blocks(storage.read(path)))
