"""Reading a table as a Spark DataFrame: base files natively, logs merged by tasks that read only what they must.

A row of a base file never passes through Python unless Spark cannot read the file under the table's
schema (renamed columns, widened types on Spark 3.5, dropped partition columns).
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F

from hudi_engine.format.config.options import Options
from hudi_engine.format.filegroup.base_file import BaseFile
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.merge.slice_reader import read_slice, read_unmerged_logs, resolve_delta
from hudi_engine.format.merge.table_reader import as_its_readers_do
from hudi_engine.format.parallel import typed_stage
from hudi_engine.format.schema.meta_fields import META_SCHEMA
from hudi_engine.format.schema.time_units import for_spark
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.spark.read.session import prepare_session
from hudi_engine.spark.schema.spark_types import arrow_to_spark
from hudi_engine.table.data_skipping.plan import plan_read
from hudi_engine.table.data_skipping.predicate import PruningPredicate
from hudi_engine.table.snapshot.layout import choose_layout, column_is_null
from hudi_engine.table.snapshot.manifest_file import (
    FIRST_NUMBER,
    Layout,
    ManifestEntry,
    ManifestFolder,
    Stamp,
    format_line,
    format_manifest,
)
from hudi_engine.table.snapshot.native import (
    AS_STORED,
    METADATA_COLUMN,
    V1_PARQUET,
    native_instants,
    release_of,
)
from hudi_engine.table.state import TableState

SNAPSHOT, READ_OPTIMIZED, SKIP_MERGE, LOG_ONLY = "payload_combine", "base_only", "skip_merge", "log_only"
UNMERGED_LOGS = "unmerged_logs"
_FILE, _ROW = "__hudi_file", "__hudi_row"
_ROWS_SENT = 65536
_MAX_BROADCAST_BYTES = 512 << 20
"""Bytes of logs; the places of the rows that larger ones replace are joined by sorting, for every executor would hold them."""
_TASKS_SENT = 32
"""So many tasks go with the function itself; of more a worker reads the list once."""
_Item = TypeVar("_Item")


def snapshot_frame(
    spark: SparkSession,
    state: TableState,
    options: Options,
    *,
    as_of: str | None = None,
    merge_type: str = SNAPSHOT,
    predicate: PruningPredicate | None = None,
) -> DataFrame:
    """Return rows of the table, the five meta columns first.

    Args:
        as_of: Newest requested time that counts, None for now.
        merge_type: ``payload_combine`` (snapshot), ``base_only`` (read optimized), ``skip_merge``, ``log_only`` or
            ``unmerged_logs``.
        predicate: Condition of a snapshot; files without such rows are skipped, their other rows are not.

    Raises:
        TimelineError: A clean has deleted files of the point in time.
        CorruptTableError: A file of the newest commit, or of an earlier state, is missing.
    """
    prepare_session(spark)
    state.timeline.check_readable(as_of)
    data_schema = state.readable_schema(as_of)
    if data_schema is None:
        return spark.createDataFrame([], arrow_to_spark(META_SCHEMA))
    read = as_its_readers_do(state.read_context(data_schema, options, as_of=as_of), state.timeline)
    if predicate is not None:
        plan = plan_read(state, read, predicate, options)
        return slices_frame(spark, state, read, plan.slices)
    view = state.whole_view(as_of=as_of)
    slices = view.latest_slices()
    if merge_type == UNMERGED_LOGS:
        logged = [each for each in slices if each.log_files]
        return map_slices(spark, logged, read.schema, lambda each: read_unmerged_logs(read, each))
    if merge_type == READ_OPTIMIZED:
        slices = [
            FileSlice(base.partition, base.file_id, base.instant, base, ())
            for base in view.latest_base_files()
        ]
    return slices_frame(spark, state, read, slices, merge_type=merge_type)


def slices_frame(
    spark: SparkSession,
    state: TableState,
    read: ReadContext,
    slices: Sequence[FileSlice],
    *,
    merge_type: str = SNAPSHOT,
) -> DataFrame:
    """Return rows of some slices, in the columns of ``read``; see snapshot_frame."""
    native = _native_instants(spark, state, read, slices)
    frames = [
        *_native_frames(spark, state, read, [each for each in slices if _is_of(each, native)], merge_type),
        *_python_frames(spark, read, slices, merge_type, native),
    ]
    if not frames:
        return spark.createDataFrame([], arrow_to_spark(read.schema))
    result = frames[0]
    for frame in frames[1:]:
        result = result.unionByName(frame)
    return result


def _native_frames(
    spark: SparkSession, state: TableState, read: ReadContext, slices: Sequence[FileSlice], merge_type: str
) -> Iterator[DataFrame]:
    """Read base files by Spark, and in a snapshot what their logs make of them."""
    if merge_type == LOG_ONLY:
        return
    plain = [each for each in slices if merge_type != SNAPSHOT or not each.log_files]
    if plain:
        bases = [each.base_file for each in plain if each.base_file is not None]
        yield listed_files(spark, state, read.schema, bases)
    if merge_type == SNAPSHOT:
        logged = [each for each in slices if each.log_files]
        if logged:
            yield _merged(spark, state, read, logged)


def _python_frames(
    spark: SparkSession,
    read: ReadContext,
    slices: Sequence[FileSlice],
    merge_type: str,
    native_instants: frozenset[str],
) -> Iterator[DataFrame]:
    """Read in Python what Spark cannot read itself: base files of other types, and logs."""
    tasks = []
    for each in slices:
        native = _is_of(each, native_instants)
        if merge_type == LOG_ONLY or (merge_type == SKIP_MERGE and native):
            if each.log_files:
                tasks.append((each, LOG_ONLY))
        elif not native:
            tasks.append((each, merge_type))
    if tasks:
        yield map_slices(
            spark, tasks, read.schema, lambda task: read_slice(read, task[0], merge_type=task[1])
        )


def _native_instants(
    spark: SparkSession, state: TableState, read: ReadContext, slices: Sequence[FileSlice]
) -> frozenset[str]:
    """Return the instants whose base files Spark reads itself."""
    if read.schema_history is not None:
        return frozenset()
    if any(name.lower() == METADATA_COLUMN for name in read.schema.names) and any(
        each.log_files for each in slices
    ):
        return frozenset()  # such a column hides Spark's own, by which rows that logs replace are found
    bases = [each.base_file for each in slices if each.base_file is not None]
    release = release_of(spark.version)
    return native_instants(state.storage, state.config, bases, read.schema, spark=release)


def _is_of(each: FileSlice, instants: frozenset[str]) -> bool:
    return each.base_file is not None and each.base_file.instant in instants


def literal_paths(reader: DataFrameReader) -> DataFrameReader:
    r"""Return a reader that takes paths as they are: no partition columns from folders, no meaning of ``*``, ``[`` or ``\\``."""
    return reader.options(recursiveFileLookup="true", __globPaths__="false", **AS_STORED)


def _merged(
    spark: SparkSession, state: TableState, read: ReadContext, slices: Sequence[FileSlice]
) -> DataFrame:
    """Return base rows that no log touches, read natively, plus the rows the logs make; joined by position in the base file."""
    numbered = list(enumerate(slices))
    bases = [
        replace(each.base_file, modified_ms=number) for number, each in numbered if each.base_file is not None
    ]
    base = listed_files(spark, state, read.schema, bases)
    names = base.columns
    positioned = base.select(
        *[F.col(f"`{name}`") for name in names],
        F.unix_millis(F.col("_metadata.file_modification_time")).alias(_FILE),
        F.col("_metadata.row_index").alias(_ROW),
    )
    delta_schema = read.schema.append(pa.field(_FILE, pa.int64())).append(pa.field(_ROW, pa.int64()))
    delta = map_slices(spark, numbered, delta_schema, lambda each: _delta_rows(read, *each))
    masked = delta.where(F.col(_ROW).isNotNull()).select(_FILE, _ROW)
    log_bytes = sum(log.size for each in slices for log in each.log_files)
    by = "broadcast" if log_bytes <= _MAX_BROADCAST_BYTES else "merge"
    kept = positioned.join(masked.hint(by), [_FILE, _ROW], "left_anti").select(
        *[f"`{name}`" for name in names]
    )
    return kept.unionByName(delta.where(F.col(_ROW).isNull()).select(*[f"`{name}`" for name in names]))


def _delta_rows(read: ReadContext, number: int, file_slice: FileSlice) -> pa.Table:
    delta = resolve_delta(read, file_slice)
    live = delta.live.append_column(_FILE, pa.nulls(delta.live.num_rows, pa.int64()))
    live = live.append_column(_ROW, pa.nulls(live.num_rows, pa.int64()))
    count = len(delta.masked_positions)
    columns = {field.name: pa.nulls(count, field.type) for field in read.schema}
    masked = pa.table(
        {**columns, _FILE: pa.repeat(number, count), _ROW: delta.masked_positions.cast(pa.int64())}
    )
    return pa.concat_tables([live, masked.select(live.column_names).cast(live.schema)])


def map_slices(
    spark: SparkSession,
    tasks: Sequence[_Item],
    schema: pa.Schema,
    function: Callable[[_Item], pa.Table],
    *,
    at_most: int | None = None,
) -> DataFrame:
    """Run a slice reader over tasks on the executors; one Spark task a slice up to the parallelism, and up to ``at_most``."""
    if not tasks:
        return spark.createDataFrame([], arrow_to_spark(schema))
    count = len(tasks)
    shared = spark.sparkContext.broadcast(list(tasks)) if count > _TASKS_SENT else None
    sent = list(tasks) if shared is None else []

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        items = sent if shared is None else shared.value
        for batch in batches:
            for number in batch.column(0).to_pylist():
                table = for_spark(function(items[number]))
                # piece by piece: a copy of all rows would be as much again
                for start in range(0, max(table.num_rows, 1), _ROWS_SENT):
                    yield from table.slice(start, _ROWS_SENT).combine_chunks().to_batches()

    parallel = min(count, max(1, spark.sparkContext.defaultParallelism * 4), at_most or count)
    return spark.range(0, count, 1, parallel).mapInArrow(typed_stage(run), arrow_to_spark(schema))


def listed_files(
    spark: SparkSession, state: TableState, schema: pa.Schema, bases: Sequence[BaseFile]
) -> DataFrame:
    """Return rows of base files that Spark can read itself, in the columns of ``schema``."""
    folder = LocalStorage(tempfile.mkdtemp(dir=_folder()))
    layout = _layout(state, schema, bases)
    storage = state.storage
    lines = [
        format_line(ManifestEntry(storage.uri(base.path), base.size, base.modified_ms)) for base in bases
    ]
    stamp = Stamp(storage.uri(), state.config.table_type.value, "", ())
    ManifestFolder(folder, layout).create(FIRST_NUMBER, format_manifest(stamp, lines))
    reader = spark.read.format(V1_PARQUET).schema(arrow_to_spark(schema)).options(**AS_STORED)
    if layout is Layout.FLAT:
        reader = reader.option("recursiveFileLookup", "true")
    try:
        frame = reader.load(folder.uri(layout.folder))
    finally:
        shutil.rmtree(folder.base, ignore_errors=True)
    return frame.select(*[f"`{name.replace('`', '``')}`" for name in schema.names])


def _layout(state: TableState, schema: pa.Schema, bases: Sequence[BaseFile]) -> Layout:
    # Spark goes up from a file as long as folders are named column=value, and would not stop at such a base folder.
    if "=" in state.storage.uri().rpartition("/")[2]:
        return Layout.FLAT
    of_partition: dict[str, list[str]] = {}
    for base in bases:
        of_partition.setdefault(base.partition, []).append(base.path)

    def all_null(partition: str, column: str) -> bool:
        return all(column_is_null(state.storage, path, column) for path in of_partition[partition])

    return choose_layout(state.config, schema, of_partition, all_null)


@lru_cache(maxsize=1)
def _folder() -> str:
    folder = tempfile.mkdtemp(prefix="hudi-lists-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return str(Path(folder).resolve())
