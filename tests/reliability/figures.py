"""What a row of the scorecard found."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

MOST_TOLD = 20


@dataclass
class Figures:
    """Counts of one row.

    Attributes:
        points: How many times something was disturbed, or compared.
        violations: What was wrong, in words.
        notes: More figures by name.
        cut_short: Whether the time was up before the row was through.
        seconds: How long it took.
    """

    points: int = 0
    violations: list[str] = field(default_factory=list)
    notes: dict[str, int] = field(default_factory=dict)
    cut_short: bool = False
    started: float = field(default_factory=time.monotonic)
    ended: float | None = None

    @property
    def seconds(self) -> float:
        """Seconds since the row began, or that it took."""
        return (self.ended or time.monotonic()) - self.started

    def end(self) -> None:
        """Note that the row is through: other rows may run before its figures are written."""
        self.ended = time.monotonic()

    def try_point(self, work: Callable[..., object], *given: object) -> bool:
        """Run one point and keep what it says is wrong; tells whether nothing is."""
        try:
            work(*given)
        except AssertionError as error:
            self.violations.append(str(error))
            return False
        return True

    def count(self, name: str, by: int = 1) -> None:
        """Add to a figure."""
        self.notes[name] = self.notes.get(name, 0) + by

    def told(self) -> str:
        """Return the figures in a line, and what was wrong below it."""
        more = "".join(f", {number:,} {name}" for name, number in sorted(self.notes.items()))
        end = ", stopped when its time was up" if self.cut_short else ""
        head = f"{self.points:,} points, {len(self.violations)} violations{more}, {self.seconds:.0f} s{end}"
        return "\n".join([head, *(f"  {each}" for each in self.violations[:MOST_TOLD])])
