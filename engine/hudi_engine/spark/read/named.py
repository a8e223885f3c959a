"""Rows under the name of their table, by which a condition, and a subquery in it, may call their columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def under_name(rows: DataFrame, parts: Sequence[str]) -> DataFrame:
    """Return the same rows, whose columns may be qualified by the name or its last parts; without a name as they are.

    Args:
        parts: An alias, or a name such as catalog, schema and table.
    """
    from pyspark.sql import DataFrame

    if len(parts) < 2:
        return rows.alias(parts[0]) if parts else rows
    # an alias of a DataFrame has one part
    spark = rows.sparkSession
    jvm: Any = spark._jvm
    sql = jvm.org.apache.spark.sql
    name = sql.catalyst.AliasIdentifier(parts[-1], jvm.PythonUtils.toSeq(list(parts[:-1])))
    plan = sql.catalyst.plans.logical.SubqueryAlias(name, rows._jdf.queryExecution().analyzed())
    dataset = sql.classic.Dataset  # since Spark 4
    if type(dataset).__name__ != "JavaClass":
        dataset = sql.Dataset
    return DataFrame(dataset.ofRows(spark._jsparkSession, plan), spark)
