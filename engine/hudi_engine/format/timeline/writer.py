"""Moving an instant through its states.

Every file is created exclusively and never changed afterwards: in layout 1 readers of Hudi 1.x take the modification
time of a completed file as the completion time of the instant. In layout 2 the completion time is part of the name; it is
drawn under the table's lock right before the file is made, and is later than every time on the timeline.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from hudi_engine.errors import StorageError, TimelineError, WriteConflictError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.clock import InstantClock
from hudi_engine.format.timeline.instant import (
    COMPLETED_ACTION,
    Instant,
    State,
    parse_instant,
    timeline_file_name,
)

logger = logging.getLogger(__name__)


class TimelineWriter:
    """Creates and removes timeline files of one table."""

    def __init__(self, storage: Storage, config: TableConfig) -> None:
        self._storage = storage
        self._config = config
        self._folder = config.timeline_path

    def create_requested(self, time: str, action: str, body: bytes = b"") -> str:
        """Announce an action; returns the path of the file."""
        return self._create(time, action, State.REQUESTED, body)

    def to_inflight(self, time: str, action: str, body: bytes = b"") -> str:
        """Start an announced action (a savepoint has no announcement); returns the path of the file."""
        if action != "savepoint":
            self._require(time, action, State.REQUESTED, "started")
        return self._create(time, action, State.INFLIGHT, body)

    def complete(self, time: str, action: str, body: bytes) -> Instant:
        """Complete an action; this one exclusive create is the commit point. Returns the completed instant.

        When the storage reports an error, the file is looked for: the create may have landed all the same. In layout 2 the
        caller holds the table's lock, as the completion time has to be later than all others.

        Raises:
            TimelineError: when the action is not in flight, or somebody completed it already.
            StorageError: when the storage failed and cannot say whether the file is there.
            OSError: when the storage failed and the file is not there.
        """
        self._require(time, action, State.INFLIGHT, "completed")
        name = timeline_file_name(time, action, State.COMPLETED, self._completion_time(time, action))
        path = f"{self._folder}/{name}"
        try:
            self._storage.create(path, body)
        except (OSError, StorageError) as error:
            if not self._landed(path, body, error):
                if isinstance(error, FileExistsError):
                    raise self._taken(time, action, State.COMPLETED) from error
                raise
            logger.warning("%s %s is completed although the storage reported: %s", action, time, error)
        done = parse_instant(name, self._config.layout_version)
        assert done is not None
        return done

    def _completion_time(self, time: str, action: str) -> str | None:
        """Draw a completion time later than every time on the timeline; None in layout 1, which has none."""
        if not self._config.table_version.has_completion_times:
            return None
        newest = time
        for each in self._listed():
            if each.is_completed and (each.requested_time, each.action) == (time, _done(action)):
                raise self._taken(time, action, State.COMPLETED)
            newest = max(newest, each.requested_time, each.completion_time or "")
        return InstantClock().next(newest, self._config.timeline_zone)

    def _listed(self) -> Iterator[Instant]:
        for status in self._storage.list(self._folder):
            instant = None if status.is_dir else parse_instant(status.name, self._config.layout_version)
            if instant is not None:
                yield instant

    def completed_path(self, time: str, action: str) -> str | None:
        """Return the path of the file that completed an action, None where there is none."""
        if not self._config.table_version.has_completion_times:
            path = self.path(time, action, State.COMPLETED)
            return path if self._storage.exists(path) else None
        names = (
            each.file_name
            for each in self._listed()
            if each.is_completed and (each.requested_time, each.action) == (time, _done(action))
        )
        return next((f"{self._folder}/{name}" for name in names), None)

    def delete(self, time: str, action: str, *states: State) -> None:
        """Remove the files of an instant, latest state first, so that readers lose sight of it at once.

        Args:
            states: States whose files go; none means all.
        """
        for state in sorted(states or State, key=lambda each: -each.rank):
            if state is State.COMPLETED:
                self.delete_completed(time, action)
            else:
                self._storage.remove(self.path(time, action, state))

    def delete_completed(self, time: str, action: str) -> bool:
        """Remove the completed file of an instant; return whether there was one."""
        if not self._config.table_version.has_completion_times:
            return self._storage.delete(self.path(time, action, State.COMPLETED))
        path = self.completed_path(time, action)
        return path is not None and self._storage.delete(path)

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
        """Return the path of a timeline file, relative to the table's base path; of a completed one in layout 1 alone."""
        return f"{self._folder}/{timeline_file_name(time, action, state)}"


def check_inflight(storage: Storage, config: TableConfig, time: str, action: str) -> None:
    """Raise unless an instant is in flight: cheap enough for a task to ask before it publishes a file.

    Args:
        action: Planned action, such as ``compaction``.

    Raises:
        WriteConflictError: when the instant was rolled back, or has completed.
    """
    writer = TimelineWriter(storage, config)
    if not storage.exists(writer.path(time, action, State.INFLIGHT)):
        raise WriteConflictError(rolled_back(storage, time, action))
    if writer.completed_path(time, action) is not None:
        raise WriteConflictError(
            f"{action} {time} is committed already in {storage.base!r}: this task is a late copy of one that was done, "
            "and its file is not needed"
        )


def _done(action: str) -> str:
    """Return the action under which a planned one completes."""
    return COMPLETED_ACTION.get(action, action)


def rolled_back(storage: Storage, time: str, action: str) -> str:
    """Return what to show the writer of an instant that is no longer its own."""
    return (
        f"{action} {time} of {storage.base!r} is no longer in flight: it was rolled back by another writer, which took "
        "this one for dead or changed the files that it had planned. Nothing of it is visible; run the write again"
    )
