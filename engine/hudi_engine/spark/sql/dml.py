"""INSERT, UPDATE, DELETE, MERGE and TRUNCATE on Hudi tables, run by the engine."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from hudi_engine import HudiTable
from hudi_engine.errors import StatementError
from hudi_engine.format.merge.modes.registry import merge_rule
from hudi_engine.format.schema.any_case import AnyCase
from hudi_engine.format.spelling import did_you_mean
from hudi_engine.spark.jvm import plans
from hudi_engine.spark.sql.merging import Merge, all_new, columns_given, columns_updated
from hudi_engine.spark.sql.not_null import never_null
from hudi_engine.spark.sql.own_rows import state_for_subqueries, statement_with_state_read, with_newest_source
from hudi_engine.spark.sql.partitions import Static, path_of, static_partitions
from hudi_engine.spark.sql.statement import Statement, StatementResult, Target, data_columns
from hudi_engine.spark.sql.statements import clause_after, split_outside
from hudi_engine.spark.write.rows.casts import check_fields, drop_meta_columns, fit_to_table
from hudi_engine.table.lookup.unit import INSERT_FLAG
from hudi_engine.table.state import TableState
from hudi_engine.table.write.result import WriteResult

_log = logging.getLogger(__name__)
_OPERATIONS = {
    "hoodie.spark.sql.insert.into.operation": ("insert", "bulk_insert"),
    "hoodie.datasource.write.operation": (
        "insert",
        "bulk_insert",
        "insert_overwrite",
        "insert_overwrite_table",
    ),
    "hoodie.sql.insert.mode": ("non-strict",),
}
"""Settings of Hudi's SQL that make an INSERT another operation, with the values by which it stays one."""
_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"


def insert(statement: Statement, target: Target) -> StatementResult:
    """INSERT INTO and INSERT OVERWRITE; the latter obeys Spark's partition overwrite mode."""
    plan = statement.plan
    table = statement.table(target)
    partition_by = [item.name for item in table.config.partition_fields]
    static = static_partitions(plan, partition_by, target)
    names = plans.texts(plan.userSpecifiedCols())
    target.refuse_twice([*names, *static])
    criteria = _criteria(plan, target)
    replaces = criteria is not None or plan.overwrite()
    rows, read = _rows_and_state(statement, target) if replaces else (_query(statement), None)
    frame = _named(rows, names, data_columns(table), static, plans.has_flag(plan, "byName"), target)
    frame = never_null(frame, target, table)
    _check_operation(statement.session, target)
    if criteria is not None:
        return _replace_where(statement, target, table, frame, criteria, read)
    if not plan.overwrite():
        _warn_of_repeated_keys(statement, target, table.config.record_key_fields)
        return _done(statement, target, table, table.insert(frame))
    return _overwrite(statement, target, table, frame, static, read)


def overwrite_where(statement: Statement, target: Target) -> StatementResult:
    """INSERT INTO ... REPLACE WHERE, as PySpark before 4.3 parses it."""
    plan, table = statement.plan, statement.table(target)
    rows, read = _rows_and_state(statement, target)
    frame = _named(rows, [], data_columns(table), {}, plan.isByName(), target)
    frame = never_null(frame, target, table)
    return _replace_where(statement, target, table, frame, plan.deleteExpr(), read)


def _replace_where(
    statement: Statement,
    target: Target,
    table: HudiTable,
    frame: DataFrame,
    condition: plans.JavaPlan,
    read: TableState | None,
) -> StatementResult:
    """Delete the rows that fulfil a condition and insert others, all of which must fulfil it too."""
    table = table.as_read(read or state_for_subqueries(statement, target, condition))
    where = plans.checked_text(statement.session, plans.text_of(statement.text, condition), condition)
    return _done(statement, target, table, table.replace(frame, where=where, named=target.own_name))


def _criteria(plan: plans.JavaPlan, target: Target) -> plans.JavaPlan | None:
    """Return the condition of REPLACE WHERE, None without one; other clauses of an INSERT are refused by name."""
    refused = {
        "ifPartitionNotExists": "INSERT OVERWRITE ... IF NOT EXISTS is refused: select no rows where the partition exists",
        "withSchemaEvolution": "INSERT WITH SCHEMA EVOLUTION is refused: add the columns with ALTER TABLE ... ADD COLUMNS first, "
        "or let an incremental model with on_schema_change add them",
    }
    for flag, reason in refused.items():
        if plans.has_flag(plan, flag):
            raise StatementError(f"{target.label}: {reason}")
    criteria = (
        plans.option(plan.replaceCriteriaOpt()) if plans.hasattr_java(plan, "replaceCriteriaOpt") else None
    )
    if criteria is None:
        return None
    if plans.kind(criteria) != "InsertReplaceWhere":
        raise StatementError(
            f"{target.label}: INSERT ... REPLACE USING and REPLACE ON are refused: name the rows in REPLACE WHERE, or let an "
            "incremental model with incremental_strategy='delete+insert' replace the rows of its unique_key"
        )
    return criteria.cond()


def _check_operation(session: SparkSession, target: Target) -> None:
    """Refuse an INSERT in a session whose settings ask for another operation of Hudi's."""
    for key, legal in _OPERATIONS.items():
        given = str(session.conf.get(key, None) or legal[0])
        if given.lower() not in legal:
            raise StatementError(
                f"{target.label}: {key} is {given!r} in this session, and INSERT inserts; legal values: {', '.join(legal)}. "
                "MERGE INTO upserts, DELETE FROM deletes"
            )


def _warn_of_repeated_keys(statement: Statement, target: Target, keys: Sequence[str]) -> None:
    """Warn once for a table with a record key that INSERT, as in Hudi, looks up none."""
    if keys and target.label not in statement.warned:
        statement.warned.add(target.label)
        _log.warning(
            "INSERT INTO %s looks up no keys: a row whose %s is there already is stored twice; MERGE INTO updates it",
            target.label,
            ", ".join(keys),
        )


def _overwrite(
    statement: Statement,
    target: Target,
    table: HudiTable,
    frame: DataFrame,
    static: Static,
    read: TableState | None,
) -> StatementResult:
    """Replace the table or some partitions, by Spark's overwrite mode; commits of others after ``read`` conflict."""
    partition_by = [item.name for item in table.config.partition_fields]
    dynamic = str(statement.session.conf.get(_OVERWRITE_MODE, "static")).lower() == "dynamic"
    one_partition = bool(static) and len(static) == len(partition_by)
    if static and not one_partition and not dynamic:
        raise StatementError(
            f"INSERT OVERWRITE of some partition columns ({', '.join(static)}) of {target.label} is refused: give all "
            f"of {', '.join(partition_by)}, or set {_OVERWRITE_MODE}=dynamic"
        )
    whole = (not static and not dynamic) or not partition_by
    reader = table.as_read(read)
    if whole:
        result = reader.insert_overwrite_table(frame)
    elif one_partition:
        # it is replaced also where no row comes that names it; of several partitions, those without rows stay
        result = reader.replace(frame, partitions=[path_of(statement, target, table, static)])
    else:
        result = reader.insert_overwrite(frame)
    return _done(statement, target, table, result)


def _rows_and_state(statement: Statement, target: Target) -> tuple[DataFrame, TableState | None]:
    """Return the rows of the query, and the table as it was before they were read from it, None where they come from elsewhere."""
    warehouse, session = statement.warehouse, statement.session
    return statement_with_state_read(warehouse, session, target, lambda: _query(statement))


def _query(statement: Statement) -> DataFrame:
    query = statement.plan.query()
    if statement.ctes is not None:
        query = plans.with_child(statement.session, statement.ctes, query)
    return plans.frame(statement.session, query)


def _named(
    rows: DataFrame,
    names: list[str],
    schema: T.StructType,
    static: Static,
    by_name: bool,
    target: Target,
) -> DataFrame:
    """Return the rows of the query as columns of the table, by position unless BY NAME."""
    lowered = {name.lower() for name in static}
    if not by_name:
        expected = names or [column.name for column in schema.fields if column.name.lower() not in lowered]
        rows = drop_meta_columns(rows) if len(rows.columns) > len(expected) else rows
        if len(rows.columns) != len(expected):
            raise StatementError(
                f"INSERT into {target.label} has {len(rows.columns)} columns ({', '.join(rows.columns)}) "
                f"but {len(expected)} are expected: {', '.join(expected)}"
            )
        rows = rows.toDF(*expected)
    target.refuse_twice([*rows.columns, *static])
    unknown = {name.lower() for name in rows.columns} - {column.name.lower() for column in schema.fields}
    if unknown:
        near = did_you_mean(min(unknown), schema.names)
        raise StatementError(
            f"{target.label} has no column {', '.join(sorted(unknown))}; {near}its columns: {', '.join(schema.names)}"
        )
    columns = AnyCase((field.name, field.dataType) for field in schema.fields)
    for field in rows.schema.fields:
        check_fields(field.dataType, columns[field.name], field.name)
    for name, value in static.items():
        rows = rows.withColumn(name, F.lit(value))
    return fit_to_table(rows, schema, fill_missing=True)


def update(statement: Statement, target: Target) -> StatementResult:
    """UPDATE ... SET ... WHERE."""
    plan, text = statement.plan, statement.text
    span = clause_after(text, "set")
    pieces = [] if span is None else split_outside(text, *span, ",")
    if len(pieces) != plan.assignments().size():
        raise StatementError(f"the assignments of this UPDATE of {target.label} cannot be separated: {text}")
    assignments = {}
    columns, values = target.set_columns(plan.assignments()), plans.items(plan.assignments())
    for column, item, (start, end) in zip(columns, values, pieces, strict=True):
        (_, key_end), *_ = split_outside(text, start, end, "=")
        value = text[key_end + 1 : end].strip()
        assignments[column] = plans.checked_text(statement.session, value, item.value())
    condition, table = _where(statement), _as_read(statement, target)
    test = partial(never_null, target=target, table=table, given=dict.fromkeys(assignments, F.lit(True)))
    result = table.update_where(condition, assignments, named=target.own_name, test=test)
    return _done(statement, target, table, result)


def delete(statement: Statement, target: Target) -> StatementResult:
    """DELETE FROM ... WHERE."""
    condition, table = _where(statement), _as_read(statement, target)
    return _done(statement, target, table, table.delete_where(condition, named=target.own_name))


def _as_read(statement: Statement, target: Target) -> HudiTable:
    """Return the table; where a subquery reads it, all that others commit from now on is a conflict."""
    return statement.table(target).as_read(state_for_subqueries(statement, target))


def _where(statement: Statement) -> str:
    span, condition = clause_after(statement.text, "where"), statement.plan.condition()
    if plans.hasattr_java(condition, "isDefined"):
        condition = plans.option(condition)
    if condition is None:
        return "true"
    text = "true" if span is None else statement.text[slice(*span)].strip()
    return plans.checked_text(statement.session, text, condition)


def truncate(statement: Statement, target: Target) -> StatementResult:
    """TRUNCATE TABLE."""
    table = statement.table(target)
    nothing = statement.session.createDataFrame([], data_columns(table))
    return _done(statement, target, table, table.insert_overwrite_table(nothing))


def merge(statement: Statement, target: Target) -> StatementResult:
    """MERGE INTO, all clauses in one commit."""
    table = statement.table(target)
    new = None if table.config.record_key_fields else all_new(statement)
    if new is not None:
        known = {name.lower() for name in new.columns}
        if missing := [name for name in data_columns(table).names if name.lower() not in known]:
            raise StatementError(
                f"MERGE INTO {target.label}: INSERT * lacks {', '.join(missing)}; select them in USING"
            )
        frame = never_null(_named(new, [], data_columns(table), {}, True, target), target, table)
        return _done(statement, target, table, table.insert(frame))
    merged = Merge(statement, target, table)
    decide = with_newest_source(statement, target, merged.decide)
    if decide == merged.decide:
        rows = merged.upserted(data_columns(table), partial(never_null, target=target, table=table))
        if rows is not None:
            return _done(statement, target, table, table.upsert(rows))
    inserts = statement.plan.notMatchedActions().size() > 0
    given = columns_given(statement.plan, data_columns(table).names)
    fills = merge_rule(table.config).fills

    def test(rows: DataFrame, kept: Column) -> DataFrame:
        # where null means no value, a stored row keeps its own
        return never_null(rows, target, table, given, kept & F.col(INSERT_FLAG) if fills else kept)

    assigns = columns_updated(statement.plan)
    # a source that reads the table is evaluated on its newest state, once that is shown
    keys = merged.keys if decide == merged.decide else None
    result = table.merge_rows(
        decide, inserts=inserts, test=test, check=merged.check, assigns=assigns, keys=keys
    )
    return _done(statement, target, table, result)


def _done(statement: Statement, target: Target, table: HudiTable, result: WriteResult) -> StatementResult:
    statement.warehouse.show(statement.session, target.schema, target.name, table)
    return StatementResult(write=result)
