"""A table that a CREATE TABLE makes, at the place and with the options that a model of its name would have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine import HudiTable, build_table, rebuild_table
from hudi_engine.errors import TableExistsError, TableNotFoundError
from hudi_engine.format.config.declared.table_options import TableOptions
from hudi_engine.format.config.options import laid_over
from hudi_engine.format.storage.uris import same_place
from hudi_engine.spark.catalog import TableName
from hudi_engine.spark.catalog.entry import CatalogEntry
from hudi_engine.spark.catalog.sql_text import literal
from hudi_engine.spark.sql.own_rows import statement_with_state_read
from hudi_engine.spark.sql.statements import QUERIES, first_keyword
from hudi_engine.spark.sql.warehouse import NewTable
from hudi_engine.spark.write.rows.casts import drop_meta_columns
from hudi_engine.table.write.define.table_options import PARTITION_OPTIONS
from hudi_engine.table.write.result import WriteResult
from pyspark.sql import SparkSession

from dbt.adapters.hudi.model.plan import ModelPlan, resolve_plan
from dbt.adapters.hudi.model.reading import absolute_location, location_problems, option_text
from dbt.adapters.hudi.rows.existing_target import build_under_name, find_existing, warn_replaced
from dbt.adapters.hudi.spark.new_names import rename
from dbt.adapters.hudi.spark.warehouse import Warehouse


def create_table(warehouse: Warehouse, session: SparkSession, new: NewTable) -> WriteResult | None:
    """Make a table and register it, before what else has its name is removed."""
    plan = _plan(warehouse, new)
    warehouse.require_schema(session, new.name)
    entry = warehouse.entry(session, plan.schema, plan.name)
    if entry is not None and not new.replaces:
        if new.if_not_exists:
            return None
        kind = "view" if entry.reads_only else "table"
        raise DbtRuntimeError(
            f"[TABLE_OR_VIEW_ALREADY_EXISTS] the {kind} {entry.name.label} exists; drop it first"
        )
    replaces_unnamed = find_existing(warehouse, session, plan, entry, begins=False)
    try:
        result = _build(warehouse, session, new, plan, entry)
    except TableExistsError:
        # another process may have made it since this one learnt the names
        if new.if_not_exists and _is_known_by_now(warehouse, session, plan):
            return None
        raise
    # all notes, since a table that is replaced keeps its own
    warehouse.register_plan(
        session,
        plan,
        warehouse.table(session, plan.base),
        comment=new.comment,
        column_comments=new.column_comments,
        properties={**plan.properties, **new.notes},
    )
    if replaces_unnamed:
        warn_replaced(plan)
    return result


def _build(
    warehouse: Warehouse, session: SparkSession, new: NewTable, plan: ModelPlan, entry: CatalogEntry | None
) -> WriteResult | None:
    if new.rows is None:
        if new.replaces:
            build_under_name(warehouse, session, plan, entry, session.createDataFrame([], new.columns))
        else:
            HudiTable.create(session, plan.base, schema=new.columns, **plan.definition)
        return None
    build: Callable[..., WriteResult] = build_table
    if new.replaces:
        rows, base = statement_with_state_read(warehouse, session, plan, new.rows)
        build = partial(rebuild_table, base=base)
    else:
        rows = new.rows()
    return build_under_name(warehouse, session, plan, entry, drop_meta_columns(rows), build)


def _is_known_by_now(warehouse: Warehouse, session: SparkSession, plan: ModelPlan) -> bool:
    """Make the session know the table that another process has made under a name, as it is; returns whether there is one."""
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


def _plan(warehouse: Warehouse, new: NewTable) -> ModelPlan:
    config: dict[str, object] = {
        "materialized": "table",
        "options": dict(new.options),
        "tblproperties": dict(new.properties),
        "partition_by": list(new.partition_by),
    }
    plan = resolve_plan({"config": config}, new.name.database, new.name.name, warehouse.places)
    plan = replace(plan, run_notes=warehouse.notes())
    if new.location is None:
        return plan
    if problems := location_problems(new.location, f"LOCATION of {new.name.label}"):
        raise DbtRuntimeError("; ".join(problems))
    base = absolute_location(new.location, warehouse.places.project_root)
    return replace(plan, base=base, own_location=True)


class SqlWarehouse(Warehouse):
    """A warehouse in which statements make and rename tables."""

    def create_table(self, session: SparkSession, new: NewTable) -> WriteResult | None:
        """Make a table and its name; None when nothing was written."""
        return create_table(self, session, new)

    def rename(self, session: SparkSession, old: TableName, new: TableName) -> None:
        """Give a table or view another name."""
        rename(self, session, old, new)


def table_clauses(plan: ModelPlan) -> str:
    """Return the clauses of a CREATE TABLE that make the table as the configs of a model say."""
    table = plan.table
    options: dict[str, str] = {"type": table.table_type}
    # partitions are an option, as a column of them may lie in a struct, or have a kind for its key generator
    for key, columns in (
        ("primaryKey", table.record_key),
        ("preCombineField", table.precombine_field),
        (PARTITION_OPTIONS[0], table.partition_by),
    ):
        if columns:
            options[key] = ",".join(columns)
    if table.hive_style is not None:
        options[TableOptions.HIVE_STYLE_PARTITIONING.key] = option_text(table.hive_style)
    clauses = [f"options ({_pairs(laid_over(options, plan.options))})"]
    if plan.own_location:
        clauses.append(f"location {literal(plan.base)}")
    if plan.properties:
        clauses.append(f"tblproperties ({_pairs(plan.properties)})")
    return " ".join(clauses)


def _pairs(given: Mapping[str, str]) -> str:
    return ", ".join(f"{literal(key)} = {literal(value)}" for key, value in given.items())


def check_query(sql: str, node: Mapping[str, Any] | None = None) -> None:
    """Refuse a statement or Python model that is no query, before dbt puts a limit behind it."""
    if node is not None and node.get("language") == "python":
        name = node.get("name")
        raise DbtRuntimeError(
            f"dbt show runs a query, but {name} is a Python model, whose rows are known when it has run: dbt run -s {name}, "
            f"then dbt show --inline \"select * from {{{{ ref('{name}') }}}}\""
        )
    keyword = first_keyword(sql)
    if keyword not in QUERIES | {"", "map", "reduce"}:
        raise DbtRuntimeError(
            f"dbt show puts a limit behind a query and shows its rows, but this is {keyword.upper()}: run such a statement in "
            "a hook, or by run_query in a macro with dbt run-operation"
        )
