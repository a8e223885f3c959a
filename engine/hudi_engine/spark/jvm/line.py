"""Where the lines of Spark differ: one class for each."""

from __future__ import annotations

from typing import Any

import pyspark
from pyspark.sql import Column, SparkSession


class Spark3:
    """PySpark 3.5."""

    def __init__(self, session: SparkSession) -> None:
        self._sql: Any = gateway(session).org.apache.spark.sql

    @property
    def dataset(self) -> Any:
        """The class whose ``ofRows`` makes a DataFrame of a plan."""
        return self._sql.Dataset

    def column(self, expression: Any) -> Column:
        """Return an unresolved expression as a column."""
        return Column(self._sql.Column(expression))


class Spark4(Spark3):
    """PySpark 4, whose classic API lies in a package of its own."""

    @property
    def dataset(self) -> Any:
        """The class whose ``ofRows`` makes a DataFrame of a plan."""
        return self._sql.classic.Dataset

    def column(self, expression: Any) -> Column:
        """Return an unresolved expression as a column."""
        return Column(self._sql.classic.ExpressionUtils.column(expression))


def line_of(session: SparkSession) -> Spark3:
    """Return what the session's Spark does in its own way."""
    return Spark3(session) if pyspark.__version__.startswith("3.") else Spark4(session)


def gateway(session: SparkSession) -> Any:
    """Return the view of Java's packages."""
    return session._jvm


def java_session(session: SparkSession) -> Any:
    """Return a session's Java object."""
    return session._jsparkSession
