"""Rows of one key that nothing orders: a build keeps all of them, a merge takes the last, and that is said."""

from __future__ import annotations

from collections.abc import Sequence

from hudi_engine import HudiTable
from hudi_engine.config.options import resolve_options
from hudi_engine.inspect import duplicate_keys
from hudi_engine.merge.modes.registry import merge_rule
from hudi_engine.schema.meta_fields import DELETES, IS_DELETED
from hudi_engine.table_state import TableState
from hudi_engine.write.result import WriteResult

from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.model.merge import ONE_ROW_A_KEY
from dbt.adapters.hudi.model.plan import ModelPlan

MOST_ROWS = 200_000
"""Above it the keys are not compared: they would have to be read back."""
_COUNTED = 100


def say_of_keys_twice(plan: ModelPlan, table: HudiTable, rows: int) -> None:
    """Warn of keys that are there more than once after a build without a precombine field.

    Args:
        plan: The model.
        table: Its table, as just built.
        rows: How many rows it has.
    """
    keyed = plan.table.record_key and plan.merge.strategy in ONE_ROW_A_KEY
    if not keyed or plan.table.precombine_field:
        return
    key, name = ", ".join(plan.table.record_key), f"{plan.schema}.{plan.name}"
    if rows > MOST_ROWS:
        logger.info(
            "{}: the keys of its {:,} rows were not compared; a data test `unique` of {} does it",
            name,
            rows,
            key,
        )
        return
    found = duplicate_keys(TableState.load(table.storage), resolve_options(plan.options), _COUNTED)
    if found:
        more = f"{_COUNTED} values or more" if len(found) == _COUNTED else f"{len(found)} values"
        count = "1 value" if len(found) == 1 else more
        if plan.table.keeps_history:
            logger.warning(
                "{}: {} of the snapshot's unique_key in more than one row; all rows are kept, as versions of one moment. "
                "Select one row a key",
                name,
                count,
            )
            return
        logger.warning(
            "{}: {} of unique_key {} in more than one row; all rows are kept, as no precombine_field says which counts. "
            "Select one row a key, or set precombine_field",
            name,
            count,
            key,
        )


def say_of_keys_merged(
    plan: ModelPlan, table: HudiTable, columns: Sequence[str], result: WriteResult
) -> None:
    """Warn of rows that a merge without a precombine field has left out as others of the batch have their keys.

    Known where the write counted the rows that came, which it does of those that it has in memory; nothing is read for it.

    Args:
        plan: The model.
        table: Its table.
        columns: Columns of the rows that came.
        result: What the write did.
    """
    came = None if result.figures is None else result.figures.rows_in
    config = table.config
    one_each = plan.merge.operation == "upsert" and plan.merge.clauses is None
    if came is None or not one_each or config.ordering_fields or merge_rule(config).fills:
        return
    leaves_out = {DELETES, IS_DELETED, *((config.delete_marker or ())[:1])}
    if plan.merge.skip_unchanged or {each.lower() for each in leaves_out} & {
        each.lower() for each in columns
    }:
        # rows may be left out for other reasons
        return
    lost = came - result.rows_inserted - result.rows_updated - result.rows_deleted
    if lost > 0:
        logger.warning(
            "{}: a value of unique_key {} in more than one row of the batch; {} left out, as no precombine_field says which "
            "counts and the last one is taken. Select one row a key, or set precombine_field",
            f"{plan.schema}.{plan.name}",
            ", ".join(plan.table.record_key),
            _rows_were(lost),
        )


def say_of_versions_merged(plan: ModelPlan, result: WriteResult) -> None:
    """Warn of changes that a snapshot has left out as several rows have one key; known where the rows that came are counted.

    Those that came are of dbt's own joining of the query with the versions that are open, so their number says little.

    Args:
        plan: The snapshot.
        result: What the write did.
    """
    came = None if result.figures is None else result.figures.rows_in
    if came is None or plan.table.precombine_field:
        return
    if came > result.rows_inserted + result.rows_updated:
        logger.warning(
            "{}: a value of the snapshot's unique_key is in more than one row of its query, or has more than one open version of "
            "an earlier run; some of its changes were left out, as a key has one version at a moment. Select one row a key",
            f"{plan.schema}.{plan.name}",
        )


def _rows_were(count: int) -> str:
    return "1 row was" if count == 1 else f"{count:,} rows were"
