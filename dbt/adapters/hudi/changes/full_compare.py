"""A model's input compared with its table, where the changes in between are no longer known."""

from __future__ import annotations

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.schema.any_case import spellings
from hudi_engine.spark.catalog.sql_text import literal
from hudi_engine.spark.changes.read import changes_between
from hudi_engine.spark.sql.earlier_states import rows_as_of
from hudi_engine.spark.write.rows.casts import exact_cast
from hudi_engine.table.changes.window import CHANGE_TYPE, COMMITTED, DELETE, Span
from hudi_engine.table.state import TableState
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType

_ADVICE = ": the row could not be deleted (on_gap is 'compare'). Run the model with --full-refresh"


def full_compare(session: SparkSession, source: TableState, target: TableState, end: str | None) -> DataFrame:
    """Return all rows of an input as inserts, and a delete for each row of the model that the input lacks.

    Rows are matched by the model's key and by its partition columns that the input has. A delete has the values of the model's row
    in the columns that both have with one type, and null in the others.
    """
    options = resolve_options({})
    rows = changes_between(session, source, options, Span(None, end))
    assert rows is not None, "a table that was read before has columns"
    keys = [name.lower() for name in target.config.record_key_fields]
    given = spellings(rows.columns)
    missing = [name for name in keys if name not in given]
    if missing or not keys:
        raise DbtRuntimeError(
            f"on_gap is 'compare', but {target.config.name!r} has the key {', '.join(keys) or 'none'}, and the input "
            f"{source.config.name!r} has no column {', '.join(missing) or 'to compare by'}; use on_gap='snapshot', or run the "
            "model with --full-refresh"
        )
    stored = rows_as_of(session, target, None)
    known = spellings(stored.columns)
    places = [
        name
        for each in target.config.partition_fields
        if (name := each.name.lower()) in given and name in known
    ]
    shared = list(dict.fromkeys((*keys, *places)))
    types = {name: stored.schema[column].dataType for name, column in known.items()}
    for name in shared:
        other = rows.schema[given[name]].dataType
        if types[name] != other and not (
            isinstance(types[name], IntegralType) and isinstance(other, IntegralType)
        ):
            raise DbtRuntimeError(
                f"on_gap is 'compare', but {name} of {target.config.name!r} is {types[name].simpleString()} and {name} of the "
                f"input {source.config.name!r} is {other.simpleString()}, so their rows cannot be matched; use on_gap='snapshot', "
                "or run the model with --full-refresh"
            )
    same = [F.col(f"stored.`{known[name]}`").eqNullSafe(F.col(f"given.`{given[name]}`")) for name in shared]
    lost = stored.alias("stored").join(rows.alias("given"), same, "left_anti")
    columns = [
        exact_cast(known[field.name], types[field.name.lower()], field.dataType, field.name, literal(_ADVICE))
        if field.name in known
        and (field.name.lower() in shared or types[field.name.lower()] == field.dataType)
        else F.lit(None).cast(field.dataType).alias(field.name)
        for field in rows.schema.fields
        if field.name not in (CHANGE_TYPE, COMMITTED)
    ]
    deletes = lost.select(
        *columns, F.lit(DELETE).alias(CHANGE_TYPE), F.lit(end).cast("string").alias(COMMITTED)
    )
    return rows.unionByName(deletes)
