"""Sources that other writers may change while dbt runs, and those they keep outside the warehouse.

dbt resolves ``source()`` to a name only, so each use is noted when the relation is made, with the place an
``external: {location: ...}`` of the source gives, and looked at before the next statement runs.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from dbt_common.events.contextvars import get_node_info


@dataclass(frozen=True)
class SourcePlace:
    """Where a source lives.

    Args:
        schema: Schema of its name.
        name: Identifier of its name.
        location: Base path of the Hudi table; None when the name is one of the warehouse or of Spark's catalog.
    """

    schema: str
    name: str
    location: str | None

    @property
    def label(self) -> str:
        """The name in messages."""
        return f"{self.schema}.{self.name}"


class SourcePlaces:
    """The sources used in this process and not looked at since; safe to use from all of dbt's threads."""

    def __init__(self) -> None:
        self._noted: dict[str, dict[tuple[str, str], SourcePlace]] = {}
        self._lock = threading.Lock()

    def note(self, place: SourcePlace) -> None:
        """Note a use of a source by the node dbt is at; the newest word on its place counts."""
        with self._lock:
            used = self._noted.setdefault(_node(), {})
            used[place.schema.lower(), place.name.lower()] = place

    def clear(self) -> None:
        """Forget the uses of an earlier dbt run in this process."""
        with self._lock:
            self._noted.clear()

    def of_this_node(self) -> tuple[SourcePlace, ...]:
        """The sources the node dbt is at has used since this was last asked; none outside of nodes."""
        return self._taken(_node()) if _node() else ()

    def of_no_node(self) -> tuple[SourcePlace, ...]:
        """The sources used outside of nodes since this was last asked, as by ``dbt docs generate``."""
        return self._taken("")

    def _taken(self, node: str) -> tuple[SourcePlace, ...]:
        if node not in self._noted:
            return ()
        with self._lock:
            return tuple(self._noted.pop(node, {}).values())


def _node() -> str:
    return str(get_node_info().get("unique_id") or "")


NOTED = SourcePlaces()
