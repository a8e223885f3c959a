"""Notes that the catalog keeps with a table and that a model's config does not say."""

from __future__ import annotations

from collections.abc import Collection

from hudi_engine import HudiTable
from hudi_engine.spark.catalog.entry_notes import EntryNotes

from dbt.adapters.hudi.model.plan import ModelPlan

NOT_NULL = "dbt.not_null"
"""Property of the columns of a CREATE TABLE that must not be null, with commas in between."""


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


def forget_columns(table: HudiTable, gone: Collection[str]) -> None:
    """Take what was said of columns that a table has lost out of its notes; others of these names may come."""
    notes = EntryNotes.load(table.storage)
    lost = {name.lower() for name in gone}
    comments = {name: text for name, text in notes.column_comments.items() if name.lower() not in lost}
    ruled = [name for name in notes.properties.get(NOT_NULL, "").split(",") if name]
    left = [name for name in ruled if name.lower() not in lost]
    if len(left) == len(ruled) and len(comments) == len(notes.column_comments):
        return
    properties = {key: text for key, text in notes.properties.items() if key != NOT_NULL}
    if left:
        properties[NOT_NULL] = ",".join(left)
    notes.with_changes(column_comments=comments, properties=properties).save(table.storage)
