"""What an action on a table changes in each partition of its metadata table.

Source: Hudi metadata table format, "what each action writes".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_engine.errors import RepeatedKeyError
from hudi_engine.format.config.declared.write_options import IndexOptions
from hudi_engine.format.config.enums import BloomFilterType, IndexType, WriteOperation
from hudi_engine.format.filegroup.view import FileSystemView
from hudi_engine.format.index.filters.footer import BLOOM_KEY, BLOOM_TYPE_KEY
from hudi_engine.format.merge.table_reader import read_context
from hudi_engine.format.metadata.definitions import IndexDefinitions
from hudi_engine.format.metadata.keys import (
    ALL_PARTITIONS,
    ROOT_PARTITION,
    bloom_filter_key,
)
from hudi_engine.format.metadata.locations import Location, location_record
from hudi_engine.format.metadata.record_index import locations
from hudi_engine.format.metadata.records import MetadataPartition, Record
from hudi_engine.format.metadata.secondary_index import IndexedRows, changed_keys
from hudi_engine.format.metadata.table import MetadataTable
from hudi_engine.format.parallel import on_threads
from hudi_engine.format.schema.avro import without_meta_fields
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.damage import damaged_parquet
from hudi_engine.format.timeline.active import FileGroupKey, Timeline
from hudi_engine.format.timeline.clock import parse_instant_time
from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.table.metadata.data_files import (
    file_keys,
    indexed_rows,
    joined,
    keys_of,
    slice_keys,
)
from hudi_engine.table.metadata.statistics import put_statistics, statistics_indexes
from hudi_engine.table.metadata.written import Changes, Written

_PARTITIONS_TYPE, _FILES_TYPE, _BLOOM_TYPE = 1, 2, 4
SECONDARY_RECORD: Record = {"type": 7, "SecondaryIndexMetadata": {"isDeleted": False}}
_BINARY = pa.binary()


def changes_of_write(written: Written, schema: str) -> dict[str, Changes]:
    """Return what a write changes, by partition of the metadata table.

    Args:
        schema: Avro schema that the metadata table's records are written with.
    """
    kept = written.table.partitions
    found = {name: empty_changes(schema, name, written.definitions) for name in kept}
    found[MetadataPartition.FILES.value].put(_files_records(written))
    put_statistics(written, found)
    filters = found.get(MetadataPartition.BLOOM_FILTERS.value)
    if filters is not None:
        paths = [(partition, str(stat.path)) for partition, stat in written.stats if not stat.is_log_file]
        filters.put(filter_records(written.storage, paths, written.instant))
    locations = found.get(MetadataPartition.RECORD_INDEX.value)
    if locations is not None:
        _put_locations(written, locations)
    columns = written.definitions.secondary_columns
    indexes = [each for each in kept if MetadataPartition.of(each) is MetadataPartition.SECONDARY_INDEX]
    if indexes:
        _put_values(written, [(columns[each], found[each]) for each in indexes])
    return found


def empty_changes(schema: str, partition: str, definitions: IndexDefinitions) -> Changes:
    """Return no changes of a partition of the metadata table, to be added to.

    Keys of a secondary index of version V2 go to file groups by the value in them.
    """
    kind = MetadataPartition.of(partition)
    by_value = kind is MetadataPartition.SECONDARY_INDEX and definitions.is_v2(partition)
    is_partitioned = kind is MetadataPartition.RECORD_INDEX and definitions.partitioned_record_index
    return Changes(schema, by_value, is_partitioned)


def _files_records(written: Written) -> dict[str, Record]:
    sizes: dict[str, dict[str, int]] = {partition: {} for partition, _ in written.stats}
    for partition, stat in written.stats:
        sizes[partition][stat.file_name] = stat.file_size_in_bytes or 0
        for path, size in (stat.cdc_stats or {}).items():
            sizes[partition][path.rpartition("/")[2]] = size
    return files_records(sizes, sorted(sizes))


def files_records(sizes: Mapping[str, Mapping[str, int]], partitions: Collection[str]) -> dict[str, Record]:
    """Return the records of ``files``.

    Args:
        sizes: Bytes of files by name, by partition.
        partitions: Partitions that the list of all partitions gets.
    """
    records = {ALL_PARTITIONS: _files(_PARTITIONS_TYPE, {each or ROOT_PARTITION: 0 for each in partitions})}
    for partition, files in sizes.items():
        records[partition or ROOT_PARTITION] = _files(_FILES_TYPE, files)
    return records


def _files(kind: int, sizes: Mapping[str, int], *, deleted: bool = False) -> Record:
    files = {name: {"size": size, "isDeleted": deleted} for name, size in sizes.items()}
    return {"type": kind, "filesystemMetadata": files}


def filter_records(storage: Storage, files: Sequence[tuple[str, str]], instant: str) -> dict[str, Record]:
    """Return the records of ``bloom_filters``, of base files that have a filter.

    Args:
        files: Partition and path of base files.
    """
    texts = on_threads(lambda each: _filter_text(storage, each[1]), files)
    return {
        bloom_filter_key(partition, path.rpartition("/")[2]): {
            "type": _BLOOM_TYPE,
            "BloomFilterMetadata": {
                "type": kind,
                "timestamp": instant,
                "bloomFilter": text,
                "isDeleted": False,
            },
        }
        for (partition, path), (text, kind) in zip(files, texts, strict=True)
        if text is not None
    }


def _filter_text(storage: Storage, path: str) -> tuple[bytes | None, str]:
    with storage.open_input(path) as source, damaged_parquet(f"base file {path!r}"):
        texts = pq.read_metadata(source).metadata or {}
    kind = texts.get(BLOOM_TYPE_KEY.encode(), BloomFilterType.SIMPLE.value.encode())
    return texts.get(BLOOM_KEY.encode()), kind.decode()


@dataclass(frozen=True)
class _Held:
    """Where the record index has some keys, which are looked up once for all files of a write.

    Args:
        keys: Those that it has.
        numbers: The place of each, by its number.
        places: The numbers of the places.
    """

    keys: pa.Array
    numbers: pa.Array
    places: Mapping[Location, int]

    @classmethod
    def of(cls, table: MetadataTable, keys: pa.Array, partition: str | None) -> _Held:
        """Look keys up, in the part of a partition of the table where the index is one by partition."""
        found = list(locations(table, keys.cast(pa.string()).unique(), partition))
        places = {
            each: number for number, each in enumerate(dict.fromkeys(Location(*place) for _, place in found))
        }
        numbers = pa.array([places[Location(*place)] for _, place in found], pa.int64())
        return cls(pa.array([key.encode() for key, _ in found], _BINARY), numbers, places)

    def at(self, keys: pa.Array, *some: Location) -> pa.Array:
        """Return those of some keys that the index has in one of some places, each once."""
        wanted = pa.array([self.places[each] for each in some if each in self.places], pa.int64())
        return keys.filter(pc.is_in(self._numbers_of(keys), wanted)).unique()

    def elsewhere(self, keys: pa.Array, own: Location) -> dict[Location, pa.Array]:
        """Return those of some keys that the index has in another place, by that place."""
        numbers = self._numbers_of(keys)
        others = pc.not_equal(numbers, self.places.get(own, -1)).fill_null(False)
        keys, numbers = keys.filter(others), numbers.filter(others)
        places = list(self.places)
        return {places[each]: keys.filter(pc.equal(numbers, each)) for each in numbers.unique().to_pylist()}

    def _numbers_of(self, keys: pa.Array) -> pa.Array:
        return self.numbers.take(pc.index_in(keys, self.keys))


class _FileKeys(NamedTuple):
    """What a write does to the keys of a file group."""

    location: Location
    brought: pa.Array
    removed: pa.Array
    is_log: bool


def _put_locations(written: Written, changes: Changes) -> None:
    """Add the locations of keys that a write brought, and delete those of keys it deleted where they were.

    Raises:
        RepeatedKeyError: A key has rows in two file groups, which the index has no place for.
    """
    if written.metadata.compacted:
        return
    files = [found for each in written.stats if (found := _file_keys(written, *each)) is not None]
    asked: dict[str, list[pa.Array]] = defaultdict(list)
    for each in files:
        asked[changes.scope(each.location.partition)] += [each.brought, each.removed]
    held = {
        scope: _Held.of(written.table, joined(keys), _part_of(changes, scope))
        for scope, keys in asked.items()
    }
    placed: dict[Location, pa.Array] = {}
    gone: dict[str, list[pa.Array]] = defaultdict(list)
    for location, keys, removed, is_log in files:
        scope = changes.scope(location.partition)
        if is_log:
            keys = keys.filter(pc.invert(pc.is_in(keys, held[scope].at(keys, location))))
        gone[scope].append(held[scope].at(removed, location))
        placed[location] = joined([placed.get(location, keys.slice(0, 0)), keys]).unique()
    replaced = _replaced_keys(written, changes)
    deleted = {each: joined([*gone[each], *replaced.get(each, ())]) for each in {*gone, *replaced}}
    _check_single(written, changes, held, placed, deleted)
    is_clustering = written.metadata.operation_type == WriteOperation.CLUSTER.value
    for scope, keys in deleted.items():
        changes.part(scope).delete(joined(gone[scope]) if is_clustering else keys)
    millis = _millis(written.instant, written.timeline)
    for location, keys in placed.items():
        changes.part(location.partition).put_all(keys, location_record(location, millis))


def _part_of(changes: Changes, scope: str) -> str | None:
    return scope if changes.is_partitioned else None


def _file_keys(written: Written, partition: str, stat: WriteStat) -> _FileKeys | None:
    """Return what a file of a write does to the keys of its file group; None where every key stays where it is."""
    location = Location(partition, str(stat.file_id))
    if stat.is_log_file:
        log = written.logs[str(stat.path)]
        removed = log.deleted
        if len(log.late):
            live = written.keys_after(location)
            removed = joined([removed, log.late.filter(pc.invert(pc.is_in(log.late, live)))])
        return _FileKeys(location, joined([keys_of(each) for each in log.rows]), removed, True)
    if not stat.num_inserts and not stat.num_deletes:
        return None  # updates alone leave every key where it is
    keys, before = file_keys(written.storage, str(stat.path)), written.keys_before(location)
    removed = before.filter(pc.invert(pc.is_in(before, keys)))
    return _FileKeys(location, keys.filter(pc.invert(pc.is_in(keys, before))), removed, False)


def _put_values(written: Written, indexes: Sequence[tuple[str, Changes]]) -> None:
    """Add the keys of secondary indexes for rows that are new or have another value, and delete those of before.

    A key that is deleted in one file group and added in another stays.

    Args:
        indexes: The column of each, and what changes in it.
    """
    if written.metadata.compacted or written.metadata.operation_type == WriteOperation.CLUSTER.value:
        return
    groups = {(partition, str(stat.file_id)) for partition, stat in written.stats}
    going = {*written.metadata.replaced}
    old, new = (read_context(written.storage, each.config, each) for each in (written.timeline, written.done))
    then, now = written.before, written.after
    columns = {column for column, _ in indexes}

    def changed(group: FileGroupKey) -> dict[str, tuple[pa.Array, pa.Array]]:
        before = indexed_rows(old, then.newest(group), columns)
        after = {} if group in going else indexed_rows(new, now.newest(group), columns)
        empty = {
            column: IndexedRows(*(part[:0] for part in rows)) for column, rows in {**after, **before}.items()
        }
        return {
            column: changed_keys(before.get(column, none), after.get(column, none))
            for column, none in empty.items()
        }

    for each in on_threads(changed, sorted(groups | going)):
        for column, changes in indexes if each else ():
            removed, added = each[column]
            changes.delete(removed)
            changes.put_all(added, SECONDARY_RECORD)


def _check_single(
    written: Written,
    changes: Changes,
    held: Mapping[str, _Held],
    placed: Mapping[Location, pa.Array],
    deleted: Mapping[str, pa.Array],
) -> None:
    """Refuse keys that a write puts in two file groups, or in one while their row stays in another.

    Args:
        held: Where the index has the keys that the write brings, by `Changes.scope`.
        deleted: The keys that it takes out of the index.
    """
    parts: dict[str, list[pa.Array]] = defaultdict(list)
    elsewhere: dict[Location, list[pa.Array]] = defaultdict(list)
    for own, keys in placed.items():
        scope = changes.scope(own.partition)
        parts[scope].append(keys)
        new = keys.filter(pc.invert(pc.is_in(keys, deleted[scope])))
        for place, some in held[scope].elsewhere(new, own).items():
            elsewhere[place].append(some)
    for of_scope in parts.values():
        check_single(of_scope)
    for place, there in elsewhere.items():
        keys = joined(there)
        found = pc.is_in(keys, _keys_left(written, place))
        if pc.any(found).as_py():
            raise repeated_key(keys[pc.index(found, True).as_py()])


def _keys_left(written: Written, place: Location) -> pa.Array:
    """Return the keys of a file group after a write, which may have changed it."""
    if place.partition in written.partitions:
        return written.keys_after(place)
    view = FileSystemView.build(
        written.storage, written.config, written.timeline, partitions=[place.partition]
    )
    return slice_keys(written.storage, written.timeline, view.newest(place))


def check_single(parts: Iterable[pa.Array]) -> None:
    """Refuse keys that several file groups have; raises RepeatedKeyError.

    Args:
        parts: The keys of each file group, each once.
    """
    keys = joined(list(parts))
    if len(keys.unique()) < len(keys):
        counted = pc.value_counts(keys)
        repeated = counted.field("values").filter(pc.greater(counted.field("counts"), 1))
        raise repeated_key(repeated[0])


def repeated_key(key: pa.Scalar) -> RepeatedKeyError:
    """Return the error for a key, as bytes, that several file groups have."""
    text = key.as_py().decode(errors="replace")
    return RepeatedKeyError(
        f"record key {text!r} is stored in several file groups, and a record index has one place for each key. Copies "
        "in one partition go by call repair_deduplicate, copies in several by an upsert of the key with an index over all "
        f"partitions, such as {IndexOptions.TYPE.key}={IndexType.GLOBAL_SIMPLE}"
    )


def _millis(instant: str, timeline: Timeline) -> int:
    return int(parse_instant_time(instant, timeline.zone).timestamp() * 1000)


def _replaced_keys(written: Written, changes: Changes) -> dict[str, list[pa.Array]]:
    """Return the keys that the index has in the file groups that a write takes out, by `Changes.scope`."""
    going: dict[str, list[Location]] = defaultdict(list)
    for each in written.metadata.replaced:
        going[changes.scope(each[0])].append(Location(*each))
    found = {}
    for scope, places in going.items():
        keys = joined([written.keys_before(each) for each in places]).unique()
        found[scope] = [_Held.of(written.table, keys, _part_of(changes, scope)).at(keys, *places)]
    return found


def changes_of_clean(
    table: MetadataTable,
    definitions: IndexDefinitions,
    schema: str,
    record: Mapping[str, Any],
    table_schema: str | None,
) -> dict[str, Changes]:
    """Return what a clean changes.

    Args:
        record: ``HoodieCleanMetadata``.
        table_schema: Avro schema of the table; None where no write has any.
    """
    found = {name: Changes(schema) for name in table.partitions}  # no secondary index changes
    files = found[MetadataPartition.FILES.value]
    removed: dict[str, list[str]] = {}
    emptied = []
    for partition, outcome in (record.get("partitionMetadata") or {}).items():
        names = [path.rpartition("/")[2] for path in outcome.get("successDeleteFiles") or ()]
        removed[partition] = names
        if outcome.get("isPartitionDeleted"):
            emptied.append(partition)
            files.delete([partition or ROOT_PARTITION])
        elif names:
            files.put(
                {partition or ROOT_PARTITION: _files(_FILES_TYPE, dict.fromkeys(names, 0), deleted=True)}
            )
    if emptied:
        files.put({ALL_PARTITIONS: _files(_PARTITIONS_TYPE, dict.fromkeys(emptied, 0), deleted=True)})
    if table_schema is not None:
        columns = without_meta_fields(table_schema)
        for index in statistics_indexes(found, definitions, columns):
            for partition, names in removed.items():
                found[index.of_files].delete(index.file_keys(partition, names))
    filters = found.get(MetadataPartition.BLOOM_FILTERS.value)
    if filters is not None:
        for partition, names in removed.items():
            bases = [name for name in names if not name.startswith(".")]
            filters.delete(bloom_filter_key(partition, name) for name in bases)
    return found


def changes_of_rollback(
    table: MetadataTable, schema: str, record: Mapping[str, Any], *, is_restore: bool
) -> dict[str, Changes]:
    """Return what a rollback of version 6 adds to the list of files: logs with command blocks, and the logs that they make void.

    Args:
        record: ``HoodieRollbackMetadata``, or ``HoodieRestoreMetadata``, which has several.
    """
    found = {name: Changes(schema) for name in table.partitions}
    several = (
        [each for some in record["hoodieRestoreMetadata"].values() for each in some]
        if is_restore
        else [record]
    )
    sizes: dict[str, dict[str, int]] = {}
    for each in several:
        for partition, outcome in (each.get("partitionMetadata") or {}).items():
            for logs in (outcome.get("logFilesFromFailedCommit"), outcome.get("rollbackLogFiles")):
                named = {path.rpartition("/")[2]: size for path, size in (logs or {}).items()}
                sizes.setdefault(partition, {}).update(named)
    written = {partition: names for partition, names in sizes.items() if names}
    if written:
        records = files_records(written, sorted(written))
        found[MetadataPartition.FILES.value].put(records)
    return found
