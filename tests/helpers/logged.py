"""A storage that logs every request, to count what an operation costs on a remote store."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.read_only import ForwardingStorage

_REQUESTS = (
    "read",
    "stat",
    "list",
    "open_input",
    "create",
    "replace",
    "refresh",
    "set_modified",
    "take_over",
    "delete",
    "delete_tree",
    "open_output",
)


class LoggingStorage(ForwardingStorage):
    """Passes every call on to another storage and logs it."""

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage)
        self.requests: list[tuple[str, str]] = []
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_lock"}

    def count(self, method: str, path: str) -> int:
        """Return how often a path was requested by a method."""
        return Counter(self.requests)[method, path]

    def _log(self, method: str, path: str) -> None:
        with self._lock:
            self.requests.append((method, path))


def _logged(method: str) -> Any:
    def call(self: LoggingStorage, path: str, *args: Any, **kwargs: Any) -> Any:
        self._log(method, path)
        return getattr(self._storage, method)(path, *args, **kwargs)

    return call


for _method in _REQUESTS:
    setattr(LoggingStorage, _method, _logged(_method))
