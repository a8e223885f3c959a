"""Partitions of a Hudi table in SQL: dropped, emptied and shown."""

from __future__ import annotations

from collections.abc import Sequence

from dbt.adapters.contracts.connection import AdapterResponse
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine import HudiTable
from hudi_engine.errors import ConfigError
from hudi_engine.format.keygen.partition_path import DEFAULT_PARTITION_VALUE, escape_partition_value
from hudi_engine.format.merge.stored_columns import partition_values
from hudi_engine.format.schema.any_case import AnyCase
from hudi_engine.format.spelling import no_such_partitions
from hudi_engine.spark.catalog.sql_text import identifier, literal
from hudi_engine.spark.read.partition_filter import partitions_where
from hudi_engine.table.state import TableState

from dbt.adapters.hudi.response import write_response
from dbt.adapters.hudi.rows.builds import data_columns
from dbt.adapters.hudi.spark.handle import Routed
from dbt.adapters.hudi.sql import plans
from dbt.adapters.hudi.sql.static_partitions import path_of, refuse_other_columns
from dbt.adapters.hudi.sql.targets import Statement, Target


def drop_partitions(statement: Statement, target: Target) -> Routed:
    """ALTER TABLE ... DROP PARTITION: each may name all partition columns or some."""
    plan = statement.plan
    if plan.purge():
        raise DbtRuntimeError(
            f"DROP PARTITION ... PURGE of {target.label} is refused: earlier states keep the files until clean; leave PURGE out, "
            "and run {{ hudi_clean(...) }} where they are to go"
        )
    return _deleted(statement, target, list(plans.items(plan.parts())), if_exists=plan.ifExists())


def truncate_partition(statement: Statement, target: Target) -> Routed:
    """TRUNCATE TABLE ... PARTITION: a partition without rows is none."""
    return _deleted(statement, target, [statement.plan.partitionSpec()], if_exists=False)


def show_partitions(statement: Statement) -> Routed | None:
    """SHOW PARTITIONS, all or those that PARTITION names, as Spark writes them: ``a=1/b=2``."""
    target = statement.target()
    if target is None:
        return None
    table, spec = statement.table(target), plans.option(statement.plan.pattern())
    state = TableState.load(table.storage)
    _refuse_unpartitioned(table, target)
    paths = _there(state) if spec is None else _named(statement, target, table, state, spec)
    rows = [(_as_shown(state, path),) for path in paths]
    return Routed(AdapterResponse("OK"), statement.session.createDataFrame(rows, "partition string"))


def describe_partition(statement: Statement) -> Routed | None:
    """DESCRIBE: with PARTITION it is refused by name, as Spark's catalog knows no partitions of a Hudi table."""
    plan = statement.plan
    if "partition" not in statement.text.lower():
        return None
    # Spark before 4.3 has one kind of plan with PARTITION and without
    if statement.kind == "DescribeRelation" and (
        not plans.hasattr_java(plan, "partitionSpec") or plan.partitionSpec().isEmpty()
    ):
        return None
    target = statement.target()
    if target is not None:
        raise DbtRuntimeError(
            f"DESCRIBE ... PARTITION of the Hudi table {target.label} is refused: its partitions have no columns or notes of their "
            "own; SHOW PARTITIONS names them, and {{ hudi_show_partitions(...) }} tells their files and bytes"
        )
    return None


def _deleted(
    statement: Statement, target: Target, specs: Sequence[plans.JavaPlan], *, if_exists: bool
) -> Routed:
    """Delete what the specifications name in one commit; one that names nothing is refused unless it may be missing."""
    table = statement.table(target)
    _refuse_unpartitioned(table, target)
    state, found = TableState.load(table.storage), []
    for spec in specs:
        paths = _named(statement, target, table, state, spec)
        if not paths and not if_exists:
            raise DbtRuntimeError(no_such_partitions([_said(spec)], _there(state), target.label))
        found += paths
    if not found:
        return Routed(AdapterResponse("OK"))
    result = table.delete_partitions(found)
    statement.warehouse.show(statement.session, target.schema, target.name, table)
    return Routed(write_response(result))


def _refuse_unpartitioned(table: HudiTable, target: Target) -> None:
    if not table.config.is_partitioned:
        raise DbtRuntimeError(f"{target.label} is not partitioned; its rows are all in one place")


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
        raise DbtRuntimeError(
            f"PARTITION ({_said(spec)}) of {target.label}: {error}: give all of {every} in PARTITION, times as "
            "'2026-01-31 10:00:00', or use {{ hudi_delete_partitions(...) }} with paths that SHOW PARTITIONS lists"
        ) from error


def _checked(
    statement: Statement, target: Target, name: str, value: str | None, kind: str | None
) -> str | None:
    """Return a value as one that is exactly of its column's type, None for null: a cast may name another partition."""
    if kind is None:
        raise DbtRuntimeError(
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
        raise DbtRuntimeError(
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
    """Return a partition as Spark writes one; where its folder does not tell the values, the folder."""
    values = partition_values(state.config, path)
    told = (
        f"{name}={escape_partition_value(text or DEFAULT_PARTITION_VALUE)}" for name, text in values.items()
    )
    return "/".join(told) or path
