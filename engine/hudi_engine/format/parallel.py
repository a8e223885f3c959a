"""Running one function over many items in threads, and bringing back the engine's own errors from Spark's executors.

Workers return what they made or, as data, the error they met: Spark gives only the text of an exception. An error of the
storage is raised instead, so that Spark tries the task again; such an exception, and one inside a plan that Spark runs,
carries the same data in its text between two marks.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from hudi_engine import errors
from hudi_engine.errors import (
    HudiError,
    IncompleteWriteError,
    StorageError,
    TaskMemoryError,
    translate_unicode_errors,
)
from hudi_engine.format.worker import LEAST_MEMORY, memory_limit, settle_worker

Item = TypeVar("Item")
Result = TypeVar("Result")

WAITING_THREADS = 16
_BEGIN, _END = "<hudi-engine-error:", ">"
_LOADS_NOTHING = re.compile(
    "ImportError: .*(failed to map segment from shared object|cannot allocate memory in static TLS block)"
)
"""Python's error for a library where its process may have no more memory; Java has the like for folders without execute rights."""
_HELPLESS = 600 * 2**20
"""With less memory a worker cannot do without, however few rows a task holds."""
_KINDS: dict[str, type[HudiError]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, HudiError)
}


class RunTasks(Protocol):
    """Calls a function once for every item and returns the results in the order of the items.

    The function and the items can be pickled. The first error is raised; nothing is returned then.
    """

    def __call__(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Run all of them."""


@dataclass(frozen=True)
class Failure:
    """An error of the engine as data."""

    kind: str
    message: str
    fields: dict[str, Any]

    @classmethod
    def of(cls, error: HudiError) -> Failure:
        """Take an error apart; a class of another package's becomes the engine's that it comes from."""
        kind = next(each.__name__ for each in type(error).__mro__ if each in _KINDS.values())
        return cls(kind, str(error), json.loads(json.dumps(vars(error), default=str)))

    def error(self) -> HudiError:
        """Return the error."""
        kind = _KINDS[self.kind]
        error: HudiError = kind.__new__(kind)
        Exception.__init__(error, self.message)
        fields = {name: tuple(each) if isinstance(each, list) else each for name, each in self.fields.items()}
        vars(error).update(fields)
        return error

    def to_json(self) -> str:
        """Return it as text."""
        return json.dumps([self.kind, self.message, self.fields])

    @classmethod
    def from_json(cls, text: str) -> Failure:
        """Read what `to_json` gave."""
        return cls(*json.loads(text))


class WorkerError(Exception):
    """What a worker raises for an error of the engine inside a plan of Spark: its text holds the error's data."""

    def __init__(self, error: HudiError) -> None:
        data = base64.b64encode(Failure.of(error).to_json().encode()).decode()
        super().__init__(f"{error} {_BEGIN}{data}{_END}")


@contextmanager
def worker_errors() -> Iterator[None]:
    """Turn a lack of memory in a worker into an error that names the setting, and a key that is no text into one that names it."""
    try:
        with translate_unicode_errors():
            yield
    except TaskMemoryError:
        raise
    except MemoryError as error:
        limit = memory_limit()
        has = "the machine has left" if limit is None else f"its {limit // 2**20:,} MiB"
        lacks = str(error) or type(error).__name__
        raise TaskMemoryError(
            f"a task needs more memory than {has} ({lacks}). {_advice(limit)}. Nothing was committed"
        ) from error


def _advice(limit: int | None) -> str:
    """Return what to do where a task lacks memory."""
    more = "Give Python workers more with spark.executor.pyspark.memory"
    if limit is not None and limit < LEAST_MEMORY:
        more += f", {LEAST_MEMORY // 2**20}m at least for files of the default size"
        if limit < _HELPLESS:
            return f"{more}; with so little nothing else helps"
    return (
        f"{more}, or let a task hold fewer rows: a smaller hoodie.parquet.max.file.size (files that are there keep their size "
        "until they are clustered or the table is rebuilt), smaller hoodie.engine.write.task.max.bytes (bulk loads), "
        "hoodie.parquet.block.size, hoodie.memory.merge.max.size and hoodie.memory.compaction.max.size; docs/sizing.md lists "
        "which bounds what"
    )


def attempt(function: Callable[[Item], Result], item: Item) -> Result | Failure:
    """Call a function in a worker; returns its result or the error it raised."""
    try:
        with worker_errors():
            return function(item)
    except StorageError as error:
        raise WorkerError(error) from error
    except HudiError as error:
        return Failure.of(error)


def typed_stage(
    function: Callable[[Iterator[Item]], Iterable[Result]],
) -> Callable[[Iterator[Item]], Iterator[Result]]:
    """Wrap a function of `mapInArrow` in the middle of a plan, so that `raise_worker_error` finds the error it raises."""

    def run(batches: Iterator[Item]) -> Iterator[Result]:
        settle_worker()
        try:
            with worker_errors():
                yield from function(batches)
        except HudiError as error:
            raise WorkerError(error) from error

    return run


def carried_failure(text: str) -> Failure | None:
    """Return what a worker met, from the text of Spark's exception; None where it carries no error of the engine."""
    _, begin, rest = text.partition(_BEGIN)
    data, end, _ = rest.partition(_END)
    return Failure.from_json(base64.b64decode(data).decode()) if begin and end else None


def raise_worker_error(error: BaseException) -> None:
    """Raise the engine's error that a worker met, if an exception of Spark carries one, or shows that it could not begin."""
    if (failure := carried_failure(str(error))) is not None:
        raise failure.error() from error
    if _LOADS_NOTHING.search(str(error)):
        raise TaskMemoryError(
            "a Python worker has too little memory to load its libraries: spark.executor.pyspark.memory must be "
            f"{LEAST_MEMORY // 2**20}m at least. Nothing was committed"
        ) from error


def each_once(results: list[Result], items: Sequence[object], what: str) -> list[Result]:
    """Return results, one for each item; raises IncompleteWriteError for fewer or more.

    Args:
        what: The items, such as ``file groups``.
    """
    if len(results) != len(items):
        raise IncompleteWriteError(
            f"{len(items)} {what} were planned and {len(results)} came back; nothing was committed. Run it again"
        )
    return results


def in_turn(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Run one after the other, here."""
    return [function(item) for item in items]


def run_in_threads(
    function: Callable[[Item], Result], items: Sequence[Item], *, most: int | None = None
) -> list[Result]:
    """Run in threads of this process, as many as there are processors: for work."""
    with short_switch_interval():
        return _in_threads(function, items, min(os.cpu_count() or 1, most or len(items)))


@dataclass(frozen=True)
class _Share(Generic[Item]):
    """Items that one task takes one after the other."""

    items: tuple[Item, ...]

    @property
    def size(self) -> int:
        """Bytes of the items, as far as they state theirs."""
        return sum(getattr(each, "size", 0) for each in self.items)


def _run_share(function: Callable[[Item], Result], share: _Share[Item]) -> list[Result]:
    return [function(each) for each in share.items]


def at_most(run_tasks: RunTasks, tasks: int) -> RunTasks:
    """Return a runner that starts at most so many tasks at a time; 0 leaves it as it is."""
    if not tasks:
        return run_tasks

    def run(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        if len(items) <= tasks:
            return run_tasks(function, items)
        shares = [_Share(tuple(items[number::tasks])) for number in range(tasks)]
        found = run_tasks(partial(_run_share, function), shares)
        return [found[number % tasks][number // tasks] for number in range(len(items))]

    return run


def on_threads(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Run in more threads of this process than there are processors: for calls that mostly wait for the storage."""
    return _in_threads(function, items, WAITING_THREADS)


def _in_threads(function: Callable[[Item], Result], items: Sequence[Item], most: int) -> list[Result]:
    if len(items) < 2:
        return in_turn(function, items)
    with ThreadPoolExecutor(min(len(items), most), thread_name_prefix="hudi-engine") as pool:
        return list(pool.map(function, items))


_SHORT_SECONDS = 0.001
_changing = threading.Lock()
_intervals: list[float] = []
"""The switch interval before the first of the callers at work, once for each of them."""


@contextmanager
def short_switch_interval() -> Iterator[None]:
    """Let threads of this process switch more often for a while; a shorter setting stays.

    Threads that write files work by turns in Python and in libraries that release Python's lock. A thread that returns from one
    waits for the switch interval, five milliseconds by default, which is half of what a small file takes.
    """
    with _changing:
        before = _intervals[0] if _intervals else sys.getswitchinterval()
        _intervals.append(before)
        sys.setswitchinterval(min(before, _SHORT_SECONDS))
    try:
        yield
    finally:
        with _changing:
            _intervals.pop()
            if not _intervals:
                sys.setswitchinterval(before)
