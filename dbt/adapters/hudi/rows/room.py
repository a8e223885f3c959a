"""What lies where a table is to be built: rows that nobody asked to replace stay, and of others that go it is told."""

from __future__ import annotations

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.catalog import CatalogEntry
from hudi_engine.errors import TableNotFoundError
from pyspark.sql import SparkSession

from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.model.plan import ModelPlan
from dbt.adapters.hudi.rows.own_rows import Written
from dbt.adapters.hudi.spark.folders import same_place
from dbt.adapters.hudi.spark.warehouse import Warehouse


def replaces_unnamed(
    warehouse: Warehouse, session: SparkSession, plan: ModelPlan, entry: CatalogEntry | None, *, begins: bool
) -> bool:
    """Tell whether a build replaces a Hudi table that the warehouse has no name for.

    Args:
        warehouse: The profile's tables.
        session: The connection's session.
        plan: The model.
        entry: What has its name.
        begins: Nothing asks the model to replace rows.

    Raises:
        DbtRuntimeError: It is the table of another name; or the model begins, and it would, or its name has a table by now,
            which it had not when the run looked.
    """
    refuse_place_of_another(warehouse, session, plan, entry)
    if begins:
        _refuse_newcomer(warehouse, session, plan, entry)
    if _leads_to(entry, plan) or not _is_written(warehouse, session, plan.base):
        return False
    if begins:
        raise _unnamed(plan)
    return True


def refuse_place_of_another(
    warehouse: Warehouse, session: SparkSession, table: Written, entry: CatalogEntry | None
) -> None:
    """Refuse to build a table in a folder that is another name's table.

    Raises:
        DbtRuntimeError: It is.
    """
    if _leads_to(entry, table) or not _is_written(warehouse, session, table.base):
        return
    for schema in warehouse.schemas(session):
        for each in warehouse.entries(session, schema):
            if each.is_hudi_table and each.base is not None and same_place(each.base, table.base):
                raise DbtRuntimeError(
                    f"{table.schema}.{table.name} would be built at {table.base}, which is the table {each.name.label}: its "
                    "rows would be replaced. Set another location_root (such as one with the schema in it), in SQL another "
                    "LOCATION, or another alias"
                )


def newcomer(plan: ModelPlan) -> DbtRuntimeError:
    """Return the error of a first run whose table somebody else has built since it looked."""
    return DbtRuntimeError(
        f"{plan.schema}.{plan.name} was not there when this run looked, and has been built since, by another run of dbt: to build "
        "it would replace those rows. Run it again, and it adds to them; --full-refresh replaces them"
    )


def say_replaced(plan: ModelPlan) -> None:
    """Warn that a table has been replaced that the warehouse had no name for."""
    logger.warning(
        "{}.{} has replaced a Hudi table at {} that this warehouse had no name for. If that was another environment's, give one of "
        "the two another location_root or alias",
        plan.schema,
        plan.name,
        plan.base,
    )


def _refuse_newcomer(
    warehouse: Warehouse, session: SparkSession, plan: ModelPlan, entry: CatalogEntry | None
) -> None:
    named = warehouse.base_on_disk(plan.schema, plan.name)  # which another process may have made
    if named is None and entry is not None and entry.is_hudi_table:
        named = entry.base
    if named is not None and _is_written(warehouse, session, named):
        raise newcomer(plan)


def _unnamed(plan: ModelPlan) -> DbtRuntimeError:
    replacing = (
        "remove the folder to begin a new history"
        if plan.table.keeps_history
        else "--full-refresh replaces it"
    )
    return DbtRuntimeError(
        f"{plan.schema}.{plan.name} would be built at {plan.base}, where a Hudi table lies that this warehouse has no name for: "
        "its rows would be replaced. If it is another environment's, set another location_root or alias. To go on with it, give it "
        f"the name: dbt run-operation hudi_adopt --args '{{table: {plan.schema}.{plan.name}, location: \"{plan.base}\"}}'; "
        f"{replacing}"
    )


def _leads_to(entry: CatalogEntry | None, table: Written) -> bool:
    return entry is not None and entry.base is not None and same_place(entry.base, table.base)


def _is_written(warehouse: Warehouse, session: SparkSession, base: str) -> bool:
    try:
        return bool(warehouse.table(session, base).commits(limit=1))
    except TableNotFoundError:
        return False
