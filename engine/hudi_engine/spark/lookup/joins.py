"""Locating keys of large batches: under a global index by Spark joins, in partitions too wide for one task by their owners.

For a join stored keys are read natively by Spark (two meta columns of the base files); slices that have logs are read by tasks.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.types import BooleanType, StructField, StructType

from hudi_engine.errors import HudiError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.index.filters.murmur import key_blocks
from hudi_engine.format.merge.combine_batch import combine_batch
from hudi_engine.format.merge.key_sets import are_distinct
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.parallel import WorkerError, typed_stage
from hudi_engine.format.schema.casting import cast_batch
from hudi_engine.format.schema.meta_fields import META_FIELDS, PARTITION_PATH, RECORD_KEY
from hudi_engine.format.schema.time_units import for_spark
from hudi_engine.spark.read.collect import worker_errors_raised
from hudi_engine.spark.read.spark_read import literal_paths, map_slices, slices_frame
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.lookup.across_partitions import settle, stored_columns
from hudi_engine.table.lookup.partition import repeated, repeats
from hudi_engine.table.lookup.tagging import keys_of_file, stored_keys_of
from hudi_engine.table.lookup.unit import (
    BUCKET,
    DELETE_FLAG,
    INSERT_FLAG,
    ORDER,
    PartitionUnit,
    UnitPlan,
    in_order,
    split_by_partition,
)
from hudi_engine.table.snapshot.native import V1_PARQUET
from hudi_engine.table.state import TableState

if TYPE_CHECKING:
    import pandas

MAX_KEYS = 8_000_000
"""Of more keys the hashes, 12 bytes a key with their files, would be too much for each worker to hold."""

Hashes = npt.NDArray[np.uint64]
_NO_OWNER = -1
_SECOND = np.uint32(0x9E3779B9)
_BLOB = pa.schema([("number", pa.int32()), ("found", pa.binary())])


# Owners are found by hashes of the keys, so that no stored key is shuffled, in three passes: tasks hash the keys of the batch; a
# task for each file slice returns which of those hashes its stored keys meet; the rows of the batch find their file by their hash.
# The task that writes a file checks whether a key is really stored in it, and `Owners.column` whether the file is of the row's
# partition, as partitions can have one hash. Only a hash that two slices meet is left to a join.


@dataclass(frozen=True, eq=False)
class KeyHashes:
    """Sorted hashes of a batch's keys; ``starts`` has for each value of their upper bits the place of the first not smaller one."""

    hashes: Hashes
    starts: npt.NDArray[np.int32]
    shift: np.uint64

    @classmethod
    def of(cls, hashes: Hashes) -> KeyHashes:
        """Make it of hashes in any order."""
        distinct = np.unique(hashes)
        width = max(1, len(distinct).bit_length())
        shift = np.uint64(64 - width)
        starts = np.searchsorted(distinct, np.arange(1 << width, dtype=np.uint64) << shift)
        return cls(distinct, starts.astype(np.int32), shift)

    def places(self, hashes: Hashes) -> npt.NDArray[np.int32]:
        """Return the place of each hash, -1 where it is not there."""
        found = np.full(len(hashes), _NO_OWNER, np.int32)
        if not len(self.hashes):
            return found
        rows = np.arange(len(hashes))
        place = self.starts[hashes >> self.shift]
        while len(rows):
            inside = place < len(self.hashes)
            rows, hashes, place = rows[inside], hashes[inside], place[inside]
            there = self.hashes[place]
            hit = there == hashes
            found[rows[hit]] = place[hit]
            later = there < hashes
            rows, hashes, place = rows[later], hashes[later], place[later] + 1
        return found


@dataclass(frozen=True, eq=False)
class Owners:
    """The number of the file slice that meets each hash of a batch, -1 for none; ``repeated_rows`` have the key of another row."""

    keys: KeyHashes
    numbers: npt.NDArray[np.int32]
    slices: tuple[FileSlice, ...]
    repeated_rows: int

    def counts(self) -> list[tuple[FileSlice, int]]:
        """Return the slices that some key is in, with the number of keys."""
        counted = np.bincount(self.numbers[self.numbers >= 0], minlength=len(self.slices))
        return [(each, int(count)) for each, count in zip(self.slices, counted, strict=True) if count]

    def column(
        self, spark: SparkSession, frame: DataFrame, names: Sequence[str], kept: list[Callable[[], object]]
    ) -> Column:
        """Return for each row of the batch the name of the slice that owns its key, null for none; ``kept`` frees the hashes."""
        import pandas

        homes = pa.array([each.partition for each in self.slices], pa.string())
        texts = pa.array(names, pa.string())
        shared = spark.sparkContext.broadcast((self.keys, self.numbers, texts, homes))
        kept.append(shared.destroy)

        def owner(keys: pandas.Series, partitions: pandas.Series) -> pandas.Series:
            try:
                own_keys, numbers, texts, homes = shared.value
                paths = pa.array(partitions, pa.string())
                found = np.full(len(keys), _NO_OWNER, np.int32)
                there, hashes = _hashed(pa.array(keys, pa.string()), paths)
                places = own_keys.places(hashes)
                found[there[places >= 0]] = numbers[places[places >= 0]]
                slices = pa.array(found, mask=found < 0)
                at_home = pc.equal(homes.take(slices), paths)
                return pc.if_else(at_home, texts.take(slices), pa.scalar(None, pa.string())).to_pandas()
            except HudiError as error:
                raise WorkerError(error) from error

        series = pandas.Series
        owner.__annotations__.update({"keys": series, "partitions": series, "return": series})
        as_function: Any = pandas_udf
        owned: Column = as_function(owner, "string")(_looked_up(frame), F.col(PARTITION_PATH))
        return owned


def owners(
    spark: SparkSession,
    context: WriteContext,
    units: Sequence[PartitionUnit],
    frame: DataFrame,
    rows: Mapping[str, int],
    *,
    once: bool,
) -> Owners | None:
    """Find the slices that hold the keys of a batch (two Spark jobs); None for too many keys, or a hash that is met twice.

    Args:
        once: Whether a key must not be stored twice in one file either.
    """
    if not 0 < sum(rows.values()) <= MAX_KEYS:
        return None
    hashes, looked_up = _batch_hashes(frame)
    keys = KeyHashes.of(hashes)
    slices = [(unit, each) for unit in units for each in unit.slices]
    numbers = np.full(len(keys.hashes), _NO_OWNER, np.int32)
    for number, places in _met(spark, context, slices, keys, once):
        if once and len(np.unique(places)) < len(places):
            return None
        if (numbers[places] != _NO_OWNER).any():
            return None
        numbers[places] = number
    return Owners(keys, numbers, tuple(each for _, each in slices), looked_up - len(numbers))


def hashes_of(keys: pa.Array, partitions: pa.Array) -> Hashes:
    """Return a hash of 64 bits for each key in its partition."""
    encoded = partitions if pa.types.is_dictionary(partitions.type) else partitions.dictionary_encode()
    seeds = np.array([zlib.crc32(text.encode()) for text in encoded.dictionary.to_pylist()], np.uint32)
    seed = seeds[encoded.indices.to_numpy(zero_copy_only=False)]
    found = np.zeros(len(keys), np.uint64)
    for block in key_blocks(keys):
        first = block.murmur2(seed[block.rows])
        second = block.murmur2(first ^ _SECOND)
        found[block.rows] = (first.astype(np.uint64) << np.uint64(32)) | second
    return found


def _hashed(keys: pa.Array, partitions: pa.Array) -> tuple[npt.NDArray[np.int64], Hashes]:
    """Return the numbers of the rows that have a key, and their hashes."""
    there = np.flatnonzero(keys.is_valid().to_numpy(zero_copy_only=False))
    rows = pa.array(there)
    return there, hashes_of(keys.take(rows), partitions.take(rows))


def _looked_up(frame: DataFrame) -> Column:
    """Return the record key of rows that are looked up, null for the others."""
    key = F.col(RECORD_KEY)
    return F.when(~F.col(INSERT_FLAG), key) if INSERT_FLAG in frame.columns else key


def _batch_hashes(frame: DataFrame) -> tuple[Hashes, int]:
    """Return the hashes of the keys that are looked up, and how many rows have one."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows, hashes = _hashed(batch.column(0), batch.column(1))
            yield _blob(len(rows), np.unique(hashes))

    keys = frame.select(_looked_up(frame), PARTITION_PATH)
    with worker_errors_raised():
        found = keys.mapInArrow(typed_stage(run), "number int, found binary").collect()
    parts = [np.frombuffer(row["found"], np.uint64) for row in found]
    hashes = np.concatenate(parts) if parts else np.zeros(0, np.uint64)
    return hashes, sum(row["number"] for row in found)


def _met(
    spark: SparkSession,
    context: WriteContext,
    slices: Sequence[tuple[PartitionUnit, FileSlice]],
    keys: KeyHashes,
    once: bool,
) -> Iterator[tuple[int, npt.NDArray[np.int32]]]:
    """Yield for each slice its number and the places of the hashes that its keys have."""
    shared, read = spark.sparkContext.broadcast(keys), context.read
    tasks = [(number, each, each.file_id in unit.log_keys) for number, (unit, each) in enumerate(slices)]

    def look(task: tuple[int, FileSlice, bool]) -> pa.Table:
        number, file_slice, log_keys = task
        stored = _keys_of(read, file_slice, log_keys, once)
        partition = pa.DictionaryArray.from_arrays(
            pa.repeat(pa.scalar(0, pa.int32()), len(stored)), pa.array([file_slice.partition])
        )
        places = shared.value.places(hashes_of(stored, partition))
        return pa.Table.from_batches([_blob(number, places[places >= 0])])

    try:
        with worker_errors_raised():
            rows = map_slices(spark, tasks, _BLOB, look).collect()
        for row in rows:
            yield row["number"], np.frombuffer(row["found"], np.int32)
    finally:
        shared.destroy()


def _keys_of(read: ReadContext, file_slice: FileSlice, log_keys: bool, once: bool) -> pa.Array:
    """Return the keys that a slice holds, deleted ones of its base file too; those of several rows as often with ``once``."""
    if file_slice.base_file is not None and not file_slice.log_files:
        return keys_of_file(read, file_slice.base_file).combine_chunks()
    keys, _, live = stored_keys_of(read, file_slice, log_keys=log_keys)
    return pa.concat_arrays([keys, repeats(live)]) if once else keys


def _blob(number: int, values: npt.NDArray[Any]) -> pa.RecordBatch:
    columns = [pa.array([number], pa.int32()), pa.array([values.tobytes()], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, schema=_BLOB)


_STORED_PREFIX = "__hudi_stored_"
_KEY, _OLD, _FILE, _SETTLED = "__hudi_key", "__hudi_old", "__hudi_file", "__hudi_settled"
_ALIVE, _LIVES, _FIRST = "__hudi_alive", "__hudi_lives", "__hudi_first"
_STORED = "u:"
"""What the bucket of a file group begins with, before its partition path and file id."""
_SHARES = 128
"""How finely the new rows of a partition are divided over files with room and new ones."""

PlacesOfNew = Callable[[PartitionUnit, int], tuple[Sequence[tuple[str, int]], int]]
"""For a partition and the number of its new rows: file ids of small files with the rows each takes, and how many new files."""

_STORED_SCHEMA = pa.schema(
    [(_KEY, pa.string()), (_OLD, pa.string()), (_FILE, pa.string()), (_ALIVE, pa.bool_())]
)


NEW_ROWS = "i:"
"""What the bucket of new rows begins with, before the partition path."""
_PARTS, _OF = "__hudi_parts", "__hudi_of"


def combine_by_key(frame: DataFrame, context: WriteContext, plan: UnitPlan) -> DataFrame:
    """Merge rows of the batch with the same key into one, if the write needs it; one shuffle by key."""
    if not plan.combine or RECORD_KEY not in frame.columns:
        return frame
    return combined(frame, context.config, context.schema, everywhere=plan.index.is_global)


def combined(frame: DataFrame, config: TableConfig, schema: pa.Schema, *, everywhere: bool) -> DataFrame:
    """Merge rows with the same key into one; one shuffle by key.

    Args:
        frame: Rows with key columns, and their order where it matters.
        everywhere: Whether a key is the same in whatever partition it comes, as with a global index.
    """
    names = [name for name in frame.columns if name != ORDER]
    data = pa.schema([field for field in schema if field.name in names and field.name not in META_FIELDS])

    def combine(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = list(batches)
        if not held:
            return
        table = in_order(cast_batch(pa.Table.from_batches(held), data))
        parts = [table]
        if not everywhere and not are_distinct(table.column(RECORD_KEY)):
            parts = [rows for _, rows in split_by_partition(table, PARTITION_PATH)]
        for part in parts:
            yield from for_spark(combine_batch(part, config).select(names)).combine_chunks().to_batches()

    return frame.repartition(RECORD_KEY).mapInArrow(typed_stage(combine), frame.drop(ORDER).schema)


def stored_keys(
    spark: SparkSession, context: WriteContext, units: Sequence[PartitionUnit], *, copies: bool = False
) -> tuple[DataFrame, bool]:
    """Return every stored key of some partitions with its file id, and whether deleted keys may be among them.

    Column ``__hudi_alive`` is true for a key that exists after the merge; one row for each key, or for each row with ``copies``.
    """
    slices = [(unit, each) for unit in units for each in unit.slices]
    paths = [
        context.storage.uri(each.base_file.path)
        for _, each in slices
        if each.base_file is not None and not each.log_files
    ]
    scan = literal_paths(spark.read.schema(f"`{RECORD_KEY}` string, `{PARTITION_PATH}` string"))
    plain = None
    if paths:
        plain = (
            scan.format(V1_PARQUET)
            .load(paths)
            .select(
                F.col(RECORD_KEY).alias(_KEY),
                F.col(PARTITION_PATH).alias(_OLD),
                F.element_at(F.split(F.col("_metadata.file_name"), "_"), 1).alias(_FILE),
                F.lit(True).alias(_ALIVE),
            )
        )
    logged = [(each, each.file_id in unit.log_keys) for unit, each in slices if each.log_files]
    if plain is not None and not logged:
        return plain, False
    read = context.read
    # Spark knows nothing of the size of what tasks return, takes it for tiny, and would broadcast it.
    found = map_slices(
        spark,
        logged,
        _STORED_SCHEMA,
        lambda task: _logged_keys(read, task[0], log_keys=task[1], copies=copies),
    ).hint("merge")
    return (found if plain is None else plain.unionByName(found)), bool(logged)


def _logged_keys(read: ReadContext, file_slice: FileSlice, *, log_keys: bool, copies: bool) -> pa.Table:
    keys, alive, live = stored_keys_of(read, file_slice, log_keys=log_keys)
    if copies:
        several = repeats(live)
        keys, alive = (
            pa.concat_arrays([keys, several]),
            pa.concat_arrays([alive, pa.repeat(True, len(several))]),
        )
    count = len(keys)
    columns = [keys, pa.repeat(file_slice.partition, count), pa.repeat(file_slice.file_id, count), alive]
    return pa.Table.from_arrays(columns, schema=_STORED_SCHEMA)


def _only_alive(joined: DataFrame) -> DataFrame:
    """Of several slices that hold a row's key, leave out those that deleted it; when all did, the first one stays."""
    key = Window.partitionBy(RECORD_KEY, PARTITION_PATH)
    marked = joined.withColumn(_LIVES, F.max(_ALIVE).over(key)).withColumn(_FIRST, F.min(_FILE).over(key))
    counts = F.col(_FILE).isNull() | F.col(_ALIVE) | (~F.col(_LIVES) & (F.col(_FILE) == F.col(_FIRST)))
    return marked.where(counts).drop(_LIVES, _FIRST)


def locate(
    spark: SparkSession,
    state: TableState,
    context: WriteContext,
    plan: UnitPlan,
    units: Mapping[str, PartitionUnit],
    frame: DataFrame,
    kept: list[Callable[[], object]],
) -> tuple[DataFrame, dict[str, int]]:
    """Global index: give every row its final partition, and add deletes for the partitions keys move away from.

    Args:
        kept: What frees the frames that are cached here is added to it.

    Returns:
        The rows with a delete flag, and their number by partition.
    """
    slices = [each for unit in units.values() for each in unit.slices]
    wanted = stored_columns(context, plan)
    stored = slices_frame(spark, state, context.read, slices).select(
        *[F.col(f"`{name}`").alias(f"{_STORED_PREFIX}{number}") for number, name in enumerate(wanted)]
    )
    key, partition = (F.col(f"{_STORED_PREFIX}{number}") for number in (0, 1))
    elsewhere = (F.col(RECORD_KEY) == key) & (F.col(PARTITION_PATH) != partition)
    if INSERT_FLAG in frame.columns:
        elsewhere = elsewhere & ~F.col(INSERT_FLAG)
    pairs = frame.join(stored, elsewhere)
    pairs = pairs.repartition(RECORD_KEY).persist()
    kept.append(pairs.unpersist)
    settled = _settled(pairs, frame, context, plan, wanted)
    known = pairs.select(key.alias(_SETTLED)).distinct()
    rest = frame.join(known, F.col(RECORD_KEY) == F.col(_SETTLED), "left_anti")
    final = rest.withColumn(DELETE_FLAG, F.lit(False)).unionByName(settled).persist()
    kept.append(final.unpersist)
    return final, _rows_by(final, PARTITION_PATH)


def _rows_by(frame: DataFrame, column: str) -> dict[str, int]:
    with worker_errors_raised():
        counted = frame.groupBy(column).count().collect()
    return {row[column]: row["count"] for row in counted}


def _settled(
    pairs: DataFrame, frame: DataFrame, context: WriteContext, plan: UnitPlan, wanted: Sequence[str]
) -> DataFrame:
    """Yield rows whose key is stored elsewhere, after `settle`; pairs of a key are in one task."""
    names = frame.columns
    data = pa.schema(
        [field for field in context.schema if field.name in names and field.name not in META_FIELDS]
    )
    old = pa.schema([context.schema.field(name) for name in wanted])

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = list(batches)
        if not held:
            return
        table = pa.Table.from_batches(held)
        stored = table.select([f"{_STORED_PREFIX}{number}" for number in range(len(wanted))])
        stored = cast_batch(stored.rename_columns(list(wanted)), old)
        rows = cast_batch(table.select(names), data).select(names)
        yield from for_spark(settle(context, plan, rows, stored)).combine_chunks().to_batches()

    return pairs.mapInArrow(
        typed_stage(run), StructType([*frame.schema.fields, StructField(DELETE_FLAG, BooleanType())])
    )


@dataclass(frozen=True)
class TaggedRows:
    """Rows with their bucket.

    Args:
        units: What is known of each bucket.
        buckets: The buckets, largest first.
        count: How many rows there are.
    """

    rows: DataFrame
    units: Mapping[str, PartitionUnit]
    buckets: Sequence[str]
    count: int


def tag_files(
    spark: SparkSession,
    context: WriteContext,
    plan: UnitPlan,
    units: Mapping[str, PartitionUnit],
    batch: tuple[DataFrame, Mapping[str, int], list[Callable[[], object]]],
    places: PlacesOfNew,
) -> TaggedRows:
    """Wide partitions: a bucket is a file group, and new rows are spread over small files with room and new files.

    Args:
        batch: The rows, their number by partition, and the list that takes what frees all that is kept here.
        places: Where new rows of a partition go.
    """
    frame, rows, kept = batch
    count = sum(rows.values())
    touched = [units[partition] for partition in rows if partition in units]
    found = owners(spark, context, touched, frame, rows, once=plan.single_rows)
    if found is not None:
        names = [_bucket_of(each) for each in found.slices]
        tagged = frame.withColumn(BUCKET, _bucket(found.column(spark, frame, names, kept)))
        counts = _counts(found, rows, distinct=plan.combine)
    else:
        tagged = _joined(spark, context, plan, touched, frame).persist()
        kept.append(tagged.unpersist)
        counts = _rows_by(tagged, BUCKET)
        count = sum(counts.values())
    buckets, known, parts = _plan_buckets(units, counts, places)
    return TaggedRows(spread_new_rows(tagged, parts), known, buckets, count)


def _joined(
    spark: SparkSession,
    context: WriteContext,
    plan: UnitPlan,
    units: Sequence[PartitionUnit],
    frame: DataFrame,
) -> DataFrame:
    """Return the rows, combined by key, with their bucket; a row whose key several files hold comes once for each."""
    frame = combine_by_key(frame, context, plan)
    stored, some_deleted = stored_keys(spark, context, units, copies=plan.single_rows)
    same = (F.col(RECORD_KEY) == F.col(_KEY)) & (F.col(PARTITION_PATH) == F.col(_OLD))
    if INSERT_FLAG in frame.columns:
        same = same & ~F.col(INSERT_FLAG)
    joined = frame.join(stored, same, "left")
    if some_deleted:
        joined = _only_alive(joined)
    if plan.single_rows:
        _refuse_repeated(joined)
    owner = F.concat(F.lit(_STORED), F.col(PARTITION_PATH), F.lit("|"), F.col(_FILE))
    return joined.withColumn(BUCKET, _bucket(owner)).drop(_KEY, _OLD, _FILE, _ALIVE)


def _bucket(owner: Column) -> Column:
    """Return the bucket of rows: that of the file that owns their key, or that of the new rows of their partition."""
    return F.coalesce(owner, F.concat(F.lit(NEW_ROWS), F.col(PARTITION_PATH)))


def _bucket_of(file_slice: FileSlice) -> str:
    return f"{_STORED}{file_slice.partition}|{file_slice.file_id}"


def _counts(found: Owners, rows: Mapping[str, int], *, distinct: bool) -> dict[str, int]:
    """Return the rows of each bucket, about; with ``distinct`` of the rows with one key only one comes to be written."""
    owned, rest = found.counts(), dict(rows)
    for each, count in owned:
        rest[each.partition] = max(0, rest[each.partition] - count)
    new = sum(rest.values())
    share = max(0, new - found.repeated_rows) / new if distinct and new else 1.0
    counts = {_bucket_of(each): count for each, count in owned}
    fresh = {f"{NEW_ROWS}{name}": math.ceil(count * share) for name, count in rest.items()}
    return counts | {bucket: count for bucket, count in fresh.items() if count}


def _refuse_repeated(joined: DataFrame) -> None:
    """Refuse singly selected rows with a key that is stored more than once; raises RepeatedKeyError."""
    alive = joined.where(F.col(_FILE).isNotNull() & F.col(_ALIVE))
    with worker_errors_raised():
        several = alive.groupBy(RECORD_KEY, PARTITION_PATH).count().where("count > 1").limit(1).collect()
    for row in several:
        raise repeated(row[RECORD_KEY], row[PARTITION_PATH])


def _plan_buckets(
    units: Mapping[str, PartitionUnit], counts: Mapping[str, int], places: PlacesOfNew
) -> tuple[list[str], dict[str, PartitionUnit], dict[str, list[str]]]:
    """Return the buckets, largest first, what is known of each, and those that each partition's new rows are spread over."""
    sizes: dict[str, float] = {}
    known: dict[str, PartitionUnit] = {}
    parts: dict[str, list[str]] = {}
    slices = {_bucket_of(each): (unit, each) for unit in units.values() for each in unit.slices}

    def add(bucket: str, rows: float, new: PartitionUnit) -> None:
        known[bucket] = new
        if bucket in slices:
            unit, chosen = slices[bucket]
            known[bucket] = replace(unit, slices=(chosen,), exists=True)
            sizes.setdefault(bucket, chosen.base_file.size if chosen.base_file else 0)
        sizes[bucket] = sizes.get(bucket, 0) + rows

    for bucket, count in counts.items():
        partition = bucket.removeprefix(NEW_ROWS)
        unit = units.get(partition) or PartitionUnit(partition)
        new = PartitionUnit(partition, exists=unit.exists)
        if bucket in slices:
            add(bucket, count, new)
            continue
        rooms, several = places(unit, count)
        files = [(f"{_STORED}{partition}|{file_id}", rows) for file_id, rows in rooms]
        parts[partition] = _weighted(files, new_row_buckets(partition, several), count)
        for each in dict.fromkeys(parts[partition]):
            add(each, count * parts[partition].count(each) / len(parts[partition]), new)
    return sorted(sizes, key=lambda each: (-sizes[each], each)), known, parts


def _weighted(rooms: Sequence[tuple[str, int]], new: Sequence[str], count: int) -> list[str]:
    """Return buckets, each as often as its share of the rows; a file with room gets rather less than it takes."""
    if not rooms:
        return list(new)
    if not new:
        new, rooms = [rooms[-1][0]], rooms[:-1]
    shares = [(bucket, int(_SHARES * (rows - 3 * rows**0.5) / count)) for bucket, rows in rooms]
    weighted = [bucket for bucket, share in shares for _ in range(share)]
    rest = max(len(new), _SHARES - len(weighted))
    return [*weighted, *(new[number % len(new)] for number in range(rest))]


def new_row_buckets(partition: str, parts: int) -> list[str]:
    """Return the buckets that the new rows of a partition are spread over."""
    return [f"{NEW_ROWS}{partition}|{number}" for number in range(parts)]


def spread_new_rows(
    frame: DataFrame, parts: Mapping[str, Sequence[str]], spread: Column | None = None
) -> DataFrame:
    """Give rows whose bucket is that of a partition's new rows one of several; rows of a key get the same.

    Args:
        parts: The buckets by partition path; one that is named several times takes as many shares of the rows. They are joined,
            so that the plan stays small.
        spread: A number of each row that decides where it goes, modulo the shares; None for a hash of the key, and any number
            where a row has none yet.
    """
    columns = frame.columns
    own = [
        (f"{NEW_ROWS}{name}", list(found))
        for name, found in parts.items()
        if list(found) != new_row_buckets(name, 1)
    ]
    target = F.concat(F.col(BUCKET), F.lit("|0"))
    if own:
        targets = frame.sparkSession.createDataFrame(own, f"{_OF} string, {_PARTS} array<string>")
        frame = frame.join(F.broadcast(targets), F.col(BUCKET) == F.col(_OF), "left")
        if spread is None:
            spread = F.monotonically_increasing_id()
            if RECORD_KEY in columns:
                # null is the key of rows that get theirs when they are written
                spread = F.when(F.col(RECORD_KEY).isNotNull(), F.xxhash64(RECORD_KEY)).otherwise(spread)
        place = F.pmod(spread.cast("long"), F.size(_PARTS).cast("long")).cast("int")
        target = F.coalesce(F.col(_PARTS)[place], target)
    bucket = F.when(F.col(BUCKET).startswith(NEW_ROWS), target).otherwise(F.col(BUCKET))
    return frame.select(*[bucket.alias(name) if name == BUCKET else f"`{name}`" for name in columns])
