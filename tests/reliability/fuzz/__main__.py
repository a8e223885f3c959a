"""Run the parsers: ``python -m tests.reliability.fuzz [--long] [--count N] [--parser NAME] [--case N]``.

The short tier takes a few thousand inputs each, the long one a million. A case that crashes the process is told by
its number in the file given by ``--progress``.
"""

from __future__ import annotations

import argparse
import faulthandler
import logging
import mmap
import resource
import signal
import sys
import time
import traceback
from pathlib import Path

from tests.reliability.fuzz.mutate import mutated
from tests.reliability.fuzz.parsers import PARSERS, Parser, describe

SHORT, LONG = 3_000, 1_000_000
SECONDS, MEGABYTES = 1.0, 256


class Hangs(BaseException):
    """A case took far too long and was stopped."""


def _stop(*_: object) -> None:
    raise Hangs


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(parser: Parser, numbers: range, progress: mmap.mmap | None) -> list[str]:
    """Run some cases of one parser, print figures, and return what was wrong."""
    seeds = parser.seeds()
    for seed in seeds:
        parser.parse(seed)
    started, base, slowest, wrong = time.perf_counter(), _peak_mb(), (0.0, 0), []
    for number in numbers:
        data = mutated(parser.name, number, seeds, parser.words)
        if progress is not None:
            progress[:8] = number.to_bytes(8, "big")
        signal.setitimer(signal.ITIMER_REAL, 10 * SECONDS)
        begun = time.perf_counter()
        try:
            parser.parse(data)
        except Hangs:
            wrong.append(f"{parser.name} case {number} hangs: {describe(data)}")
        except Exception:
            wrong.append(f"{parser.name} case {number}: {describe(data)}\n{traceback.format_exc(limit=-4)}")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        took = time.perf_counter() - begun
        slowest = max(slowest, (took, number))
        if took > SECONDS:
            wrong.append(f"{parser.name} case {number} takes {took:.1f} s: {describe(data)}")
        if _peak_mb() - base > MEGABYTES:
            wrong.append(f"{parser.name} case {number} takes {_peak_mb() - base:.0f} MB: {describe(data)}")
            base = _peak_mb()
        if len(wrong) >= 5:
            break
    sys.stdout.write(
        f"{parser.name:11} {len(numbers):9,} inputs  {time.perf_counter() - started:8.1f} s  slowest "
        f"{slowest[0] * 1000:6.1f} ms (case {slowest[1]})  {_peak_mb() - base:5.0f} MB  {len(wrong)} wrong\n"
    )
    sys.stdout.flush()
    return wrong


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.reliability.fuzz")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--count", type=int)
    parser.add_argument("--parser", choices=sorted(PARSERS))
    parser.add_argument("--case", type=int)
    parser.add_argument("--progress", type=Path)
    given = parser.parse_args()
    faulthandler.enable()
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGALRM, _stop)
    progress = None
    if given.progress is not None:
        given.progress.write_bytes(bytes(8))
        with given.progress.open("r+b") as file:
            progress = mmap.mmap(file.fileno(), 8)
    count = given.count or (LONG if given.long else SHORT)
    numbers = range(count) if given.case is None else range(given.case, given.case + 1)
    chosen = [PARSERS[given.parser]] if given.parser else list(PARSERS.values())
    wrong = [fault for each in chosen for fault in run(each, numbers, progress)]
    sys.stdout.write("".join(f"{fault}\n" for fault in wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
