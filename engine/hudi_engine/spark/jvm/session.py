"""A session's state in Java: whether it runs, its settings, and the classes that it knows."""

from __future__ import annotations

from typing import Any

import pyspark
from py4j.java_gateway import JavaClass
from pyspark import RDD, SparkContext
from pyspark.sql import Column, SparkSession

from hudi_engine.spark.jvm.errors import JVM_ERRORS


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


_CLASSES = (
    "PythonRDD",
    "PythonUtils",
    "PythonSQLUtils",
    "SerDeUtil",
    "SimplePythonFunction",
    "functions",
    "org.apache.spark.sql.functions",
    "org.apache.spark.sql.classic.SparkSession",
    "org.apache.spark.sql.classic.SparkSession$",
    "org.apache.spark.sql.catalyst.trees.PySparkCurrentOrigin",
    "org.apache.spark.sql.execution.python.UserDefinedPythonFunction",
)


def is_classic(session: SparkSession) -> bool:
    """Whether a session has Java in this process, as one of Spark Connect has not."""
    return hasattr(session, "_jsparkSession")


def is_stopped(context: SparkContext) -> bool:
    """Whether a context was stopped from Python."""
    return context._jsc is None


def is_running() -> bool:
    """Whether this process has a Spark whose Java lives."""
    context = SparkContext._active_spark_context
    try:
        return context is not None and not is_stopped(context) and not is_stopped_in_java(context)
    except JVM_ERRORS:
        return False
    except ConnectionError:
        return False


def is_stopped_in_java(context: SparkContext) -> bool:
    """Whether a context was stopped in Java; raises `JVM_ERRORS` or ConnectionError when Java has ended."""
    java: Any = context._jsc
    return bool(java.sc().isStopped())


def java_version(session: SparkSession) -> str:
    """Return the version of the Java that a session runs on."""
    return str(gateway(session).System.getProperty("java.version"))


def forget_java() -> None:
    """Take away what PySpark keeps of its Java, so that the next session starts another."""
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None


def keep_classes(context: SparkContext) -> None:
    """Keep the Java classes that PySpark needs for each statement and column, so that they are looked up once a process.

    Python looks them up by name each time, and Java searches for a short name under each of a dozen packages in each of
    some 250 jars: a tenth of what the driver's Java does in a dbt project of small models.
    """
    view: Any = context._jvm
    for name in _CLASSES:
        found = getattr(view, name)
        # another PySpark may have no such class: then the name is that of a package
        if isinstance(found, JavaClass):
            setattr(view, name, found)


def cloned(session: SparkSession) -> SparkSession:
    """Return a copy of a session: it begins with the same settings and current schema, and shares tables and views."""
    to_frame = RDD.toDF
    try:
        return type(session)(session.sparkContext, java_session(session).cloneSession())
    finally:
        RDD.toDF = to_frame  # type: ignore[method-assign]  # PySpark ties it to the session that was made last


def session_id(session: SparkSession) -> str:
    """Return the id of a session."""
    return str(java_session(session).sessionUUID())


def own_settings(session: SparkSession) -> set[str]:
    """Return the names of the settings that a session has of its own or of its context."""
    names = java_session(session).sessionState().conf().getAllConfs().keys()
    return set(str(names.mkString("\n")).split("\n"))


def hadoop_setting(session: SparkSession, key: str) -> str | None:
    """Return one of Hadoop's settings as the session has it; None for one that is not set."""
    value = java_session(session).sessionState().newHadoopConf().get(key)
    return None if value is None else str(value)
