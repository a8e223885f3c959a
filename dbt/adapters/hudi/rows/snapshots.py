"""dbt snapshots: rows are closed and added by one upsert on dbt's version id."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from operator import and_, or_

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine import HudiTable
from hudi_engine.format.schema.any_case import AnyCase, spellings
from hudi_engine.format.schema.sql_names import quoted
from hudi_engine.spark.sql.not_null import row_shown
from hudi_engine.table.write import operation as operations
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.model.plan import ModelPlan
from dbt.adapters.hudi.model.reading import Problems
from dbt.adapters.hudi.preview import PREVIEW
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
# dbt's own columns besides those of the source; of a key of several columns there are as many.
_KEY = re.compile(r"dbt_unique_key(_\d+)?", re.IGNORECASE)
_HELPER = re.compile(r"dbt_change_type|" + _KEY.pattern, re.IGNORECASE)
_STORED = "__hudi_stored_"
_NULL_KEY = "a unique_key of a snapshot is null"
_TIMES = (T.TimestampType, T.TimestampNTZType, T.DateType, T.StringType)
_ADVICE = ", and a column of a snapshot keeps its type unless that of the query is a wider one: cast it in the snapshot's query"


def check_snapshot(
    plan: ModelPlan, config: Mapping[str, object], query: DataFrame, hard_deletes: str | None
) -> None:
    """Refuse a config by which no run could compare the query's rows with stored ones."""
    problems = Problems()
    names = spellings(query.columns)
    for key in plan.table.versions_of:
        _check_comparable("unique_key", key, _type_of(query, key, "unique_key", problems), problems)
    updated_at = str(config.get("updated_at") or "")
    if config.get("strategy") == "timestamp":
        # dbt puts the query's name before it, which no expression takes
        named = query.alias("source_data")
        kind = _type_of(named, f"source_data.{updated_at}", "updated_at", problems)
        _check_comparable("updated_at", updated_at, kind, problems)
    if updated_at and hard_deletes in ("invalidate", "new_record"):
        kind = _type_of(query, updated_at, "updated_at", problems)
        if kind is not None and not isinstance(kind, _TIMES):
            problems.add(
                f"updated_at {updated_at!r} is {kind.simpleString()}, and hard_deletes {hard_deletes!r} ends a version at the "
                "time of the run; select it as a timestamp"
            )
    if config.get("strategy") == "check":
        given = config.get("check_cols")
        chosen = [str(name).strip().strip("`") for name in given] if isinstance(given, (list, tuple)) else []
        for name in query.columns if given == "all" else chosen:
            if name not in names:
                problems.add(
                    f"check_cols names {name!r}, which is no column of the query; its columns: {', '.join(query.columns)}"
                )
            else:
                _check_comparable("check_cols", name, query.schema[names[name]].dataType, problems)
    problems.raise_if_any(f"snapshot {plan.schema}.{plan.name}")


def _type_of(query: DataFrame, text: str, config: str, problems: Problems) -> T.DataType | None:
    """Return the type of a column or expression of a query; None where it has none, which is a problem."""
    try:
        return query.select(F.expr(text)).schema[0].dataType
    except (AnalysisException, IndexError):
        name = text.removeprefix("source_data.")
        problems.add(f"{config} is {name!r}, but the query's columns are {', '.join(query.columns)}")
        return None


def _check_comparable(config: str, name: str, kind: T.DataType | None, problems: Problems) -> None:
    """Add a problem for a column whose values Spark cannot compare."""
    if kind is not None and not _is_comparable(kind):
        problems.add(
            f"{config} {name!r} is {kind.simpleString()}, which Spark cannot compare; name other columns in {config}, or select it "
            "as text (to_json)"
        )


def _is_comparable(kind: T.DataType) -> bool:
    """Return whether Spark compares values of a type: no maps, at any level."""
    if isinstance(kind, T.StructType):
        return all(_is_comparable(field.dataType) for field in kind.fields)
    if isinstance(kind, T.ArrayType):
        return _is_comparable(kind.elementType)
    return kind.typeName() not in ("map", "variant")


@contextmanager
def keyed_rows(
    plan: ModelPlan, rows: DataFrame, keys: Sequence[str], only: Column | None = None
) -> Iterator[DataFrame]:
    """Give rows whose keys have values; a write of others fails, as no later run would find their versions.

    Args:
        keys: The parts of the key, as SQL; none for what is no snapshot.
        only: Which rows must have a key; None for all.
    """
    if not keys:
        yield rows
        return
    is_null = reduce(or_, (F.expr(key).isNull() for key in keys)) & (F.lit(True) if only is None else only)
    failed = F.raise_error(F.lit(_NULL_KEY)).cast("boolean")
    try:
        yield rows.where(F.when(is_null, failed).otherwise(F.lit(True)))
    except Exception as error:
        if _NULL_KEY not in str(error):
            raise
        found = rows.where(is_null)
        shown = found.select(row_shown(name for name in rows.columns if not _HELPER.fullmatch(name))).first()
        raise DbtRuntimeError(
            f"{plan.schema}.{plan.name}: {found.count():,} row(s) of the query have null in unique_key "
            f"{', '.join(plan.table.versions_of)}, by which no later run would find them; nothing was written. Leave such rows "
            f"out of the query, or select a value in place of null (coalesce). One of them: {shown[0] if shown else ''}"
        ) from error


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
    a deleted row. What the snapshot takes is one schema commit.
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
        changes = ", ".join(f"{name} becomes {kind.simpleString()}" for name, kind in retyped.items())
        logger.info("{}.{}: {}, as its query has it", plan.schema, plan.name, changes)
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
    is_deleted: str,
    relation: str,
) -> HudiAdapterResponse:
    """Write staged changes: a changed or deleted row only gets its end, an inserted one comes whole."""
    table = builds.current_table(warehouse, session, plan).as_read(staged.base)
    builds.check_shape(plan, table)
    keys = [name for name in staged.frame.columns if _KEY.fullmatch(name)]
    of_query = F.col(_CHANGE) == "insert"
    if is_deleted in staged.frame.columns:
        of_query = of_query & ~F.col(quoted(is_deleted)).eqNullSafe("True")
    with keyed_rows(plan, staged.frame, keys, of_query) as frame:
        return _write_changes(warehouse, session, plan, table, frame, valid_to, session.table(relation))


def _write_changes(
    warehouse: Warehouse,
    session: SparkSession,
    plan: ModelPlan,
    table: HudiTable,
    staged: DataFrame,
    valid_to: str,
    stored: DataFrame,
) -> HudiAdapterResponse:
    """Write staged changes of a snapshot; `stored` has the rows of the table."""
    rows = _rows_to_write(staged, plan, valid_to, stored)
    if plan.is_empty_run:
        rows = rows.limit(0)  # with --empty the source has no rows, and dbt would stage all as deleted
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
    if result.plan is not None:
        PREVIEW.note_change(plan.schema, plan.name, result, None)
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


def checked_columns(wanted: Sequence[str], stored: Sequence[str]) -> tuple[bool, list[str]]:
    """Return whether a snapshot of strategy ``check`` lacks a column that is to be compared, and those it has, quoted."""
    known = spellings(stored)
    columns = spellings(name.strip().strip("`") for name in wanted)
    found = [known[name] for name in columns if name in known]
    return len(found) < len(columns), [quoted(name) for name in found]
