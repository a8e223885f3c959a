"""Putting a table where something else stands: that goes once the table is whole beside it, and one of both is always there."""

from __future__ import annotations

import logging
from collections.abc import Callable

from hudi_engine.errors import StorageError
from hudi_engine.format.storage.base import Storage
from hudi_engine.table.txn.swap import place_new

logger = logging.getLogger(__name__)


class Instead:
    """Puts a table in the place of a folder that something else has."""

    def __init__(self, storage: Storage, make_room: Callable[[], None]) -> None:
        self._storage = storage
        self._make_room = make_room
        self._known: list[str] | None = None

    def put(self, base: str, side: str) -> None:
        """Make room for the table built in ``side`` and put it there."""
        self._known = self._paths()
        try:
            self._make_room()
            place_new(base, side)
        except Exception as error:
            if not self.is_only(base, side):
                raise
            raise StorageError(
                f"the table is built at {side}, and could not be put in the place of what was at {base}: {error}. Move that folder "
                "there, or run this again"
            ) from error

    def is_only(self, base: str, side: str) -> bool:
        """Tell whether some of what was there may be gone, so that the table built beside must stay."""
        if self._known is None:
            return False
        try:
            return self._paths() != self._known
        except OSError as error:
            logger.warning("%s is kept, as it cannot be told what is left at %s: %s", side, base, error)
            return True

    def _paths(self) -> list[str]:
        return sorted(each.path for each in self._storage.list("", recursive=True))
