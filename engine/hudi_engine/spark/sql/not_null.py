"""NOT NULL of a CREATE TABLE: noted with the table, and checked for the rows of every later statement before its commit."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from hudi_engine import HudiTable
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.schema.any_case import spellings
from hudi_engine.format.schema.meta_fields import DELETES, IS_DELETED
from hudi_engine.format.schema.sql_names import quoted
from hudi_engine.spark.catalog.entry import EntryNotes
from hudi_engine.spark.sql.statement import Target, data_columns

NOT_NULL = "dbt.not_null"
"""Property of the columns of a CREATE TABLE that must not be null, with commas in between."""
_SHOWN = 300


def noted(schema: T.StructType) -> dict[str, str]:
    """Return the table property with the columns of a CREATE TABLE that must not be null; empty without such columns."""
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

    Stored rows are not checked: a statement reads no more of the table, and conflicts with no more, than without NOT NULL.

    Args:
        given: Columns to which the statement gives values, with the rows to which it does; None for all.
        kept: Which rows are no deletes; None for all.
    """
    noted_names = EntryNotes.load(table.storage).properties.get(NOT_NULL, "")
    checked = dict.fromkeys(noted_names.lower().split(","), F.lit(True))
    if given is not None:
        checked = {name.lower(): where for name, where in given.items() if name.lower() in checked}
    columns = [field for field in rows.schema.fields if field.name.lower() in checked]
    if not columns:
        return rows
    values = {field.name: F.col(quoted(field.name)) for field in columns}
    lacks = {name: value.isNull() & checked[name.lower()] for name, value in values.items()}
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
    # as values and not as a filter, which Spark may evaluate for rows that a join leaves out
    return rows.withColumns(
        {
            field.name: F.when(lacks[field.name] & written, failed.cast(field.dataType)).otherwise(
                values[field.name]
            )
            for field in columns
        }
    )


def forget_columns(table: HudiTable, dropped: Collection[str]) -> None:
    """Remove notes on dropped columns, as others of these names may come."""
    notes = EntryNotes.load(table.storage)
    lost = {name.lower() for name in dropped}
    comments = {name: text for name, text in notes.column_comments.items() if name.lower() not in lost}
    ruled = [name for name in notes.properties.get(NOT_NULL, "").split(",") if name]
    left = [name for name in ruled if name.lower() not in lost]
    if len(left) == len(ruled) and len(comments) == len(notes.column_comments):
        return
    properties = {key: text for key, text in notes.properties.items() if key != NOT_NULL}
    if left:
        properties[NOT_NULL] = ",".join(left)
    notes.with_changes(column_comments=comments, properties=properties).save(table.storage)


def row_shown(names: Iterable[str]) -> Column:
    """Return the beginning of a row as JSON, for messages."""
    row = F.to_json(F.struct(*map(quoted, names)), {"ignoreNullFields": "false"})
    return F.substring(row, 1, _SHOWN)


def stays(frame: DataFrame, written: Iterable[str], config: TableConfig) -> Column:
    """Return which rows of a frame are no deletes; of a delete only the key is stored. See `delete_marks`."""
    deletes = F.lit(False)
    for mark in delete_marks(frame, written, config):
        deletes = deletes | F.coalesce(mark, F.lit(False))
    return ~deletes


def delete_marks(frame: DataFrame, written: Iterable[str], config: TableConfig) -> list[Column]:
    """Return the conditions of which one marks a row as a delete; ``written`` are the columns that reach the write."""
    names = set(written)
    kinds = {field.name: field.dataType.typeName() for field in frame.schema.fields}
    given = spellings(kinds)
    marks = [
        F.col(quoted(given[mark]))
        for mark in (IS_DELETED, DELETES)
        if mark in names and mark in given and kinds[given[mark]] == "boolean"
    ]
    field, _ = config.delete_marker or ("", "")
    if field in given and field in spellings(names) and kinds[given[field]] == "string":
        marks.append(F.col(quoted(given[field])).isin(*config.delete_markers))
    return marks
