"""From a model's query to a commit: staging, schema changes, rebuild and the strategies' writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial, reduce
from operator import and_
from typing import Any, TypeVar

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine import HudiTable, build_table, rebuild_table
from hudi_engine.errors import (
    ConsumedMeanwhileError,
    PlannedMeanwhileError,
    TableExistsError,
    TableNotFoundError,
    WriteConflictError,
)
from hudi_engine.format.config.declared.engine_options import WriterOptions
from hudi_engine.format.config.declared.service_options import CompactionOptions
from hudi_engine.format.config.declared.write_options import WriteOptions
from hudi_engine.format.config.enums import TableType
from hudi_engine.format.config.options import Options, laid_over, resolve_options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.keygen.partition_path import DEFAULT_PARTITION_VALUE
from hudi_engine.format.merge.modes.registry import merge_rule
from hudi_engine.format.schema.any_case import spellings
from hudi_engine.format.schema.meta_fields import DELETES, IS_DELETED
from hudi_engine.format.schema.sql_names import quoted
from hudi_engine.format.storage.uris import plain_location, same_place
from hudi_engine.spark.catalog import TableName
from hudi_engine.spark.sql.not_null import forget_columns, stays
from hudi_engine.spark.sql.own_rows import shown_for_condition
from hudi_engine.spark.write.rows.casts import drop_meta_columns
from hudi_engine.spark.write.rows.replacement import EventWindow, outside_rows, with_zone
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.retry import retried
from hudi_engine.table.write import operation as operations
from hudi_engine.table.write.define.definition import table_properties
from hudi_engine.table.write.result import WriteResult
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.model.clauses import clause_sql
from dbt.adapters.hudi.model.engine_options import changed_options
from dbt.adapters.hudi.model.merge import MERGING
from dbt.adapters.hudi.model.plan import ModelPlan
from dbt.adapters.hudi.model.run_notes import BATCH_END, BUILDS, INVOCATION
from dbt.adapters.hudi.preview import PREVIEW
from dbt.adapters.hudi.response import HudiAdapterResponse, write_response
from dbt.adapters.hudi.rows.alignment import (
    check_named_columns,
    fit_to_table,
    misfits,
    missing_columns,
    with_delete_mark,
)
from dbt.adapters.hudi.rows.constraints import Constraint, broken, checked
from dbt.adapters.hudi.rows.deletes import ordered_deletes, with_one_mark, without_deleted
from dbt.adapters.hudi.rows.error_table import good_rows, lacking_keys
from dbt.adapters.hudi.rows.existing_target import (
    build_under_name,
    created_concurrently,
    find_existing,
    is_written,
    warn_replaced,
)
from dbt.adapters.hudi.rows.schema_changes import schema_change
from dbt.adapters.hudi.run import UNFILTERED, ModelRun
from dbt.adapters.hudi.spark.warehouse import Warehouse

_HOOKS = ("pre-hook", "post-hook")
_LOOKED_AT = 8
"""Newest commits among which that of the last batch is looked for: services commit after it."""


def as_first_batch(plan: ModelPlan, run: ModelRun | None) -> ModelPlan:
    """Return the plan of a batch that builds the table, whose commit and those of later batches of this run note it."""
    if plan.merge.window is None:
        return plan
    if run is not None:
        run.builds = True
    return _noted(plan)


def as_later_batch(plan: ModelPlan, table: HudiTable, run: ModelRun) -> ModelPlan:
    """Return the plan of a batch that goes into a table, and warn when batches may be missing before it."""
    window = plan.merge.window
    if window is None or window.start is None:
        return plan
    if run.builds is None:
        run.builds = False
        _warn_gap(plan, table, window.start)
    return _noted(plan) if run.builds else plan


def resumes_build(unique_id: str, manifest: Any) -> bool:
    """Whether ``dbt retry`` runs batches of a model again of which others are done.

    It repeats ``--full-refresh`` if the run had it that it follows. The first batch must not rebuild the table then: the
    rows of those that are done would go with the old table.
    """
    node = None if manifest is None else manifest.nodes.get(unique_id)
    before = getattr(node, "previous_batch_results", None)
    return bool(before is not None and before.successful)


def _noted(plan: ModelPlan) -> ModelPlan:
    return replace(plan, run_notes={**plan.run_notes, BUILDS: "true"})


def _warn_gap(plan: ModelPlan, table: HudiTable, start: datetime) -> None:
    last = next((each for each in table.commits(_LOOKED_AT) if not each.is_service), None)
    if last is None or BUILDS not in last.extra or BATCH_END not in last.extra:
        return
    end, start = with_zone(datetime.fromisoformat(last.extra[BATCH_END])), with_zone(start)
    if end < start:
        end = _end_of_build(table, last.extra)
    if end >= start:
        return
    # no error even where warnings are: days without rows leave no commit, so each run warns until one has rows
    logger.warning(
        "{}: the run that built it (invocation {}) ended with the batch up to {}, and this run begins at {}. Batches between them "
        "had no rows, or are missing: dbt asks for the newest batches alone once the table is there. If that run was interrupted, "
        "or ran long ago, run the model with --event-time-start {} --event-time-end {}",
        f"{plan.schema}.{plan.name}",
        last.extra.get(INVOCATION, "unknown"),
        end.isoformat(),
        start.isoformat(),
        _argument(end),
        _argument(start),
    )


def _end_of_build(table: HudiTable, last: Mapping[str, str]) -> datetime:
    """Return the greatest end of the batches of the run that a commit is of: threads need not commit them in their order."""
    run = last.get(INVOCATION)
    notes = [last, *(each.extra for each in table.commits() if each.extra.get(INVOCATION) == run)]
    return max(with_zone(datetime.fromisoformat(each[BATCH_END])) for each in notes if BATCH_END in each)


def _argument(moment: datetime) -> str:
    """Return a moment as dbt's command line takes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S")


Result = TypeVar("Result")
OPERATIONS: Mapping[str, operations.Operation] = {**operations.BY_NAME, "insert_new": operations.INSERT}
# Batches whose rows share a partition overtake each other; each time one of them has committed.
MICROBATCH_RETRIES = "20"
TABLE_WORDS: Mapping[TableType, str] = {TableType.COPY_ON_WRITE: "cow", TableType.MERGE_ON_READ: "mor"}


@dataclass(frozen=True)
class ModelRows:
    """The rows of a model's query.

    Args:
        frame: The rows, columns as the schema change mode leaves them.
        begins: The run may not replace rows: a table that was created since it started stays.
        base: The model's table as it was before the query read rows of it; None when it reads none.
        stores_mark: ``_hoodie_is_deleted`` is a column of the table, not only a mark.
    """

    frame: DataFrame
    constraints: Sequence[Constraint] = ()
    begins: bool = False
    base: TableState | None = None
    stores_mark: bool = False


def rebuild_model(
    warehouse: Warehouse,
    session: SparkSession,
    plan: ModelPlan,
    rows: ModelRows,
    run: ModelRun | None = None,
) -> HudiAdapterResponse:
    """Create the model's table or replace all of it; what else has its name makes room."""
    plan = as_first_batch(plan, run)
    frame = drop_meta_columns(rows.frame)
    check_named_columns(frame.columns, plan.named_columns)
    definition = plan.definition_with(warehouse.options)
    to_be = table_properties(schema=None, **definition)
    if _consumes_marks(plan, rows):
        frame = with_one_mark(frame)
    with _sound_rows(warehouse, session, plan, rows, frame, frame.schema, to_be) as (sound, failed):
        result, name = _rebuild(warehouse, session, plan, rows, sound, to_be)
        if PREVIEW.is_on:
            options = resolve_options(definition["options"])
            known = plan.merge.window is None and _adds_rows_as_they_are(sound, to_be, options)
            PREVIEW.note_rows(plan.schema, plan.name, sound if known else None)
        return write_response(result, name, set_aside=failed)


def _rebuild(
    warehouse: Warehouse,
    session: SparkSession,
    plan: ModelPlan,
    rows: ModelRows,
    frame: DataFrame,
    to_be: TableConfig,
) -> tuple[WriteResult, str | None]:
    """Make a model's table of rows that may be written."""
    definition = plan.definition_with(warehouse.options)
    options = resolve_options(definition["options"])
    combines = options[WriteOptions.COMBINE_BEFORE_INSERT]
    frame = ordered_deletes(frame, to_be, options, combines=combines, name=f"{plan.schema}.{plan.name}")
    entry = warehouse.entry(session, plan.schema, plan.name)
    if entry is not None and entry.base is not None and same_place(entry.base, plan.base):
        with suppress(TableNotFoundError):
            warn_of_writers(plan, warehouse.table(session, plan.base))
    replaces_unnamed = find_existing(warehouse, session, plan, entry, begins=rows.begins)
    build = build_table if rows.begins else partial(rebuild_table, base=rows.base)
    # columns of the table that clauses name are unknown if another table is in its place
    if entry is None and (clauses := plan.merge.row_clauses) is not None:
        clauses.refuse_unknown(frame)
    if (window := _window_of(plan)) is not None:
        frame = window.only_within(frame)
    with outside_rows():
        try:
            result = build_under_name(warehouse, session, plan, entry, frame, build)
        except TableExistsError as error:
            if not (rows.begins and is_written(warehouse, session, plan.base)):
                raise  # files of something else lie there
            raise created_concurrently(plan) from error
    if PREVIEW.is_on:
        return result, _response_name(plan)
    if replaces_unnamed:
        warn_replaced(plan)
    if entry is not None and entry.base is None and not entry.is_view:
        logger.warning(
            "{}.{} has replaced a table of another format, whose rows are deleted; another alias keeps such a table",
            plan.schema,
            plan.name,
        )
    table = warehouse.table(session, plan.base)
    warehouse.register_plan(session, plan, table, rebuilt=True)
    return result, _response_name(plan)


def write_model(
    warehouse: Warehouse,
    session: SparkSession,
    plan: ModelPlan,
    rows: ModelRows,
    run: ModelRun | None = None,
) -> HudiAdapterResponse:
    """One incremental write into the model's table."""
    operation = plan.merge.operation
    assert operation is not None, "a strategy of the user's own is a macro"
    table = current_table(warehouse, session, plan)
    warn_of_writers(plan, table)
    _hint_at_compaction(warehouse, plan, table, run)
    conditions, values = clause_sql(plan.merge.clauses)
    conditions.append(plan.merge.condition or "true")
    PREVIEW.check_conditions(session, [*conditions, *values])
    table = table.as_read(rows.base or _state_for_clauses(warehouse, session, plan, conditions, values))
    plan = as_later_batch(plan, table, run or ModelRun())
    frame = drop_meta_columns(rows.frame)
    schema = data_columns(table)
    # rows to delete name their key only, so they have no effect on the table's columns
    mode = "ignore" if operation == "delete" else plan.merge.on_schema_change
    if change := schema_change(mode, schema, frame.schema):
        schema = change.applied(schema)
        table = table.with_schema(schema)
    check_fit(plan, table, frame.columns)
    if _consumes_marks(plan, rows):
        frame = with_one_mark(frame, schema.names)
    elif operation != "delete" and not plan.table.keeps_history:
        frame = without_deleted(frame, schema.names)
    fitting = with_delete_mark(schema, frame) if operation == "upsert" else schema
    with _sound_rows(warehouse, session, plan, rows, frame, fitting, table.config) as (sound, failed):
        update = condition = None
        if operation == "upsert":
            update, condition = _columns_to_update(plan, schema, sound), plan.merge.condition
        fitted = _fitted(warehouse, plan, table, sound, fitting)
        if plan.is_empty_run and operation != "delete" and fitted.isEmpty():
            # with --empty no stored rows are replaced
            options = _options_of_batch(plan) if plan.merge.window is not None else plan.write_options
            result = table.write(operations.INSERT, fit_to_table(sound, schema, fill_missing=True), options)
        elif plan.merge.clauses is not None:
            clauses = replace(
                plan.merge.clauses,
                on=condition,
                update_columns=None if update is None else tuple(update),
                test=lambda made, kept: checked(
                    made, rows.constraints, schema.names, kept & stays(made, made.columns, table.config)
                ),
            )
            result = table.merge(fitted, clauses, options=plan.write_options)
        elif operation in OPERATIONS:
            # no row names the only partition of such a table where the query has none
            whole = operation == "insert_overwrite" and not table.config.partition_fields
            made = operations.INSERT_OVERWRITE_TABLE if whole else OPERATIONS[operation]
            result = table.write(
                made, fitted, plan.write_options, update_columns=update, match_condition=condition
            )
        else:
            result = _replace(table, plan, fitted)
        _warn_duplicate_keys(plan, table, fitting.names, result)
        if PREVIEW.is_on:
            PREVIEW.note_change(
                plan.schema, plan.name, result, _rows_to_be(warehouse, session, plan, table, fitted)
            )
            return write_response(result, _response_name(plan), set_aside=failed)
    with warehouse.one_writer(session, plan.base):
        if change.removed:
            forget_columns(table, change.removed)
        warehouse.register_plan(session, plan, table)
    return write_response(result, _response_name(plan), set_aside=failed)


def _adds_rows_as_they_are(frame: DataFrame, config: TableConfig, options: Options) -> bool:
    """Whether a write that looks up no keys adds every row that comes: none is a mark, and none takes the place of another."""
    marks = {DELETES, IS_DELETED, *((config.delete_marker or ())[:1])}
    return not (
        options[WriteOptions.COMBINE_BEFORE_INSERT] or marks & {each.lower() for each in frame.columns}
    )


def _rows_to_be(
    warehouse: Warehouse, session: SparkSession, plan: ModelPlan, table: HudiTable, fitted: DataFrame
) -> DataFrame | None:
    """Return the rows that a table has after a planned write, where they are its own and those that come; else None."""
    options, operation = (
        resolve_options(laid_over(warehouse.options, plan.write_options)),
        plan.merge.operation,
    )
    fields = table.config.partition_fields
    stored = session.table(TableName(plan.schema, plan.name).sql)
    if plan.merge.window is not None or not _adds_rows_as_they_are(fitted, table.config, options):
        return None
    if operation == "insert_overwrite_table" or (operation == "insert_overwrite" and not fields):
        return fitted
    if operation == "insert_overwrite":
        if any(each.kind != "simple" for each in fields):
            return None
        names = [f"__{each.name}" for each in fields]
        places = fitted.select(
            *(_place(fitted, each.name).alias(name) for each, name in zip(fields, names))
        ).distinct()
        same = (
            _place(stored, each.name).eqNullSafe(F.col(quoted(name))) for each, name in zip(fields, names)
        )
        stored = stored.join(places, reduce(and_, same), "left_anti")
    elif operation not in ("insert", "bulk_insert"):
        return None
    if {each.lower() for each in stored.columns} - {each.lower() for each in fitted.columns}:
        return None
    return stored.unionByName(fitted, allowMissingColumns=True)


def _place(rows: DataFrame, name: str) -> Column:
    """Return what makes the folder of a partition column's value: null and ``''`` share one, 0.0 and -0.0 do not."""
    value, kind = F.col(quoted(name)), rows.select(quoted(name)).schema[0].dataType
    if isinstance(kind, (T.StringType, T.FloatType, T.DoubleType)):
        text = value.cast("string")
        return F.when(text != "", text).otherwise(F.lit(DEFAULT_PARTITION_VALUE))
    return value


@contextmanager
def _sound_rows(
    warehouse: Warehouse,
    session: SparkSession,
    plan: ModelPlan,
    rows: ModelRows,
    frame: DataFrame,
    stored: T.StructType,
    config: TableConfig,
) -> Iterator[tuple[DataFrame, int]]:
    """Yield the rows to write, and how many are in the error table instead; without one the write fails at such a row.

    Args:
        stored: The columns that the rows are fitted to.
    """
    only = stays(frame, stored.names, config)
    if plan.merge.operation == "delete":
        yield frame, 0
    elif not plan.error_table:
        yield checked(frame, rows.constraints, only=only), 0
    else:
        fit_to_table(frame, stored)  # refuses types of which no value fits
        problems = [*broken(frame, rows.constraints, only), *misfits(frame, stored)]
        problems += lacking_keys(config.record_key_fields)
        with good_rows(warehouse, session, plan, frame, problems) as found:
            yield found


def _fitted(
    warehouse: Warehouse, plan: ModelPlan, table: HudiTable, frame: DataFrame, fitting: T.StructType
) -> DataFrame:
    """Return rows in the columns of the table; reading rows of a key that no order decides fails."""
    operation = plan.merge.operation
    fitted = fit_to_table(frame, fitting, fill_missing=operation != "delete")
    if operation == "delete":
        return fitted
    resolved = resolve_options(laid_over(warehouse.options, plan.write_options))
    combines = operation == "upsert" and resolved[WriteOptions.COMBINE_BEFORE_UPSERT]
    name = f"{plan.schema}.{plan.name}"
    return ordered_deletes(fitted, table.config, resolved, combines=combines, name=name)


def _consumes_marks(plan: ModelPlan, rows: ModelRows) -> bool:
    """Return whether a model's marks of deleted rows delete by its key and are not stored."""
    merges = bool(plan.table.record_key) and plan.merge.strategy in MERGING
    return merges and not plan.table.keeps_history and not rows.stores_mark


def _state_for_clauses(
    warehouse: Warehouse, session: SparkSession, plan: ModelPlan, conditions: list[str], values: list[str]
) -> TableState | None:
    """Return the table as it was before conditions and values of the model's config read it; see `shown_for_condition`."""
    # one value that rows are compared with makes no conflict of what others add, as in the model's query
    state = shown_for_condition(warehouse, session, plan, conditions, bounds=False)
    return state or shown_for_condition(warehouse, session, plan, values)


def _response_name(plan: ModelPlan) -> str | None:
    """Return what a write is called where several operations of the engine do the same."""
    return None if plan.merge.window is None else "microbatch"


def _replace(table: HudiTable, plan: ModelPlan, rows: DataFrame) -> WriteResult:
    """Take the rows out that the strategy names, and put the model's in their place, in one commit."""
    merge = plan.merge
    if merge.window is None:
        return table.replace(
            rows, keys=merge.delete_by or None, where=merge.condition, options=plan.write_options
        )
    window = _window_of(plan)
    if window is None:
        raise DbtRuntimeError(
            f"{plan.schema}.{plan.name} has incremental_strategy 'microbatch' and dbt gave it no batch to run; use a version of "
            "dbt that runs microbatch models, or replace_where with incremental_predicates"
        )
    if plan.sample is not None:
        # of what is outside of the sample the run has read nothing, or a part
        rows, window = window.only_within(rows), window.cut(*plan.sample)
        rows = rows.where(window.condition(rows))
    return table.replace(rows, window=window, options=_options_of_batch(plan))


def _options_of_batch(plan: ModelPlan) -> Mapping[str, object]:
    """Return the options of a batch's write: one that takes no row out and puts none in leaves no instant.

    Those of a year may outnumber those with rows.
    """
    usual = {
        WriterOptions.CONFLICT_RETRIES.key: MICROBATCH_RETRIES,
        WriteOptions.SKIP_EMPTY_COMMIT.key: "true",
    }
    return laid_over(usual, plan.write_options)


def _window_of(plan: ModelPlan) -> EventWindow | None:
    """Return the window of the batch that runs, None where there is none."""
    window = plan.merge.window
    if window is None or window.start is None or window.end is None:
        return None
    return EventWindow(window.column, window.start, window.end, UNFILTERED)


def side_by_side(plan: ModelPlan) -> bool:
    """Whether threads of this process may write a model's table at the same time: batches, where partitions can tell them apart."""
    # tests look at the whole table, which must not change meanwhile
    return plan.merge.window is not None and bool(plan.table.partition_by) and not plan.tests


def _warn_duplicate_keys(
    plan: ModelPlan, table: HudiTable, columns: Sequence[str], result: WriteResult
) -> None:
    """Warn of rows that a merge without a precombine field has dropped, as later rows of the batch have their keys."""
    # the rows of the query are counted where the write had them in memory
    came = None if result.figures is None else result.figures.rows_in
    config = table.config
    merges = plan.merge.operation == "upsert" and plan.merge.clauses is None and not plan.merge.skip_unchanged
    if came is None or not merges or config.ordering_fields or merge_rule(config).fills:
        return
    marks = {DELETES, IS_DELETED, *((config.delete_marker or ())[:1])}
    if marks & {each.lower() for each in columns}:
        return  # rows may be left out for other reasons
    lost = came - result.rows_inserted - result.rows_updated - result.rows_deleted
    if lost > 0:
        logger.warning(
            "{}: a value of unique_key {} in more than one row of the batch; {} left out, as without precombine_field the "
            "last one counts. Select one row a key, or set precombine_field",
            f"{plan.schema}.{plan.name}",
            ", ".join(plan.table.record_key),
            "1 row was" if lost == 1 else f"{lost:,} rows were",
        )


def _columns_to_update(plan: ModelPlan, schema: T.StructType, frame: DataFrame) -> list[str] | None:
    """Return the columns a matched row takes from the model, None for all."""
    columns = tuple(schema.names)
    update = plan.merge.columns_to_update(columns)
    if plan.merge.update_columns is not None:
        check_named_columns(frame.columns, {"merge_update_columns": plan.merge.update_columns})
    known = list(spellings((*frame.columns, *columns)).values())
    check_named_columns(known, {"merge_exclude_columns": plan.merge.exclude_columns or ()})
    absent = missing_columns(frame, schema)
    # a matched row keeps what the model no longer selects
    taken = columns if update is None else update
    return [column for column in taken if column not in absent] if absent else update


def current_table(warehouse: Warehouse, session: SparkSession, plan: ModelPlan) -> HudiTable:
    """Return the model's table as it is on storage."""
    named = warehouse.hudi_base(session, plan.schema, plan.name)
    if named is not None and not same_place(named, plan.base):
        raise DbtRuntimeError(
            f"{plan.schema}.{plan.name} is the table at {plain_location(named)}, and by its config it would be at "
            f"{plain_location(plan.base)}; restore location_root, or run it with --full-refresh to build it there"
        )
    try:
        return warehouse.table(session, plan.base)
    except TableNotFoundError as error:
        raise DbtRuntimeError(
            f"{plan.schema}.{plan.name} has no Hudi table at {plan.base}; run it with --full-refresh to build it there"
        ) from error


def warn_of_writers(plan: ModelPlan, table: HudiTable) -> None:
    """Warn, before the query runs, that another process is writing to the model's table: one of the two may be refused."""
    found = table.writes_under_way()
    if found:
        logger.warning(
            "{}.{} is being written to by another process: {}. Of two runs that change the same rows the later one is refused",
            plan.schema,
            plan.name,
            ", ".join(found),
        )


def _hint_at_compaction(
    warehouse: Warehouse, plan: ModelPlan, table: HudiTable, run: ModelRun | None
) -> None:
    """Say once what a merge-on-read model costs whose logs nothing compacts, after as many commits as Hudi would compact."""
    if plan.table.table_type != "mor" or table.delta_commits() != CompactionOptions.DELTA_COMMITS.default:
        return
    hooks = "" if run is None else str([(run.node.get("config") or {}).get(each) for each in _HOOKS])
    given = laid_over(warehouse.options, plan.options)
    if (
        "compact" in hooks
        or CompactionOptions.INLINE.key in given
        or CompactionOptions.SCHEDULE_INLINE.key in given
    ):
        return
    logger.warning(
        "{}.{} has {} delta commits and no compaction, so that each read merges their logs. Set compaction: true, which compacts "
        "after as many commits, or post_hook: hudi_compact(this); compaction: false if another process compacts it",
        plan.schema,
        plan.name,
        table.delta_commits(),
    )


def data_columns(table: HudiTable) -> T.StructType:
    """Return the table's data columns; none before its first write."""
    return table.schema or T.StructType()


def check_fit(plan: ModelPlan, table: HudiTable, columns: Sequence[str]) -> None:
    """Refuse an incremental run whose config or columns do not fit the table."""
    check_shape(plan, table)
    named = plan.named_columns
    # a row without them would lie in the partition of null, or be older than all; one to delete names its key only
    placing = () if plan.merge.operation in (None, "delete") else ("partition_by", "precombine_field")
    check_named_columns(columns, {key: named[key] for key in ("unique_key", "event_time", *placing)})
    known = list(spellings((*data_columns(table).names, *columns)).values())
    check_named_columns(known, {"cluster_by": named["cluster_by"]})


def check_shape(plan: ModelPlan, table: HudiTable) -> None:
    """Refuse an incremental run whose config no longer fits the table; all differences in one message."""
    config = table.config
    compared: list[tuple[str, object, object]] = [
        ("unique_key", plan.table.record_key, tuple(config.record_key_fields)),
        ("partition_by", plan.table.partition_columns, tuple(f.name for f in config.partition_fields)),
        ("table_type", plan.table.table_type, TABLE_WORDS[config.table_type]),
        ("precombine_field", plan.table.precombine_field, tuple(config.ordering_fields)),
    ]
    if plan.table.hive_style is not None and config.partition_fields:
        compared.append(("hive_style_partitioning", plan.table.hive_style, config.hive_style))
    different = [
        f"  * {key} is {_shown(wanted)}, but the table has {_shown(found)}"
        for key, wanted, found in compared
        if _folded(wanted) != _folded(found)
    ]
    if not different:
        changed = changed_options(plan.definition, plan.given_options, config.properties)
        different = [
            f"  * {key} is {wanted}, but the table has {found}" for key, (wanted, found) in changed.items()
        ]
    if different:
        listed = "\n".join(different)
        way = "run it with --full-refresh to rebuild the table, or give the config that fits the table"
        if plan.table.keeps_history:
            way = "give the config that fits the table, or drop the table to begin a new history"
        raise DbtRuntimeError(
            f"The config of {plan.schema}.{plan.name} no longer fits its table at {plan.base}; {way}:\n{listed}"
        )


def _folded(value: object) -> object:
    if isinstance(value, tuple):
        return tuple(str(item).lower() for item in value)
    return value.lower() if isinstance(value, str) else value


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return str(value) if value is not None else "none"


def evaluated_again(write: Callable[[], Result], evaluate: Callable[[], object], retries: int) -> Result:
    """Write a model's rows; after each conflict evaluate its query again, as its rows may come from the table.

    Args:
        retries: How often (``conflict_retries``).
    """
    tried = False

    def attempt() -> Result:
        nonlocal tried
        if tried:
            evaluate()
        tried = True
        return write()

    try:
        return retried(attempt, retries)
    except ConsumedMeanwhileError as error:
        raise ConsumedMeanwhileError(
            f"{error}\nAnother run of the model has taken changes of its inputs since this one started; the next run takes what "
            "comes after them"
        ) from error
    except WriteConflictError as error:
        if retries or isinstance(error, PlannedMeanwhileError):
            raise
        raise WriteConflictError(
            f"{error}\nWith conflict_retries in its config a model is evaluated again by itself, that often"
        ) from error
