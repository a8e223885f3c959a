"""Moving an instant through its states, layout 1 (table version 6) only.

Every file is created exclusively and never changed afterwards: readers of Hudi 1.x take the modification
time of a completed file as the completion time of the instant.
"""

from __future__ import annotations

from hudi_engine.config.table_config import TableConfig
from hudi_engine.errors import TimelineError, UnsupportedTableError, WriteConflictError
from hudi_engine.storage.base import Storage
from hudi_engine.timeline.instant import State, timeline_file_name


class TimelineWriter:
    """Creates and removes timeline files of one table.

    Raises:
        UnsupportedTableError: when the table's timeline is not of layout 1.
    """

    def __init__(self, storage: Storage, config: TableConfig) -> None:
        if config.layout_version != 1:
            raise UnsupportedTableError(
                f"table {config.name!r} has timeline layout {config.layout_version}; this engine writes "
                "layout 1 (table version 6) only"
            )
        self._storage = storage
        self._folder = config.timeline_path

    def create_requested(self, time: str, action: str, body: bytes = b"") -> str:
        """Announce an action; returns the path of the file.

        Raises:
            TimelineError: when the instant is there already.
        """
        return self._create(time, action, State.REQUESTED, body)

    def to_inflight(self, time: str, action: str, body: bytes = b"") -> str:
        """Start an announced action (a savepoint has no announcement); returns the path of the file.

        Raises:
            TimelineError: when it was not announced, or is in flight already.
        """
        if action != "savepoint":
            self._require(time, action, State.REQUESTED, "started")
        return self._create(time, action, State.INFLIGHT, body)

    def complete(self, time: str, action: str, body: bytes) -> str:
        """Complete an action; this one exclusive create is the commit point. Returns the path of the file.

        Raises:
            TimelineError: when the action is not in flight, or somebody completed it already.
        """
        self._require(time, action, State.INFLIGHT, "completed")
        return self._create(time, action, State.COMPLETED, body)

    def delete(self, time: str, action: str, *states: State) -> None:
        """Remove the files of an instant, latest state first, so that readers lose sight of it at once.

        Args:
            time: Requested time.
            action: Planned action, such as ``compaction``.
            states: States whose files go; none means all.
        """
        for state in sorted(states or State, key=lambda each: -each.rank):
            self._storage.delete(self._path(time, action, state))

    def _create(self, time: str, action: str, state: State, body: bytes) -> str:
        path = self._path(time, action, state)
        try:
            self._storage.create(path, body)
        except FileExistsError as error:
            raise TimelineError(
                f"{action} {time} is {state.value.lower()} already in {self._storage.base!r}: another "
                "writer works on it. Take a new instant"
            ) from error
        return path

    def _require(self, time: str, action: str, state: State, verb: str) -> None:
        if not self._storage.exists(self._path(time, action, state)):
            raise TimelineError(
                f"{action} {time} cannot be {verb}: it is not {state.value.lower()} in "
                f"{self._storage.base!r}. It was rolled back, or never begun"
            )

    def _path(self, time: str, action: str, state: State) -> str:
        return f"{self._folder}/{timeline_file_name(time, action, state)}"


def check_inflight(storage: Storage, config: TableConfig, time: str, action: str) -> None:
    """Raise unless a layout 1 instant is in flight: cheap enough for a task to ask before it publishes a
    file.

    Args:
        storage: The table's storage.
        config: The table's settings.
        time: Requested time.
        action: Planned action, such as ``compaction``.

    Raises:
        WriteConflictError: when the instant was rolled back, or has completed.
    """
    inflight, completed = (
        f"{config.timeline_path}/{timeline_file_name(time, action, state)}"
        for state in (State.INFLIGHT, State.COMPLETED)
    )
    if not storage.exists(inflight):
        raise WriteConflictError(
            f"{action} {time} is not in flight in {storage.base!r}: another writer took its owner for dead "
            "and rolled it back. No row of it is visible; run the write again"
        )
    if storage.exists(completed):
        raise WriteConflictError(
            f"{action} {time} has completed in {storage.base!r} without this task: it is a late attempt, "
            "and its file is not needed"
        )
