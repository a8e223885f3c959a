"""Columns that mark rows as deleted, under the names and in the type by which Hudi knows them.

Source: Hudi table format, merging: the field is looked up under exactly this name, and only a boolean counts.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame

from hudi_engine.errors import SchemaError
from hudi_engine.format.schema.any_case import spellings
from hudi_engine.format.schema.meta_fields import DELETES, IS_DELETED
from hudi_engine.format.schema.sql_names import spark_name


def exact_marks(frame: DataFrame, known: pa.Schema | None = None) -> DataFrame:
    """Return rows whose marks of deletes have the names that Hudi looks for, in whatever case they came.

    Args:
        known: Data columns of the table; a column that is spelled as the table spells it is the table's.
    """
    taken = set(known.names if known is not None else ())
    marks = {mark: mark for mark in (IS_DELETED, DELETES)}
    renamed = {
        name: marks[name.lower()]
        for name in frame.columns
        if name.lower() in marks and name not in marks and name not in taken
    }
    return frame.withColumnsRenamed(renamed) if renamed else frame


def refuse_false_marks(wanted: pa.Schema, known: pa.Schema | None) -> None:
    """Refuse a new column that looks like the mark of deletes and would be stored as any other value.

    Args:
        wanted: Data columns of a batch, or that a table is to get.
        known: Data columns that the table has, None for a new one: what it has already stays what Hudi takes it for.

    Raises:
        SchemaError: A mark that is not boolean or not spelled as Hudi spells it, or one whose name the table has in another
            spelling, under which no row is deleted.
    """
    had = spellings(known.names if known is not None else ()).get(IS_DELETED)
    for field in wanted:
        if field.name.lower() != IS_DELETED or had in (field.name, IS_DELETED):
            continue
        boolean = pa.types.is_boolean(field.type)
        if had is None and not boolean:
            raise SchemaError(
                f"column {field.name!r} is {spark_name(field.type)}; it marks rows that delete and has to be boolean: cast it, or "
                "give it another name"
            )
        if had is None and field.name != IS_DELETED:
            raise SchemaError(
                f"column {field.name!r} marks rows that delete only where it is spelled {IS_DELETED!r}; rename it"
            )
        if had is not None and boolean:
            raise SchemaError(
                f"column {field.name!r} marks rows that delete, but the table has {had!r}, a value like any other, as Hudi looks "
                f"for {IS_DELETED!r} only; mark them with {DELETES!r}, or rebuild the table without that column"
            )
