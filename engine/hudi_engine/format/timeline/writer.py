"""Moving an instant through its states, layout 1 (table version 6) only.

Every file is created exclusively and never changed afterwards: readers of Hudi 1.x take the modification
time of a completed file as the completion time of the instant.
"""

from __future__ import annotations

import logging

from hudi_engine.errors import StorageError, TimelineError, UnsupportedTableError, WriteConflictError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.instant import State, timeline_file_name

logger = logging.getLogger(__name__)


class TimelineWriter:
    """Creates and removes timeline files of one table."""

    def __init__(self, storage: Storage, config: TableConfig) -> None:
        if config.layout_version != 1:
            raise UnsupportedTableError(
                f"table {config.name!r} has timeline layout {config.layout_version}; this engine writes "
                "layout 1 (table version 6) only"
            )
        self._storage = storage
        self._folder = config.timeline_path

    def create_requested(self, time: str, action: str, body: bytes = b"") -> str:
        """Announce an action; returns the path of the file."""
        return self._create(time, action, State.REQUESTED, body)

    def to_inflight(self, time: str, action: str, body: bytes = b"") -> str:
        """Start an announced action (a savepoint has no announcement); returns the path of the file."""
        if action != "savepoint":
            self._require(time, action, State.REQUESTED, "started")
        return self._create(time, action, State.INFLIGHT, body)

    def complete(self, time: str, action: str, body: bytes) -> str:
        """Complete an action; this one exclusive create is the commit point. Returns the path of the file.

        When the storage reports an error, the file is looked for: the create may have landed all the same.
        """
        self._require(time, action, State.INFLIGHT, "completed")
        path = self.path(time, action, State.COMPLETED)
        try:
            self._storage.create(path, body)
        except (OSError, StorageError) as error:
            if not self._landed(path, body, error):
                if isinstance(error, FileExistsError):
                    raise self._taken(time, action, State.COMPLETED) from error
                raise
            logger.warning("%s %s is completed although the storage reported: %s", action, time, error)
        return path

    def delete(self, time: str, action: str, *states: State) -> None:
        """Remove the files of an instant, latest state first, so that readers lose sight of it at once.

        Args:
            states: States whose files go; none means all.
        """
        for state in sorted(states or State, key=lambda each: -each.rank):
            self._storage.remove(self.path(time, action, state))

    def _create(self, time: str, action: str, state: State, body: bytes) -> str:
        path = self.path(time, action, state)
        try:
            self._storage.create(path, body)
        except FileExistsError as error:
            raise self._taken(time, action, state) from error
        return path

    def _taken(self, time: str, action: str, state: State) -> TimelineError:
        return TimelineError(
            f"{action} {time} is {state.value.lower()} already in {self._storage.base!r}: another writer works on it. "
            "Take a new instant"
        )

    def _landed(self, path: str, body: bytes, cause: Exception) -> bool:
        """Return whether a create that ended with an error has made the file all the same."""
        try:
            return self._storage.exists(path) and self._storage.read(path) == body
        except (OSError, StorageError):
            raise StorageError(
                f"the storage of {self._storage.base!r} failed while {path} was made and cannot say whether it landed "
                f"({cause}). Look whether the file exists before you write again"
            ) from cause

    def _require(self, time: str, action: str, state: State, verb: str) -> None:
        if not self._storage.exists(self.path(time, action, state)):
            raise TimelineError(
                f"{action} {time} cannot be {verb}: it is not {state.value.lower()} in "
                f"{self._storage.base!r}. It was rolled back, or never begun"
            )

    def path(self, time: str, action: str, state: State) -> str:
        """Return the path of a timeline file, relative to the table's base path."""
        return f"{self._folder}/{timeline_file_name(time, action, state)}"


def check_inflight(storage: Storage, config: TableConfig, time: str, action: str) -> None:
    """Raise unless a layout 1 instant is in flight: cheap enough for a task to call before it publishes a file."""
    inflight, completed = (
        f"{config.timeline_path}/{timeline_file_name(time, action, state)}"
        for state in (State.INFLIGHT, State.COMPLETED)
    )
    if not storage.exists(inflight):
        raise WriteConflictError(rolled_back(storage, time, action))
    if storage.exists(completed):
        raise WriteConflictError(
            f"{action} {time} is committed already in {storage.base!r}: this task is a late copy of one that was done, "
            "and its file is not needed"
        )


def rolled_back(storage: Storage, time: str, action: str) -> str:
    """Return what to show the writer of an instant that is no longer its own."""
    return (
        f"{action} {time} of {storage.base!r} is no longer in flight: it was rolled back by another writer, which took "
        "this one for dead. Nothing of it is visible; run the write again"
    )
