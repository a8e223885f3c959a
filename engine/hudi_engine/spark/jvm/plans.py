"""Spark's logical plans: parsed, walked, and made into DataFrames and columns.

Plans and expressions are Java objects (`JavaPlan`); their class names and accessors are Spark's. Where PySpark 3.5 and 4.x
differ, both forms are tried here and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.types import _parse_datatype_json_string

from hudi_engine.errors import StatementError
from hudi_engine.spark.jvm.session import gateway, java_session, line_of

JavaPlan = Any


def parse(session: SparkSession, sql: str) -> JavaPlan:
    """Parse one statement without analysing it; raises Spark's ParseException."""
    return _parser(session).parsePlan(sql)


def parse_expression(session: SparkSession, sql: str) -> JavaPlan:
    """Parse one expression without analysing it; raises Spark's ParseException."""
    return _parser(session).parseExpression(sql)


def name_parts(session: SparkSession, name: str) -> list[str]:
    """Return the parts of a name, without their quotes; raises Spark's ParseException for what is no name."""
    return texts(_parser(session).parseMultipartIdentifier(name))


def kind(node: JavaPlan) -> str:
    """Class name of a plan or expression, without package."""
    return str(node.getClass().getSimpleName())


def items(seq: Any) -> Iterator[Any]:
    """Return the elements of a Scala sequence, set or map."""
    iterator = seq.iterator()
    while iterator.hasNext():
        yield iterator.next()


def texts(seq: Any) -> list[str]:
    """Return the elements of a Scala sequence of strings."""
    return [str(item) for item in items(seq)]


def pairs(seq: Any) -> dict[str, str]:
    """Return a Scala map, or a sequence of pairs, with the texts of its values."""
    return {str(each._1()): str(each._2()) for each in items(seq)}


def below(node: JavaPlan) -> list[JavaPlan]:
    """Return what a plan is made of: its children, the queries inside its expressions, and those of a WITH."""
    found = [*items(node.children()), *items(node.subqueries())]
    return [*found, *items(node.innerChildren())] if kind(node) == "UnresolvedWith" else found


def option(value: Any) -> Any | None:
    """Return the content of a Scala Option."""
    return value.get() if value.isDefined() else None


def default_text(column: JavaPlan) -> str | None:
    """Return SQL text of the default of an added column: text in PySpark 3.5, an expression in 4."""
    return sql_text(option(column.default()))


def sql_text(default: Any | None) -> str | None:
    """Return SQL text of a default value's expression, None for none."""
    if default is None or isinstance(default, str):
        return default
    return str(default.originalSQL())


def target_parts(plan: JavaPlan) -> tuple[list[str], str | None]:
    """Name parts and alias of the table a statement is about, through aliases."""
    alias = None
    node = plan
    while kind(node) == "SubqueryAlias":
        alias = alias or str(node.alias())
        node = node.child()
    for method in ("multipartIdentifier", "nameParts", "tableIdentifier"):
        if hasattr_java(node, method):
            return texts(getattr(node, method)()), alias
    raise StatementError(f"the target of this statement is not a table name: {node.toString()}")


def hasattr_java(node: Any, method: str) -> bool:
    """Whether a Java object has a method, by one call of Java."""
    return method in dir(node)


def frame(session: SparkSession, plan: JavaPlan) -> DataFrame:
    """Return a DataFrame of a logical plan."""
    return DataFrame(line_of(session).dataset.ofRows(java_session(session), plan), session)


def with_child(session: SparkSession, plan: JavaPlan, child: JavaPlan) -> JavaPlan:
    """Return the same node over another child, for example the CTEs of an INSERT over its query."""
    sequence = gateway(session).org.apache.spark.api.python.PythonUtils.toSeq([child])
    return plan.withNewChildren(sequence)


def column(session: SparkSession, expression: JavaPlan) -> Column:
    """Return an unresolved expression as a column."""
    return line_of(session).column(expression)


def source_range(node: JavaPlan) -> tuple[int, int] | None:
    """Start and end (excluded) of the text that a node was parsed from, None when Spark does not know it."""
    origin = node.origin()
    start, stop = option(origin.startIndex()), option(origin.stopIndex())
    return None if start is None or stop is None else (int(start), int(stop) + 1)


def text_of(statement: str, expression: JavaPlan) -> str:
    """Return an expression as its statement has it, or as Spark writes it where its end is not known."""
    spans = [span for node in nodes(expression) if (span := source_range(node)) is not None]
    text = statement[min(start for start, _ in spans) : max(end for _, end in spans)] if spans else ""
    return text if text and text.count("(") == text.count(")") else str(expression.sql())


def checked_text(session: SparkSession, text: str, expression: JavaPlan) -> str:
    """Return the text of an expression; StatementError where Spark makes another expression of it."""
    with suppress(PySparkException):
        again = parse_expression(session, text)
        if _without_ids(again) == _without_ids(expression):
            return text
    raise StatementError(f"{text!r} cannot be separated from the rest of its statement; write it in brackets")


def _without_ids(expression: JavaPlan) -> str:
    """Return an expression without the numbers that Spark gives its parts, others each time."""
    return re.sub(r"#\d+L?", "", str(expression.toString()))


def nodes(expression: JavaPlan) -> Iterator[JavaPlan]:
    """Give an expression and all that it is made of."""
    yield expression
    for child in items(expression.children()):
        yield from nodes(child)


def has_flag(plan: JavaPlan, flag: str) -> bool:
    """Whether a statement has a clause that only some versions of Spark know, such as ``withSchemaEvolution``."""
    return hasattr_java(plan, flag) and bool(getattr(plan, flag)())


def data_type(java_type: Any) -> T.DataType:
    """Return a Spark type of the JVM as PySpark's."""
    return _parse_datatype_json_string(java_type.json())


def struct_type(java_schema: Any) -> T.StructType:
    """Return a schema of the JVM as PySpark's."""
    parsed = data_type(java_schema)
    assert isinstance(parsed, T.StructType)
    return parsed


def _parser(session: SparkSession) -> Any:
    return java_session(session).sessionState().sqlParser()
