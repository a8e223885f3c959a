"""The parsers' fuzz as a row of the scorecard."""

from __future__ import annotations

from tests.reliability.figures import Figures
from tests.reliability.fuzz.__main__ import LONG, run
from tests.reliability.fuzz.parsers import PARSERS


def run_fuzz(scale: float) -> Figures:
    """Run all parsers on a share of a million inputs each."""
    figures = Figures()
    count = max(1, round(LONG * scale))
    for parser in PARSERS.values():
        figures.violations += run(parser, range(count), None)
        figures.points += count
    figures.count("parsers", len(PARSERS))
    return figures
