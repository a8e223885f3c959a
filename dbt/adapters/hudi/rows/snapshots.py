"""dbt snapshots: rows are closed and added by one upsert on dbt's version id."""

from __future__ import annotations

from hudi_engine.write import operation as operations
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.hudi.model.plan import ModelPlan
from dbt.adapters.hudi.response import HudiAdapterResponse, write_response
from dbt.adapters.hudi.rows import builds
from dbt.adapters.hudi.rows.alignment import fit_to_table
from dbt.adapters.hudi.rows.keys_twice import say_of_versions_merged
from dbt.adapters.hudi.rows.schema_changes import APPEND, schema_change
from dbt.adapters.hudi.spark.warehouse import Warehouse

_CHANGE = "dbt_change_type"
_HELPERS = (_CHANGE, "dbt_unique_key")


def write_snapshot(
    warehouse: Warehouse,
    session: SparkSession,
    plan: ModelPlan,
    staged: DataFrame,
    valid_to: str,
    relation: str,
) -> HudiAdapterResponse:
    """Write staged changes: a changed or deleted row only gets its end, an inserted one comes whole.

    Args:
        warehouse: The profile's tables.
        session: The connection's session.
        plan: The snapshot.
        staged: dbt's staging rows.
        valid_to: Name of the column that closes a row.
        relation: Rendered name of the snapshot table.
    """
    table = builds.current_table(warehouse, session, plan)
    builds.check_shape(plan, table)
    stored = session.table(relation)
    held = staged.persist()
    try:
        rows, update = _rows_to_write(held, plan, valid_to, stored)
        stored_columns = builds.data_columns(table)
        # what the source has got since the last run comes with the rows; what it lost stays, null in new rows
        schema = schema_change(APPEND, stored_columns, rows.schema).applied(stored_columns)
        result = table.write(
            operations.UPSERT, fit_to_table(rows, schema), plan.write_options, update_columns=update
        )
    finally:
        held.unpersist()
    say_of_versions_merged(plan, result)
    warehouse.register_plan(session, plan, table)
    return write_response(result)


def _rows_to_write(
    staged: DataFrame, plan: ModelPlan, valid_to: str, stored: DataFrame
) -> tuple[DataFrame, list[str] | None]:
    """Return rows for an upsert by version id, and the columns that it takes of known ones, None for all."""
    version = list(plan.table.record_key)
    helpers = [name for name in staged.columns if name.lower().startswith(_HELPERS)]
    is_new = F.col(_CHANGE) == "insert"
    new, ends = (staged.where(each).drop(*helpers) for each in (is_new, ~is_new))
    new = _without_known_versions(new, version, stored)
    if not plan.table.partition_by:
        return new.unionByName(ends), [valid_to]
    # a deleted row is staged without its other columns, which say its partition
    kept = stored.drop(valid_to).join(ends.select(*version, valid_to), version)
    return new.unionByName(kept, allowMissingColumns=True), None


def _without_known_versions(new: DataFrame, version: list[str], stored: DataFrame) -> DataFrame:
    """Leave out new rows whose version id is there: a deleted row that comes back unchanged. History stays, as in dbt's merge."""
    known = stored.select(*version).join(new.select(*version), version, "left_semi")
    return new.join(known, version, "left_anti").select(*new.columns)
