"""One write from rows to a commit; where the rows come from is known to their `Source` alone.

incoming (all refusals happen up to here) -> begin -> look at the slices -> tag -> inflight with the workload -> write -> commit,
the one atomic step.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from hudi_engine.errors import RepeatedKeyError, translate_unicode_errors
from hudi_engine.format.config.declared.engine_options import EngineOptions, WriterOptions
from hudi_engine.format.config.declared.write_options import WriteOptions
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.own_keys import CHECKPOINT, ORIGIN
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.layout.layout import RowLayout
from hudi_engine.format.merge.modes.registry import refuse_to_write
from hudi_engine.format.progress import under_way
from hudi_engine.format.schema.avro_change import has_required, with_nulls_allowed
from hudi_engine.format.schema.meta_fields import meta_fields
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.planned import PlannedStorage, PlanWish, plan_wish
from hudi_engine.format.telemetry.callback import check_callback
from hudi_engine.format.telemetry.figures import FIGURES, WriteFigures
from hudi_engine.format.telemetry.phases import phase, seconds_so_far, timed
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_engine.table.data_skipping.by_record_index import by_record_index
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.lookup.kinds import IndexKind, index_kind
from hudi_engine.table.lookup.unit import PartitionUnit, UnitPlan
from hudi_engine.table.metadata.build import check_metadata_options
from hudi_engine.table.snapshot.publication import publication_of
from hudi_engine.table.state import TableState, commit_schema_text
from hudi_engine.table.txn.conflict import (
    NEW_KEYS_ONLY,
    REPLACED,
    ROWS_LEFT,
    FileGroup,
    KeyScope,
    ReadsOfWrite,
)
from hudi_engine.table.txn.metadata_conflicts import column_ids
from hudi_engine.table.txn.planned import PlannedTransaction
from hudi_engine.table.txn.receipts import content_of, keeps_receipts
from hudi_engine.table.txn.retry import removal_is_conflict, retried
from hudi_engine.table.txn.transaction import WriteTransaction
from hudi_engine.table.write.bulk_layout import bulk_layout
from hudi_engine.table.write.define.table_options import (
    check_same_definition,
    for_write,
    with_table_options,
    with_write_options,
)
from hudi_engine.table.write.fit import fit_policy, fit_schema
from hudi_engine.table.write.incoming import Incoming
from hudi_engine.table.write.inspection import inspect, reads_if_inspected
from hudi_engine.table.write.keys import has_partition_columns
from hudi_engine.table.write.metadata_only import rows_of_groups
from hudi_engine.table.write.operation import NOTHING, UPSERT, WHOLE_TABLE, Operation
from hudi_engine.table.write.place.partitions import (
    groups_taken_out,
    partition_units,
    refuse_taking_out,
    with_stored_buckets,
)
from hudi_engine.table.write.place.sidecars import sidecar_state
from hudi_engine.table.write.place.unit import unchanged_file_groups
from hudi_engine.table.write.plan import planned_result
from hudi_engine.table.write.request import (
    WriteRequest,
    check_inside,
    check_request,
    combines,
    extra_metadata,
    following,
    held_for_batch,
    names_changes,
    skips_existing,
    skips_unchanged,
)
from hudi_engine.table.write.result import WriteResult, summarise
from hudi_engine.table.write.schema_change import refuse_new_columns, with_columns, with_same_columns
from hudi_engine.table.write.stored_rows import check_stored_paths

logger = logging.getLogger(__name__)


def write(storage: Storage, request: WriteRequest) -> WriteResult:
    """Run one write."""
    check_callback(request.options)
    with (
        under_way(storage.base, "planned" if plan_wish() else "written"),
        timed("hudi.write", {"hudi.table": storage.base}),
        translate_unicode_errors(),
    ):
        request, replayed = held_for_batch(request, storage)
        if replayed is not None:
            logger.info("%s: the table has %s; nothing was written", request.operation.name.value, replayed)
            return WriteResult(None, request.operation.name.value)
        request = following(request, storage)
        if request.changes is None:
            return _attempt(storage, request)
        # What becomes of the rows depends on the table, so a new attempt looks at it again.
        seen = None if request.columns is None else request.held or TableState.load(storage)
        again = replace(request, held=None, columns_of=seen)
        try:
            return _repeated(again, lambda: _attempt(storage, again), whole=True)
        except RepeatedKeyError:
            slower = request.changes.for_repeated_keys()
            if slower is None:
                raise
            again = replace(again, changes=slower)
            return _repeated(again, lambda: _attempt(storage, again), whole=True)


def _repeated(
    request: WriteRequest, attempt: Callable[[], WriteResult], *, whole: bool = False
) -> WriteResult:
    """Repeat an attempt after conflicts, as often as the options allow: the only retries of a write."""
    fixed = request.base is not None if whole else request.own_rows
    return retried(attempt, 0 if fixed else request.options[WriterOptions.CONFLICT_RETRIES])


def _attempt(storage: Storage, request: WriteRequest) -> WriteResult:
    """Check a write against the table as it is, give its rows their keys and places, and commit them."""
    write = ResolvedWrite.of(storage, request)
    with phase("prepare"), removal_is_conflict(storage):
        if _places_rows(write.config, write.request):
            check_stored_paths(write.state, write.options)
        incoming = write.request.rows.incoming(write.request, write.state, write.index)
    write = replace(write, index=incoming.index or write.index)
    try:
        refuse_new_columns(write.state, incoming.schema, write.operation.replaces)
        if _is_skipped(incoming, write.request):
            return WriteResult(None, write.operation.name.value)
        return _repeated(write.request, lambda: _commit(write, incoming))
    finally:
        incoming.release()


def _places_rows(config: TableConfig, request: WriteRequest) -> bool:
    """Tell whether rows get their partition by the table's settings, among rows that are there."""
    if request.prepped or request.new_schema:
        return False
    return not request.operation.delete_only or has_partition_columns(request.rows.columns, config)


def _is_skipped(incoming: Incoming, request: WriteRequest) -> bool:
    """Tell whether an empty batch makes no instant: by an option, or a statement of which no row fulfils the condition."""
    if request.columns is not None or request.operation.replaces != NOTHING:
        return False
    if incoming.table is None or incoming.table.num_rows:
        return False
    statement = request.prepped or (request.changes is not None and request.changes.of_statement)
    if statement and extra_metadata(request.options).keys() <= {*ORIGIN}:
        return True
    return request.options[WriteOptions.SKIP_EMPTY_COMMIT] and CHECKPOINT not in request.options.raw


def _commit(prepared: ResolvedWrite, incoming: Incoming) -> WriteResult:
    """Run one attempt between begin and commit, on the state that the lock showed; leaving without a commit rolls back."""
    request, operation, storage = prepared.request, prepared.operation, prepared.state.storage
    if (wish := plan_wish()) is not None:
        return _plan(prepared, incoming, wish)
    with phase("begin"):
        begun = WriteTransaction.begin(
            storage,
            prepared.config,
            prepared.options,
            publication_of(storage, request.rows.run_sidecars),
            action=prepared.action,
            operation=operation.name.value,
        )
    with removal_is_conflict(storage), begun as transaction:
        done = _written(prepared, incoming, transaction)
        write, metadata = done.write, done.metadata
        reads = reads_of(prepared.state, request, incoming, write.index)
        reads = reads_if_inspected(reads, transaction.timeline)
        inspect(request.rows, write.state, transaction, metadata, write.options)
        with phase("commit"):
            scope = key_scope_of(write.config, request, write.index)
            transaction.commit(
                metadata, key_scope=scope, reads=reads, left=done.left, follows=request.follows
            )
    result = done.result(transaction.instant)
    logger.info(
        "%s %s committed: %d file(s)", operation.name.value, transaction.instant, result.files_written
    )
    return replace(result, seconds=seconds_so_far(), action=write.action, committed=transaction.committed)


def _plan(prepared: ResolvedWrite, incoming: Incoming, wish: PlanWish) -> WriteResult:
    """Run one attempt up to its commit, on a storage that drops what is written."""
    check_metadata_options(prepared.config, prepared.options)
    state = replace(prepared.state, storage=PlannedStorage(prepared.state.storage))
    prepared = replace(prepared, state=state)
    transaction = PlannedTransaction.begin(prepared.config, state.timeline, prepared.action)
    done = _written(prepared, incoming, transaction, examples=wish.examples)
    return planned_result(done.write.state, transaction, done.result(None), wish)


def _written(
    prepared: ResolvedWrite,
    incoming: Incoming,
    transaction: WriteTransaction | PlannedTransaction,
    *,
    examples: int = 0,
) -> WrittenRows:
    """Write the files of a transaction that has begun, up to the metadata of its commit."""
    request, operation = prepared.request, prepared.operation
    write = prepared.at_begin(transaction)
    incoming = refit(incoming, prepared.state, write.state, request)
    refuse_new_columns(write.state, incoming.schema, operation.replaces)
    context = replace(write.context(incoming, transaction.instant), examples=examples)
    units = _units(write, incoming)
    plan = with_stored_buckets(write.unit_plan(), write.state, context, units)
    if not context.storage.is_planned:
        plan = replace(plan, sidecars=sidecar_state(context, write.state, units))
    with phase("write"):
        path, stats = incoming.write(context, plan, units, transaction)
    touched = {*(stat.partition_path or "" for stat in stats), *(incoming.partitions or ())}
    if request.partitions:
        check_inside(touched, request.partitions)
        touched.update(request.partitions)
    left, stats = unchanged_file_groups(stats), [stat for stat in stats if stat.file_id]
    replaced = groups_taken_out(operation, units, touched)
    metadata = write.commit_metadata(context, stats, replaced, left=bool(left))
    figures = _figures(metadata, incoming, path)
    rows_replaced = rows_of_groups(write.state, replaced) if replaced else 0
    return WrittenRows(write, metadata, figures, left, path, rows_replaced)


@dataclass(frozen=True)
class WrittenRows:
    """What a write has made of its rows, with only its commit left.

    Args:
        left: File groups with rows that were compared with what came, and left as they are.
        rows_replaced: Rows of the file groups that it takes out.
    """

    write: ResolvedWrite
    metadata: CommitMetadata
    figures: WriteFigures
    left: frozenset[FileGroup]
    path_taken: str
    rows_replaced: int

    def result(self, instant: str | None) -> WriteResult:
        """Return what the caller gets."""
        result = summarise(instant, self.metadata, self.path_taken, self.rows_replaced)
        return replace(result, figures=self.figures)


def _figures(metadata: CommitMetadata, incoming: Incoming, path: str) -> WriteFigures:
    """Add up what a write did, and note it in its commit."""
    figures = WriteFigures.of(metadata, incoming.rows, shuffled=path in ("partitions", "joined"))
    metadata.extra_metadata[FIGURES] = figures.to_json(seconds_so_far())
    return figures


def _units(write: ResolvedWrite, incoming: Incoming) -> dict[str, PartitionUnit]:
    """Return latest slices of the partitions that matter: those of the batch, or all for a global look-up or an overwrite."""
    request, partitions = write.request, incoming.partitions
    everything = write.index.is_global or partitions is None or write.operation.replaces == WHOLE_TABLE
    partitions = list(dict.fromkeys((*(partitions or ()), *request.partitions)))
    view = write.state.view(None if everything else partitions)
    units = partition_units(write.state, write.options, view.latest_slices(), partitions)
    refuse_taking_out(write.operation, units, incoming.partitions, write.options)
    if incoming.table is not None and write.index.is_global and write.operation.lookup:
        return by_record_index(write.state, units, incoming.table)
    return units


def refit(incoming: Incoming, before: TableState, now: TableState, request: WriteRequest) -> Incoming:
    """Fit rows to the table's columns as of the begin of the write, when another writer changed them meanwhile.

    Args:
        incoming: The rows, fitted to ``before``.
    """
    known = now.data_schema()
    if request.new_schema or known is None or before.schema_json() == now.schema_json():
        return incoming
    if request.operation.delete_only:
        return replace(incoming, schema=known)
    given = {name.lower() for name in request.rows.columns}
    if request.changes is not None:
        # rows of which only some columns came have the stored values in the others, but for those that were dropped since
        given |= {name.lower() for name in known.names}
    came = pa.schema([field for field in incoming.columns if field.name.lower() in given])
    schema = fit_schema(came, known, fit_policy(now.config, request.options))
    if schema.equals(incoming.columns):
        return incoming
    return incoming.refitted(came, schema)


def reads_of(
    state: TableState, request: WriteRequest, incoming: Incoming, index: IndexKind
) -> ReadsOfWrite | None:
    """Return what of the table the rows were made from: the partitions they are in, or all.

    All where the request has reads_all, where keys are looked up in all, and where the rows do not carry the places that they were
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
        """Settle a write against the table as it is now, or as the caller has read it."""
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

    def at_begin(self, transaction: WriteTransaction | PlannedTransaction) -> ResolvedWrite:
        """Settle the write again, against the table as the lock of its begin showed it."""
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
        whole = self.operation.replaces == WHOLE_TABLE
        receipts = bool(self.options[EngineOptions.RECEIPTS]) and not context.storage.is_planned
        receipts = receipts and (whole or keeps_receipts(self.state.timeline, self.options))
        context = replace(context, layout=layout, receipts=receipts)
        if self.operation.delete_only or not has_required(context.avro_schema):
            return context
        # columns that another writer's table requires become optional with the commit that brings nulls
        nulls = incoming.null_columns(context.avro_schema)
        if len(self.config.record_key_fields) == 1:
            # a row whose only key column is null is refused
            nulls -= {self.config.record_key_fields[0]}
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
            None if request.prepped else request.update_columns,
            skips_unchanged(request),
            request.single_rows,
            assigned=request.update_columns if request.changes is None else request.changes.assigned,
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
        made = CommitMetadata(
            partition_to_write_stats=by_partition,
            extra_metadata={"schema": _schema_text(context), **ids, **notes},
            operation_type=self.operation.name.value,
            compacted=False,
            partition_to_replace_file_ids=replaced,
        )
        whole = self.operation.replaces == WHOLE_TABLE
        return replace(made, content=content_of(made, whole=whole)) if context.receipts else made


def _schema_text(context: WriteContext) -> str:
    avro: dict[str, Any] = dict(context.avro_schema)
    meta = meta_fields(operation=context.config.keeps_operations)
    avro["fields"] = [field for field in avro["fields"] if field["name"] not in meta]
    return commit_schema_text(avro)
