"""Sources that other Hudi writers keep outside the warehouse: ``external: {location: ...}`` of a source.

dbt resolves ``source()`` to a name only, so the place is noted when the relation is made and the name is
registered before the next statement runs.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass


@dataclass(frozen=True)
class SourcePlace:
    """Where a source lives.

    Args:
        schema: Schema of its name.
        name: Identifier of its name.
        location: Base path of the Hudi table.
    """

    schema: str
    name: str
    location: str


class SourcePlaces:
    """The places noted in this process, by name; safe to use from all of dbt's threads."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str], SourcePlace] = {}
        self._lock = threading.Lock()

    def note(self, place: SourcePlace) -> None:
        """Remember where a source lives; the newest word counts."""
        with self._lock:
            self._places[place.schema.lower(), place.name.lower()] = place

    def clear(self) -> None:
        """Forget the places of an earlier dbt run in this process."""
        with self._lock:
            self._places.clear()

    def all(self) -> tuple[SourcePlace, ...]:
        """Every place noted so far."""
        with self._lock:
            return tuple(self._places.values())


NOTED = SourcePlaces()
