"""A session's state in Java: its catalog of names, its settings, whether it still runs."""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession


def is_classic(session: SparkSession) -> bool:
    """Whether a session has Java in this process, as one of Spark Connect has not."""
    return hasattr(session, "_jsparkSession")


def is_stopped(context: SparkContext) -> bool:
    """Whether a context was stopped from Python."""
    return context._jsc is None


def is_stopped_in_java(context: SparkContext) -> bool:
    """Whether Java says that a context was stopped; raises `JVM_ERRORS` or ConnectionError when Java is gone."""
    java: Any = context._jsc
    return bool(java.sc().isStopped())


def java_version(session: SparkSession) -> str:
    """Return the version of the Java that a session runs on."""
    jvm: Any = session._jvm
    return str(jvm.System.getProperty("java.version"))


def forget_java() -> None:
    """Take away what PySpark keeps of its Java, so that the next session starts another."""
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None


def invalidate_cached_tables(session: SparkSession) -> None:
    """Make a session look again at the tables it has read, which others may have written to since."""
    _names(session).invalidateAllCachedTables()


def is_temporary_view(session: SparkSession, name: str) -> bool:
    """Whether a name without a schema is that of a temporary view."""
    return bool(_names(session).getTempView(name).isDefined())


def hadoop_setting(session: SparkSession, key: str) -> str | None:
    """Return one of Hadoop's settings as the session has it; None for one that is not set."""
    java: Any = session._jsparkSession
    value = java.sessionState().newHadoopConf().get(key)
    return None if value is None else str(value)


def _names(session: SparkSession) -> Any:
    java: Any = session._jsparkSession
    return java.sessionState().catalog()
