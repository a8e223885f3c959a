"""How often this process has changed tables and names, by whichever of its dbt runs."""

from __future__ import annotations

import itertools


class ChangeCount:
    """Counts changes of tables and names."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self.count = 0

    def more(self) -> None:
        """Count one more."""
        self.count = next(self._numbers)


CHANGE_COUNT = ChangeCount()
