"""Which file group holds each key of a large batch, found by hashes of the keys, so that no stored key is shuffled.

Three passes: tasks hash the keys of the batch; a task for each file slice reads the stored keys and returns which of those
hashes it meets; the rows of the batch then find their file by their hash. The task that writes a file checks whether a key is
really stored in it. Only a hash that two slices meet is not decided here: a key that is stored twice, or two keys with one hash.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf

from hudi_engine.errors import HudiError
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.index.filters.murmur import key_blocks
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.parallel import WorkerError, typed_stage
from hudi_engine.format.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_engine.spark.read.collect import worker_errors_raised
from hudi_engine.spark.read.spark_read import map_slices
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.lookup.repeated_keys import repeats
from hudi_engine.table.lookup.tagging import keys_of_file, stored_keys_of
from hudi_engine.table.lookup.unit import INSERT_FLAG, PartitionUnit

if TYPE_CHECKING:
    import pandas

MAX_KEYS = 8_000_000
"""Of more keys the hashes, 12 bytes a key with their files, would be too much for each worker to hold."""

Hashes = npt.NDArray[np.uint64]
_NO_OWNER = -1
_SECOND = np.uint32(0x9E3779B9)
_BLOB = pa.schema([("number", pa.int32()), ("found", pa.binary())])


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
