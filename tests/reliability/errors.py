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
from hudi_engine.format.storage.local import LocalStorage

from tests.helpers.fault import FailingStorage
from tests.reliability.benches import Bench, Violation
from tests.reliability.figures import Figures
from tests.reliability.kill import Size, benches, points

KINDS = {
    "EIO": (errno.EIO, False),
    "ENOSPC": (errno.ENOSPC, False),
    "a timeout after the effect": (errno.ETIMEDOUT, True),
}


class FailsOnce(FailingStorage):
    """Fails at one mutating call, those that open an output among them, and works before and after it."""

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
    for bench, call, kind in points(benches(spark, root, size, seed), KINDS, size, chance):
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
        bench.run(FailsOnce(LocalStorage(path), call, number, late=late))
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
