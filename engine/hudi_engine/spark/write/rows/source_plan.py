"""What can be known of a batch before it is read: Spark's plan of it."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LIGHT_NODES = frozenset({"Project", "Filter"})
_SIMPLER, _TIMES = ("ReplaceExpressions", "ColumnPruning"), ("ComputeCurrentTime", "SpecialDatetimeValues")
"""Rules of Spark's optimizer that leave out what is not asked for, and that write the time of the query into its plan."""


def is_parquet_scan(frame: DataFrame, *, whole: bool = False) -> bool:
    """Tell whether the rows come straight from Parquet files, by columns and filters that nothing but the time may change.

    Such rows are cheaper to read twice than to keep, and only the columns needed are read. Anything else (joins,
    aggregates, Python functions, text formats, databases) is evaluated once and kept.

    Args:
        whole: Whether filters do not count, which may leave few of the files' rows.
    """
    plan: Any = frame._jdf.queryExecution().optimizedPlan()
    if not plan.deterministic():
        return False
    _, plan = below_light_nodes(plan, _LIGHT_NODES - {"Filter"} if whole else _LIGHT_NODES)
    if class_name(plan) != "LogicalRelation" or class_name(plan.relation()) != "HadoopFsRelation":
        return False
    return class_name(plan.relation().fileFormat()) == "ParquetFileFormat"


def asks_for_the_time(frame: DataFrame) -> bool:
    """Tell whether a later query may give other rows, as one of the columns or filters says current_timestamp() or the like.

    Spark puts the time into each query as it is optimized, after which such a column is as constant as any other.

    Args:
        frame: The rows, with no other columns than those that have to be the same each time.
    """
    jvm: Any = frame.sparkSession._jvm
    rules = jvm.org.apache.spark.sql.catalyst.optimizer

    def ruled(name: str, plan: Any) -> Any:
        return getattr(getattr(rules, f"{name}$"), "MODULE$").apply(plan)

    plan: Any = frame._jdf.queryExecution().analyzed()
    for name in _SIMPLER:
        plan = ruled(name, plan)
    return not all(plan.fastEquals(ruled(name, plan)) for name in _TIMES)


def below_light_nodes(plan: Any, kinds: Collection[str] = _LIGHT_NODES) -> tuple[list[tuple[str, Any]], Any]:
    """Return the projections and filters at the top of a plan, each with the name of its class, and the plan below them.

    Args:
        kinds: Names of the classes that are passed.
    """
    passed: list[tuple[str, Any]] = []
    while (kind := class_name(plan)) in kinds:
        passed.append((kind, plan))
        plan = plan.children().head()
    return passed, plan


def estimated_bytes(frame: DataFrame) -> int:
    """Return Spark's own estimate of a plan's size in bytes; very large when Spark does not know."""
    return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


def estimated_rows(frame: DataFrame) -> int:
    """Return rows of a Parquet scan, from the bytes of its files and the usual width of its columns in memory.

    Files are smaller than rows in memory, so it is rather too low.
    """
    return estimated_bytes(frame) // usual_row_bytes(frame)


def usual_row_bytes(frame: DataFrame) -> int:
    """Return the bytes that Spark takes a row of such columns for."""
    jframe: Any = frame._jdf
    return max(1, int(jframe.schema().defaultSize()))


def class_name(thing: Any) -> str:
    """Return the name of an object's class in Java, without its package."""
    return str(thing.getClass().getSimpleName())
