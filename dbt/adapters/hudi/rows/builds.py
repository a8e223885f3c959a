"""From a model's query to a commit: staging, schema changes, rebuild and the strategies' writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from dbt.adapters.hudi import bridge
from dbt.adapters.hudi.model.plan import ModelPlan
from dbt.adapters.hudi.response import HudiAdapterResponse
from dbt.adapters.hudi.rows.alignment import (
    check_named_columns,
    drop_meta_columns,
    fit_to_table,
    missing_columns,
    with_delete_mark,
)
from dbt.adapters.hudi.rows.constraints import Constraint, checked
from dbt.adapters.hudi.spark.warehouse import Warehouse, same_place


def rebuild(
    warehouse: Warehouse,
    session: SparkSession,
    plan: ModelPlan,
    frame: DataFrame,
    constraints: Sequence[Constraint] = (),
) -> HudiAdapterResponse:
    """Create the model's table or replace all of it; what else has its name makes room."""
    frame = drop_meta_columns(frame)
    check_named_columns(frame.columns, plan.named_columns)
    frame = checked(frame, constraints)
    entry = warehouse.entry(session, plan.schema, plan.name)
    if entry is not None and entry.base is None and not entry.is_view:
        warehouse.drop(session, plan.schema, plan.name)
        entry = None
    response = bridge.rebuild(session, plan, frame)
    if entry is not None and entry.base is None:
        warehouse.drop(session, plan.schema, plan.name)
    elif entry is not None and entry.base is not None and not same_place(entry.base, plan.base):
        warehouse.forget(session, plan.schema, plan.name)
        if entry.is_hudi_table and not entry.foreign:
            bridge.logger.warning(
                "{} moved to {}; the files at {} are left there, remove them when nobody reads them",
                plan.name,
                plan.base,
                entry.base,
            )
    warehouse.register_plan(session, plan)
    return response


def write(
    warehouse: Warehouse,
    session: SparkSession,
    plan: ModelPlan,
    frame: DataFrame,
    constraints: Sequence[Constraint] = (),
) -> HudiAdapterResponse:
    """One incremental write into the model's table.

    Args:
        warehouse: The profile's tables.
        session: The connection's session.
        plan: The model.
        frame: The query's rows, columns as the schema change mode leaves them.
        constraints: Conditions tested before the commit.
    """
    operation = plan.merge.operation
    assert operation is not None, "a strategy of the user's own is a macro"
    table = current_table(session, plan)
    frame = drop_meta_columns(frame)
    check_fit(plan, table, frame.columns)
    frame = checked(frame, constraints)
    if operation == "delete":
        response = bridge.write(
            session, plan.base, operation, fit_to_table(frame, table.schema), plan.write_options
        )
    elif operation == "upsert":
        response = _upsert(session, plan, table, frame)
    else:
        rows = fit_to_table(frame, table.schema, fill_missing=True)
        response = bridge.write(session, plan.base, operation, rows, plan.write_options)
    warehouse.register_plan(session, plan)
    return response


def _upsert(
    session: SparkSession, plan: ModelPlan, table: bridge.TableFacts, frame: DataFrame
) -> HudiAdapterResponse:
    columns = tuple(table.schema.names)
    update = plan.merge.columns_to_update(columns)
    if plan.merge.update_columns is not None:
        check_named_columns(frame.columns, {"merge_update_columns": plan.merge.update_columns})
    known = list({name.lower(): name for name in (*frame.columns, *columns)}.values())
    check_named_columns(known, {"merge_exclude_columns": plan.merge.exclude_columns or ()})
    absent = missing_columns(frame, table.schema)
    if absent:
        # a matched row keeps what the model no longer selects
        update = [column for column in update or columns if column not in absent]
    return bridge.write(
        session,
        plan.base,
        "upsert",
        fit_to_table(frame, with_delete_mark(table.schema, frame), fill_missing=True),
        plan.write_options,
        update_columns=update,
        match_condition=plan.merge.condition,
    )


def current_table(session: SparkSession, plan: ModelPlan) -> bridge.TableFacts:
    """The model's table as it is on storage."""
    table = bridge.facts(session, plan.base)
    if table is None:
        raise DbtRuntimeError(
            f"{plan.schema}.{plan.name} has no Hudi table at {plan.base}; run it with --full-refresh to build it there"
        )
    return table


def check_fit(plan: ModelPlan, table: bridge.TableFacts, columns: Sequence[str]) -> None:
    """Refuse an incremental run whose config or columns do not fit the table.

    Args:
        plan: The model.
        table: Its table.
        columns: Columns of the query.
    """
    check_shape(plan, table)
    check_named_columns(columns, {"unique_key": plan.table.record_key})


def check_shape(plan: ModelPlan, table: bridge.TableFacts) -> None:
    """Refuse an incremental run whose config no longer fits the table; all differences in one message."""
    different = []
    for key, wanted, found in (
        ("unique_key", plan.table.record_key, table.record_key),
        ("partition_by", tuple(item.split(":")[0] for item in plan.table.partition_by), table.partition_by),
        ("table_type", plan.table.table_type, table.table_type),
        ("precombine_field", plan.table.precombine_field, table.precombine_field),
    ):
        if _folded(wanted) != _folded(found):
            different.append(f"  * {key} is {_shown(wanted)}, but the table has {_shown(found)}")
    if different:
        listed = "\n".join(different)
        raise DbtRuntimeError(
            f"The config of {plan.schema}.{plan.name} no longer fits its table at {plan.base}; "
            f"run it with --full-refresh to rebuild the table, or restore the config:\n{listed}"
        )


def _folded(value: object) -> object:
    if isinstance(value, tuple):
        return tuple(str(item).lower() for item in value)
    return value.lower() if isinstance(value, str) else value


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return str(value) if value is not None else "none"


def changed_schema(
    schema: T.StructType,
    add: Mapping[str, T.DataType],
    remove: Sequence[str],
    retype: Mapping[str, T.DataType],
) -> T.StructType:
    """The table's columns after a schema change of dbt.

    Args:
        schema: Columns now.
        add: New columns, appended.
        remove: Columns that go.
        retype: Columns that get another type.
    """
    gone = {name.lower() for name in remove}
    types = {name.lower(): kind for name, kind in retype.items()}
    kept = [
        T.StructField(column.name, types.get(column.name.lower(), column.dataType), True)
        for column in schema.fields
        if column.name.lower() not in gone
    ]
    return T.StructType([*kept, *(T.StructField(name, kind, True) for name, kind in add.items())])
