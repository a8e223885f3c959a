"""A line every fifteen seconds about work that takes long, so that it is seen to continue."""

from __future__ import annotations

import contextvars
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dbt_common.events.contextvars import get_node_info
from hudi_engine.format.progress import progress_of
from pyspark.sql import SparkSession

from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.response import counted, short_number

EVERY_S = 15.0
_WHAT_LENGTH = 60
# What dbt puts before or behind each statement; it is the same for all.
_QUERY_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


@dataclass(eq=False)
class _Work:
    """Work of a connection; ``began`` in seconds of the clock, ``words`` the context of its thread's log."""

    session: SparkSession
    group: str
    label: str
    thread: int
    words: contextvars.Context
    began: float
    lines: int = 0


class LongWork:
    """Reports all work of this process that takes long, every ``every_s`` seconds, from one thread."""

    def __init__(self, say: Callable[[str], None], every_s: float = EVERY_S) -> None:
        self._say = say
        self._every_s = every_s
        self._works: list[_Work] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    @contextmanager
    def watched(self, session: SparkSession, group: str, what: str = "dbt") -> Iterator[None]:
        """Report the progress of the work inside the block; ``what`` names work that is no node's."""
        text = " ".join(_QUERY_COMMENT.sub(" ", what).split())[:_WHAT_LENGTH]
        label = str(get_node_info().get("node_name") or text)
        work = _Work(
            session, group, label, threading.get_ident(), contextvars.copy_context(), time.monotonic()
        )
        with self._changed:
            self._works.append(work)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="long work", daemon=True)
                self._thread.start()
            if len(self._works) == 1:
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._works.remove(work)

    def _watch(self) -> None:
        while True:
            with self._changed:
                while not self._works:
                    self._changed.wait()
                now = time.monotonic()
                due = [work for work in self._works if now >= self._next(work)]
                if not due:
                    self._changed.wait(max(0.05, min(map(self._next, self._works)) - now))
                    continue
            for work in due:
                work.lines += 1
                work.words.run(self._tell, work)

    def _next(self, work: _Work) -> float:
        return work.began + (work.lines + 1) * self._every_s

    def _tell(self, work: _Work) -> None:
        try:
            self._say(f"{work.label}: {time.monotonic() - work.began:.0f} s so far{_how_far(work)}")
        except Exception as error:  # the work goes on whatever becomes of a line about it
            logger.debug("no word on {}: {}", work.label, str(error))


def _how_far(work: _Work) -> str:
    text = ""
    progress = progress_of(work.thread)
    if progress is not None and progress.all_tables:
        return f", {progress.tables} of {counted(progress.all_tables, 'table')}"
    if progress is not None and progress.files:
        rows = short_number(progress.rows)
        text += f", {counted(progress.files, 'file')} with {rows} rows {progress.did}"
    done, total = _tasks(work)
    return f"{text}, {done} of {counted(total, 'Spark task')} done" if total else text


def _tasks(work: _Work) -> tuple[int, int]:
    """Tasks that are done, and all, of the Spark jobs that run for some work."""
    tracker: Any = work.session.sparkContext.statusTracker()
    stages = []
    for job in tracker.getJobIdsForGroup(work.group):
        info = tracker.getJobInfo(job)
        if info is not None and info.status == "RUNNING":
            stages += [tracker.getStageInfo(each) for each in info.stageIds]
    known = [each for each in stages if each is not None]
    return sum(each.numCompletedTasks for each in known), sum(each.numTasks for each in known)


LONG_WORK = LongWork(lambda line: logger.info("{}", line))
