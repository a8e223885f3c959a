"""Notes that the catalog keeps with a table and that a model's config does not say."""

from __future__ import annotations

from hudi_engine import HudiTable
from hudi_engine.spark.catalog.entry_notes import EntryNotes
from hudi_engine.spark.sql.not_null import NOT_NULL

from dbt.adapters.hudi.model.plan import ModelPlan


def properties_of(plan: ModelPlan, table: HudiTable, *, rebuilt: bool = False) -> dict[str, str] | None:
    """Return the properties that a model's write leaves its table with; None where those stay that are there.

    Args:
        plan: The model, whose properties take the place of others, if it has any.
        rebuilt: The table is another one now, so that what its columns must not be is no longer known.
    """
    if not plan.properties and not rebuilt:
        return None
    known = dict(EntryNotes.load(table.storage).properties)
    ruled = {} if rebuilt else {key: text for key, text in known.items() if key == NOT_NULL}
    known.pop(NOT_NULL, None)
    return {**ruled, **(plan.properties or known)}
