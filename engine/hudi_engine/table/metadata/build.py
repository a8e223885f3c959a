"""Building a metadata table, or some of its partitions, over the files that a table has.

Source: Hudi metadata table format, initialisation. It happens within a write, under the table's lock, before the write is recorded.
A partition counts from the moment at which the table's properties name it, which is the last step.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import ConfigError, HudiError, RepeatedKeyError
from hudi_engine.format.config.declared.engine_options import MergeOptions
from hudi_engine.format.config.declared.metadata_options import MetadataOptions
from hudi_engine.format.config.declared.table_options import TableOptions
from hudi_engine.format.config.declared.write_options import IndexOptions
from hudi_engine.format.config.enums import RECORD_INDEXES, MergeMode, TableType, WriteOperation
from hudi_engine.format.config.option import Option
from hudi_engine.format.config.options import Options, resolve_options
from hudi_engine.format.config.properties import table_checksum
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.partition_metadata import ensure_partition_metadata
from hudi_engine.format.filegroup.view import FileSystemView
from hudi_engine.format.hfile.writer import encode_hfile
from hudi_engine.format.merge.spill import PLACE, SpillStore
from hudi_engine.format.merge.table_reader import read_context
from hudi_engine.format.metadata.definitions import (
    DEFINITIONS_PATH,
    DEFINITIONS_PROPERTY,
    IndexDefinitions,
)
from hudi_engine.format.metadata.keys import groups_of
from hudi_engine.format.metadata.locations import Location, location_record
from hudi_engine.format.metadata.record_index import index_group
from hudi_engine.format.metadata.records import (
    MetadataPartition,
    encode_record,
    record_schema,
    schema_text,
    with_meta_columns,
)
from hudi_engine.format.metadata.statistics import Bounds, Kind, indexed_columns
from hudi_engine.format.metadata.table import METADATA_FOLDER, MetadataTable
from hudi_engine.format.parallel import on_threads, run_in_threads
from hudi_engine.format.schema.avro import avro_to_arrow, without_meta_fields
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.below import StorageBelow
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.clock import parse_instant_time
from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.format.timeline.instant import COMPLETE_AS_WRITES
from hudi_engine.format.timeline.writer import TimelineWriter, check_inflight
from hudi_engine.table.metadata.changes import (
    SECONDARY_RECORD,
    empty_changes,
    files_records,
    filter_records,
    repeated_key,
)
from hudi_engine.table.metadata.commit import DELTACOMMIT, begin_groups, commit_metadata, write_base_file
from hudi_engine.table.metadata.data_files import (
    file_rows,
    indexed_rows,
    joined,
    slice_file_bounds,
    slice_keys,
)
from hudi_engine.table.metadata.index_build import INDEXING, INFLIGHT_PROPERTY, names_of_building
from hudi_engine.table.metadata.statistics import lost_expressions, statistics_indexes
from hudi_engine.table.metadata.writer import (
    PARTITIONS_PROPERTY,
    drop_metadata_table,
    drop_unsupported_partitions,
    is_set_aside,
)
from hudi_engine.table.metadata.written import Changes

logger = logging.getLogger(__name__)

_PARTITION_STATS = MetadataPartition.PARTITION_STATS.value
_DIGITS = 17
_BYTES_A_KEY, _GROWTH, _GROUP_BYTES = 48, 2, 1 << 30
_KEYS_AT_A_TIME = 10_000_000
"""Keys of a record index that are in memory at a time, about a gigabyte; those of a file group in any case."""
_SLICES_AT_A_TIME = 8
_MOST_GROUPS, _MOST_GROUPS_OF_A_PARTITION = 10_000, 10
BUILT_BY = {
    MetadataPartition.COLUMN_STATS: MetadataOptions.COLUMN_STATS,
    MetadataPartition.BLOOM_FILTERS: MetadataOptions.BLOOM_FILTERS,
    MetadataPartition.RECORD_INDEX: MetadataOptions.RECORD_INDEX,
}
"""The option that builds a partition."""
_NO_INSTANT, _FIRST_SUFFIX = "0" * 14, 10
"""Of builds in version 6: the instant of a table without writes, and the first number behind it."""
_IDS = {
    MetadataPartition.FILES: ("files", 1),
    MetadataPartition.COLUMN_STATS: ("col-stats", 2),
    MetadataPartition.PARTITION_STATS: ("partition-stats", 1),
    MetadataPartition.BLOOM_FILTERS: ("bloom-filters", 4),
    MetadataPartition.EXPRESSION_INDEX: ("", 2),
}
"""What ids of file groups begin with, "" for the partition's name, and Hudi's default of their number; 0 where keys decide."""


def check_metadata_options(config: TableConfig, options: Options) -> None:
    """Refuse an index together with a metadata table that is switched off, before a write; raises ConfigError."""
    by_partition = MetadataOptions.PARTITIONED_RECORD_INDEX
    asking: list[Option[Any]] = [each for each in (*BUILT_BY.values(), by_partition) if options[each]]
    asking += [IndexOptions.TYPE] if options[IndexOptions.TYPE] in RECORD_INDEXES else []
    if options[by_partition]:
        _check_partitioned_record_index(config, asking)
    if asking and options[MetadataOptions.ENABLED] is False:
        raise ConfigError(
            f"{asking[0]} is {options[asking[0]]}, but {MetadataOptions.ENABLED} is false, so table {config.name!r} would have "
            "no such index. Leave one of the two options out"
        )


def _check_partitioned_record_index(config: TableConfig, asking: Sequence[Option[Any]]) -> None:
    key = MetadataOptions.PARTITIONED_RECORD_INDEX.key
    if not config.is_partitioned or config.version < 9:
        raise ConfigError(
            f"{key} is true, and table {config.name!r} has "
            f"{f'version {config.version}' if config.is_partitioned else 'no partitions'}; such an index is for tables of version "
            f"9 with partitions. {MetadataOptions.RECORD_INDEX} has one over all partitions"
        )
    other = next((each for each in asking if each in (MetadataOptions.RECORD_INDEX, IndexOptions.TYPE)), None)
    if other is not None:
        raise ConfigError(
            f"{key} is true, and {other} asks for a record index over all partitions; a table has one of the two. Leave one of the "
            "options out"
        )


def initialize_metadata_table(
    storage: Storage, config: TableConfig, options: Options, schema: str | None
) -> TableConfig:
    """Build the metadata table, or drop it, as the options of a write want it, before the write completes; return the settings.

    A record index is not built while keys are stored in several file groups.

    Args:
        schema: Avro schema of the table as of the write.
    """
    wanted = options[MetadataOptions.ENABLED]
    if wanted is None:
        by_index = options[IndexOptions.TYPE] in RECORD_INDEXES
        wanted = (
            config.table_version.enables_metadata_table
            or by_index
            or any(options[each] for each in BUILT_BY.values())
        )
    elif not wanted:
        return drop_metadata_table(storage, config)
    if not wanted or not config.table_version.keeps_metadata_table or schema is None:
        return config
    config = drop_unsupported_partitions(storage, TableConfig.load(storage))
    missing = [each for each in wanted_partitions(config, options) if each not in config.metadata_partitions]
    if missing and not config.table_version.has_completion_times:
        pending = Timeline.load(storage, config).pending
        if len({each.requested_time for each in pending if each.action in COMPLETE_AS_WRITES}) > 1:
            logger.info("%s: no metadata table is built while other writes are under way", storage.base)
            return config
    return _build_what_can_be(storage, config, options, schema, missing)


def rebuild_metadata_table(storage: Storage, config: TableConfig) -> None:
    """Build the metadata table that a rollback or restore has set aside, over the files that are left.

    What can no longer be built is left out: indexes of columns that are gone, or all of it with a warning.
    """
    if not is_set_aside(config):
        return
    storage.delete_tree(METADATA_FOLDER)
    schema = Timeline.load(storage, config).table_schema_json()
    if schema is None:
        drop_metadata_table(storage, config)
        return
    definitions, columns = IndexDefinitions.load(storage, config), avro_to_arrow(schema)
    lost = lost_expressions(definitions, schema)
    names = [
        each
        for each in sorted(names_of_building(config), key=_order)
        if definitions.secondary_columns.get(each) in (None, *columns.names) and each not in lost
    ]
    try:
        _build_what_can_be(storage, config, resolve_options({}), schema, names, definitions)
    except HudiError as error:
        logger.warning("%s: the metadata table cannot be built again: %s", storage.base, error)
        drop_metadata_table(storage, config)


def _order(partition: str) -> int:
    """Return the place of a partition when several are built: after those whose records it needs."""
    kind = MetadataPartition.of(partition)
    return len(MetadataPartition) if kind is None else list(MetadataPartition).index(kind)


def _build_what_can_be(
    storage: Storage,
    config: TableConfig,
    options: Options,
    schema: str,
    partitions: Sequence[str],
    given: IndexDefinitions | None = None,
) -> TableConfig:
    """Build partitions of the metadata table, without the record index where keys are stored twice; return the settings."""
    try:
        return build(storage, config, options, schema, partitions, given)
    except RepeatedKeyError as error:
        logger.warning("%s: no record index is built: %s", storage.base, error)
        of_keys = (MetadataPartition.RECORD_INDEX, MetadataPartition.SECONDARY_INDEX)
        others = [each for each in partitions if MetadataPartition.of(each) not in of_keys]
        return build(storage, config, options, schema, others, given)


def build(
    storage: Storage,
    config: TableConfig,
    options: Options,
    schema: str,
    partitions: Sequence[str],
    given: IndexDefinitions | None = None,
    instant: str | None = None,
) -> TableConfig:
    """Build partitions of the metadata table; return the settings.

    Args:
        given: Definitions of those that options do not define; None where there are none.
        instant: Instant on the table's timeline that builds the last one; None for a build within another action.

    Raises:
        RepeatedKeyError: Keys are stored in several file groups, and the record index is to be built.
    """
    if not partitions:
        return config
    definitions = IndexDefinitions.load(storage, config).of(config.metadata_partitions)
    if given is not None:
        definitions = replace(definitions, entries={**given.of(partitions).entries, **definitions.entries})
    return _Build(storage, config, options, schema).run(partitions, definitions, instant)


def wanted_partitions(config: TableConfig, options: Options) -> list[str]:
    """Return the names of the partitions that options want."""
    wanted = [MetadataPartition.FILES, *(each for each, option in BUILT_BY.items() if options[option])]
    asks_for_keys = (
        options[MetadataOptions.PARTITIONED_RECORD_INDEX] or options[IndexOptions.TYPE] in RECORD_INDEXES
    )
    if asks_for_keys and MetadataPartition.RECORD_INDEX not in wanted:
        wanted.append(MetadataPartition.RECORD_INDEX)
    has_partition_stats = config.is_partitioned and config.table_version.has_completion_times
    if MetadataPartition.COLUMN_STATS in wanted and has_partition_stats:
        wanted.append(MetadataPartition.PARTITION_STATS)
    return [each.value for each in wanted]


class _Group(NamedTuple):
    """A file group of a partition that is built."""

    file_id: str
    keys: pa.Array
    values: pa.Array  # one for each key, or codes of a dictionary of them


@dataclass(frozen=True)
class _Build:
    storage: Storage
    config: TableConfig
    options: Options
    schema: str
    known: dict[tuple[str, ...], dict[str, dict[str, Bounds]]] = field(default_factory=dict)

    @cached_property
    def below(self) -> StorageBelow:
        return StorageBelow(self.storage, METADATA_FOLDER)

    @cached_property
    def timeline(self) -> Timeline:
        return Timeline.load(self.storage, self.config)

    @cached_property
    def view(self) -> FileSystemView:
        return FileSystemView.build(self.storage, self.config, self.timeline)

    @cached_property
    def slices(self) -> dict[str, list[FileSlice]]:
        return {each: self.view.latest_slices(each) for each in self.view.partitions}

    @cached_property
    def record_schema(self) -> str:
        return schema_text(with_meta_columns(record_schema(self.config.version)))

    def run(self, missing: Sequence[str], definitions: IndexDefinitions, indexing: str | None) -> TableConfig:
        """Build the missing partitions."""
        config = self.config
        if indexing is not None:
            config = config.with_properties({INFLIGHT_PROPERTY: ",".join(missing)})
            config.save(self.storage)
        if not self.below.exists(".hoodie/hoodie.properties"):
            self.below.replace(".hoodie/hoodie.properties", own_properties(config).to_bytes())
        names = list(config.metadata_partitions)
        for each in missing:
            definitions = self._defined(definitions, each)
            # The list of files is read from the instant of its build on, whatever is on the table's timeline.
            is_last = each == missing[-1] and each != MetadataPartition.FILES.value
            self._build(each, definitions, indexing if is_last else None)
            names.append(each)
        if indexing is not None:
            check_inflight(self.storage, config, indexing, INDEXING)
        changes = {PARTITIONS_PROPERTY: ",".join(sorted(names)), INFLIGHT_PROPERTY: ""}
        if definitions.entries:
            definitions.save(self.storage)
            changes[DEFINITIONS_PROPERTY] = DEFINITIONS_PATH
        config = config.with_properties(changes)
        config.save(self.storage)
        logger.info(
            "built %s of the metadata table of %s",
            ", ".join(missing),
            self.storage.base,
        )
        return config

    def _defined(self, definitions: IndexDefinitions, partition: str) -> IndexDefinitions:
        if partition in definitions.entries:
            return definitions
        if partition == MetadataPartition.COLUMN_STATS.value:
            given = self.options[MetadataOptions.COLUMN_STATS_COLUMNS]
            names = None if given is None else [each.strip() for each in given.split(",") if each.strip()]
            schema, is_v2 = without_meta_fields(self.schema), definitions.is_v2(partition)
            return definitions.with_index(partition, list(indexed_columns(schema, names, is_v2=is_v2)))
        if partition == MetadataPartition.RECORD_INDEX.value and self.config.version >= 9:
            is_partitioned = bool(self.options[MetadataOptions.PARTITIONED_RECORD_INDEX])
            return definitions.with_index(partition, is_partitioned=is_partitioned)
        return definitions

    def _build(self, partition: str, definitions: IndexDefinitions, indexing: str | None) -> None:
        """Write the file groups of a partition: an empty log for each, base files with all records, one deltacommit."""
        own = TableConfig.load(self.below)
        timeline = Timeline.load(self.below, own)
        used = {each.requested_time for each in timeline.instants}
        instant = (
            self._instant(used)
            if indexing is None or not own.table_version.has_completion_times
            else indexing
        )
        self.below.delete_tree(partition)
        ensure_partition_metadata(self.below, partition, instant)
        writer = TimelineWriter(self.below, own)
        writer.create_requested(instant, DELTACOMMIT)
        writer.to_inflight(instant, DELTACOMMIT)
        table = MetadataTable(self.below, own, timeline, self.timeline, (partition,))

        def write(group: _Group) -> WriteStat:
            content = encode_hfile(group.keys, group.values, self.record_schema, is_base_file=True)
            return write_base_file(table, partition, group.file_id, instant, content, len(group.keys))

        stats: list[tuple[str, WriteStat]] = []
        try:
            for groups in self._batches(partition, definitions):
                begin_groups(self.below, partition, [each.file_id for each in groups], instant)
                filled = [each for each in groups if len(each.keys)]
                stats += [(partition, stat) for stat in on_threads(write, filled)]
        except RepeatedKeyError:
            self.below.delete_tree(partition)
            writer.delete(instant, DELTACOMMIT)
            raise
        metadata = commit_metadata(stats, self.record_schema, WriteOperation.BULK_INSERT)
        writer.complete(instant, DELTACOMMIT, metadata.to_bytes(own.table_version))

    def _batches(self, partition: str, definitions: IndexDefinitions) -> Iterator[list[_Group]]:
        """Yield the file groups of a partition of the metadata table with their records, as many as are made at a time."""
        kind = MetadataPartition.of(partition)
        if kind is MetadataPartition.RECORD_INDEX:
            yield from self._batches_of_keys(empty_changes(self.record_schema, partition, definitions))
            return
        changes = self._changes(partition, definitions)
        prefix, count = _IDS.get(kind, ("", 0)) if kind is not None else ("", 0)
        prefix = prefix or partition.replace("_", "-")
        yield _groups(
            changes, count or self._index_groups(changes.records, None), f"{prefix}-{{:04d}}-0".format
        )

    def _batches_of_keys(self, changes: Changes) -> Iterator[list[_Group]]:
        """Yield the file groups of the record index: the keys of a part of them are read and sorted at a time.

        Args:
            changes: Without any; it tells which partitions have groups of their own.
        """
        parts: dict[str, list[FileSlice]] = {} if changes.is_partitioned else {changes.scope(""): []}
        for each in (each for some in self.slices.values() for each in some):
            parts.setdefault(changes.scope(each.partition), []).append(each)
        for scope, slices in parts.items():
            of = scope if changes.is_partitioned else None
            rows = sum(on_threads(self._rows, slices))
            count = self._index_groups(rows, of)
            if rows <= _KEYS_AT_A_TIME:
                yield self._groups_of_keys(slices, count, partial(index_group, of))
            else:
                at_a_time = max(1, count * _KEYS_AT_A_TIME // rows)
                yield from self._groups_on_disk(slices, count, at_a_time, partial(index_group, of))

    def _rows(self, each: FileSlice) -> int:
        """Return the number of rows of a slice's base file."""
        return 0 if each.base_file is None else file_rows(self.storage, each.base_file.path)

    def _groups_of_keys(
        self, slices: Sequence[FileSlice], count: int, file_id: Callable[[int], str]
    ) -> list[_Group]:
        """Return ``count`` file groups of the record index, with the locations of the keys of some slices.

        Raises:
            RepeatedKeyError: A key is stored in several file groups of the table.
        """

        def keys_of(each: FileSlice) -> list[pa.Array]:
            keys = slice_keys(self.storage, self.timeline, each)
            places = groups_of(keys.cast(pa.string()), count)
            return [keys.filter(pa.array(places == number)) for number in range(count)]

        found, values = on_threads(keys_of, slices), self._locations(slices)

        def group(number: int) -> _Group:
            parts = [each[number] for each in found]
            slice_of = np.repeat(np.arange(len(parts), dtype=np.int32), [*map(len, parts)])
            return _group_of_keys(file_id(number), joined(parts), pa.array(slice_of), values)

        return run_in_threads(group, range(count))

    def _groups_on_disk(
        self, slices: Sequence[FileSlice], count: int, at_a_time: int, file_id: Callable[[int], str]
    ) -> Iterator[list[_Group]]:
        """Yield the same, some at a time: the keys are read once, and those of a group lie in a temporary file until it is made."""
        values = self._locations(slices)
        nothing = pa.table({"key": pa.array([], pa.binary()), PLACE: pa.array([], pa.int32())})
        with SpillStore(self.options[MergeOptions.SPILL_FOLDER]) as store:
            for first in range(0, len(slices), _SLICES_AT_A_TIME):
                some = slices[first : first + _SLICES_AT_A_TIME]
                found = on_threads(lambda each: slice_keys(self.storage, self.timeline, each), some)
                for number, keys in enumerate(found, first):
                    rows = pa.table({"key": keys, PLACE: np.full(len(keys), number, np.int32)})
                    store.add(rows, groups_of(keys.cast(pa.string()), count))
            parts = dict(store.parts())

        def group(number: int) -> _Group:
            rows = parts.pop(number, nothing)
            keys, slice_of = joined(rows.column("key").chunks), rows.column(PLACE).combine_chunks()
            return _group_of_keys(file_id(number), keys, slice_of, values)

        for first in range(0, count, at_a_time):
            yield run_in_threads(group, range(first, min(first + at_a_time, count)))

    def _locations(self, slices: Sequence[FileSlice]) -> pa.Array:
        """Return the record that the keys of each slice have."""

        def record(each: FileSlice) -> bytes:
            moment = parse_instant_time(each.base_instant, self.timeline.zone)
            location = Location(each.partition, each.file_id)
            return encode_record(
                location_record(location, int(moment.timestamp() * 1000)), self.record_schema
            )

        return pa.array(map(record, slices), pa.binary())

    def _instant(self, used: Collection[str]) -> str:
        """Return the first instant of initialisations that is not used: in version 6 the newest write's with a suffix."""
        first, digits = "", _DIGITS
        numbers = count()
        if not self.config.table_version.has_completion_times:
            writes = [each.requested_time for each in self.timeline.completed if each.action != "savepoint"]
            first = max(writes, default=_NO_INSTANT)
            numbers, digits = count(_FIRST_SUFFIX), len("010")
        return next(text for number in numbers if (text := f"{first}{number:0{digits}}") not in used)

    def _index_groups(self, keys: int, of: str | None) -> int:
        """Return how many file groups a record index gets, or its part for a partition, by Hudi's estimate."""
        by_size = -(-keys * _BYTES_A_KEY * _GROWTH // _GROUP_BYTES)
        if of is not None:
            return min(max(by_size, 1), _MOST_GROUPS_OF_A_PARTITION)
        return min(max(by_size, self.options[MetadataOptions.RECORD_INDEX_GROUPS]), _MOST_GROUPS)

    def _changes(self, partition: str, definitions: IndexDefinitions) -> Changes:
        changes = empty_changes(self.record_schema, partition, definitions)
        statistics = partial(self._fill_statistics, partition)
        fill: Mapping[MetadataPartition | None, Callable[[Changes, IndexDefinitions], None]] = {
            MetadataPartition.FILES: self._fill_files,
            MetadataPartition.COLUMN_STATS: statistics,
            MetadataPartition.PARTITION_STATS: statistics,
            MetadataPartition.EXPRESSION_INDEX: statistics,
            MetadataPartition.BLOOM_FILTERS: self._fill_filters,
            MetadataPartition.SECONDARY_INDEX: partial(self._fill_values, partition),
        }
        fill[MetadataPartition.of(partition)](changes, definitions)
        return changes

    def _fill_files(self, changes: Changes, _: IndexDefinitions) -> None:
        """Add every file of a completed write, those of older slices among them, which are to be cleaned."""
        sizes: dict[str, dict[str, int]] = {each: {} for each in self.view.partitions}
        listed = {
            status.path: status.size for each in self.view.partitions for status in self.view.files(each)
        }
        for each in self.view.every_slice():
            for path in each.paths:
                sizes[each.partition][path.rpartition("/")[2]] = listed[path]
        filled = {partition: files for partition, files in sizes.items() if files}
        changes.put(files_records(filled, sorted(filled)))

    def _bounds(self, columns: Mapping[str, Kind]) -> dict[str, dict[str, Bounds]]:
        """Return the bounds of all files, which those of columns and of partitions are made of; each file is read once."""
        known = self.known.setdefault(tuple(columns), {})
        if not known:
            paths = [path for some in self.slices.values() for each in some for path in each.row_paths]
            found = on_threads(
                lambda path: slice_file_bounds(self.storage, self.config, path, columns), paths
            )
            known.update(zip(paths, found, strict=True))
        return known

    def _fill_statistics(self, partition: str, changes: Changes, definitions: IndexDefinitions) -> None:
        """Add the records of files, of partitions, or those of an expression index, which has both."""
        of_columns = [MetadataPartition.COLUMN_STATS.value] if partition == _PARTITION_STATS else []
        schema = without_meta_fields(self.schema)
        (index,) = statistics_indexes([partition, *of_columns], definitions, schema)
        bounds = self._bounds(index.columns)
        if index.of_files == partition:
            for path, each in bounds.items():
                changes.put(index.file_records(path.rpartition("/")[0], path, each))
        if index.of_partitions == partition:
            filled = {name: slices for name, slices in self.slices.items() if slices}
            index.put_partitions(changes, filled, bounds)

    def _fill_filters(self, changes: Changes, _: IndexDefinitions) -> None:
        for partition, slices in self.slices.items():
            for each in slices:
                if each.base_file is not None:
                    files = [(partition, each.base_file.path)]
                    changes.put(filter_records(self.storage, files, each.base_file.instant))

    def _fill_values(self, partition: str, changes: Changes, definitions: IndexDefinitions) -> None:
        column = definitions.secondary_columns[partition]
        context = read_context(self.storage, self.config, self.timeline)
        slices = [each for some in self.slices.values() for each in some]
        rows = on_threads(lambda each: indexed_rows(context, each, [column])[column].secondary_keys(), slices)
        for keys in rows:
            changes.put_all(keys, SECONDARY_RECORD)


def _group_of_keys(file_id: str, keys: pa.Array, slice_of: pa.Array, values: pa.Array) -> _Group:
    """Return a file group of the record index, its keys in order; raises RepeatedKeyError for one that comes twice."""
    order = pc.array_sort_indices(keys)
    keys = keys.take(order)
    same = pc.index(pc.equal(keys.slice(1), keys.slice(0, max(len(keys) - 1, 0))), True).as_py()
    if same >= 0:
        raise repeated_key(keys[same])
    # a record for each slice, not for each key, until the cells are made
    return _Group(file_id, keys, pa.DictionaryArray.from_arrays(slice_of.take(order), values))


def _groups(changes: Changes, count: int, file_id: Callable[[int], str]) -> list[_Group]:
    """Return the file groups that records go to by their keys."""
    keys, values, _ = changes.sorted()
    numbers = changes.groups_of(keys, count)
    masks = [pa.array(numbers == number) for number in range(count)]
    return [
        _Group(file_id(number), keys.filter(each), values.filter(each)) for number, each in enumerate(masks)
    ]


def own_properties(config: TableConfig) -> TableConfig:
    """Return the properties of the metadata table of a table."""
    version = config.table_version
    properties = {
        "hoodie.table.name": f"{config.name}_metadata",
        "hoodie.table.type": TableType.MERGE_ON_READ.value,
        "hoodie.table.version": str(version.number),
        "hoodie.timeline.layout.version": str(version.timeline_layout),
        "hoodie.table.recordkey.fields": "key",
        "hoodie.populate.meta.fields": "false",
        "hoodie.table.base.file.format": "HFILE",
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.compaction.payload.class": "org.apache.hudi.metadata.HoodieMetadataPayload",
    }
    if version.has_completion_times:
        properties |= {
            "hoodie.table.initial.version": str(version.number),
            "hoodie.timeline.path": "timeline",
            "hoodie.timeline.history.path": "history",
            "hoodie.archivelog.folder": "history",
            "hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA",
            TableOptions.MERGE_MODE.key: MergeMode.CUSTOM.value,
            "hoodie.record.merge.strategy.id": "00000000-0000-0000-0000-000000000000",
        }
        zone = TableOptions.TIMELINE_ZONE.key
        if zone in config.properties:
            properties[zone] = config.properties[zone]
    else:
        properties |= {
            "hoodie.archivelog.folder": "archived",
            "hoodie.table.keygenerator.class": "org.apache.hudi.metadata.HoodieTableMetadataKeyGenerator",
        }
    return TableConfig.from_properties(
        {**properties, "hoodie.table.checksum": str(table_checksum(properties))}
    )
