"""The owner file of an instant that a service carries out, beating while the work goes on.

It is the same heartbeat file as a writer's (:mod:`hudi_engine.txn.owner`), so any process can tell whether
the service is still at work.
"""

from __future__ import annotations

from types import TracebackType

from hudi_engine.config.options import Options
from hudi_engine.storage.base import Storage
from hudi_engine.txn.owner import Beating, Owner, heartbeat_path, register, unregister


class Ownership:
    """Owns an instant from :meth:`take`, which belongs inside, to the end of the ``with`` block.

    The file is left behind when :meth:`release` was not called: by a killed process for others to judge, and
    after an error that could not be cleaned up.

    Args:
        storage: The table's storage.
        instant: The instant.
        options: Heartbeat interval and tolerable misses.
    """

    def __init__(self, storage: Storage, instant: str, options: Options) -> None:
        self._storage = storage
        self._path = heartbeat_path(instant)
        self._owner = Owner.current(
            options.int("hoodie.client.heartbeat.interval_in_ms"),
            options.int("hoodie.client.heartbeat.tolerable.misses"),
        )
        self._beating = Beating(storage, self._path, self._owner, self._owner.to_json())

    def take(self) -> None:
        """Write the file in place of a dead owner's; the caller holds the table's lock."""
        register(self._owner)
        self._storage.replace(self._path, self._owner.to_json())
        self._beating.start()

    def is_mine(self) -> bool:
        """Return whether the file still names this owner."""
        try:
            owner = Owner.parse(self._storage.read(self._path))
        except FileNotFoundError:
            return False
        return owner is not None and owner.token == self._owner.token

    def release(self) -> None:
        """Remove the file: the work is done, or undone."""
        self._beating.stop()
        if self.is_mine():
            self._storage.delete(self._path)

    def __enter__(self) -> Ownership:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._beating.stop()
        unregister(self._owner)
