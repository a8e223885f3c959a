"""Seeded rows of a stream for demos and tests: one of ten is late, by up to a minute.

``python -m tests.helpers.late_rows --rows 1000 --seed 7`` prints them as lines of JSON, in the order of their arrival.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

BEGIN = datetime(2026, 1, 1)  # noqa: DTZ001 - rows carry no zone
STEP = timedelta(milliseconds=1)
LATE_SHARE, MOST_LATE = 10, 60
COLUMNS = "id bigint, at timestamp, dt string, name string, is_late boolean"


class Event(NamedTuple):
    """One row; ``at`` is when it happened, a late one up to a minute before the rows around it."""

    id: int
    at: datetime
    dt: str
    name: str
    is_late: bool


def late_rows(count: int, seed: int = 0, begin: datetime = BEGIN, step: timedelta = STEP) -> Iterator[Event]:
    """Yield rows in the order of their arrival, the same for the same arguments."""
    chance = random.Random(seed)
    for number in range(count):
        is_late = chance.randrange(LATE_SHARE) == 0
        at = begin + number * step
        if is_late:
            at -= timedelta(milliseconds=chance.randrange(1, MOST_LATE * 1000 + 1))
        yield Event(number, at, at.date().isoformat(), f"name {chance.randrange(1000)}", is_late)


def main() -> int:
    """Print rows as lines of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--step-ms", type=int, default=1, help="between the arrivals of two rows")
    given = parser.parse_args()
    for row in late_rows(given.rows, given.seed, step=timedelta(milliseconds=given.step_ms)):
        sys.stdout.write(f"{json.dumps(row._asdict(), default=datetime.isoformat)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
