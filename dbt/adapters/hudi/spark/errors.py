"""Errors of Spark, the JVM and the engine as dbt's, with short messages."""

from __future__ import annotations

import errno
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

from dbt_common.exceptions import DbtBaseException, DbtDatabaseError, DbtRuntimeError
from hudi_engine.errors import HudiError, StatementError
from hudi_engine.format.storage.read_only import is_refusal
from hudi_engine.spark.jvm.errors import call_errors, is_unanswered
from hudi_engine.spark.sql.failure import is_cancellation, short_message, shorten

from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.run import RUNS
from dbt.adapters.hudi.spark.java import how_java_ended


def _query_loggers() -> list[logging.Logger]:
    """Return the loggers in which PySpark 4 prints SQL errors as JSON; made by PySpark, whose class they need."""
    names = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:  # PySpark 3.5 prints nothing
        return [logging.getLogger(name) for name in names]
    return [PySparkLogger.getLogger(name) for name in names]


# dbt reports SQL errors itself
for _query_logger in _query_loggers():
    _query_logger.setLevel(logging.CRITICAL)

# a Java that writes its class archive takes seconds to end
_SEEN_DEAD_WITHIN_S = 15.0
# Texts of errors while Java ends: Spark's of a query, and Python's of an error that Java cannot describe any more
_ENDING = ("SparkContext was shut down", "<exception str() failed>")
_NO_TABLE = re.compile(r"TABLE_OR_VIEW_NOT_FOUND\].*?`(\w+)`\.`(\w+)` cannot be found")


def _word_on_sources(text: str) -> str:
    """Return what to do about a table that is not there, where it is a source without a place."""
    found = _NO_TABLE.search(text)
    place = RUNS.source(found[1], found[2]) if found else None
    if place is None or place.location is not None:
        return ""
    return (
        f"\n{place.label} is a source and no table of the warehouse: build it, or set where its files are, external: "
        "{location: ..., using: parquet}"
    )


def _raise_if_java_ended(error: Exception) -> None:
    """Raise that Spark's Java has ended, where a broken connection to it or an ended Spark means that."""
    if not is_unanswered(error) and not any(mark in _text(error) for mark in _ENDING):
        return
    ended = how_java_ended(_SEEN_DEAD_WITHIN_S)
    if ended is not None:
        raise DbtDatabaseError(
            f"Spark's Java process ended in the middle of the work ({ended}), as it does when the machine runs out of memory. "
            "Run the command again, which starts another; look at spark_conf {spark.driver.memory: ...} and at the number "
            "of threads"
        ) from error


def _text(error: Exception) -> str:
    """Return the text of an error, which comes from Java; a Java that has ended gives none."""
    try:
        return str(error)
    except call_errors():
        return _ENDING[-1]


@contextmanager
def dbt_errors(what: str) -> Iterator[None]:
    """Turn errors of Spark and of the engine into dbt's; the long text goes to the debug log with ``what``."""
    try:
        yield
    except DbtBaseException:
        raise
    except StatementError as error:
        raise DbtRuntimeError(str(error)) from error
    except HudiError as error:
        raise DbtRuntimeError(f"{type(error).__name__}: {error}") from error
    except call_errors() as error:
        logger.debug("Spark failed in {}:\n{}", what, _text(error))
        _raise_if_java_ended(error)
        if isinstance(error, ConnectionError):
            raise
        if is_cancellation(error):
            raise DbtDatabaseError("cancelled: the running Spark jobs of this node were stopped") from error
        raise DbtDatabaseError(short_message(error) + _word_on_sources(_text(error))) from error
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise DbtRuntimeError(shorten(str(error))) from error
        if not is_refusal(error):
            raise
        raise DbtRuntimeError(
            f"dbt may not read or write {error.filename}: {error.strerror}. Give it the right to, or set another folder "
            "(location_root in the profile)"
        ) from error
