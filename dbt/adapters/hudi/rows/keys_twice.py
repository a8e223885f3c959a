"""Rows of one key that a build has written: nothing orders them, so all of them are kept, and that is said."""

from __future__ import annotations

from hudi_engine import HudiTable
from hudi_engine.config.options import resolve_options
from hudi_engine.inspect import duplicate_keys
from hudi_engine.table_state import TableState

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
        logger.warning(
            "{}: {} of unique_key {} in more than one row; all rows are kept, as no precombine_field says which counts. "
            "Select one row a key, or set precombine_field",
            name,
            count,
            key,
        )
