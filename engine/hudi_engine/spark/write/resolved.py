"""One write settled against one state of its table: its settings, columns and index, and what its commit holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import types as T

from hudi_engine.format.config.options import Options
from hudi_engine.format.config.other_keys import CHECKPOINT
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.layout.layout import RowLayout
from hudi_engine.format.merge.modes.registry import refuse_to_write
from hudi_engine.format.schema.avro_change import columns_with_nulls, has_required, with_nulls_allowed
from hudi_engine.format.schema.meta_fields import meta_fields
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_engine.spark.write.incoming import Incoming
from hudi_engine.spark.write.request import (
    WriteRequest,
    check_request,
    combines,
    extra_metadata,
    names_changes,
    skips_existing,
    skips_unchanged,
)
from hudi_engine.spark.write.rows.partial_update_nulls import for_write
from hudi_engine.spark.write.schema_change import with_columns, with_same_columns
from hudi_engine.spark.write.spread.bulk_order import bulk_layout
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.lookup.kinds import IndexKind, index_kind
from hudi_engine.table.lookup.unit import UnitPlan
from hudi_engine.table.state import TableState, commit_schema_text
from hudi_engine.table.txn.column_ids import column_ids
from hudi_engine.table.txn.conflict import NEW_KEYS_ONLY, REPLACED, ROWS_LEFT
from hudi_engine.table.txn.transaction import WriteTransaction
from hudi_engine.table.write.define.rebuild import check_same_definition
from hudi_engine.table.write.define.table_options import with_table_options, with_write_options
from hudi_engine.table.write.operation import NOTHING, UPSERT, WHOLE_TABLE, Operation

_NESTED = (T.StructType, T.ArrayType, T.MapType)


@dataclass(frozen=True)
class ResolvedWrite:
    """A write with everything that does not depend on its rows decided.

    Args:
        request: What the caller wants, with the options that the table keeps below those of the call.
        state: The table with the settings and the columns that the write gives it.
    """

    request: WriteRequest
    state: TableState
    index: IndexKind

    @classmethod
    def of(cls, storage: Storage, request: WriteRequest) -> ResolvedWrite:
        """Settle a write against the table as it is now, or as the caller has read it.

        Raises:
            HudiError: The table, or one of its settings, does not allow the write.
        """
        state = request.base or request.held or TableState.load(storage)
        state.config.check_writable()
        if not request.new_schema:
            state.check_rows_writable()
        state = with_columns(state, request)
        options = with_table_options(state.config, request.options, request.operation.name.value)
        config = with_write_options(state.config, options)
        refuse_to_write(config)
        request = replace(request, options=options)
        index = index_kind(options)
        check_request(config, request, index)
        return cls(request, replace(state, config=config), index)

    def at_begin(self, transaction: WriteTransaction) -> ResolvedWrite:
        """Settle the write again, against the table as the lock of its begin showed it.

        Raises:
            WriteConflictError: Another writer rebuilt the table, or changed columns that this write changes too.
        """
        config = with_write_options(transaction.config, self.options)
        check_same_definition(self.config, config, transaction.instant)
        if self.request.prepped and self.operation.name is UPSERT.name:
            config = for_write(config)
        now = TableState(self.state.storage, config, transaction.timeline)
        return replace(self, state=with_same_columns(self.state, now))

    @property
    def config(self) -> TableConfig:
        """The table's settings, with what the call adds to them."""
        return self.state.config

    @property
    def options(self) -> Options:
        """The options of the call over those that the table keeps."""
        return self.request.options

    @property
    def operation(self) -> Operation:
        """The operation that the caller chose."""
        return self.request.operation

    @property
    def action(self) -> str:
        """The timeline action of the commit."""
        return self.operation.action(self.config.table_type)

    @property
    def way(self) -> Operation:
        """The operation as rows are written: with a bucket index those of a bucket meet in one task, without a bulk pass."""
        return self.operation if self.index.buckets is None else replace(self.operation, bulk=False)

    def context(self, incoming: Incoming, instant: str) -> WriteContext:
        """Return what writing tasks need to know of the table and the write."""
        state = replace(self.state, is_written_anew=self.request.new_schema)
        context = state.write_context(
            self.options,
            incoming.schema,
            self.state.read_context(incoming.schema, self.options),
            instant=instant,
            action=self.action,
            operation=self.operation.name.value,
        )
        layout = (
            bulk_layout(self.options, self.config, incoming.schema) if self.operation.bulk else RowLayout()
        )
        context = replace(context, layout=layout)
        if self.operation.delete_only or not has_required(context.avro_schema):
            return context
        # columns that another writer's table requires become optional with the commit that brings nulls
        nulls = _null_columns(incoming, self.config, context.avro_schema)
        return replace(context, avro_schema=with_nulls_allowed(context.avro_schema, nulls))

    def unit_plan(self) -> UnitPlan:
        """Return how the rows of a partition are treated."""
        request = self.request
        has_keys = bool(self.config.record_key_fields)
        combined = has_keys and combines(request) and not names_changes(self.config, request)
        if request.single_rows and request.match_condition is None and self.index.buckets is None:
            # several rows of one key are what is looked for
            combined = False
        return UnitPlan(
            self.index,
            self.operation.lookup or skips_existing(request),
            combined,
            self.operation.delete_only,
            skips_existing(request),
            self.operation.packing,
            self.operation.replaces != NOTHING,
            request.update_columns,
            skips_unchanged(request),
            request.single_rows,
        )

    def commit_metadata(
        self,
        context: WriteContext,
        stats: Sequence[WriteStat],
        replaced: dict[str, list[str]] | None,
        *,
        left: bool,
    ) -> CommitMetadata:
        """Return the metadata of the commit: files, the table's columns, and notes for other writers.

        Args:
            replaced: File groups that it takes out, by partition; None where it takes out none.
            left: Whether stored rows were compared and left as they are.
        """
        request = self.request
        notes = {} if request.changes is None else {REPLACED: request.changes.replaced.to_text()}
        notes |= {NEW_KEYS_ONLY: "true"} if skips_existing(request) else {}
        notes |= {ROWS_LEFT: "true"} if left else {}
        notes = {**extra_metadata(self.options), **notes}
        if request.new_schema and self.operation.replaces == WHOLE_TABLE:
            # a commit inherits the checkpoint of the one before, and a rebuilt table has consumed nothing
            notes.setdefault(CHECKPOINT, "{}")
        by_partition: dict[str, list[WriteStat]] = {}
        for stat in stats:
            by_partition.setdefault(stat.partition_path or "", []).append(stat)
        ids = column_ids(context.read.schema_history, context.instant)
        return CommitMetadata(
            partition_to_write_stats=by_partition,
            extra_metadata={"schema": _schema_text(context), **ids, **notes},
            operation_type=self.operation.name.value,
            compacted=False,
            partition_to_replace_file_ids=replaced,
        )


def _null_columns(incoming: Incoming, config: TableConfig, record: Mapping[str, Any]) -> set[str]:
    """Return the columns in which rows have nulls; of distributed rows those in which they may have."""
    if incoming.table is not None:
        return columns_with_nulls(incoming.table, record)
    assert incoming.distributed is not None
    fields = incoming.distributed.frame.schema.fields
    nulls = {each.name for each in fields if each.nullable or isinstance(each.dataType, _NESTED)}
    if len(config.record_key_fields) == 1:
        # a row whose only key column is null is refused
        nulls -= {config.record_key_fields[0]}
    return nulls


def _schema_text(context: WriteContext) -> str:
    avro: dict[str, Any] = dict(context.avro_schema)
    meta = meta_fields(operation=context.config.keeps_operations)
    avro["fields"] = [field for field in avro["fields"] if field["name"] not in meta]
    return commit_schema_text(avro)
