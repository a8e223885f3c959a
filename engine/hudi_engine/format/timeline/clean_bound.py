"""How far back cleans leave a table whole."""

from __future__ import annotations

from typing import NamedTuple


class CleanBound(NamedTuple):
    """How far back a clean leaves the table whole.

    Args:
        oldest: Oldest point in time whose files are all there; ``""`` when the clean took nothing.
    """

    oldest: str
    clean: str
