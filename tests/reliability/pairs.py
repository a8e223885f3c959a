"""Two writers on one table, stopped at every pair of their storage calls, reads included."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hudi_engine import HudiTable
from hudi_engine.errors import HudiError
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.table.txn import lock

from tests.reliability import real_table
from tests.reliability.actions import FIRST, SECOND, Act, Action, Rows, in_version
from tests.reliability.benches import Bench, Violation
from tests.reliability.figures import Figures
from tests.reliability.kill import Size
from tests.reliability.real_table import KINDS, Content, content, told

_CALLS = (
    "read", "stat", "list", "open_input", "create", "replace", "refresh", "delete", "delete_tree", "rename",
    "make_dirs", "open_output",
)  # fmt: skip
FOREVER = 1_000_000


class Writer:
    """An operation in a thread of its own that goes on as many storage calls at a time as it is told.

    Args:
        work: The operation, given its storage.
        path: The table.
        side: 1 or 2; the lock takes the two for different processes.
    """

    def __init__(self, work: Callable[[Storage], object], path: str, side: int) -> None:
        self.error: BaseException | None = None
        self.done = self.waits = False
        self.steps = 0
        self._budget = 0
        self._go, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        storage = _stepped(LocalStorage(path), self, path + "/" * side)
        self._thread = threading.Thread(target=self._run, args=(work, storage), daemon=True)
        self._thread.start()

    def advance(self, calls: int) -> None:
        """Let it go on until it is done, has made so many calls, or waits for the lock."""
        if self.done:
            return
        self._budget, self.waits = calls, False
        self._go.release()
        if not self._stopped.acquire(timeout=120):
            raise Violation("a writer hangs")

    def step(self) -> None:
        """Called before each storage call; those of threads that the operation starts are not counted, and wait for nobody."""
        if threading.current_thread() is not self._thread:
            return
        if self._budget <= 0:
            self._stop()
        self._budget -= 1
        self.steps += 1

    def sleep(self) -> None:
        """Called where it would sleep until the lock is free."""
        self.waits = True
        self._stop()

    def _stop(self) -> None:
        self._stopped.release()
        self._go.acquire()

    def _run(self, work: Callable[[Storage], object], storage: Storage) -> None:
        _running.writer = self
        self._go.acquire()
        try:
            work(storage)
        except BaseException as error:
            self.error = error
        self.done = True
        self._stopped.release()


_running = threading.local()


def _counted(writer: Writer, real: Callable[..., Any]) -> Callable[..., Any]:
    def call(*given: Any, **named: Any) -> Any:
        writer.step()
        return real(*given, **named)

    return call


def _stepped(storage: LocalStorage, writer: Writer, base: str) -> Storage:
    """Return the storage with every call counted."""
    stepped = LocalStorage(storage.base)
    stepped.base = base
    for name in _CALLS:
        setattr(stepped, name, _counted(writer, getattr(storage, name)))
    stepped.uri = storage.uri  # type: ignore[method-assign]
    return stepped


class _Clock:
    """Stands in for the clock of the lock: who would sleep lets the other one go on."""

    def __init__(self) -> None:
        self._now = 0.0

    def monotonic(self) -> float:
        return self._now

    def time(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        self._now += 20 * seconds
        writer = getattr(_running, "writer", None)
        if writer is not None:
            writer.sleep()


@contextmanager
def taking_turns() -> Any:
    """Make those who wait for the lock let the other writer go on."""
    real, lock.time = lock.time, _Clock()  # type: ignore[attr-defined]
    try:
        yield
    finally:
        lock.time = real  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Pair:
    """Two operations on one table.

    Args:
        table_type: Name of its kind.
        names: Names of both.
        version: Table version.
    """

    table_type: str
    names: tuple[str, str]
    version: int = 6


def operations(rows: Rows, side: int) -> dict[str, Act]:
    """Return the operations of one of two writers by name."""
    # Beside the key that both write, each writes one that the other does not: a lost write shows.
    old_a = (("a", "k1", 100 + side, f"by {side}"), ("a", "k2" if side == 1 else "k4", 100, f"by {side}"))
    new_a = (("a", "new", 100 + side, f"by {side}"),)
    old_b = (("b", "k3", 100 + side, f"by {side}"),)
    moved = (("a" if side == 1 else "c", "k3", 100 + side, f"by {side}"),)
    only = (("a", "only", 100 + side, f"by {side}"),)
    return {
        "upsert of a stored key": lambda table: table.upsert(rows(old_a)),
        "upsert of a new key": lambda table: table.upsert(rows(new_a)),
        "upsert elsewhere": lambda table: table.upsert(rows(old_b)),
        "move": lambda table: table.upsert(rows(moved)),
        "delete": lambda table: table.delete(rows((("a", "k1", 0, ""),))),
        "overwrite": lambda table: table.insert_overwrite(rows(only)),
        "overwrite of the table": lambda table: table.insert_overwrite_table(rows(only)),
        "drop of the partition": lambda table: table.delete_partitions(["a"]),
        "clean": lambda table: table.clean(1),
        "compaction": lambda table: table.compact(),
        "rollback": lambda table: table.rollback(real_table.commits(table)[-1].requested_time),
        "alter": lambda table: table.alter_schema("key string, ts long, v string, part string, extra int"),
    }


def pairs() -> list[Pair]:
    """Return the pairs that are interleaved."""
    one = "upsert of a stored key"
    others = ("upsert of a stored key", "upsert elsewhere", "delete", "overwrite", "overwrite of the table",
              "drop of the partition", "clean", "rollback", "alter")  # fmt: skip
    found = [Pair(kind, (one, other)) for kind in ("cow", "mor") for other in others]
    found += [Pair(kind, ("upsert of a new key",) * 2) for kind in ("cow", "cow unpacked", "mor")]
    found += [
        Pair("mor", (each, "compaction")) for each in (one, "upsert of a new key", "delete", "overwrite")
    ]
    found += [Pair(kind, ("move", "move")) for kind in ("cow global", "mor global")]
    return [*found, Pair("cow", ("overwrite", "clean")), Pair("mor", ("clean", "compaction"))]


def run(spark: Any, root: Path, size: Size, seed: int = 3) -> Figures:
    """Run the row: all pairs of steps, or a share of them."""
    figures, chance = Figures(), random.Random(seed)
    rows = Rows(spark)
    chosen = [
        replace(pair, version=version)
        for number, pair in enumerate(pairs())
        for version in size.versions_of(number)
        if size.only in f"{pair.table_type}: {' + '.join(pair.names)}" and size.takes(number, seed)
    ]
    points = []
    benches = {}
    with taking_turns():
        for number, pair in enumerate(chosen):
            bench = PairBench(spark, rows, pair, root / f"pair{number}")
            benches[pair] = bench
            grid = [(i, j) for i in range(bench.steps[0] + 1) for j in range(bench.steps[1] + 1)]
            picked = grid if size.share >= 1 else chance.sample(grid, max(1, int(size.share * len(grid))))
            points += [(pair, *each) for each in picked]
        chance.shuffle(points)
        for pair, i, j in points:
            if size.is_over(figures):
                break
            figures.try_point(benches[pair].interleave, i, j, figures, chance)
    return figures


class PairBench:
    """Interleaves two operations on copies of one table."""

    def __init__(self, spark: Any, rows: Rows, pair: Pair, root: Path) -> None:
        self.pair = pair
        first, second = (operations(rows, side)[name] for side, name in enumerate(pair.names, 1))
        self._acts = (first, second)
        prepare = tuple((lambda table, data=data: table.upsert(rows(data))) for data in (FIRST, SECOND))
        name = f"{pair.table_type}: {' + '.join(pair.names)}"
        action = in_version(Action(name, KINDS[pair.table_type], prepare, second), pair.version)
        self.bench = Bench(spark, rows, action, root)
        self._spark = spark
        self.serial = {order: self._in_order(order) for order in ((), (1,), (2,), (1, 2), (2, 1))}
        self.steps = tuple(self._count(side) for side in (1, 2))

    def interleave(self, i: int, j: int, figures: Figures, chance: random.Random) -> None:
        """Run ``i`` calls of the first writer, ``j`` of the second, then the first to its end and the second."""
        path = self.bench.copy()
        writers = [Writer(self._work(side), path, side) for side in (1, 2)]
        for writer, calls in ((0, i), (1, j), (0, FOREVER), (1, FOREVER)):
            self._advance(writers, writer, calls)
        figures.points += 1
        where = f"{self.bench.action.name}, stopped at {i} and {j}"
        for writer in writers:
            if writer.error is not None and not isinstance(writer.error, HudiError):
                raise Violation(f"{where}: {writer.error!r}")
        assert all(writer.done for writer in writers), f"{where}: a writer still runs"
        done = [side for side in (1, 2) if writers[side - 1].error is None]
        figures.count("conflicts", 2 - len(done))
        try:
            found = content(path)
        except AssertionError as error:
            raise Violation(f"{where}: {error}") from error
        allowed = [self.serial[order] for order in self.serial if sorted(order) == done]
        if found not in allowed:
            errors = [str(writer.error) for writer in writers if writer.error]
            raise Violation(f"{where}: {done} done, found {told(found)}; {errors}")
        if chance.random() < 0.1:
            self.bench.new = found
            self.bench.check_settled(path, found, where)
        self.bench.drop(path)

    def _advance(self, writers: list[Writer], number: int, calls: int) -> None:
        mine, other = writers[number], writers[1 - number]
        mine.advance(calls)
        while mine.waits and not mine.done:
            other.advance(FOREVER)
            mine.advance(calls)

    def _work(self, side: int) -> Callable[[Storage], object]:
        act = self._acts[side - 1]
        options = {**real_table.CALM, **self.bench.action.kind.options}
        return lambda storage: act(HudiTable(self._spark, storage.base, storage, options))

    def _in_order(self, order: tuple[int, ...]) -> Content:
        path = self.bench.copy()
        for side in order:
            self._work(side)(LocalStorage(path))
        found = content(path)
        self.bench.drop(path)
        return found

    def _count(self, side: int) -> int:
        path = self.bench.copy()
        writer = Writer(self._work(side), path, side)
        writer.advance(FOREVER)
        if writer.error is not None:
            raise writer.error
        self.bench.drop(path)
        return writer.steps
