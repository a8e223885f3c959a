"""The change data of a table in the columns of Hudi's CDC query: ``op``, ``ts_ms``, ``before``, ``after``.

There is a row for each change of each commit, by file group: an overwrite is deletes and inserts. Change data files are read
where a table has them; elsewhere file slices are compared.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.types import DataType, StructType

from hudi_engine.format.config.options import Options
from hudi_engine.format.logformat.change_records import AFTER, BEFORE, OPERATION, TIME, Change
from hudi_engine.format.merge.rows_at import rows_at
from hudi_engine.format.schema.meta_fields import without_meta_columns
from hudi_engine.spark.changes.read import Reading
from hudi_engine.spark.read.spark_read import map_slices
from hudi_engine.spark.schema.spark_types import arrow_to_spark
from hudi_engine.table.changes.group import Comparison, matched_rows
from hudi_engine.table.changes.plan import ChangePlan, plan_changes, steps_since
from hudi_engine.table.changes.window import ALL, Span, state_at
from hudi_engine.table.state import TableState

BEFORE_ALL = datetime(1970, 1, 1)
"""A moment before the first commit of any table."""


def cdc_frame(spark: SparkSession, state: TableState, options: Options, span: Span) -> DataFrame:
    """Return what each commit of ``span`` did to each row, images as JSON; without a start from the first commit on.

    Raises:
        HistoryGapError: The changes cannot be read in full.
        TimelineError: An invalid point in time, or an end before the start.
    """
    last = state_at(state, span.end)
    reading = Reading.of(spark, state, options, last)
    if reading is None:
        return spark.createDataFrame(
            [], f"{OPERATION} string, {TIME} string, {BEFORE} string, {AFTER} string"
        )
    columns = arrow_to_spark(without_meta_columns(reading.read.schema))
    steps, cleaned = steps_since(state, BEFORE_ALL if span.start is None else span.start, span.end, mode=ALL)
    plan = plan_changes(state, reading.read, steps, cleaned, ALL)
    bare = ChangePlan(plan.read, plan.points, (), ALL)
    rows = map_slices(spark, plan.units, _schema(plan), partial(_change_rows, bare))
    return rows.select(OPERATION, TIME, *(_json(name, columns).alias(name) for name in (BEFORE, AFTER)))


def _schema(plan: ChangePlan) -> pa.Schema:
    image = pa.struct(list(without_meta_columns(plan.read.schema)))
    return pa.schema([(OPERATION, pa.string()), (TIME, pa.string()), (BEFORE, image), (AFTER, image)])


def _change_rows(plan: ChangePlan, unit: Comparison) -> pa.Table:
    """Return the change rows of one file group in one commit."""
    before, after, matched = matched_rows(plan.reads_of(unit), unit)
    schema = _schema(plan)
    parts = [
        _part(
            schema,
            Change.UPDATE,
            unit.commit,
            rows_at(before, matched.old),
            rows_at(after, matched.now),
        ),
        _part(schema, Change.INSERT, unit.commit, None, rows_at(after, matched.new)),
        _part(schema, Change.DELETE, unit.commit, rows_at(before, matched.removed), None),
    ]
    return pa.concat_tables(parts)


def _part(
    schema: pa.Schema, change: Change, commit: str, before: pa.Table | None, after: pa.Table | None
) -> pa.Table:
    rows = before if before is not None else after
    assert rows is not None, "a change has a row before or after"
    names = [field.name for field in schema.field(BEFORE).type]
    images = [
        pa.nulls(rows.num_rows, schema.field(BEFORE).type)
        if each is None
        else each.select(names).to_struct_array()
        for each in (before, after)
    ]
    words = [pa.repeat(pa.scalar(text), rows.num_rows) for text in (change.value, commit)]
    return pa.Table.from_arrays([*words, *images], schema=schema)


def _json(name: str, columns: StructType) -> Column:
    """Return an image as JSON; dates are days and timestamps microseconds since 1970, as in Hudi's."""
    return F.to_json(_with_numbers(F.col(name), columns), {"ignoreNullFields": "false"})


def _with_numbers(value: Column, kind: DataType) -> Column:
    """Return a value with numbers for the dates and timestamps in it."""
    if isinstance(kind, T.DateType):
        return F.datediff(value, F.lit("1970-01-01").cast("date"))
    if isinstance(kind, T.TimestampType):
        return F.unix_micros(value)
    if isinstance(kind, T.ArrayType):
        return F.transform(value, lambda each: _with_numbers(each, kind.elementType))
    if isinstance(kind, T.MapType):
        return F.transform_values(value, lambda _, each: _with_numbers(each, kind.valueType))
    if isinstance(kind, T.StructType):
        fields = [_with_numbers(value.getField(each.name), each.dataType).alias(each.name) for each in kind]
        return F.when(value.isNotNull(), F.struct(*fields))
    return value
