"""CREATE TABLE: the table is built before what else has its name goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from dbt.adapters.contracts.connection import AdapterResponse
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine import HudiTable, build_table, rebuild_table
from hudi_engine.errors import TableExistsError, TableNotFoundError
from hudi_engine.spark.catalog.entry import CatalogEntry
from hudi_engine.spark.catalog.sql_text import TableName
from hudi_engine.table.write.result import WriteResult
from pyspark.sql import types as T

from dbt.adapters.hudi.credentials import absolute_location, location_problems
from dbt.adapters.hudi.model.plan import ModelPlan, resolve_plan
from dbt.adapters.hudi.response import HudiAdapterResponse, write_response
from dbt.adapters.hudi.rows.alignment import drop_meta_columns
from dbt.adapters.hudi.rows.named_places import build_under_name
from dbt.adapters.hudi.rows.own_rows import statement_with_state_read
from dbt.adapters.hudi.rows.room import found_in_room, say_replaced
from dbt.adapters.hudi.spark.folders import same_place
from dbt.adapters.hudi.spark.handle import Routed
from dbt.adapters.hudi.sql import not_null, plans
from dbt.adapters.hudi.sql.column_rules import check_new_columns, check_new_table
from dbt.adapters.hudi.sql.targets import Statement

_OK = AdapterResponse("OK")


def create_from_columns(statement: Statement) -> Routed | None:
    """CREATE TABLE with columns: a Hudi table when it says USING hudi or nothing."""
    return _created(statement, _from_columns)


def create_table_as_select(statement: Statement) -> Routed | None:
    """CREATE TABLE AS SELECT: a Hudi table when it says USING hudi or nothing."""
    return _created(statement, _as_select)


def _created(
    statement: Statement, make: Callable[[Statement, ModelPlan, CatalogEntry | None], Routed]
) -> Routed | None:
    """Make the table, unless it is to be of another format, or its name is there and the statement is content with that."""
    plan = _table_plan(statement)
    if plan is None:
        return None
    entry = _known(statement, plan)
    if _is_content(statement, entry):
        return Routed(_OK)
    found = found_in_room(statement.warehouse, statement.session, plan, entry, begins=False)
    try:
        made = make(statement, plan, entry)
    except TableExistsError:
        # another process may have made it since this one learnt the names
        content = not _replaces(statement) and statement.plan.ignoreIfExists()
        if content and _is_known_by_now(statement, plan):
            return Routed(_OK)
        raise
    if found.unnamed:
        say_replaced(plan)
    return made


def _is_known_by_now(statement: Statement, plan: ModelPlan) -> bool:
    """Make the session know the table that another process has made under a name, as it is; returns whether there is one."""
    warehouse, session = statement.warehouse, statement.session
    base = warehouse.base_on_disk(plan.schema, plan.name)
    if base is None or not same_place(base, plan.base):
        return warehouse.entry(session, plan.schema, plan.name) is not None
    try:
        table = warehouse.table(session, base)
    except TableNotFoundError:
        return False
    if table.schema is None:  # what a first build has left that died
        return False
    warehouse.show(session, plan.schema, plan.name, table)
    return True


def _from_columns(statement: Statement, plan: ModelPlan, entry: CatalogEntry | None) -> Routed:
    schema = plans.struct_type(statement.plan.tableSchema())
    check_new_columns(schema, f"{plan.schema}.{plan.name}")
    columns = T.StructType(
        [T.StructField(column.name, _plain_type(column.dataType), True) for column in schema.fields]
    )
    if _replaces(statement):
        nothing = statement.session.createDataFrame([], columns)
        build_under_name(statement.warehouse, statement.session, plan, entry, nothing)
    else:
        HudiTable.create(statement.session, plan.base, schema=columns, **plan.definition)
    return _made(statement, plan, _OK, schema)


def _as_select(statement: Statement, plan: ModelPlan, entry: CatalogEntry | None) -> Routed:
    warehouse, session = statement.warehouse, statement.session
    analysed = partial(plans.frame, session, statement.plan.query())
    build: Callable[..., WriteResult] = build_table
    if _replaces(statement):
        rows, base = statement_with_state_read(warehouse, session, plan, analysed)
        build = partial(rebuild_table, base=base)
    else:
        rows = analysed()
    result = build_under_name(warehouse, session, plan, entry, drop_meta_columns(rows), build)
    return _made(statement, plan, write_response(result))


def _table_plan(statement: Statement) -> ModelPlan | None:
    """Return the plan of a CREATE TABLE, None when it asks for another format."""
    spec = statement.plan.tableSpec()
    provider = plans.option(spec.provider())
    if (provider is not None and str(provider).lower() != "hudi") or plans.option(spec.serde()) is not None:
        return None
    parts = plans.texts(statement.plan.name().nameParts())
    schema, name = statement.names(parts)
    check_new_table(spec, f"{schema}.{name}")
    location = plans.option(spec.location())
    properties = {str(pair._1()): str(pair._2()) for pair in plans.items(spec.properties())}
    options = {
        str(pair._1()): str(pair._2().toString()) for pair in plans.items(spec.optionExpression().options())
    }
    partitions = [_identity(item, f"{schema}.{name}") for item in plans.items(statement.plan.partitioning())]
    config: dict[str, object] = {
        "materialized": "table",
        "options": options,
        "tblproperties": properties,
        "partition_by": partitions,
    }
    places = statement.warehouse.places
    plan = resolve_plan({"config": config}, schema, name, places)
    if location is None:
        return plan
    if problems := location_problems(str(location), f"LOCATION of {schema}.{name}"):
        raise DbtRuntimeError("; ".join(problems))
    base = absolute_location(str(location), places.project_root)
    return replace(plan, base=base, own_location=True)


def _identity(transform: plans.JavaPlan, label: str) -> str:
    if plans.kind(transform) != "IdentityTransform":
        raise DbtRuntimeError(
            f"PARTITIONED BY or CLUSTER BY ({transform.toString()}) of {label} is refused: partition by columns, which may be "
            "selected as expressions; {{ hudi_cluster(...) }} puts rows in order"
        )
    return str(transform.describe()).strip("`")


def _known(statement: Statement, plan: ModelPlan) -> CatalogEntry | None:
    """Return what the catalog has under the name of a table to make."""
    statement.warehouse.require_schema(statement.session, TableName(plan.schema, plan.name))
    return statement.warehouse.entry(statement.session, plan.schema, plan.name)


def _replaces(statement: Statement) -> bool:
    return statement.kind.startswith("Replace")


def _is_content(statement: Statement, entry: CatalogEntry | None) -> bool:
    """Tell whether nothing has to be made, as the name is there and the statement is content with that."""
    if entry is None or _replaces(statement):
        return False
    if statement.plan.ignoreIfExists():
        return True
    kind = "view" if entry.reads_only else "table"
    raise DbtRuntimeError(
        f"[TABLE_OR_VIEW_ALREADY_EXISTS] the {kind} {entry.name.label} exists; drop it first"
    )


def _made(
    statement: Statement,
    plan: ModelPlan,
    response: HudiAdapterResponse | AdapterResponse,
    schema: T.StructType | None = None,
) -> Routed:
    """Register a table that was just made, with what its statement says of it and its columns."""
    columns = (schema or T.StructType()).fields
    comment = plans.option(statement.plan.tableSpec().comment())
    # all of it, since a table that is replaced keeps its notes
    statement.warehouse.register_plan(
        statement.session,
        plan,
        statement.warehouse.table(statement.session, plan.base),
        comment="" if comment is None else str(comment),
        column_comments={
            each.name: each.metadata["comment"] for each in columns if "comment" in each.metadata
        },
        properties={**plan.properties, **not_null.noted(schema or T.StructType())},
    )
    return Routed(response)


def _plain_type(kind: T.DataType) -> T.DataType:
    """Bounded text becomes text: a Hudi table has no length limit."""
    return T.StringType() if isinstance(kind, (T.CharType, T.VarcharType)) else kind
