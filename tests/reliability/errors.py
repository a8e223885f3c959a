"""A storage call fails, or its answer is lost, at every mutating call of every public operation."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hudi_engine.errors import HudiError
from hudi_engine.storage.base import Storage
from hudi_engine.storage.local import LocalStorage

from tests.helpers.fault import FaultInjectingStorage
from tests.reliability.benches import Bench, Violation
from tests.reliability.figures import Figures
from tests.reliability.kill import Size, benches

KINDS = {
    "EIO": (errno.EIO, False),
    "ENOSPC": (errno.ENOSPC, False),
    "a timeout after the effect": (errno.ETIMEDOUT, True),
}


class FailingStorage(FaultInjectingStorage):
    """Fails at one mutating call and works before and after it.

    Args:
        storage: Where the other calls go.
        call: Number of the call to fail, counted from 1.
        number: The error.
        late: Whether the call does its work before it fails, as when an answer is lost.
    """

    def __init__(self, storage: Storage, call: int, number: int, late: bool) -> None:
        super().__init__(storage)
        self._first, self._number, self._late = call, number, late

    @contextmanager
    def _fault(self, method: str, path: str, tear: Callable[[], None] | None = None) -> Iterator[None]:
        fails = len(self.calls) + 1 == self._first
        error = OSError(self._number, os.strerror(self._number), path)
        if fails and not self._late:
            self.calls.append((method, path))
            raise error
        with super()._fault(method, path, tear):
            yield
        if fails:
            raise error

    @contextmanager
    def _output(self, path: str, before_publish: Callable[[], None] | None) -> Iterator[Any]:
        fails = len(self.calls) + 1 == self._first
        error = OSError(self._number, os.strerror(self._number), path)
        if fails and not self._late:
            self.calls.append(("open_output", path))
            raise error
        with super()._output(path, before_publish) as sink:
            yield sink
        if fails:
            raise error


def run(spark: Any, root: Path, size: Size, seed: int = 2) -> Figures:
    """Run the row."""
    figures, chance = Figures(), random.Random(seed)
    points = [
        (bench, call, kind)
        for bench in benches(spark, root, size, seed)
        for call in range(1, len(bench.calls) + 1)
        for kind in KINDS
        if size.share >= 1 or chance.random() < size.share
    ]
    chance.shuffle(points)
    for bench, call, kind in points:
        if size.is_over(figures):
            break
        figures.try_point(fail_once, bench, call, kind, figures)
    return figures


def fail_once(bench: Bench, call: int, kind: str, figures: Figures) -> None:
    """Fail one call: what was acknowledged is there, and what was not is not; the next writer goes on."""
    where = f"{kind} at call {call}: {bench.calls[call - 1]}"
    path = bench.copy()
    number, late = KINDS[kind]
    error: Exception | None = None
    try:
        bench.run(FailingStorage(LocalStorage(path), call, number, late))
    except Exception as raised:
        error = raised
    figures.points += 1
    seen = bench.check_readers(path, where)
    if error is None:
        figures.count("acknowledged")
        if seen != bench.new:
            raise Violation(f"{bench.action.name}, {where}: acknowledged and not there")
    else:
        figures.count("refused")
        if not isinstance(error, HudiError):
            raise Violation(f"{bench.action.name}, {where}: untyped {error!r}")
        if not bench.action.goes_on and seen is not None and seen != bench.old and bench.old != bench.new:
            raise Violation(f"{bench.action.name}, {where}: there though it raised {error!r}")
    bench.check_settled(path, seen, where)
    bench.drop(path)
