"""Data skipping: which files a read opens, by the indexes of the metadata table and by the footers of base files.

Source: Hudi's data skipping. The order is Hudi's too: the record index for a filter that names keys; else partitions by their
folders and by their statistics, then file groups by the statistics of columns, then by Bloom filters for keys.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import CorruptTableError, HudiError, UnsupportedTableError
from hudi_engine.format.config.declared.engine_options import ReadOptions
from hudi_engine.format.config.declared.metadata_options import MetadataOptions
from hudi_engine.format.config.enums import MergeMode
from hudi_engine.format.config.options import Options
from hudi_engine.format.filegroup.base_file import BaseFile
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.view import FileSystemView
from hudi_engine.format.index.filters.bloom import BloomFilter
from hudi_engine.format.index.filters.footer import read_key_footer, within_range
from hudi_engine.format.merge.filters import columns_of
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.merge.stored_columns import partition_values
from hudi_engine.format.metadata.definitions import IndexDefinitions
from hudi_engine.format.metadata.keys import (
    bloom_filter_key,
    column_stats_key,
    hashed,
    partition_stats_key,
)
from hudi_engine.format.metadata.record_index import locations
from hudi_engine.format.metadata.records import MetadataPartition, Record
from hudi_engine.format.metadata.secondary_index import is_indexed_type, key_prefixes, split_secondary_key
from hudi_engine.format.metadata.table import MetadataTable
from hudi_engine.format.parallel import on_threads
from hudi_engine.format.schema.casting import cast_array
from hudi_engine.format.timeline.active import FileGroupKey
from hudi_engine.table.data_skipping.bounds import Bounds, bounds_of, possible, union_of
from hudi_engine.table.data_skipping.predicate import PruningPredicate
from hudi_engine.table.data_skipping.trusted import has_partition, trusted_metadata
from hudi_engine.table.lookup.log_keys import with_log_keys
from hudi_engine.table.state import TableState

logger = logging.getLogger(__name__)

_Name = TypeVar("_Name", str, FileGroupKey)
_FAITHFUL_TYPES = (pa.string(), pa.int32(), pa.int64(), pa.date32())
"""Types whose text in a folder name is the stored value, for every writer."""
_PREFIXES = 64
"""More partitions than these are looked up with all others of the table."""
FOLDERS, KEY_FOOTERS = "partition folders", "key ranges and Bloom filters of footers"


class Step(NamedTuple):
    """What one index ruled out.

    Args:
        by: Partition of the metadata table, or what else was looked at.
        of: ``partitions`` or ``file groups``.
        seen: How many it was asked about.
        kept: How many of them may hold a row.
    """

    by: str
    of: str
    seen: int
    kept: int

    @property
    def skipped(self) -> int:
        """How many of them it ruled out."""
        return self.seen - self.kept

    def __str__(self) -> str:
        return f"{self.skipped} of {self.seen} {self.of} skipped by {self.by}"


@dataclass(frozen=True)
class ReadPlan:
    """The file slices that a read opens, and why no others."""

    slices: list[FileSlice]
    seen: int  # file slices of the partitions that were looked into
    steps: list[Step] = field(default_factory=list)
    is_listed: bool = True  # from the storage, not from the metadata table
    keys: Mapping[FileGroupKey, list[str]] = field(default_factory=dict)  # where a record index has them

    @property
    def bytes_read(self) -> int:
        """Bytes of the files that are opened."""
        return sum(each.size for each in self.slices)

    @property
    def skips(self) -> bool:
        """Whether the metadata table rules files out."""
        return not self.is_listed and any(step.skipped for step in self.steps)

    def __str__(self) -> str:
        why = "; ".join(str(each) for each in self.steps if each.skipped)
        read = f"{len(self.slices)} of {self.seen} file slices are read, {self.bytes_read:,} bytes"
        return f"{read}: {why}" if why else read


def plan_read(
    state: TableState, context: ReadContext, predicate: PruningPredicate, options: Options
) -> ReadPlan:
    """Choose the file slices that may hold rows of a read.

    Args:
        context: How slices are read; its columns are those of the filter.
        options: Whether the metadata table may be used.

    Raises:
        CorruptTableError, TimelineError: As `TableState.still_view` does.
    """
    by_metadata = options[ReadOptions.DATA_SKIPPING] and options[MetadataOptions.ENABLED] is not False
    metadata = trusted_metadata(state) if by_metadata and predicate.filters is not None else None
    planner = _Planner(state, context, predicate, metadata)
    if metadata is not None:
        try:
            plan = planner.plan()
        except (HudiError, OSError, ValueError) as error:
            logger.warning("%s: read without the metadata table: %s", state.storage.base, error)
            plan = _Planner(state, context, predicate, None).plan()
    else:
        plan = planner.plan()
    if plan.steps:
        logger.info("%s: %s", state.storage.base, plan)
    return plan


class _Planner:
    def __init__(
        self,
        state: TableState,
        context: ReadContext,
        predicate: PruningPredicate,
        metadata: MetadataTable | None,
    ) -> None:
        self._state, self._context, self._predicate, self._metadata = state, context, predicate, metadata
        self._steps: list[Step] = []
        self._located_by = MetadataPartition.RECORD_INDEX.value
        # An index of rows and of partitions shows the newest state alone.
        self._newest = metadata if context.as_of is None else None

    def plan(self) -> ReadPlan:
        located = self._located()
        slices, seen = self._slices(located)
        if located is not None:
            kept = [each for each in slices if (each.partition, each.file_id) in located]
            self._note(self._located_by, "file groups", len(slices), len(kept))
            slices = kept
        else:
            slices = self._by_keys(self._by_column_stats(slices))
        return ReadPlan(slices, seen, self._steps, self._metadata is None, located or {})

    def _note(self, by: str, of: str, seen: int, kept: int) -> None:
        if seen:
            self._steps.append(Step(by, of, seen, kept))

    def _located(self) -> dict[FileGroupKey, list[str]] | None:
        """Return the keys by the file group that holds them; None where no record index can tell."""
        if self._newest is None:
            return None
        keys = self._predicate.keys
        if keys is None:
            keys = self._keys_of_values(self._newest)
        if keys is None or not has_partition(self._newest, MetadataPartition.RECORD_INDEX):
            return None
        found: dict[FileGroupKey, list[str]] = {}
        for key, place in locations(self._newest, keys):
            found.setdefault(place, []).append(key)
        return found

    def _keys_of_values(self, metadata: MetadataTable) -> pa.Array | None:
        """Return the record keys that secondary indexes have for the values of a filter; None where one has no index."""
        prefix = MetadataPartition.SECONDARY_INDEX.value
        if not self._predicate.equal or not any(name.startswith(prefix) for name in metadata.partitions):
            return None
        definitions = IndexDefinitions.load(self._state.storage, self._state.config)
        columns = definitions.secondary_columns.items()
        indexes = {column: name for name, column in columns if name in metadata.partitions}
        found: set[str] = set()
        for values in self._predicate.equal:
            column = next((name for name in values if name in indexes and None not in values[name]), "")
            prefixes = self._key_prefixes(column, values[column]) if column else None
            if prefixes is None or not metadata.groups(indexes[column]):
                return None
            self._located_by = indexes[column]
            is_v2 = definitions.is_v2(self._located_by)
            keys = metadata.with_prefix(self._located_by, prefixes.to_pylist(), are_hashed=is_v2)
            found |= {split_secondary_key(key)[1] for key, _ in keys}
        return pa.array(sorted(found), pa.string())

    def _key_prefixes(self, column: str, values: Sequence[Any]) -> pa.Array | None:
        """Return what keys of a secondary index begin with for values of a column; None where their type has several texts."""
        kind = self._context.schema.field(column).type
        return key_prefixes(pa.array(values, kind)) if is_indexed_type(kind) else None

    def _slices(self, located: Collection[FileGroupKey] | None) -> tuple[list[FileSlice], int]:
        """Return the slices of the partitions that may hold a row, and of how many slices they were chosen."""
        state, as_of, metadata = self._state, self._context.as_of, self._metadata
        if metadata is None:
            slices = state.still_view(as_of=as_of).latest_slices()
            kept = self._by_folders({each.partition for each in slices})
            return [each for each in slices if each.partition in kept], len(slices)
        partitions = set(metadata.table_partitions())
        if located is not None:
            seen = len(partitions)
            partitions &= {partition for partition, _ in located}
            self._note(self._located_by, "partitions", seen, len(partitions))
        partitions = self._by_partition_stats(self._by_folders(partitions), located is not None)
        files = metadata.table_files(sorted(partitions))
        view = FileSystemView.build(state.storage, state.config, state.timeline, as_of=as_of, files=files)
        slices = view.latest_slices()
        state.check_still(as_of)
        return slices, len(slices)

    def _by_folders(self, partitions: set[str]) -> set[str]:
        """Return the partitions that the values in their folder names do not rule out."""
        filters, config, schema = self._predicate.filters, self._state.config, self._context.schema
        if filters is None or not config.is_partitioned or not config.folders_say_values:
            return partitions
        known = {name: _folder_values(self._state, schema, name) for name in sorted(partitions)}
        kept = possible(schema, known, filters)
        self._note(FOLDERS, "partitions", len(partitions), len(kept))
        return kept

    def _by_partition_stats(self, partitions: set[str], is_located: bool) -> set[str]:
        """Return the partitions that the bounds of their columns do not rule out."""
        metadata, schema = self._newest, self._context.schema
        columns = self._compared()
        if is_located or not columns or metadata is None or self._merges_values():
            return partitions
        if not has_partition(metadata, MetadataPartition.PARTITION_STATS):
            return partitions
        keys = {
            (name, column): partition_stats_key(column, name) for name in partitions for column in columns
        }
        found = metadata.lookup(MetadataPartition.PARTITION_STATS.value, list(keys.values()))

        def bounds(name: str, column: str) -> Bounds | None:
            return bounds_of(found.get(keys[name, column]), schema.field(column).type)

        kept = self._possible(partitions, columns, bounds)
        self._note(MetadataPartition.PARTITION_STATS.value, "partitions", len(partitions), len(kept))
        return kept

    def _by_column_stats(self, slices: list[FileSlice]) -> list[FileSlice]:
        """Return the slices that the bounds of their files do not rule out.

        A row may be made of its values in the base file and in several logs, so all files of a slice are taken together.
        """
        metadata, columns = self._metadata, self._compared()
        if not columns or metadata is None or not slices:
            return slices
        if not has_partition(metadata, MetadataPartition.COLUMN_STATS):
            return slices
        found = _column_stats(metadata, columns, {each.partition for each in slices})
        by_group = {(each.partition, each.file_id): each for each in slices}
        merges = self._merges_values()

        def bounds(group: FileGroupKey, column: str) -> Bounds | None:
            one = by_group[group]
            if one.log_files and merges:
                return None
            kind = self._context.schema.field(column).type
            names = [log.name for log in one.log_files] + ([one.base_file.name] if one.base_file else [])
            keys = (column_stats_key(column, one.partition, name) for name in names)
            return union_of(bounds_of(found.get(key), kind) for key in keys)

        kept = self._possible(by_group, columns, bounds)
        self._note(MetadataPartition.COLUMN_STATS.value, "file groups", len(slices), len(kept))
        return [each for each in slices if (each.partition, each.file_id) in kept]

    def _possible(
        self,
        names: Iterable[_Name],
        columns: list[str],
        bounds: Callable[[_Name, str], Bounds | None],
    ) -> set[_Name]:
        """Return the names of which some row may pass the filter, by the bounds of its columns."""
        known: dict[_Name, dict[str, Bounds | pc.Expression]] = {}
        for name in names:
            found = {column: bounds(name, column) for column in columns}
            known[name] = {column: each for column, each in found.items() if each is not None}
        assert self._predicate.filters is not None
        return possible(self._context.schema, known, self._predicate.filters)

    def _compared(self) -> list[str]:
        """Return the columns of the filter that may have statistics under their name."""
        filters, schema = self._predicate.filters, self._context.schema
        if filters is None or self._context.schema_history is not None:
            return []
        kinds = {name: schema.field(name).type for name in columns_of(filters, schema)}
        left_out = pa.types.is_nested if self._predicate.bounds_have_nan else _is_nested_or_floating
        return [name for name, kind in kinds.items() if not left_out(kind)]

    def _merges_values(self) -> bool:
        """Return whether merging may make values that neither a base file nor a log has."""
        return self._state.config.merge_mode is MergeMode.CUSTOM

    def _by_keys(self, slices: list[FileSlice]) -> list[FileSlice]:
        """Return the slices whose Bloom filter and key range admit a key; those with new keys in their logs are all kept."""
        keys = self._predicate.keys
        if keys is None or not self._state.config.populate_meta_fields:
            return slices
        logged = with_log_keys(self._state.timeline, slices)
        asked = {
            each.base_file.path: each.base_file
            for each in slices
            if each.base_file is not None and (each.partition, each.file_id) not in logged
        }
        filters = self._bloom_filters(list(asked.values()))
        rest = [each for path, each in asked.items() if path not in filters]
        ruled_out = {path for path, bloom in filters.items() if not bloom.might_contain_all(keys).any()}
        if filters:
            name = MetadataPartition.BLOOM_FILTERS.value
            self._note(name, "file groups", len(filters), len(filters) - len(ruled_out))
        admitted = on_threads(lambda base: self._footer_admits(base, keys), rest)
        without = {base.path for base, admits in zip(rest, admitted, strict=True) if not admits}
        if rest:
            self._note(KEY_FOOTERS, "file groups", len(rest), len(rest) - len(without))
        ruled_out |= without
        return [each for each in slices if each.base_file is None or each.base_file.path not in ruled_out]

    def _bloom_filters(self, bases: list[BaseFile]) -> Mapping[str, BloomFilter]:
        """Return the Bloom filters that the metadata table has, by the path of the base file."""
        metadata = self._metadata
        if metadata is None or not has_partition(metadata, MetadataPartition.BLOOM_FILTERS):
            return {}
        keys = {each.path: bloom_filter_key(each.partition, each.name) for each in bases}
        found = metadata.lookup(MetadataPartition.BLOOM_FILTERS.value, list(keys.values()))
        filters = {path: _bloom_filter(found[key]) for path, key in keys.items() if key in found}
        return {path: each for path, each in filters.items() if each is not None}

    def _footer_admits(self, base: BaseFile, keys: pa.Array) -> bool:
        footer = read_key_footer(self._state.storage, base.path)
        if footer.min_key is not None and footer.max_key is not None:
            keys = keys.filter(within_range(keys, footer.min_key, footer.max_key))
        if not len(keys):
            return False
        return footer.bloom is None or bool(footer.bloom.might_contain_all(keys).any())


def _is_nested_or_floating(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind) or pa.types.is_floating(kind))


def _column_stats(
    metadata: MetadataTable, columns: list[str], partitions: Collection[str]
) -> dict[str, Record]:
    prefixes = [hashed(column) for column in columns]
    if len(partitions) <= _PREFIXES:
        prefixes = [partition_stats_key(column, partition) for column in columns for partition in partitions]
    return dict(metadata.with_prefix(MetadataPartition.COLUMN_STATS.value, prefixes))


def _bloom_filter(record: Record) -> BloomFilter | None:
    """Return a filter; None for one that is not of the type that is stored with it, which is not its own but its writer's."""
    stored = record["BloomFilterMetadata"]
    try:
        return BloomFilter.from_text(stored["bloomFilter"], stored["type"])
    except (CorruptTableError, UnsupportedTableError):
        return None


def _folder_values(state: TableState, schema: pa.Schema, partition: str) -> dict[str, pc.Expression]:
    """Return conditions that every row of a partition fulfils, of the values that its folder name gives for certain."""
    config = state.config
    values, known = partition_values(config, partition), {}
    for each in config.partition_fields:
        place, text = schema.get_field_index(each.name), values.get(each.name)
        if (
            text is None
            or each.kind != "simple"
            or place < 0
            or schema.field(place).type not in _FAITHFUL_TYPES
        ):
            continue
        try:
            value = cast_array(pa.array([text], pa.string()), schema.field(place).type, each.name)
        except HudiError:
            # Folders of other writers may say a date as a number of days.
            continue
        known[each.name] = pc.field(each.name) == value[0]
    return known
