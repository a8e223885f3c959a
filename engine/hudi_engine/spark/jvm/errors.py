"""What py4j raises when Java fails, refuses a call or has ended."""

from __future__ import annotations

import logging
from pathlib import Path

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException

JVM_ERRORS: tuple[type[Exception], ...] = (Py4JError,)
"""A call of Java that failed, whatever the reason."""
JAVA_ERRORS: tuple[type[Exception], ...] = (Py4JJavaError,)
"""An exception of Java's that PySpark has no class for."""
API_ERRORS: tuple[type[Exception], ...] = (Py4JError, TypeError)
"""A call of a class or method that this Spark does not have so."""
SPARK_ERRORS: tuple[type[Exception], ...] = (PySparkException, Py4JError)
"""What a call of Spark raises: PySpark's errors, and those of Java or of the connection to it that PySpark has no class for."""


def call_errors(*more: type[Exception]) -> tuple[type[Exception], ...]:
    """Return what a call of Spark raises, also when Java has ended, and more."""
    return *SPARK_ERRORS, ConnectionError, *more


def is_unanswered(error: BaseException) -> bool:
    """Whether the connection to Java broke, or Java gave no answer to a call."""
    # where Java refused a call its words follow as a trace
    unanswered = type(error) is Py4JError and "Trace:" not in str(error)
    return unanswered or isinstance(error, (Py4JNetworkError, ConnectionError))


def is_of_connection(record: logging.LogRecord) -> bool:
    """Whether a log record comes from the connection to Java."""
    return Path(record.pathname).parent.name == "py4j"


def java_message(error: BaseException) -> str | None:
    """Return the message of the innermost cause of an exception of Java's; None for another error."""
    if not isinstance(error, Py4JJavaError):
        return None
    throwable = error.java_exception
    text = str(error)
    while throwable is not None:
        message = throwable.getMessage()
        if message:
            text = str(message)
        cause = throwable.getCause()
        if cause is None or cause.equals(throwable):
            break
        throwable = cause
    return text
