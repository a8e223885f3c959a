"""Errors of Spark and of the engine as one sentence and a SQL state."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from hudi_engine.errors import (
    ConfigError,
    DataError,
    HudiError,
    StatementError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedTableError,
    WriteConflictError,
)
from hudi_engine.format.parallel import carried_failure
from hudi_engine.spark.jvm.errors import java_message

_CANCEL_MARKS = (
    "cancelled part of cancelled job group",
    "cancelled because job group",
    "Job cancelled",
    "was cancelled",
)
_STACK_LINE = re.compile(r"^\s+at [\w$.<>/]+\(|^\s*\.\.\. \d+ more")
_PLAN_START = re.compile(r";\n(?='|[A-Z+:])|\n\nJVM stacktrace:|\n== |\nDriver stacktrace:")
_TASK_FAILURE = re.compile(
    r"Job aborted due to stage failure:.*?(?:executor driver\)|ExecutorLostFailure[^:]*\)): ", re.DOTALL
)
_META_COLUMN = re.compile(r"\[UNRESOLVED_COLUMN\b[^`]*`(?:[^`]+`\.`)*(_hoodie_\w+)`")
# Hadoop's message for a store whose client is not among Spark's classes.
_NO_CONNECTOR = re.compile(
    r'No FileSystem for scheme "\w+"|Class (?:org\.apache\.hadoop\.fs\.(?:s3a|azure)|com\.google\.cloud)[.\w]* not found'
)
# A sentence of this engine, or of the user's query, that Spark's raise_error brought.
_RAISED = re.compile(
    r"(?:[\w.$]+(?:Exception|Error): )?\[USER_RAISED_EXCEPTION\] (.*?)\.?(?: SQLSTATE: P0001)?\s*\Z",
    re.DOTALL,
)
_PYTHON_ERROR = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception|Warning|Interrupt)): (.*)", re.MULTILINE)
_SQLSTATE = re.compile(r"SQLSTATE: (\w{5})")
_ERROR_CLASS = re.compile(r"\A\s*\[([A-Z_]+)")
_GENERAL = "HY000"
_STATE_OF_CLASS: Mapping[str, str] = {
    "TABLE_OR_VIEW_ALREADY_EXISTS": "42P07",
    "TABLE_OR_VIEW_NOT_FOUND": "42P01",
    "SCHEMA_NOT_FOUND": "42704",
}
# The first that fits; others have the general state.
_STATE_OF_ERROR: tuple[tuple[type[HudiError], str], ...] = (
    (StatementError, "42000"),
    (TableNotFoundError, "42P01"),
    (TableExistsError, "42P07"),
    (UnsupportedTableError, "0A000"),
    (WriteConflictError, "40001"),
    (ConfigError, "22023"),
    (DataError, "22000"),
)


@dataclass(frozen=True)
class Failure:
    """Why a statement failed.

    Args:
        message: A readable sentence, without stack and plan.
        sqlstate: Five characters, as in SQL's standard and Spark's list of errors.
    """

    message: str
    sqlstate: str = _GENERAL


def failure_of(error: BaseException) -> Failure:
    """Return the sentence and SQL state of whatever a statement raised."""
    if isinstance(error, HudiError):
        known = next((state for kind, state in _STATE_OF_ERROR if isinstance(error, kind)), _GENERAL)
        named = "" if isinstance(error, StatementError) else f"{type(error).__name__}: "
        return Failure(f"{named}{error}", known)
    # errors of a warehouse that is not the engine's carry their sentence apart from what they print
    own = getattr(error, "msg", None)
    message = own if isinstance(own, str) else short_message(error)
    return as_failure(message, java_message(error) or str(error))


def as_failure(message: str, text: str) -> Failure:
    """Return a message of Spark's with its SQL state, for which ``text`` is looked through too."""
    found = _ERROR_CLASS.match(message)
    state = _STATE_OF_CLASS.get(found[1]) if found else None
    if state is None:
        stated = _SQLSTATE.search(text)
        state = stated[1] if stated else _GENERAL
    return Failure(message, state)


def is_cancellation(error: BaseException) -> bool:
    """Whether an error is that of a cancelled Spark job."""
    text = str(error)
    return any(mark in text for mark in _CANCEL_MARKS)


def short_message(error: BaseException) -> str:
    """One readable message of a Spark error: error class and reason, without stack and plan."""
    return shorten(java_message(error) or str(error))


def shorten(text: str) -> str:
    """Cut Java stacks, query plans and worker tracebacks out of an error text."""
    failure = carried_failure(text)
    if failure is not None:
        return f"{failure.kind}: {failure.message}"
    if "Traceback (most recent call last)" in text:
        found = _PYTHON_ERROR.findall(text)
        if found:
            name, reason = found[-1]
            return f"{name}: {reason.strip()}"
    text = _TASK_FAILURE.sub("", text, count=1)
    text = _PLAN_START.split(text, maxsplit=1)[0]
    text = _RAISED.sub(r"\1", text, count=1)
    lines = [line for line in text.splitlines() if not _STACK_LINE.match(line)]
    return (
        ("\n".join(lines).strip() or text.strip())
        + _word_on_meta_columns(text)
        + _word_on_connectors(text)
        + _word_on_disks(text)
    )


def _word_on_disks(text: str) -> str:
    if os.strerror(errno.ENOSPC) not in text and f"[Errno {errno.ENOSPC}]" not in text:
        return ""
    return (
        "\nThe disk of the tables, or that of Spark's temporary files (spark.local.dir), is full. What the write had begun is "
        "rolled back, by itself or by the next write: free space and run it again"
    )


def _word_on_connectors(text: str) -> str:
    if _NO_CONNECTOR.search(text) is None:
        return ""
    return (
        "\nSpark needs a connector of its own for this store, such as hadoop-aws of the version of its Hadoop for s3a://: name "
        "it in spark_conf of the profile, {spark.jars.packages: ...}; docs/stores.md has a whole profile"
    )


def _word_on_meta_columns(text: str) -> str:
    found = _META_COLUMN.search(text)
    if found is None:
        return ""
    return (
        f"\n{found[1]} is one of Hudi's own columns, which queries may name where the columns of the table are listed, and not in "
        "the same SELECT as a *, in a view or in a statement that writes; HudiTable.open(spark, path).snapshot() has all of them"
    )
