"""What is known of a DataFrame from Spark's plan, and a DataFrame under the name of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame, DataFrameReader

from hudi_engine.spark.jvm.plans import JavaPlan
from hudi_engine.spark.jvm.session import gateway, java_session, line_of

_BETWEEN = "\x1e"
_SIMPLER, _TIMES = ("ReplaceExpressions", "ColumnPruning"), ("ComputeCurrentTime", "SpecialDatetimeValues")
"""Rules of Spark's optimizer that leave out what is not selected, and that write the time of the query into its plan."""


def analyzed_plan(frame: DataFrame) -> JavaPlan:
    """Return the plan with all names resolved."""
    return _execution(frame).analyzed()


def optimized_plan(frame: DataFrame) -> JavaPlan:
    """Return the plan as Spark's optimizer leaves it."""
    return _execution(frame).optimizedPlan()


def physical_plan_text(frame: DataFrame) -> str:
    """Return the physical plan as text, before generated code is put into it."""
    return str(_execution(frame).sparkPlan().toString())


def is_done(frame: DataFrame) -> bool:
    """Whether the rows are there, as those of a command are."""
    plan = _execution(frame).commandExecuted()
    return str(plan.getClass().getSimpleName()) in ("CommandResult", "LocalRelation")


def size_estimate(frame: DataFrame) -> int:
    """Return Spark's own estimate of the rows' bytes; very large when Spark does not know."""
    return _bytes(optimized_plan(frame))


def scan_estimates(frame: DataFrame) -> Iterator[int]:
    """Give Spark's estimates of the bytes that each scan of the plan reads."""
    leaves = optimized_plan(frame).collectLeaves()
    return (_bytes(leaves.apply(number)) for number in range(leaves.size()))


def row_size_estimate(frame: DataFrame) -> int:
    """Return the bytes that Spark takes a row of these columns for."""
    java: Any = frame._jdf
    return max(1, int(java.schema().defaultSize()))


def task_count(frame: DataFrame) -> int:
    """Return how many tasks the physical plan has at its end."""
    return int(_execution(frame).toRdd().getNumPartitions())


def depends_on_time(frame: DataFrame) -> bool:
    """Whether one of the columns or filters has the time of the query in it, such as current_timestamp().

    Spark puts the time into each query as it is optimized, after which such a column is as constant as any other.
    """
    rules = gateway(frame.sparkSession).org.apache.spark.sql.catalyst.optimizer

    def ruled(name: str, plan: JavaPlan) -> JavaPlan:
        return getattr(getattr(rules, f"{name}$"), "MODULE$").apply(plan)

    plan = analyzed_plan(frame)
    for name in _SIMPLER:
        plan = ruled(name, plan)
    return not all(plan.fastEquals(ruled(name, plan)) for name in _TIMES)


def select_names(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return some columns of a frame, in two calls of Java however many they are: PySpark makes several for each.

    Args:
        names: Quoted where they are no identifiers.
    """
    if len(names) < 2:
        return frame.select(*names)
    java: Any = frame._jdf
    # An array of texts, which Py4J itself would fill one by one; no name holds the separator, which is no printable character.
    pattern = gateway(frame.sparkSession).java.util.regex.Pattern.compile(_BETWEEN)
    others = pattern.split(_BETWEEN.join(names[1:]))
    return DataFrame(java.select(names[0], others), frame.sparkSession)


def under_name(rows: DataFrame, parts: Sequence[str]) -> DataFrame:
    """Return the same rows, whose columns may be qualified by a name or its last parts, also in a subquery.

    Args:
        parts: An alias, or a name such as catalog, schema and table; none for the rows as they are.
    """
    if len(parts) < 2:
        return rows.alias(parts[0]) if parts else rows
    # an alias of a DataFrame has one part
    spark = rows.sparkSession
    jvm = gateway(spark)
    catalyst = jvm.org.apache.spark.sql.catalyst
    name = catalyst.AliasIdentifier(parts[-1], jvm.PythonUtils.toSeq(list(parts[:-1])))
    plan = catalyst.plans.logical.SubqueryAlias(name, analyzed_plan(rows))
    return DataFrame(line_of(spark).dataset.ofRows(java_session(spark), plan), spark)


def read_lines(reader: DataFrameReader, file_format: str, lines: DataFrame) -> DataFrame:
    """Return the rows that a reader of CSV or JSON makes of lines of text; it looks for their columns as it does in files.

    Args:
        file_format: ``csv`` or ``json``.
        lines: One column of text.
    """
    java: Any = lines._jdf
    java_reader: Any = reader._jreader
    encoder = gateway(lines.sparkSession).org.apache.spark.sql.Encoders.STRING()
    return DataFrame(getattr(java_reader, file_format)(getattr(java, "as")(encoder)), lines.sparkSession)


def _execution(frame: DataFrame) -> Any:
    java: Any = frame._jdf
    return java.queryExecution()


def _bytes(plan: JavaPlan) -> int:
    return int(str(plan.stats().sizeInBytes()))
