"""NOT NULL of a CREATE TABLE: noted with the table, and asked of the rows that every later statement makes, before its commit."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_engine import HudiTable
from hudi_engine.spark.catalog.entry_notes import EntryNotes
from hudi_engine.spark.schema.fit import quoted
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.hudi.rows.builds import data_columns
from dbt.adapters.hudi.rows.constraints import row_shown, stays
from dbt.adapters.hudi.spark.kept_notes import NOT_NULL
from dbt.adapters.hudi.sql.targets import Target


def noted(schema: T.StructType) -> dict[str, str]:
    """Return the table property that says which columns of a CREATE TABLE must not be null; none for none."""
    names = [column.name for column in schema.fields if not column.nullable]
    return {NOT_NULL: ",".join(names)} if names else {}


def never_null(
    rows: DataFrame,
    target: Target,
    table: HudiTable,
    given: Mapping[str, Column] | None = None,
    kept: Column | None = None,
) -> DataFrame:
    """Return the same rows; reading one that lacks a value where it must not fails, with the columns and the row.

    What is stored is not asked: a statement reads no more of the table, and conflicts with no more, than one on another table.

    Args:
        given: Columns to which the statement gives values, with the rows to which it does; None for all.
        kept: Which rows are no deletes; None for all.
    """
    said = EntryNotes.load(table.storage).properties.get(NOT_NULL, "")
    asked = dict.fromkeys(said.lower().split(","), F.lit(True))
    if given is not None:
        asked = {name.lower(): where for name, where in given.items() if name.lower() in asked}
    columns = [field for field in rows.schema.fields if field.name.lower() in asked]
    if not columns:
        return rows
    values = {field.name: F.col(quoted(field.name)) for field in columns}
    lacks = {name: value.isNull() & asked[name.lower()] for name, value in values.items()}
    lacking = (F.when(each, F.lit(name)) for name, each in lacks.items())
    known = {name.lower() for name in data_columns(table).names}
    failed = F.raise_error(
        F.concat(
            F.lit(f"{target.label} is declared NOT NULL in "),
            F.concat_ws(", ", *lacking),
            F.lit(", where a row of this statement is null; nothing was written. Give a value; the row: "),
            row_shown(name for name in rows.columns if name.lower() in known),
        )
    )
    written = stays(rows, rows.columns, table.config)
    written = written if kept is None else kept & written
    # as values and not as a filter, which Spark may ask of rows that a join leaves out
    return rows.withColumns(
        {
            field.name: F.when(lacks[field.name] & written, failed.cast(field.dataType)).otherwise(
                values[field.name]
            )
            for field in columns
        }
    )
