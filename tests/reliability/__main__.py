"""The long form: ``python -m tests.reliability [ROW ...] [--minutes N] [--scale X] [--short] [--card FILE]``.

Each row prints its figures; with ``--card`` they are written to the scorecard, where rows that did not run stay.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from tests.reliability.card import write_card
from tests.reliability.figures import Figures
from tests.reliability.fuzz.long_form import run_fuzz
from tests.reliability.rows import ROWS
from tests.reliability.session import handed_over_once, start_spark

CARD = Path(__file__).resolve().parents[2] / "docs" / "reliability-scorecard.md"
FUZZ = "fuzz"


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="dev.py reliability")
    parser.add_argument(
        "rows", nargs="*", metavar="ROW", help=f"of {', '.join([*ROWS, FUZZ])}; all without any"
    )
    parser.add_argument("--minutes", type=float, default=1e6, help="stop each row after so many minutes")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the long form, 1.0 for all of it")
    parser.add_argument("--short", action="store_true", help="the sizes of the gate")
    parser.add_argument("--only", default="", help="part of the names of the operations")
    parser.add_argument(
        "--begin", type=int, default=0, help="number of the table that `sequences` begins with"
    )
    parser.add_argument(
        "--versions", type=int, nargs="+", metavar="VERSION", help="table versions; all of a row without any"
    )
    parser.add_argument("--card", type=Path, default=CARD, help="the scorecard to write")
    given = parser.parse_args()
    names = given.rows or [*ROWS, FUZZ]
    unknown = [name for name in names if name not in (*ROWS, FUZZ)]
    if unknown:
        parser.error(f"there is no row {unknown[0]!r}; the rows are {', '.join([*ROWS, FUZZ])}")
    found = run(names, given)
    if not (given.short or given.only or given.begin or given.versions):
        write_card(given.card, found, given.scale)
    return 1 if any(figures.violations for figures in found.values()) else 0


def run(names: list[str], given: argparse.Namespace) -> dict[str, Figures]:
    """Run rows and print their figures."""
    logging.disable(logging.CRITICAL)
    found = {}
    with tempfile.TemporaryDirectory(prefix="reliability-") as folder:
        spark = start_spark(f"{folder}/warehouse") if set(names) - {FUZZ} else None
        for name in names:
            if name == FUZZ:
                found[name] = run_fuzz(given.scale)
            else:
                found[name] = _run_row(spark, Path(folder) / name, name, given)
            found[name].end()
            sys.stdout.write(f"{name:10} {found[name].told()}\n")
            sys.stdout.flush()
        if spark is not None:
            spark.stop()
    return found


def _run_row(spark: object, root: Path, name: str, given: argparse.Namespace) -> Figures:
    row = ROWS[name]
    size = row.short if given.short else row.long_size(given.scale, given.minutes * 60)
    versions = tuple(given.versions or size.versions)
    with handed_over_once():
        return row.run(spark, root, replace(size, only=given.only, begin=given.begin, versions=versions))


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # a mutant may leave a late task that waits for ever
    os._exit(code)
