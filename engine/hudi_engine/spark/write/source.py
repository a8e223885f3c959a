"""Rows of a DataFrame for a write: aligned, fetched to the driver when they are few, else written by executors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.declared.engine_options import EngineOptions
from hudi_engine.format.config.options import Options
from hudi_engine.format.schema.meta_fields import OPERATION, PARTITION_PATH, RECORD_KEY
from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.spark.catalog.session import sidecar_runner
from hudi_engine.spark.read.session import prepare_session
from hudi_engine.spark.read.spark_read import snapshot_frame
from hudi_engine.spark.write.rows.batch import AlignedBatch, align, delete_batch, fetch_counted, fetch_small
from hudi_engine.spark.write.rows.casts import fit_frame
from hudi_engine.spark.write.rows.clauses import flag_unmatched
from hudi_engine.spark.write.rows.settled import RowChanges
from hudi_engine.spark.write.spread.distributed import (
    DistributedBatch,
    prepare_distributed,
    write_distributed,
)
from hudi_engine.spark.write.spread.executor_path import run_small_batch
from hudi_engine.table.handles.changelog import check_operations
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.lookup.kinds import IndexKind
from hudi_engine.table.lookup.unit import PartitionUnit, UnitPlan
from hudi_engine.table.snapshot.derive import RunTasks
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.planned import PlannedTransaction
from hudi_engine.table.txn.transaction import WriteTransaction
from hudi_engine.table.write.driver_path import write_on_driver
from hudi_engine.table.write.fit import FitPolicy, fit_policy
from hudi_engine.table.write.incoming import Incoming, settled_globally
from hudi_engine.table.write.keys import with_keys
from hudi_engine.table.write.operation import Operation
from hudi_engine.table.write.place.partitions import partition_profile
from hudi_engine.table.write.request import Source, WriteRequest, check_columns, names_changes
from hudi_engine.table.write.stored_rows import check_fixed_columns, check_returning

_NESTED = (T.StructType, T.ArrayType, T.MapType)


@dataclass(frozen=True)
class FrameIncoming(Incoming):
    """Rows of a DataFrame with their keys: on the driver, or distributed.

    Args:
        spark: Its executors write.
        way: The operation as rows are written.
        distributed: The rows where they are not on the driver.
        cached: What is freed with them.
    """

    spark: SparkSession = field(kw_only=True)
    way: Operation = field(kw_only=True)
    distributed: DistributedBatch | None = None
    cached: tuple[DataFrame, ...] = ()

    def release(self) -> None:
        """Free every cache."""
        for frame in self.cached:
            frame.unpersist()
        if self.distributed is not None:
            self.distributed.release()

    @property
    def rows(self) -> int | None:
        """How many rows came, None when they were not counted."""
        if self.distributed is None:
            return super().rows
        counted = self.distributed.rows
        return None if counted is None else sum(counted.values())

    @property
    def partitions(self) -> list[str] | None:
        """Partition paths of the rows, None when they are not known yet."""
        if self.distributed is None:
            return super().partitions
        return None if self.distributed.rows is None else list(self.distributed.rows)

    def refitted(self, came: pa.Schema, schema: pa.Schema) -> FrameIncoming:
        """Return the rows in other columns of the table."""
        batch, names = self.distributed, self.columns.names
        if batch is None:
            return super().refitted(came, schema)
        kept = [name for name in batch.frame.columns if name not in names]
        frame = fit_frame(batch.frame.drop(*set(names) - set(came.names)), came.names, schema, kept)
        return replace(
            self, schema=schema, columns=schema, distributed=replace(batch, frame=frame, schema=schema)
        )

    def null_columns(self, record: Mapping[str, Any]) -> set[str]:
        """Return the columns in which rows have nulls; of distributed rows those in which they may have."""
        if self.distributed is None:
            return super().null_columns(record)
        fields = self.distributed.frame.schema.fields
        return {each.name for each in fields if each.nullable or isinstance(each.dataType, _NESTED)}

    def write(
        self,
        context: WriteContext,
        plan: UnitPlan,
        units: Mapping[str, PartitionUnit],
        transaction: WriteTransaction | PlannedTransaction,
    ) -> tuple[str, list[WriteStat]]:
        """Write rows by threads of the driver, or by executors where they or the base files they may touch are many bytes."""
        if self.distributed is not None:
            return write_distributed(
                self.spark, context, plan, units, self.distributed, transaction, self.way
            )
        assert self.table is not None
        plan, table = settled_globally(context, plan, units, self.table)
        partitions = set(pc.unique(table.column(PARTITION_PATH)).to_pylist())
        touched = sum(
            each.size for unit in units.values() if unit.partition in partitions for each in unit.slices
        )
        if not plan.lookup or touched <= context.options[EngineOptions.DRIVER_MERGE_BYTES]:
            return write_on_driver(context, plan, table, units, transaction)
        counts = pc.value_counts(table.column(PARTITION_PATH)).to_pylist()
        rows = {entry["values"]: entry["counts"] for entry in counts}
        transaction.inflight(partition_profile(context.operation, rows, units))
        return "executors", run_small_batch(self.spark, context, plan, units, table)


@dataclass(frozen=True)
class FrameRows(Source):
    """Rows of a DataFrame."""

    frame: DataFrame

    @property
    def columns(self) -> Sequence[str]:
        """Names of the columns as they came."""
        return self.frame.columns

    @property
    def run_sidecars(self) -> RunTasks:
        """The session makes them."""
        return sidecar_runner(self.frame.sparkSession)

    def snapshot(self, state: TableState, options: Options) -> DataFrame:
        """Return the rows of a state as a DataFrame."""
        return snapshot_frame(self.frame.sparkSession, state, options)

    def incoming(self, request: WriteRequest, state: TableState, index: IndexKind) -> FrameIncoming:
        """Fit and key the rows, on the driver when they are few."""
        prepare_session(self.frame.sparkSession)
        return _incoming(self.frame, request, state, index)


def _incoming(frame: DataFrame, request: WriteRequest, state: TableState, index: IndexKind) -> FrameIncoming:
    """Fit and key the batch; a match condition or own rows are settled before that."""
    spark, config, options, operation = frame.sparkSession, state.config, request.options, request.operation
    if operation.delete_only:
        batch, index = delete_batch(state, frame, index, prepped=request.prepped)
    else:
        carry: tuple[str, ...] = (RECORD_KEY, PARTITION_PATH) if request.prepped else ()
        if names_changes(config, request):
            carry = (OPERATION,)
        known = None if request.new_schema else state.data_schema()
        batch = align(frame, known, fit_policy(config, options), carry=carry)
        check_columns(config, frame.columns, batch.schema, index)
        check_fixed_columns(config, known, batch.schema, operation.replaces)
        check_returning(state, known, batch.schema, operation.replaces)
    keyed = batch
    if request.match_condition is not None:
        keyed = flag_unmatched(
            spark, state, batch, request.match_condition, options, everywhere=index.is_global
        )
    if request.changes is not None:
        assert isinstance(request.changes, RowChanges)
        keyed = request.changes.rows(spark, state, batch, options)
        request = replace(request, prepped=True)
    if request.prepped:
        # The rows know their places: there is nothing left to look up beyond their partitions.
        index = replace(index, is_global=False)
    try:
        return _fetched(request, state, index, batch, keyed)
    except BaseException:
        keyed.release()
        raise


def _fetched(
    request: WriteRequest, state: TableState, index: IndexKind, batch: AlignedBatch, keyed: AlignedBatch
) -> FrameIncoming:
    """Give the rows their keys, on the driver when they are few."""
    options, operation = request.options, request.operation
    schema = _table_schema(state, batch, request)
    table = fetch_small(keyed, options)
    if OPERATION in batch.carried:
        if table is None:
            raise ConfigError(
                f"the batch names its changes in {OPERATION!r}, whose order only batches of at most "
                f"{EngineOptions.SMALL_BATCH_ROWS}={options[EngineOptions.SMALL_BATCH_ROWS]} rows keep; write it in parts, "
                "raise the limit, or leave the column out"
            )
        table = check_operations(table)
    distributed, way = None, way_of(operation, index)
    if table is None:
        distributed = prepare_distributed(
            keyed,
            state,
            options,
            way,
            prepped=request.prepped,
            reads_once=not (index.is_global and operation.lookup),
        )
        table = fetch_evaluated(keyed, distributed, options)
    if table is not None:
        table, distributed = with_keys(table, request, state, index), None
    return FrameIncoming(
        schema,
        batch.schema,
        table,
        index,
        spark=batch.frame.sparkSession,
        way=way,
        distributed=distributed,
        cached=keyed.cached,
    )


def way_of(operation: Operation, index: IndexKind) -> Operation:
    """Return an operation as rows are written: with a bucket index those of a bucket meet in one task, without a bulk pass."""
    return operation if index.buckets is None else replace(operation, bulk=False)


def _table_schema(state: TableState, batch: AlignedBatch, request: WriteRequest) -> pa.Schema:
    if not request.operation.delete_only:
        return batch.schema
    schema = state.data_schema()
    if schema is not None:
        return schema
    assert isinstance(request.rows, FrameRows)
    return align(request.rows.frame, None, FitPolicy()).schema


def fetch_evaluated(batch: AlignedBatch, rows: DistributedBatch, options: Options) -> pa.Table | None:
    """Bring rows to the driver that Spark has evaluated, kept and counted, where they are few after all.

    Args:
        rows: The same, with key columns; freed when they are here, or cannot be fetched.

    Returns:
        The rows as an Arrow table; None where they are many, or were not evaluated.
    """
    if rows.rows is None or not rows.kept:
        return None
    try:
        table = fetch_counted(batch, rows.frame, sum(rows.rows.values()), options)
    except BaseException:
        rows.release()
        raise
    if table is not None:
        rows.release()
    return table
