"""Why Spark refuses something, in one line."""

from __future__ import annotations

import re

from pyspark.errors import PySparkException

from hudi_engine.spark.jvm.errors import JAVA_ERRORS

_STATE = re.compile(r"\.?\s*SQLSTATE: \w{5}")


def spark_errors(*more: type[Exception]) -> tuple[type[Exception], ...]:
    """Return what a call to Spark raises while its Java lives: PySpark's errors, and those of Java that PySpark has none for."""
    return PySparkException, *JAVA_ERRORS, *more


def reason_of(error: Exception) -> str:
    """Return the first line of an error's message, Spark's or Java's, without SQL state and full stop."""
    java = getattr(error, "java_exception", None)
    text = str(error) if java is None else str(java.getMessage() or java.toString())
    return reason_in(text) or type(error).__name__


def reason_in(text: str) -> str:
    """Return the first line of an error's text, as reason_of does."""
    # messages of Spark's parser begin with an empty line
    line = next((line for line in text.splitlines() if line.strip()), "")
    return _STATE.sub("", line).strip().rstrip(".")
