"""dbt snapshots: rows are closed and added by one upsert on dbt's version id."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_

from hudi_engine.format.schema.any_case import AnyCase, spellings
from hudi_engine.spark.schema.fit import quoted
from hudi_engine.table.write import operation as operations
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.model.plan import ModelPlan
from dbt.adapters.hudi.response import HudiAdapterResponse, write_response
from dbt.adapters.hudi.rows import builds
from dbt.adapters.hudi.rows.alignment import fit_to_table
from dbt.adapters.hudi.rows.schema_changes import (
    APPEND,
    ChangeOfColumns,
    same_type,
    schema_change,
    type_changes,
    wider,
)
from dbt.adapters.hudi.spark.warehouse import Warehouse

_CHANGE = "dbt_change_type"
# dbt's own, beside the columns of the source; of a key of several columns there are as many.
_HELPER = re.compile(r"dbt_change_type|dbt_unique_key(_\d+)?", re.IGNORECASE)
_STORED = "__hudi_stored_"
_ADVICE = ", and a column of a snapshot keeps its type unless that of the query is a wider one: cast it in the snapshot's query"


def fit_query(
    warehouse: Warehouse,
    session: SparkSession,
    plan: ModelPlan,
    query: DataFrame,
    followers: Mapping[str, Sequence[str]],
) -> DataFrame:
    """Return a snapshot's query in the types and names of the snapshot, which first takes wider types and further struct fields.

    dbt's staging query compares and unites stored rows with those of the query. In another type a value would differ from what
    is stored of it, and get a version at every run; of a column whose name is stored in another case it would take nothing for
    a row that is gone. What the snapshot takes is one schema commit.

    Args:
        followers: dbt's own columns that have the values, and the type, of a column of the query.

    Raises:
        DbtRuntimeError: A column of the query cannot be brought to the type that the snapshot has for it.
    """
    table = builds.current_table(warehouse, session, plan)
    stored = builds.data_columns(table)
    retyped = wider(type_changes(query.schema.fields, stored.fields), stored.fields)
    types = AnyCase((column.name, column.dataType) for column in stored.fields)
    kinds = AnyCase(retyped.items())
    for name, own in followers.items():
        if name in kinds:
            same = [each for each in own if types.get(each) == types[name]]
            retyped.update(dict.fromkeys(same, kinds[name]))
    schema = ChangeOfColumns(retyped=retyped).applied(stored)
    fitted = _as_stored(schema, query)
    if retyped:
        told = ", ".join(f"{name} becomes {kind.simpleString()}" for name, kind in retyped.items())
        logger.info("{}.{}: {}, as its query has it", plan.schema, plan.name, told)
        with warehouse.one_writer(session, plan.base):
            table.alter_schema(schema)
            warehouse.register_plan(session, plan, table)
    return fitted


def _as_stored(schema: T.StructType, query: DataFrame) -> DataFrame:
    """Return a query whose columns are named and typed as those of a table; it is the same where all of them are."""
    stored = AnyCase((column.name, column) for column in schema.fields)
    given = query.schema.fields
    fields = [stored.get(column.name, column) for column in given]
    if all(
        one.name == other.name and same_type(one.dataType, other.dataType)
        for one, other in zip(given, fields, strict=True)
    ):
        return query
    return fit_to_table(query, T.StructType(fields), advice=_ADVICE)


def write_snapshot(
    warehouse: Warehouse,
    session: SparkSession,
    plan: ModelPlan,
    staged: builds.ModelRows,
    valid_to: str,
    relation: str,
) -> HudiAdapterResponse:
    """Write staged changes: a changed or deleted row only gets its end, an inserted one comes whole.

    Args:
        valid_to: Name of the column that closes a row.
    """
    table = builds.current_table(warehouse, session, plan).as_read(staged.base)
    builds.check_shape(plan, table)
    rows = _rows_to_write(staged.frame, plan, valid_to, session.table(relation))
    if plan.is_empty_run:
        rows = rows.limit(0)  # to dbt, which asked for no rows, all have been deleted in the source
    stored_columns = builds.data_columns(table)
    # what the source has got since the last run comes with the rows; what it lost stays, null in new rows
    schema = schema_change(APPEND, stored_columns, rows.schema).applied(stored_columns)
    result = table.write(
        operations.UPSERT,
        fit_to_table(rows, schema, advice=_ADVICE),
        plan.write_options,
        update_columns=[valid_to],
    )
    came = None if result.figures is None else result.figures.rows_in
    if (
        came is not None
        and not plan.table.precombine_field
        and came > result.rows_inserted + result.rows_updated
    ):
        logger.warning(
            "{}: a value of the snapshot's unique_key is in more than one row of its query, or has more than one open version of "
            "an earlier run; some of its changes were left out, as a key has one version at a moment. Select one row a key",
            f"{plan.schema}.{plan.name}",
        )
    warehouse.register_plan(session, plan, table)
    return write_response(result)


def _rows_to_write(staged: DataFrame, plan: ModelPlan, valid_to: str, stored: DataFrame) -> DataFrame:
    """Return rows for an upsert by version id, of which known ones take nothing but their end.

    The staged query is in the plan once, so it is evaluated once, and Spark sees how little a small one reads. New rows whose
    version id is there are left out: a deleted row that comes back unchanged. History stays, as in dbt's merge. What ends
    a version is staged with the values of the next one, or with none, and stays in the partition and the order that it has.
    """
    version = list(plan.table.record_key)
    fixed = (*plan.table.partition_columns, *plan.table.precombine_field)
    named = spellings(name.split(".")[0] for name in fixed)
    places = [name for name in named.values() if name.lower() != valid_to.lower()]
    known = stored.select(*[F.col(quoted(name)).alias(f"{_STORED}{name}") for name in (*version, *places)])
    same = [F.col(quoted(name)) == F.col(quoted(f"{_STORED}{name}")) for name in version]
    is_new, is_known = F.col(_CHANGE) == "insert", F.col(quoted(f"{_STORED}{version[0]}")).isNotNull()
    joined = staged.join(known, reduce(and_, same), "left").where(~is_new | ~is_known)
    given = {name.lower() for name in staged.columns}
    for name in places:
        own = F.col(quoted(name)) if name.lower() in given else F.lit(None)
        place = F.when(is_new, own).otherwise(F.col(quoted(f"{_STORED}{name}")))
        joined = joined.withColumn(name, place)
    helpers = [name for name in joined.columns if _HELPER.fullmatch(name) or name.startswith(_STORED)]
    return joined.drop(*helpers)


def checked_columns(asked: Sequence[str], stored: Sequence[str]) -> tuple[bool, list[str]]:
    """Return whether a snapshot of strategy ``check`` lacks a column that is to be compared, and those it has, quoted.

    Args:
        asked: Columns of the query, in whatever case: Spark gives a column the case in which it is selected.
    """
    known = spellings(stored)
    found = [known[name] for name in asked if name in known]
    return len(found) < len(asked), [quoted(name) for name in found]
