"""The rows of the scorecard: what each disturbs, and how much of it runs in the gate and in the long tier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.reliability import attempts, chaos, clocks, errors, kill, mutants, pairs, sequences
from tests.reliability.figures import Figures
from tests.reliability.kill import Size

Run = Callable[[Any, Path, Size], Figures]
GATE, ALL = (6, 9), (6, 9, 8)
"""Table versions, in turn."""


@dataclass(frozen=True)
class Row:
    """One row.

    Args:
        name: Word to call it by.
        what: One line of description, for the scorecard.
        run: Runs it on a session, in a folder, in a size.
        short: Its size in the gate.
        long: Its size in the long tier.
    """

    name: str
    what: str
    run: Run
    short: Size
    long: Size

    def long_size(self, scale: float, seconds: float) -> Size:
        """Return the long size, scaled and bounded in time."""
        return replace(self.long, share=min(self.long.share, 1.0) * scale, seconds=seconds)


ROWS = {
    row.name: row
    for row in (
        Row(
            "kill",
            "a writer killed before, after and in the middle of every mutating call of every public operation; readers by "
            "timeline and by manifest; the next writer recovers, and is killed too",
            kill.run,
            Size(share=0.02, again=0.2, spark=False, every=2, versions=GATE),
            Size(again=1.0, versions=ALL),
        ),
        Row(
            "errors",
            "EIO, ENOSPC and a timeout after the effect at every mutating call: nothing acknowledged is lost, nothing else is there",
            errors.run,
            Size(share=0.016, spark=False, every=2, versions=GATE),
            Size(versions=ALL),
        ),
        Row(
            "pairs",
            "two writers stopped at every pair of their storage calls, reads included: a serial outcome or a conflict",
            pairs.run,
            Size(share=0.0005, every=2, versions=GATE),
            Size(share=0.2, versions=ALL),
        ),
        Row(
            "attempts",
            "a second attempt at every task, let loose at every call of the write and its commit",
            attempts.run,
            Size(share=0.12, every=2, versions=GATE),
            Size(versions=ALL),
        ),
        Row(
            "sequences",
            "random sequences of operations on all kinds of tables and indexes against a dictionary, by three readers of ours, hudi-rs and "
            "Apache Hudi 0.15.0 and 1.2.0 in turn",
            sequences.run,
            Size(share=0.003, versions=GATE),
            Size(versions=ALL),
        ),
        Row(
            "clocks",
            "zones from -11 to +14 and with summer time, clocks that go back between two commits and within one, instants of others "
            "in the future, tables of Apache Hudi in local time: nothing is lost, and instants go on rising",
            clocks.run,
            Size(share=0.03, versions=GATE),
            Size(versions=ALL),
        ),
        Row(
            "chaos",
            "16 processes x 200 operations on one table, half of the processes killed, a quarter stopped beyond their "
            "heartbeat, services among the operations; three readers in a loop, held against a ledger",
            chaos.run,
            Size(share=0.02, only="cow", versions=(9,)),
            Size(versions=GATE),
        ),
        Row(
            "mutants",
            "our own safety steps left out one at a time: each is noticed by another row",
            mutants.run,
            Size(),
            Size(),
        ),
    )
}
