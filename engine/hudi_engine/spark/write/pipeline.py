"""One write from a DataFrame to a commit.

align -> fetch or profile (all refusals happen up to here) -> begin -> look at the slices -> tag -> inflight with the
workload -> write -> commit, the one atomic step.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from hudi_engine.errors import ConfigError, RepeatedKeyError, translate_unicode_errors
from hudi_engine.format.config.declared.engine_options import EngineOptions, WriterOptions
from hudi_engine.format.config.declared.write_options import WriteOptions
from hudi_engine.format.config.other_keys import CHECKPOINT
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.keygen.generator import build_key_generator
from hudi_engine.format.keygen.partition_path import check_new_partition
from hudi_engine.format.merge.modes.registry import combine_batch
from hudi_engine.format.progress import under_way
from hudi_engine.format.schema.meta_fields import OPERATION, PARTITION_PATH, RECORD_KEY
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.telemetry.callback import check_callback
from hudi_engine.format.telemetry.figures import FIGURES, WriteFigures
from hudi_engine.format.telemetry.phases import phase, seconds_so_far, timed
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_engine.spark.catalog.session import sidecar_runner
from hudi_engine.spark.read.session import prepare_session
from hudi_engine.spark.schema.fit import FitPolicy
from hudi_engine.spark.write.incoming import Incoming, fetch_evaluated, key_scope_of, reads_of, refit
from hudi_engine.spark.write.inspection import inspect, reads_if_inspected
from hudi_engine.spark.write.request import (
    WriteRequest,
    check_columns,
    check_inside,
    check_no_null_key,
    extra_metadata,
    following,
    names_changes,
)
from hudi_engine.spark.write.resolved import ResolvedWrite
from hudi_engine.spark.write.rows.batch import AlignedBatch, align, delete_batch, fetch_small, fit_policy
from hudi_engine.spark.write.rows.match import flag_unmatched
from hudi_engine.spark.write.rows.settled import Decided
from hudi_engine.spark.write.schema_change import refuse_new_columns
from hudi_engine.spark.write.spread.distributed import prepare_distributed, write_distributed
from hudi_engine.spark.write.spread.driver_path import run_on_driver
from hudi_engine.spark.write.spread.executor_path import check_partition_count, run_small_batch
from hudi_engine.table.handles.changelog import check_operations
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.lookup.across_partitions import resolve_globally
from hudi_engine.table.lookup.partition import TaggedUnit
from hudi_engine.table.lookup.unit import PartitionUnit, UnitPlan
from hudi_engine.table.snapshot.publication import publication_of
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.retry import retried
from hudi_engine.table.txn.transaction import WriteTransaction
from hudi_engine.table.write.fixed_columns import check_fixed_columns, check_returning
from hudi_engine.table.write.metadata_only import rows_of_groups
from hudi_engine.table.write.operation import NOTHING, WHOLE_TABLE
from hudi_engine.table.write.place.partitions import (
    groups_taken_out,
    partition_units,
    refuse_taking_out,
    with_stored_buckets,
)
from hudi_engine.table.write.place.profile import partition_profile, tagged_profile
from hudi_engine.table.write.place.sidecars import sidecar_state
from hudi_engine.table.write.place.unchanged import unchanged_file_groups
from hudi_engine.table.write.removal import removal_is_conflict
from hudi_engine.table.write.result import WriteResult, summarise
from hudi_engine.table.write.stored_paths import check_stored_paths

logger = logging.getLogger(__name__)


def write(spark: SparkSession, storage: Storage, request: WriteRequest) -> WriteResult:
    """Run one write.

    Returns:
        Counts of the commit.

    Raises:
        HudiError: A typed error; the table is unchanged.
    """
    prepare_session(spark)
    check_callback(request.options)
    with (
        under_way(storage.base, "written"),
        timed("hudi.write", {"hudi.table": storage.base}),
        translate_unicode_errors(),
    ):
        request = following(request, storage)
        if request.changes is None:
            return _attempt(spark, storage, request)
        # What becomes of the rows depends on the table, so a new attempt looks at it again.
        seen = None if request.columns is None else request.held or TableState.load(storage)
        again = replace(request, held=None, columns_of=seen)
        try:
            return _repeated(again, lambda: _attempt(spark, storage, again), whole=True)
        except RepeatedKeyError:
            beside = request.changes.beside_others()
            if beside is None:
                raise
            slower = replace(again, changes=beside)
            return _repeated(slower, lambda: _attempt(spark, storage, slower), whole=True)


def _repeated(
    request: WriteRequest, attempt: Callable[[], WriteResult], *, whole: bool = False
) -> WriteResult:
    """Repeat an attempt after conflicts, as often as the options allow: the only retries of a write.

    A plain batch repeats its commit alone. A write whose rows depend on the table repeats whole, so that it looks at the table
    again; rows that the caller made of the table would bring the same conflict each time.

    Args:
        whole: Whether the attempt looks at the table again.
    """
    fixed = request.base is not None if whole else request.own_rows
    return retried(attempt, 0 if fixed else request.options[WriterOptions.CONFLICT_RETRIES])


def _attempt(spark: SparkSession, storage: Storage, request: WriteRequest) -> WriteResult:
    """Check a write against the table as it is, give its rows their keys and places, and commit them."""
    write = ResolvedWrite.of(storage, request)
    with phase("prepare"), removal_is_conflict(storage):
        if _places_rows(write.config, write.request):
            check_stored_paths(write.state, write.options)
        incoming = _incoming(spark, write)
    write = replace(write, index=incoming.index or write.index)
    try:
        refuse_new_columns(write.state, incoming.schema)
        if _is_skipped(incoming, write.request):
            return WriteResult(None, write.operation.name.value)
        return _repeated(write.request, lambda: _commit(spark, write, incoming))
    finally:
        incoming.release()


def _places_rows(config: TableConfig, request: WriteRequest) -> bool:
    """Tell whether rows get their partition by the table's settings, among rows that are there."""
    if request.prepped or request.new_schema:
        return False
    return not request.operation.delete_only or _has_partition_columns(request.frame.columns, config)


def _is_skipped(incoming: Incoming, request: WriteRequest) -> bool:
    """Tell whether an empty batch makes no instant: asked so, or a statement of which no row fulfils the condition.

    An overwrite with no rows always does, and so does a commit that carries a checkpoint or other texts, or changes columns.
    """
    if request.columns is not None or request.operation.replaces != NOTHING:
        return False
    if incoming.table is None or incoming.table.num_rows:
        return False
    statement = request.prepped or isinstance(request.changes, Decided)
    if statement and not extra_metadata(request.options):
        return True
    return request.options[WriteOptions.SKIP_EMPTY_COMMIT] and CHECKPOINT not in request.options.raw


def _commit(spark: SparkSession, prepared: ResolvedWrite, incoming: Incoming) -> WriteResult:
    """Run one attempt between begin and commit, on the state that the lock showed; leaving without a commit rolls back."""
    request, operation, storage = prepared.request, prepared.operation, prepared.state.storage
    with phase("begin"):
        begun = WriteTransaction.begin(
            storage,
            prepared.config,
            prepared.options,
            publication_of(storage, sidecar_runner(spark)),
            action=prepared.action,
            operation=operation.name.value,
        )
    with removal_is_conflict(storage), begun as transaction:
        write = prepared.at_begin(transaction)
        reads = reads_of(prepared.state, request, incoming, write.index)
        reads = reads_if_inspected(reads, transaction.timeline)
        incoming = refit(incoming, prepared.state, write.state, request)
        refuse_new_columns(write.state, incoming.schema)
        context = write.context(incoming, transaction.instant)
        units = _units(write, incoming)
        plan = with_stored_buckets(write.unit_plan(), write.state, context, units)
        plan = replace(plan, sidecars=sidecar_state(context, write.state, units))
        with phase("write"):
            if incoming.table is not None:
                path, stats = _write_small(spark, context, plan, units, incoming.table, transaction)
            else:
                assert incoming.distributed is not None
                rows = incoming.distributed
                path, stats = write_distributed(spark, context, plan, units, rows, transaction, write.way)
        touched = {*(stat.partition_path or "" for stat in stats), *(incoming.partitions or ())}
        if request.partitions:
            check_inside(touched, request.partitions)
            touched.update(request.partitions)
        left, stats = unchanged_file_groups(stats), [stat for stat in stats if stat.file_id]
        replaced = groups_taken_out(operation, units, touched)
        metadata = write.commit_metadata(context, stats, replaced, left=bool(left))
        figures = _figures(metadata, incoming, path)
        rows_replaced = rows_of_groups(write.state, replaced) if replaced else 0
        inspect(spark, write.state, transaction, metadata, write.options)
        with phase("commit"):
            scope = key_scope_of(write.config, request, write.index)
            transaction.commit(metadata, key_scope=scope, reads=reads, left=left, follows=request.follows)
    logger.info("%s %s committed: %d file(s)", operation.name.value, transaction.instant, len(stats))
    result = summarise(transaction.instant, metadata, path, rows_replaced)
    committed = transaction.committed
    return replace(
        result, figures=figures, seconds=seconds_so_far(), action=write.action, committed=committed
    )


def _figures(metadata: CommitMetadata, incoming: Incoming, path: str) -> WriteFigures:
    """Add up what a write did, and note it in its commit."""
    figures = WriteFigures.of(metadata, incoming.rows, shuffled=path in ("partitions", "joined"))
    metadata.extra_metadata[FIGURES] = figures.to_json(seconds_so_far())
    return figures


def _incoming(spark: SparkSession, write: ResolvedWrite) -> Incoming:
    """Fit and key the batch, on the driver when it is small; a match condition or own rows are settled before that."""
    config, options, operation = write.config, write.options, write.operation
    state, request, index = write.state, write.request, write.index
    if operation.delete_only:
        batch, index = delete_batch(state, request.frame, index, prepped=request.prepped)
    else:
        carry: tuple[str, ...] = (RECORD_KEY, PARTITION_PATH) if request.prepped else ()
        if names_changes(config, request):
            carry = (OPERATION,)
        known = None if request.new_schema else state.data_schema()
        batch = align(request.frame, known, fit_policy(config, options), carry=carry)
        check_columns(config, request.frame.columns, batch.schema, index)
        check_fixed_columns(config, known, batch.schema, operation.replaces)
        check_returning(state, known, batch.schema, operation.replaces)
    keyed = batch
    if request.match_condition is not None:
        keyed = flag_unmatched(
            spark, state, batch, request.match_condition, options, everywhere=index.is_global
        )
    if request.changes is not None:
        keyed = request.changes.rows(spark, state, batch, options)
        request = replace(request, prepped=True)
    if request.prepped:
        # The rows know their places: there is nothing left to look up beyond their partitions.
        index = replace(index, is_global=False)
    try:
        return _fetched(replace(write, request=request, index=index), batch, keyed)
    except BaseException:
        keyed.release()
        raise


def _fetched(write: ResolvedWrite, batch: AlignedBatch, keyed: AlignedBatch) -> Incoming:
    """Give the rows their keys, on the driver when they are few.

    Args:
        batch: The rows as they were fitted.
        keyed: The same, or what a match condition or own rows made of them.
    """
    options, operation, index = write.options, write.operation, write.index
    schema = _table_schema(write.state, batch, write.request)
    table = fetch_small(keyed, options)
    if OPERATION in batch.carried:
        if table is None:
            raise ConfigError(
                f"the batch names its changes in {OPERATION!r}, whose order only batches of at most "
                f"{EngineOptions.SMALL_BATCH_ROWS}={options[EngineOptions.SMALL_BATCH_ROWS]} rows keep; write it in parts, "
                "raise the limit, or leave the column out"
            )
        table = check_operations(table)
    distributed = None
    if table is None:
        distributed = prepare_distributed(
            keyed,
            write.state,
            options,
            write.way,
            prepped=write.request.prepped,
            reads_once=not (index.is_global and operation.lookup),
        )
        table = fetch_evaluated(keyed, distributed, options)
    if table is not None:
        table, distributed = _with_keys(write, table), None
    return Incoming(schema, batch.schema, table, distributed, index, keyed.cached)


def _table_schema(state: TableState, batch: AlignedBatch, request: WriteRequest) -> pa.Schema:
    if not request.operation.delete_only:
        return batch.schema
    schema = state.data_schema()
    return align(request.frame, None, FitPolicy()).schema if schema is None else schema


def _with_keys(write: ResolvedWrite, table: pa.Table) -> pa.Table:
    """Add record key and partition path, refusing rows without a key and partition values that would escape."""
    config, request = write.config, write.request
    if request.changes is not None and config.record_key_fields:
        check_no_null_key(table, config)
    if not request.prepped:
        generator = build_key_generator(
            config, options=request.options, complex_single_prefix=write.state.keys_carry_field_name()
        )
        keys = generator.record_keys(table)
        unplaced = (
            request.operation.delete_only
            and write.index.is_global
            and not _has_partition_columns(table.column_names, config)
        )
        partitions = (
            pa.array([""] * table.num_rows, pa.string()) if unplaced else generator.partition_paths(table)
        )
        if keys is not None:
            table = table.append_column(RECORD_KEY, keys)
        table = table.append_column(PARTITION_PATH, partitions)
    distinct = pc.unique(table.column(PARTITION_PATH))
    check_partition_count(distinct, request.options)
    for partition in distinct.to_pylist():
        check_new_partition(partition)
    return table


def _has_partition_columns(names: Sequence[str], config: TableConfig) -> bool:
    given = {name.lower() for name in names}
    return all(field.name.partition(".")[0].lower() in given for field in config.partition_fields)


def _units(write: ResolvedWrite, incoming: Incoming) -> dict[str, PartitionUnit]:
    """Return latest slices of the partitions that matter: those of the batch, or all for a global look-up or an overwrite."""
    request, partitions = write.request, incoming.partitions
    everything = write.index.is_global or partitions is None or write.operation.replaces == WHOLE_TABLE
    partitions = list(dict.fromkeys((*(partitions or ()), *request.partitions)))
    view = write.state.view(None if everything else partitions)
    units = partition_units(write.state, write.options, view.latest_slices(), partitions)
    refuse_taking_out(write.operation, units, incoming.partitions, write.options)
    return units


def _write_small(
    spark: SparkSession,
    context: WriteContext,
    plan: UnitPlan,
    units: Mapping[str, PartitionUnit],
    table: pa.Table,
    transaction: WriteTransaction,
) -> tuple[str, list[WriteStat]]:
    """Write a batch in memory: by threads here, or by executors where the base files it may touch are many bytes."""
    if plan.index.is_global and (plan.lookup or plan.combine):
        if plan.lookup:
            table = resolve_globally(context, plan, units, table)
        else:
            table = combine_batch(table, context.config)
        plan = replace(plan, combine=False)
    partitions = set(pc.unique(table.column(PARTITION_PATH)).to_pylist())
    touched = sum(
        each.size for unit in units.values() if unit.partition in partitions for each in unit.slices
    )
    if plan.lookup and touched > context.options[EngineOptions.DRIVER_MERGE_BYTES]:
        counts = pc.value_counts(table.column(PARTITION_PATH)).to_pylist()
        rows = {entry["values"]: entry["counts"] for entry in counts}
        transaction.inflight(partition_profile(context.operation, rows, units))
        return "executors", run_small_batch(spark, context, plan, units, table)

    def planned(tagged: Sequence[TaggedUnit]) -> None:
        transaction.inflight(tagged_profile(context.operation, tagged))

    return "driver", run_on_driver(context, plan, units, table, planned)
