"""Queries over little data, run without code that is generated for them.

Spark writes Java for each stage of a query, compiles it, and Java runs it cold: some hundredths of a second a stage, more in a
young process, which pays from some hundred thousand values on. Below, Spark's interpreter of the same expressions is faster,
and leaves the cores to others (sixty windows of a thousand rows: a third of Java's CPU seconds).
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_STAGES, _FACTORY = "spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode"
_changing = threading.Lock()
_users: Counter[str] = Counter()


@contextmanager
def interpreted_if_small(frame: DataFrame, estimate: int, most: int) -> Iterator[None]:
    """Run the queries of a block without generated code where Spark expects them to read little.

    Settings of the session that say otherwise are left alone, and it has its own again afterwards.

    Args:
        frame: The rows that the block collects.
        estimate: Bytes that Spark expects its plan to give, see `estimated_bytes`.
        most: From more bytes on nothing changes; 0 for never.
    """
    if estimate > most or not most:
        yield
        return
    session = frame.sparkSession
    known = _begin(session)
    try:
        yield
    finally:
        if known is not None:
            _end(session, known)


def estimated_bytes(frame: DataFrame) -> int:
    """Return Spark's own estimate of a plan's size in bytes; very large when Spark does not know."""
    internal: Any = frame
    return int(str(internal._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


def _begin(session: SparkSession) -> str | None:
    """Turn generated code off for one more user of a session; None where its settings were made by somebody else."""
    internal: Any = session
    known = str(internal._jsparkSession.sessionUUID())
    with _changing:
        if not _users[known]:
            if (
                session.conf.get(_FACTORY, None) not in (None, "FALLBACK")
                or session.conf.get(_STAGES) != "true"
            ):
                return None
            session.conf.set(_STAGES, "false")
            session.conf.set(_FACTORY, "NO_CODEGEN")
        _users[known] += 1
    return known


def _end(session: SparkSession, known: str) -> None:
    """Give a session its settings back after its last user."""
    with _changing:
        _users[known] -= 1
        if not _users[known]:
            del _users[known]
            session.conf.unset(_FACTORY)
            session.conf.set(_STAGES, "true")
