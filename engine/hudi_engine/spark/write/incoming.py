"""Rows ready to be written, and what becomes of them when the table changed while they were computed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.schema.any_case import spellings
from hudi_engine.format.schema.evolution import cast_table
from hudi_engine.format.schema.meta_fields import PARTITION_PATH
from hudi_engine.spark.schema.fit import fit_schema
from hudi_engine.spark.write.request import WriteRequest
from hudi_engine.spark.write.rows.batch import AlignedBatch, fetch_counted, fit_policy
from hudi_engine.spark.write.rows.casts import fit_frame
from hudi_engine.spark.write.spread.distributed import DistributedBatch
from hudi_engine.table.lookup.kinds import IndexKind, index_kind
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.conflict import KeyScope, ReadsOfWrite


@dataclass(frozen=True)
class Incoming:
    """Rows with their keys: on the driver, or distributed.

    Args:
        schema: Data columns of the table after this write.
        table: The rows when they are on the driver.
        index: Index of the write, None for the one the options name.
        cached: Frames that are cached until the rows are written.
    """

    schema: pa.Schema
    columns: pa.Schema
    table: pa.Table | None = None
    distributed: DistributedBatch | None = None
    index: IndexKind | None = None
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
        if self.table is not None:
            return int(self.table.num_rows)
        counted = None if self.distributed is None else self.distributed.rows
        return None if counted is None else sum(counted.values())

    @property
    def partitions(self) -> list[str] | None:
        """Partition paths of the rows, None when they are not known yet."""
        if self.table is not None:
            return [str(value) for value in pc.unique(self.table.column(PARTITION_PATH)).to_pylist()]
        assert self.distributed is not None
        return None if self.distributed.rows is None else list(self.distributed.rows)


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


def refit(incoming: Incoming, before: TableState, now: TableState, request: WriteRequest) -> Incoming:
    """Fit rows to the table's columns as of the begin of the write, when another writer changed them meanwhile.

    Args:
        incoming: The rows, fitted to ``before``.
        before: The table before the rows were computed.

    Raises:
        SchemaError: The rows do not fit any more.
    """
    known = now.data_schema()
    if request.new_schema or known is None or before.schema_json() == now.schema_json():
        return incoming
    if request.operation.delete_only:
        return replace(incoming, schema=known)
    given = {name.lower() for name in request.frame.columns}
    if request.changes is not None:
        # rows of which only some columns came have the stored values in the others, but for those that were dropped since
        given |= {name.lower() for name in known.names}
    came = pa.schema([field for field in incoming.columns if field.name.lower() in given])
    schema = fit_schema(came, known, fit_policy(now.config, request.options))
    if schema.equals(incoming.columns):
        return incoming
    names = incoming.columns.names
    if incoming.table is not None:
        table = _fit_table(incoming.table, came, schema, names)
        return replace(incoming, schema=schema, columns=schema, table=table)
    assert incoming.distributed is not None
    batch = incoming.distributed
    kept = [name for name in batch.frame.columns if name not in names]
    frame = fit_frame(batch.frame.drop(*set(names) - set(came.names)), came.names, schema, kept)
    return replace(
        incoming, schema=schema, columns=schema, distributed=replace(batch, frame=frame, schema=schema)
    )


def reads_of(
    state: TableState, request: WriteRequest, incoming: Incoming, index: IndexKind
) -> ReadsOfWrite | None:
    """Return what of the table the rows were made from: the partitions they are in, or all.

    All where the request says so, where keys are looked up in all, and where the rows do not carry the places that they were
    read from.
    """
    if not request.own_rows:
        return None
    partitions, changes = incoming.partitions, request.changes
    everywhere = not request.prepped and (index.is_global or request.base is not None)
    everywhere = everywhere or request.reads_all
    if partitions is None or everywhere or (changes is not None and changes.reads_all):
        return ReadsOfWrite(state.timeline)
    replaced = None if changes is None else changes.replaced
    return ReadsOfWrite(state.timeline, frozenset(partitions), replaced)


def key_scope_of(config: TableConfig, request: WriteRequest, index: IndexKind) -> KeyScope:
    """Tell where another writer's new rows can hold the same key."""
    if request.changes is not None:
        if not request.changes.by_key:
            return KeyScope.PARTITION
        index = index_kind(request.options)
    if not config.record_key_fields:
        return KeyScope.NONE
    return KeyScope.TABLE if index.is_global else KeyScope.PARTITION


def _fit_table(table: pa.Table, came: pa.Schema, schema: pa.Schema, names: list[str]) -> pa.Table:
    spelled = spellings(schema.names)
    data = table.select(came.names).rename_columns([spelled[name] for name in came.names])
    data = cast_table(data, schema)
    for name in table.column_names:
        if name not in names:
            data = data.append_column(name, table.column(name))
    return data
