"""Killed at every mutating storage call of every public operation, and again while the next writer recovers."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hudi_engine.format.storage.local import LocalStorage

from tests.helpers.fault import FaultInjectingStorage, FaultPlan, SimulatedCrash, raise_crash
from tests.reliability.actions import Rows, actions, in_version
from tests.reliability.benches import Bench, Violation
from tests.reliability.figures import Figures

MOMENTS = ("before", "after", "torn")


@dataclass(frozen=True)
class Size:
    """How much of the row runs.

    Args:
        share: Of the kill points, 1.0 for all of them.
        again: Of the kill points that are followed by kills in the recovery.
        spark: Whether operations that run Spark jobs take part.
        seconds: When to stop.
        only: Part of the names of the operations, for one at a time.
        every: Each so manieth operation takes part.
        first: Whether to stop at the first violation.
        begin: Number of the table to begin with, of a row that has numbered ones.
        versions: Table versions; where not every operation takes part, each that does has one of them in turn.
    """

    share: float = 1.0
    again: float = 0.1
    spark: bool = True
    seconds: float = 1e9
    only: str = ""
    every: int = 1
    first: bool = False
    begin: int = 0
    versions: tuple[int, ...] = (6,)

    def is_over(self, figures: Figures) -> bool:
        """Tell whether the time is up, and note it, or whether enough is known."""
        if self.first and figures.violations:
            return True
        figures.cut_short = figures.cut_short or figures.seconds > self.seconds
        return figures.cut_short

    def takes(self, number: int, seed: int) -> bool:
        """Tell whether an operation takes part; rows of different seeds begin with different ones."""
        return (number + seed) % self.every == 0

    def versions_of(self, number: int) -> tuple[int, ...]:
        """Return the table versions in which an operation takes part."""
        return self.versions if self.every == 1 else (self.version_of(number // self.every),)

    def version_of(self, number: int) -> int:
        """Return the table version of a number, each in turn."""
        return self.versions[number % len(self.versions)]


def killed(bench: Bench, path: str, act: Any, call: int, when: str) -> bool:
    """Run ``act`` on a storage that stops at a mutating call; returns whether it came so far."""
    try:
        act(FaultInjectingStorage(LocalStorage(path), FaultPlan(call, when, crash=raise_crash)))
    except SimulatedCrash:
        return True
    except Exception as error:
        raise Violation(f"{bench.action.name}: {when} call {call}: {error!r}") from error
    return False


def run(spark: Any, root: Path, size: Size, seed: int = 1) -> Figures:
    """Run the row; figures count a point for each kill, also those in recoveries."""
    figures, chance = Figures(), random.Random(seed)
    for bench, call, when in points(benches(spark, root, size, seed), MOMENTS, size, chance):
        if size.is_over(figures):
            break
        figures.try_point(kill_once, bench, call, when, figures, size, chance)
    return figures


def points(
    among: Iterable[Bench], kinds: Iterable[str], size: Size, chance: random.Random
) -> list[tuple[Bench, int, str]]:
    """Return the mutating calls of benches with each of some kinds, or a share of them, in random order."""
    kinds = tuple(kinds)
    found = [
        (bench, call, kind)
        for bench in among
        for call in range(1, len(bench.calls) + 1)
        for kind in kinds
        if size.share >= 1 or chance.random() < size.share
    ]
    chance.shuffle(found)
    return found


def benches(spark: Any, root: Path, size: Size, seed: int) -> Iterator[Bench]:
    """Return a bench for each operation of a size."""
    rows = Rows(spark)
    for number, action in enumerate(actions(rows)):
        if size.only in action.name and (size.spark or not action.spark) and size.takes(number, seed):
            for version in size.versions_of(number):
                yield Bench(spark, rows, in_version(action, version), root / f"{number}v{version}")


def kill_once(
    bench: Bench, call: int, when: str, figures: Figures, size: Size, chance: random.Random
) -> None:
    """Kill at one point, look, let the next writer recover, and now and then kill that too."""
    where = f"killed {when} call {call}: {bench.calls[call - 1]}"
    path = bench.copy()
    if killed(bench, path, bench.run, call, when):
        figures.points += 1
        seen = bench.check_readers(path, where)
        if seen is not None and chance.random() < size.again:
            seen = kill_recovery(bench, path, where, seen, figures, chance)
        bench.check_settled(path, seen, where)
    bench.drop(path)


def kill_recovery(
    bench: Bench, path: str, where: str, seen: Any, figures: Figures, chance: random.Random
) -> Any:
    """Kill the next writer at some of its calls, one after the other, until one comes through."""
    allowed = bench.states
    with_next = [{**each, ("z", "next"): (1, "next writer")} for each in allowed]
    for call in sorted(chance.sample(range(1, 60), 4)):
        when = chance.choice(MOMENTS)
        again = f"{where}, and the next writer {when} call {call}"
        if not killed(bench, path, bench.write_next, call, when):
            break
        figures.points += 1
        found = bench.check_readers(path, again, [*allowed, *with_next])
        found.pop(("z", "next"), None)
        if not bench.action.goes_on and found != seen:
            raise Violation(f"{bench.action.name}, {again}: {seen} became {found}")
        seen = found
    return seen
