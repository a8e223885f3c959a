"""Cells of the HFiles that were looked up last: a write asks for the same keys twice, to place its rows and to keep the index."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

FileName = tuple[str, str, int, int]
"""Base of the storage, path, size and time of change: of a file that is never written again."""
_MOST = 500_000


class FoundCells:
    """Cells by file and key, and keys that a file does not have; safe to use by several threads."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._held: OrderedDict[FileName, dict[bytes, bytes | None]] = OrderedDict()
        self._lock = threading.Lock()

    def get(
        self,
        name: FileName,
        keys: Sequence[bytes],
        look_up: Callable[[Sequence[bytes]], Mapping[bytes, bytes]],
    ) -> dict[bytes, bytes]:
        """Return the values of those keys that a file has; keys that are not known are looked up."""
        with self._lock:
            known = self._held.get(name, {})  # is replaced, and never changed
        missing = [key for key in keys if key not in known]
        if missing:
            found = look_up(missing)
            known = {key: known[key] if key in known else found.get(key) for key in keys}
            self._keep(name, known)
        return {key: value for key in keys if (value := known[key]) is not None}

    def _keep(self, name: FileName, cells: dict[bytes, bytes | None]) -> None:
        """Hold what was asked for last of a file, in place of what was held before."""
        with self._lock:
            self._held[name] = cells
            self._held.move_to_end(name)
            while sum(map(len, self._held.values())) > self._most:
                self._held.popitem(last=False)


FOUND_CELLS = FoundCells()
"""Of this process."""
