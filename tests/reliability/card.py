"""The scorecard: what ran, and what it found."""

from __future__ import annotations

import re
from pathlib import Path

from tests.reliability.figures import Figures
from tests.reliability.rows import ROWS

FUZZ = ("fuzz", "mutated inputs of seven parsers: no crash, no hang above a second, no memory above 256 MB")
_HEAD = """# Reliability scorecard

Written by `python3 dev.py reliability`, which runs the long form of the rows; the gate runs a small part of each
(`tests/reliability/test_scorecard.py`). A violation is a promise of [reliability.md](reliability.md) that was not kept. A
row that is not complete stopped when its time was up, or ran a share of its points.

| row | what | points | violations | seconds | complete |
|---|---|---|---|---|---|
"""
_LINE = re.compile(r"^\| (\w+) \|")


def write_card(path: Path, found: dict[str, Figures], scale: float = 1.0) -> None:
    """Write the rows that ran; lines of the others stay as they are.

    Args:
        path: The page.
        found: Figures by row.
        scale: Share of the long form that was asked for.
    """
    before = path.read_text().splitlines() if path.exists() else []
    lines = {match[1]: line for line in before if (match := _LINE.match(line))}
    what = {**{row.name: row.what for row in ROWS.values()}, FUZZ[0]: FUZZ[1]}
    for name, figures in found.items():
        more = "".join(f"; {number:,} {word}" for word, number in sorted(figures.notes.items()))
        complete = "yes" if scale >= 1 and not figures.cut_short else "no"
        cells = (
            name, what[name], f"{figures.points:,}{more}", str(len(figures.violations)), f"{figures.seconds:,.0f}", complete
        )  # fmt: skip
        lines[name] = f"| {' | '.join(cells)} |"
    path.write_text(_HEAD + "".join(f"{lines[name]}\n" for name in what if name in lines))
