"""A look into a few local Parquet files that rows come from, without Spark, whose plan of it takes longer than the look."""

from __future__ import annotations

import datetime
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame

from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.schema.coded import decoded
from hudi_engine.spark.write.rows.source_plan import below_light_nodes, class_name
from hudi_engine.spark.write.spread.file_sample import chosen_files, counts_of_all

_COMPARES: Mapping[str, Callable[[pc.Expression, Any], pc.Expression]] = {
    "EqualTo": lambda column, value: column == value,
    "GreaterThan": lambda column, value: column > value,
    "GreaterThanOrEqual": lambda column, value: column >= value,
    "LessThan": lambda column, value: column < value,
    "LessThanOrEqual": lambda column, value: column <= value,
}

logger = logging.getLogger(__name__)

_MOST_BYTES = 256 * 2**20
"""Of larger files Spark counts the rows, whose columns would take much memory here."""


class _NotKnown(Exception):
    """Part of a plan that only Spark can evaluate."""


def seen_partitions(source: DataFrame, config: TableConfig) -> dict[str, int] | None:
    """Return the rows of each partition that a filter leaves, as many as there would be if all files were like those looked at.

    It is for decisions on the number of files alone, which no reader sees in the rows.

    Args:
        source: A scan of Parquet files by columns and filters.
        config: The table's settings; its partition fields are columns of the rows.

    Returns:
        Rows by some name of the partition. None where Spark has to look: files that are very large or not local, filters
        that compare other things than columns with plain values, partition fields that are computed or nested, too few
        files to choose from, or files that are not alike.
    """
    try:
        return _seen(source, config)
    except (
        _NotKnown,
        OSError,
        pa.ArrowException,
        ArithmeticError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        logger.debug("Spark is left to look into the files: %s", error)
    except Py4JError as error:
        logger.debug("Spark is left to look into the files, as its plan cannot be read: %s", error)
    return None


def _seen(source: DataFrame, config: TableConfig) -> dict[str, int] | None:
    columns, rows_left = _look_of(source, config)
    jsource: Any = source._jdf
    files = [str(each) for each in jsource.inputFiles()]
    chosen = chosen_files(files, 1)
    if chosen is None:
        return None
    # Texts by their numbers in the file's dictionary: to make a text for each row takes two thirds of the time.
    tables = [
        decoded(pq.read_table(_local(uri), columns=columns, filters=rows_left, read_dictionary=columns))
        for uri in chosen
    ]
    rows: dict[str, int] = {}
    for table in tables:
        for group in table.group_by(columns).aggregate([([], "count_all")]).to_pylist():
            count = group.pop("count_all")
            rows[repr(group)] = rows.get(repr(group), 0) + count
    return counts_of_all(rows, [table.num_rows for table in tables], len(files))


def _look_of(source: DataFrame, config: TableConfig) -> tuple[list[str], pc.Expression | None]:
    """Return the columns of the files that partitions are made of, and which rows the filters leave."""
    jsource: Any = source._jdf
    top = jsource.queryExecution().optimizedPlan()
    passed, plan = below_light_nodes(top)
    conditions: list[Any] = []
    projects: list[Any] = []
    for kind, node in passed:
        if kind == "Filter":
            conditions.append(node.condition())
        elif conditions:
            raise _NotKnown("a filter of names that are not those in the files")
        else:
            projects.append(node)
    if plan.relation().partitionSchema().length():
        raise _NotKnown("values that lie in the names of folders")
    columns = _columns(top.output(), projects, plan.output(), config)
    jvm: Any = source.sparkSession.sparkContext._jvm
    strategy = getattr(
        getattr(jvm.org.apache.spark.sql.execution.datasources, "DataSourceStrategy$"), "MODULE$"
    )
    found: pc.Expression | None = None
    for condition in conditions:
        told = strategy.translateFilter(condition, False)
        if told.isEmpty():
            raise _NotKnown("a filter that no file could be asked for")
        kept = _expression(told.get())
        found = kept if found is None else found & kept
    return columns, found


def _columns(output: Any, projects: Sequence[Any], stored: Any, config: TableConfig) -> list[str]:
    """Return the names in the files of the columns that partition paths are made of, renamed on their way or not."""
    stored_names = {str(each.exprId()): str(each.name()) for each in _all_of(stored)}
    given = {str(each.name()).lower(): str(each.exprId()) for each in _all_of(output)}
    names = []
    for field in config.partition_fields:
        place = given.get(field.name.lower())
        for project in projects:
            if place not in stored_names:
                place = _renamed(project, place)
        if field.kind == "timestamp" or place not in stored_names:
            raise _NotKnown(f"partition field {field.name}")
        names.append(stored_names[place])
    return list(dict.fromkeys(names))


def _renamed(project: Any, place: str | None) -> str | None:
    """Return what a column of a projection is another name of; itself where it is not."""
    for each in _all_of(project.projectList()):
        if str(each.exprId()) == place and class_name(each) == "Alias":
            child = each.child()
            return str(child.exprId()) if class_name(child) == "AttributeReference" else None
    return place


def _expression(told: Any) -> pc.Expression:
    """Return one of Spark's filters for data sources as Arrow's."""
    kind = class_name(told)
    if kind in ("And", "Or"):
        left, right = _expression(told.left()), _expression(told.right())
        return left & right if kind == "And" else left | right
    if kind == "Not":
        return ~_expression(told.child())
    if kind not in (*_COMPARES, "In", "IsNull", "IsNotNull"):
        raise _NotKnown(kind)
    name = str(told.attribute())
    if "." in name or "`" in name:
        raise _NotKnown("a field of a column, perhaps")
    column = pc.field(name)
    if kind == "In":
        return column.isin([_plain(value) for value in told.values()])
    if kind in ("IsNull", "IsNotNull"):
        return column.is_null() if kind == "IsNull" else column.is_valid()
    return _COMPARES[kind](column, _plain(told.value()))


def _plain(value: Any) -> str | int | float | bool | datetime.date:
    if isinstance(value, (str, int, float, bool)):
        return value
    if hasattr(value, "getClass") and class_name(value) in ("Date", "LocalDate"):
        return datetime.date.fromisoformat(str(value.toString()))
    raise _NotKnown("a value that is no plain one")


def _all_of(sequence: Any) -> Sequence[Any]:
    return [sequence.apply(number) for number in range(sequence.length())]


def _local(uri: str) -> str:
    found = urlsplit(uri)
    if found.scheme != "file" or found.netloc:
        raise _NotKnown(uri)
    path = unquote(found.path)
    if os.path.getsize(path) > _MOST_BYTES:
        raise _NotKnown("a large file")
    return path
