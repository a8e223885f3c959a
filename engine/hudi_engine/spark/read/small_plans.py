"""Queries over little data, run without generated code.

Spark writes and compiles Java for each stage of a query, some hundredths of a second, which pays from some hundred thousand
values on. Below, Spark's interpreter of the same expressions is faster.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession

from hudi_engine.spark.jvm.frames import physical_plan_text, scan_estimates
from hudi_engine.spark.jvm.session import session_id
from hudi_engine.table.lookup.unit import LEAVES
from hudi_engine.table.snapshot.native import release_of

_MULTIPLIERS = ("Generate ", "NestedLoopJoin", "CartesianProduct")
_OFF = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
_USUAL = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
_changing = threading.Lock()
_users: Counter[str] = Counter()
_before: dict[str, dict[str, str | None]] = {}
"""How many blocks a session has under way, and its settings from before them, by its id."""


@contextmanager
def interpreted_if_small(frame: DataFrame, most: int) -> Iterator[None]:
    """Run the queries of a block without generated code if its rows are made of at most ``most`` bytes; 0 for never."""
    session = frame.sparkSession
    with interpreted(session, when=bool(most) and _may_change(session) and is_small(frame, most)):
        yield


@contextmanager
def interpreted(session: SparkSession, *, when: bool = True) -> Iterator[None]:
    """Run the queries of a block without generated code, unless the session's settings say otherwise."""
    known = _begin(session) if when else None
    try:
        yield
    finally:
        if known is not None:
            _end(session, known)


def is_small(frame: DataFrame, most: int) -> bool:
    """Return whether a query reads at most ``most`` bytes, by Spark's estimate, and does not multiply rows by explode or joins.

    The row of a merge that stands for the partition which another one leaves is no such multiple.
    """
    read = 0
    for size in scan_estimates(frame):
        read += size
        if read > most:
            return False
    plan = physical_plan_text(frame).splitlines()
    return not any(name in line for line in plan if LEAVES not in line for name in _MULTIPLIERS)


def _begin(session: SparkSession) -> str | None:
    """Turn generated code off for one more user of a session; None where its settings are not to change."""
    if not _may_change(session):
        return None
    known = session_id(session)
    with _changing:
        if not _users[known]:
            before = {name: session.conf.get(name, None) for name in _OFF}
            if any(value not in (None, _USUAL[name]) for name, value in before.items()):
                return None
            _before[known] = before
            for name, value in _OFF.items():
                session.conf.set(name, value)
        _users[known] += 1
    return known


def _may_change(session: SparkSession) -> bool:
    """Return whether settings may change while queries run; Spark 3 fails where they differ from those of the plan."""
    return release_of(session.version) >= (4, 0)


def _end(session: SparkSession, known: str) -> None:
    """Give a session its settings back after its last user."""
    with _changing:
        _users[known] -= 1
        if _users[known]:
            return
        del _users[known]
        for name, value in _before.pop(known).items():
            if value is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, value)
