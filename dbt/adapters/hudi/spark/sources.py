"""Sources that other writers may change while dbt runs, and those they keep outside the warehouse.

dbt resolves ``source()`` to a name only, so each use is noted when the relation is made, with the place an
``external: {location: ...}`` of the source gives, and looked at before the next statement runs.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from dbt_common.events.contextvars import get_node_info
from hudi_engine.spark.catalog import FORMATS


@dataclass(frozen=True)
class SourcePlace:
    """Where a source lives.

    Args:
        location: Base path of the Hudi table or folder of files; None when the name is one of the warehouse or of
            Spark's catalog.
        using: Format of the files, ``hudi`` or None for a Hudi table.
        options: Options of Spark's reader of the files.
        problem: What is wrong with what the project says of it, ``""`` for nothing.
    """

    schema: str
    name: str
    location: str | None
    using: str | None = None
    options: tuple[tuple[str, str], ...] = ()
    problem: str = ""

    @property
    def is_files(self) -> bool:
        """Whether it is a folder of files and no Hudi table."""
        return self.using in FORMATS

    @property
    def label(self) -> str:
        """The name in messages."""
        return f"{self.schema}.{self.name}"


class SourcePlaces:
    """The sources used in this process and not looked at since; safe to use from all of dbt's threads."""

    def __init__(self) -> None:
        self._noted: dict[str, dict[tuple[str, str], SourcePlace]] = {}
        self._known: dict[tuple[str, str], SourcePlace] = {}
        # by node: all that it has used, and the ephemeral models it selects from
        self._used: dict[str, dict[tuple[str, str], SourcePlace]] = {}
        self._ephemeral: dict[str, set[str]] = {}
        self._lock = threading.Lock()

    def note(self, place: SourcePlace) -> None:
        """Note a use of a source by the node dbt is at; the newest word on its place counts."""
        with self._lock:
            self._note(place)

    def note_ephemeral(self, unique_id: str) -> None:
        """Note that the node dbt is at selects from an ephemeral model, and so uses its sources.

        dbt has compiled the model as a node of its own, or does so as a part of the first node that selects from it.
        """
        with self._lock:
            self._ephemeral.setdefault(_node(), set()).add(unique_id)
            for place in [*self._used.get(unique_id, {}).values()]:
                self._note(place)

    def _note(self, place: SourcePlace) -> None:
        name, node = (place.schema.lower(), place.name.lower()), _node()
        self._known[name] = place
        self._noted.setdefault(node, {})[name] = place
        for each in (node, *self._ephemeral.get(node, ())):
            self._used.setdefault(each, {})[name] = place

    def clear(self) -> None:
        """Forget the uses of an earlier dbt run in this process."""
        with self._lock:
            for each in (self._noted, self._known, self._used, self._ephemeral):
                each.clear()

    def known(self, schema: str, name: str) -> SourcePlace | None:
        """Return the place last noted for a source, None when it was not used."""
        return self._known.get((schema.lower(), name.lower()))

    def of_this_node(self) -> tuple[SourcePlace, ...]:
        """Return the sources the node dbt is at has used since this was last asked; none outside of nodes."""
        return self._taken(_node()) if _node() else ()

    def of_no_node(self) -> tuple[SourcePlace, ...]:
        """Return the sources used outside of nodes since this was last asked, as by ``dbt docs generate``."""
        return self._taken("")

    def _taken(self, node: str) -> tuple[SourcePlace, ...]:
        if node not in self._noted:
            return ()
        with self._lock:
            return tuple(self._noted.pop(node, {}).values())


def _node() -> str:
    return str(get_node_info().get("unique_id") or "")


NOTED = SourcePlaces()
