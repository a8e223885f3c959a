"""Partitions of a Hudi table in SQL: dropped, emptied and shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from hudi_engine import HudiTable
from hudi_engine.errors import ConfigError, StatementError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.keygen.generator import build_key_generator
from hudi_engine.format.keygen.partition_path import DEFAULT_PARTITION_VALUE, escape_partition_value
from hudi_engine.format.merge.stored_columns import partition_values
from hudi_engine.format.schema.any_case import AnyCase
from hudi_engine.format.schema.casting import cast_table
from hudi_engine.format.spelling import no_such_partitions
from hudi_engine.spark.catalog.sql_text import identifier, literal
from hudi_engine.spark.jvm import plans
from hudi_engine.spark.read.collect import to_arrow
from hudi_engine.spark.read.partition_filter import partitions_where
from hudi_engine.spark.sql.statement import Statement, StatementResult, Target, data_columns
from hudi_engine.spark.write.rows.casts import fit_to_table
from hudi_engine.table.state import TableState
from hudi_engine.table.write.define.table_options import with_table_options
from hudi_engine.table.write.operation import INSERT_OVERWRITE

Static = dict[str, str | None]
"""Values of partition columns by name, None for null."""


def drop_partitions(statement: Statement, target: Target) -> StatementResult:
    """ALTER TABLE ... DROP PARTITION: each may name all partition columns or some."""
    plan = statement.plan
    if plan.purge():
        raise StatementError(
            f"DROP PARTITION ... PURGE of {target.label} is refused: earlier states keep the files until clean; leave PURGE out, "
            "and run {{ hudi_clean(...) }} where they are to go"
        )
    return _deleted(statement, target, list(plans.items(plan.parts())), if_exists=plan.ifExists())


def truncate_partition(statement: Statement, target: Target) -> StatementResult:
    """TRUNCATE TABLE ... PARTITION: a partition without rows is none."""
    return _deleted(statement, target, [statement.plan.partitionSpec()], if_exists=False)


def show_partitions(statement: Statement) -> StatementResult | None:
    """SHOW PARTITIONS, all or those that PARTITION names, as Spark writes them: ``a=1/b=2``."""
    target = statement.target()
    if target is None:
        return None
    table, spec = statement.table(target), plans.option(statement.plan.pattern())
    state = TableState.load(table.storage)
    _refuse_unpartitioned(table, target)
    paths = _there(state) if spec is None else _named(statement, target, table, state, spec)
    rows = [(_as_shown(state, path),) for path in paths]
    return StatementResult(frame=statement.session.createDataFrame(rows, "partition string"))


def _deleted(
    statement: Statement, target: Target, specs: Sequence[plans.JavaPlan], *, if_exists: bool
) -> StatementResult:
    """Delete what the specifications name in one commit; one that names nothing is refused unless it may be missing."""
    table = statement.table(target)
    _refuse_unpartitioned(table, target)
    state, found = TableState.load(table.storage), []
    for spec in specs:
        paths = _named(statement, target, table, state, spec)
        if not paths and not if_exists:
            raise StatementError(no_such_partitions([_said(spec)], _there(state), target.label))
        found += paths
    if not found:
        return StatementResult()
    result = table.delete_partitions(found)
    statement.warehouse.show(statement.session, target.schema, target.name, table)
    return StatementResult(write=result)


def _refuse_unpartitioned(table: HudiTable, target: Target) -> None:
    if not table.config.is_partitioned:
        raise StatementError(f"{target.label} is not partitioned; its rows are all in one place")


def _there(state: TableState) -> list[str]:
    return sorted({each.partition for each in state.view().latest_slices()})


def _named(
    statement: Statement, target: Target, table: HudiTable, state: TableState, spec: plans.JavaPlan
) -> list[str]:
    """Return the paths of the partitions with rows that PARTITION (...) names."""
    kinds = AnyCase((field.name, field.dataType.simpleString()) for field in data_columns(table).fields)
    given = dict(_pairs(spec))
    refuse_other_columns(given, [field.name for field in table.config.partition_fields], target)
    for name, value in given.items():
        given[name] = _checked(statement, target, name, value, kinds.get(name))
    if len(given) == len(table.config.partition_fields):
        path = path_of(statement, target, table, given)
        return [path] if path in _there(state) else []
    tests = [
        f"{identifier(name)} <=> " + ("null" if value is None else f"cast({literal(value)} as {kinds[name]})")
        for name, value in given.items()
    ]
    try:
        return partitions_where(statement.session, state, " and ".join(tests))
    except ConfigError as error:
        every = ", ".join(field.name for field in table.config.partition_fields)
        raise StatementError(
            f"PARTITION ({_said(spec)}) of {target.label}: {error}: give all of {every} in PARTITION, times as "
            "'2026-01-31 10:00:00', or use {{ hudi_delete_partitions(...) }} with paths that SHOW PARTITIONS lists"
        ) from error


def _checked(
    statement: Statement, target: Target, name: str, value: str | None, kind: str | None
) -> str | None:
    """Return a value as one that is exactly of its column's type, None for null: a cast may name another partition."""
    if kind is None:
        raise StatementError(
            f"PARTITION ({name} ...): {target.label} is partitioned by a field of a struct, whose partitions SQL cannot name; "
            "use {{ hudi_delete_partitions(...) }} with their paths"
        )
    if value is None or value == DEFAULT_PARTITION_VALUE or (value == "" and kind == "string"):
        return None
    if kind == "string":
        return value
    given, tried = literal(value), f"try_cast({literal(value)} as {kind})"
    exact = f"{tried} is not null"
    if kind == "date":
        exact = f"cast({tried} as string) = {given}"
    elif kind.startswith("decimal"):
        exact = f"try_cast({given} as decimal(38, 18)) = {tried}"
    if not statement.session.sql(f"select coalesce({exact}, false)").first()[0]:  # type: ignore[index]
        written = "write it as '2026-01-31 10:00:00'; " if kind.startswith("timestamp") else ""
        raise StatementError(
            f"PARTITION ({name} = {value}): {value!r} is no value of column {name!r} of {target.label}, which has type {kind}; "
            f"{written}SHOW PARTITIONS lists the partitions that are there"
        )
    return value


def _pairs(spec: plans.JavaPlan) -> list[tuple[str, str | None]]:
    pairs = [(str(pair._1()), pair._2()) for pair in plans.items(spec.spec())]
    return [(name, None if value is None else str(value)) for name, value in pairs]


def _said(spec: plans.JavaPlan) -> str:
    return "/".join(f"{name}={value or DEFAULT_PARTITION_VALUE}" for name, value in _pairs(spec))


def _as_shown(state: TableState, path: str) -> str:
    """Return a partition as Spark writes one; where its folder does not have the values, the folder."""
    values = partition_values(state.config, path)
    shown = (
        f"{name}={escape_partition_value(text or DEFAULT_PARTITION_VALUE)}" for name, text in values.items()
    )
    return "/".join(shown) or path


def static_partitions(plan: plans.JavaPlan, partition_by: Sequence[str], target: Target) -> Static:
    """Return the values that PARTITION (...) gives, None for null; a column without a value is left out."""
    pairs = [(str(pair._1()), pair._2()) for pair in plans.items(plan.partitionSpec())]
    refuse_other_columns((name for name, _ in pairs), partition_by, target)
    given = {name: value.get() for name, value in pairs if value.isDefined()}
    return {name: None if value is None else str(value) for name, value in given.items()}


def refuse_other_columns(names: Iterable[str], partition_by: Sequence[str], target: Target) -> None:
    """Raise StatementError where PARTITION (...) names what is no partition column of the table."""
    known = {name.lower() for name in partition_by}
    for name in names:
        if name.lower() not in known:
            raise StatementError(
                f"PARTITION ({name}): {target.label} is not partitioned by it; its partition columns: "
                f"{', '.join(partition_by) or 'none'}"
            )


def path_of(statement: Statement, target: Target, table: HudiTable, static: Static) -> str:
    """Return the partition path that values for all partition columns make, by the table's key generator."""
    options = resolve_options(statement.warehouse.options_at(target.base))
    options = with_table_options(table.config, options, INSERT_OVERWRITE.name.value)
    kinds = AnyCase((field.name, field.dataType) for field in data_columns(table).fields)
    if all(kinds.get(name) == T.StringType() for name in static):
        row = pa.table({name: pa.array([value], pa.string()) for name, value in static.items()})
    else:
        row = _as_stored(statement, table, static)
    paths = build_key_generator(table.config, options=options).partition_paths(row)
    return str(paths[0].as_py())


def _as_stored(statement: Statement, table: HudiTable, static: Static) -> pa.Table:
    """Return the values as Spark casts them, in the types of the table's files; another writer may change its other columns."""
    nothing = statement.session.range(1).select(*(F.lit(value).alias(name) for name, value in static.items()))
    schema = TableState.load(table.storage).data_schema()
    assert schema is not None, "a partitioned table has columns"
    known = {name.lower() for name in static}
    columns = data_columns(table)
    fields = T.StructType([field for field in columns.fields if field.name.lower() in known])
    stored = pa.schema([field for field in schema if field.name.lower() in known])
    return cast_table(to_arrow(fit_to_table(nothing, fields)), stored)
