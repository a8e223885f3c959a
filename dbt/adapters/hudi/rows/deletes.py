"""Rows of a batch that delete: their marks, and keys of which a row deletes and no order decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.merge.modes.registry import merge_rule
from hudi_engine.format.schema.any_case import spellings
from hudi_engine.format.schema.meta_fields import DELETES, IS_DELETED, PARTITION_PATH, RECORD_KEY
from hudi_engine.format.schema.sql_names import quoted
from hudi_engine.spark.schema.spark_types import spark_to_arrow
from hudi_engine.spark.sql.not_null import delete_marks
from hudi_engine.spark.write.rows.key_columns import with_key_columns
from hudi_engine.spark.write.rows.settled import deletes_always
from hudi_engine.table.lookup.kinds import index_kind
from hudi_engine.table.write.fit import DELETE_MARKS
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.hudi.model.plan import ModelPlan

SETTLED = {"hudi_settled": True}
"""Metadata of a mark in rows of which those of one key have been ranked."""
_STATE, _RANK = "__dbt_hudi_state", "__dbt_hudi_rank"
_STAYS, _DELETES, _BOTH = 1, 2, 3


def any_of(marks: Iterable[Column]) -> Column:
    """Return whether one of some marks is true; null is false."""
    deleted = F.lit(False)
    for mark in marks:
        deleted = deleted | F.coalesce(mark, F.lit(False))
    return deleted


def boolean_marks(frame: DataFrame) -> list[Column]:
    """Return the marks that a frame has."""
    found = [field for field in frame.schema.fields if field.name in DELETE_MARKS]
    for field in found:
        if field.dataType != T.BooleanType():
            raise DbtRuntimeError(
                f"column {field.name} is {field.dataType.simpleString()}; it marks rows that delete and has to be boolean: cast it"
            )
    return [F.col(field.name) for field in found]


def with_one_mark(frame: DataFrame, stored: Iterable[str] = ()) -> DataFrame:
    """Return a frame with ``_hoodie_is_deleted`` under the name of the mark that is never stored."""
    kinds = {field.name: field.dataType.typeName() for field in frame.schema.fields}
    if kinds.get(IS_DELETED) != "boolean" or IS_DELETED in spellings(stored):
        return frame
    if DELETES not in kinds:
        return frame.withColumnRenamed(IS_DELETED, DELETES)
    return frame.withColumn(DELETES, any_of(map(F.col, DELETE_MARKS))).drop(IS_DELETED)


def without_deleted(frame: DataFrame, stored: Iterable[str]) -> DataFrame:
    """Return the rows that no mark deletes, without the marks; as in Hudi, an insert leaves the others out.

    Args:
        stored: The table's columns; a mark among them is none of these.
    """
    known = spellings(stored)
    marks = [
        field.name
        for field in frame.schema.fields
        if field.name in DELETE_MARKS and field.name not in known and field.dataType == T.BooleanType()
    ]
    return frame.where(~any_of(map(F.col, marks))).drop(*marks) if marks else frame


def stores_mark(model: Mapping[str, Any], plan: ModelPlan) -> bool:
    """Return whether ``_hoodie_is_deleted`` is a column of a model: its contract lists it, or a clause of its merge names it."""
    contract = model["config"].get("contract") or {}
    listed = contract.get("enforced") and IS_DELETED in spellings(model.get("columns") or ())
    return bool(listed) or IS_DELETED in repr(plan.merge.clauses).lower()


def ordered_deletes(
    frame: DataFrame, config: TableConfig, options: Options, *, combines: bool, name: str
) -> DataFrame:
    """Return the same rows; reading several of one key fails if one of them deletes and no order decides which is the newest."""
    marks = delete_marks(frame, frame.columns, config)
    if not marks or not config.record_key_fields or _is_settled(frame, config):
        return frame
    ordering = list(config.ordering_fields) if combines and not merge_rule(config).sees_whole_rows else []
    kept = [field for field in frame.schema.fields if field.name not in DELETE_MARKS]
    keyed = with_key_columns(frame, config, schema=spark_to_arrow(T.StructType(kept)), options=options)
    place = [RECORD_KEY] if index_kind(options).is_global else [RECORD_KEY, PARTITION_PATH]
    rows_of_key = Window.partitionBy(*place)
    rank = F.lit(1)
    if ordering:
        rank = F.rank().over(
            rows_of_key.orderBy(*(F.col(quoted(each)).desc_nulls_last() for each in ordering))
        )
    keyed = keyed.withColumn(_STATE, F.when(any_of(marks), _DELETES).otherwise(_STAYS)).withColumn(
        _RANK, rank
    )
    newest = F.bit_or(F.when(F.col(_RANK) == 1, F.col(_STATE))).over(rows_of_key)
    undecided = newest == _BOTH
    kinds = {field.name.lower(): field.dataType.typeName() for field in frame.schema.fields}
    # a delete without an order ends what came before it in the batch, and Spark keeps no order of rows
    if ordering and (always := deletes_always(config, kinds, lambda field: F.col(quoted(field)))) is not None:
        every = F.bit_or(F.col(_STATE)).over(rows_of_key)
        undecided = undecided | (F.max(always).over(rows_of_key) & (every == _BOTH))
    columns = ", ".join(config.record_key_fields)
    problem = F.concat(
        F.lit(f"{name}: several rows of this run have {columns} '"),
        F.col(RECORD_KEY),
        F.lit(f"', and one of them deletes; {_way_out(ordering)}; nothing was written"),
    )
    checked = keyed.withColumn(_RANK, F.when(undecided, F.raise_error(problem).cast("int")).otherwise(1))
    return checked.where(F.col(_RANK) == 1).select(*map(quoted, frame.columns))


def _way_out(ordering: list[str]) -> str:
    """Return why no row is the newest, and what to do."""
    if ordering:
        fields = ", ".join(ordering)
        return (
            f"by precombine_field ({fields}) none is the newest, as they are equal in it or the delete has no value: add a "
            "column to precombine_field that differs between them, or select one row a key"
        )
    return "which is the newest is not known: set precombine_field, or select one row a key (or _commit_time with _change_type)"


def _is_settled(frame: DataFrame, config: TableConfig) -> bool:
    """Return whether the rows of each key have been ranked, by `changes.consume.consumed`."""
    has_marker = config.delete_marker is not None and config.delete_marker[0] in spellings(frame.columns)
    return DELETES in frame.columns and not has_marker and frame.schema[DELETES].metadata == SETTLED
