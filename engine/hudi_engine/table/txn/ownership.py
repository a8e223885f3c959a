"""The owner file of an instant that this process works on, beating while the work goes on.

Any process can tell by it whether somebody is still at work (:mod:`hudi_engine.table.txn.owner`).
"""

from __future__ import annotations

from hudi_engine.format.config.declared.engine_options import WriterOptions
from hudi_engine.format.config.options import Options
from hudi_engine.format.storage.base import Storage
from hudi_engine.table.txn.owner import Beating, Owner, heartbeat_path, register, unregister


class Ownership:
    """Owns an instant from :meth:`announce` or :meth:`take` to one of the ends.

    The ends are :meth:`release` (the work is done, or undone), :meth:`give_up` (it is left to the next writer)
    and, for a process that is killed, its death.
    """

    def __init__(self, storage: Storage, instant: str, options: Options) -> None:
        self.owner = Owner.current(
            options[WriterOptions.HEARTBEAT_INTERVAL],
            options[WriterOptions.TOLERABLE_MISSES],
        )
        self._storage = storage
        self._path = heartbeat_path(instant)
        self._beating = Beating(storage, self._path, self.owner, self.owner.to_json())
        self._is_open = False

    def announce(self) -> bool:
        """Create the file and begin to beat; return False when the instant has an owner already."""
        register(self.owner)
        try:
            self._storage.create(self._path, self.owner.to_json())
        except FileExistsError:
            unregister(self.owner)
            return False
        except BaseException:
            unregister(self.owner)
            raise
        self._is_open = True
        self._beating.start()
        return True

    def take(self) -> None:
        """Write the file in place of a dead owner's; the caller holds the table's lock."""
        register(self.owner)
        self._is_open = True
        try:
            self._storage.replace(self._path, self.owner.to_json())
        except BaseException:
            self.give_up()
            raise
        self._beating.start()

    def is_mine(self) -> bool:
        """Return whether the file still names this owner."""
        try:
            found = Owner.parse(self._storage.read(self._path))
        except FileNotFoundError:
            return False
        return found is not None and found.token == self.owner.token

    def release(self) -> None:
        """Remove the file: the work is done, or undone."""
        self._beating.stop()
        if self.is_mine():
            self._storage.remove(self._path)
        self._is_open = False
        unregister(self.owner)

    def give_up(self) -> None:
        """Say in the file that nobody works on the instant any more, though this process lives on.

        A storage that fails just now is asked again from a thread, as often as a beat would have come.
        """
        self._is_open = False
        try:
            self._beating.give_up()
        finally:
            unregister(self.owner)

    def end(self) -> None:
        """Know the owner no longer in this process; what was not released, whatever was in the way, is given up."""
        if self._is_open:
            self.give_up()
