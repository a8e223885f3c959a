"""Notes that the catalog keeps with a table and that a model's config does not say."""

from __future__ import annotations

from collections.abc import Collection

from hudi_engine import HudiTable
from hudi_engine.catalog.entry_notes import EntryNotes, NotesGiven

from dbt.adapters.hudi.model.plan import ModelPlan

NOT_NULL = "dbt.not_null"
"""Property of the columns of a CREATE TABLE that must not be null, with commas in between."""


def properties_of(plan: ModelPlan, table: HudiTable, *, rebuilt: bool = False) -> dict[str, str] | None:
    """Return the properties that a model's write leaves its table with; None where those stay that are there.

    Args:
        plan: The model, whose properties take the place of others, if it has any.
        table: Its table.
        rebuilt: The table is another one now, so that what its columns must not be is no longer known.
    """
    if not plan.properties and not rebuilt:
        return None
    known = dict(EntryNotes.load(table.storage).properties)
    ruled = {} if rebuilt else {key: text for key, text in known.items() if key == NOT_NULL}
    known.pop(NOT_NULL, None)
    return {**ruled, **(plan.properties or known)}


def notes_without(table: HudiTable, gone: Collection[str]) -> NotesGiven:
    """Return what is left to be said of a table without columns that it has lost; nothing where it said nothing of them.

    Args:
        table: The table.
        gone: Names of the columns in lower case. Others of these names may come, of which nothing was said.
    """
    notes = EntryNotes.load(table.storage)
    comments = {name: text for name, text in notes.column_comments.items() if name.lower() not in gone}
    ruled = [name for name in notes.properties.get(NOT_NULL, "").split(",") if name]
    left = [name for name in ruled if name.lower() not in gone]
    if len(left) == len(ruled) and len(comments) == len(notes.column_comments):
        return {}
    properties = {key: text for key, text in notes.properties.items() if key != NOT_NULL}
    return {
        "column_comments": comments,
        "properties": {**properties, NOT_NULL: ",".join(left)} if left else properties,
    }
