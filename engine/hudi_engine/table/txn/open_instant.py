"""An instant that is not completed yet: how every producer takes, starts, completes and leaves one.

==========  ==============================================================================================
announce    take a free instant: the owner file first, so that none is ever without an owner, then the request
claim       take over a pending instant that no process works on any more
start       go in flight; what was begun before stays in flight
complete    the one atomic step; fenced when others could have taken the table's lock meanwhile
release     the work is done, or undone: the owner file goes
give_up     the work is left to the next writer
==========  ==============================================================================================

Rollback, restore and savepoint are carried out under the table's lock from beginning to end, so the lock's owner
is theirs and they have no owner file. The caller holds the lock for every step but ``start``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from hudi_engine.errors import CorruptTableError, HudiError, StorageError, WriteConflictError
from hudi_engine.format.config.declared.engine_options import WriterOptions
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.avro_file import decode_avro_file
from hudi_engine.format.timeline.clock import InstantClock
from hudi_engine.format.timeline.instant import Instant, State, timeline_file_name
from hudi_engine.format.timeline.writer import TimelineWriter, rolled_back
from hudi_engine.table.metadata.writer import write_table_metadata
from hudi_engine.table.txn.lock import TableLock
from hudi_engine.table.txn.owner import Beating, Owner, heartbeat_path, register, unregister

logger = logging.getLogger(__name__)

Plan = TypeVar("Plan")

_ATTEMPTS = 100


class Ownership:
    """Owns an instant from :meth:`announce` or :meth:`take` to one of the ends."""

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
        return self.owner.holds(self._storage, self._path)

    def release(self) -> None:
        """Remove the file: the work is done, or undone."""
        self._beating.stop()
        if self.is_mine():
            self._storage.remove(self._path)
        self._is_open = False
        unregister(self.owner)

    def give_up(self) -> None:
        """Say in the file that no process works on the instant any more, though this process lives on."""
        self._is_open = False
        try:
            self._beating.give_up()
        finally:
            unregister(self.owner)

    def end(self) -> None:
        """Know the owner no longer in this process; what was not released, whatever was in the way, is given up."""
        if self._is_open:
            self.give_up()


class OpenInstant:
    """An instant in the hands of this process.

    Args:
        ownership: Its owner file; None for an action that is carried out under the table's lock.
    """

    def __init__(
        self,
        storage: Storage,
        config: TableConfig,
        time: str,
        action: str,
        ownership: Ownership | None = None,
    ) -> None:
        self.time = time
        self.action = action
        self.ownership = ownership
        self._storage = storage
        self._config = config
        self._writer = TimelineWriter(storage, config)
        self._body: bytes | None = None
        self._completed: str | None = None
        self._is_new = False

    @classmethod
    def announce(
        cls,
        storage: Storage,
        config: TableConfig,
        timeline: Timeline,
        action: str,
        body: bytes = b"",
        *,
        owned_by: Options | None = None,
    ) -> OpenInstant:
        """Take an instant later than all of the timeline.

        Args:
            owned_by: Options of the owner file; None for an action that needs no owner, or has none yet.
        """
        time = timeline.latest_time
        for _ in range(_ATTEMPTS):
            # A fresh clock: a table with instants in the future does not drag the others of this process along.
            time = InstantClock().next(time, timeline.zone)
            ownership = None if owned_by is None else Ownership(storage, time, owned_by)
            opened = cls(storage, config, time, action, ownership)
            if opened._try_announce(body):
                return opened
        raise StorageError(
            f"no free instant after {timeline.latest_time} in {storage.base!r}: {_ATTEMPTS} were taken in a row"
        )

    @classmethod
    def claim(cls, storage: Storage, config: TableConfig, options: Options, instant: Instant) -> OpenInstant:
        """Take over a pending instant whose owner is gone, or that has had none yet."""
        opened = cls(
            storage,
            config,
            instant.requested_time,
            instant.action,
            Ownership(storage, instant.requested_time, options),
        )
        assert opened.ownership is not None
        opened.ownership.take()
        opened._is_new = instant.state is State.REQUESTED
        return opened

    def start(self, body: bytes = b"") -> None:
        """Go in flight, unless it is already: a service may continue what another process began."""
        if self._is_new:
            self._storage.create(self.path(State.INFLIGHT), body)
        elif not self._storage.exists(self.path(State.INFLIGHT)):
            self._writer.to_inflight(self.time, self.action, body)

    def check_mine(self) -> None:
        """Raise unless the instant is in flight, and this process's."""
        if not self._storage.exists(self.path(State.INFLIGHT)):
            raise WriteConflictError(rolled_back(self._storage, self.time, self.action))
        self.check_owner()

    def check_owner(self) -> None:
        """Raise WriteConflictError when another process has taken the instant over."""
        if self.ownership is not None and not self.ownership.is_mine():
            raise WriteConflictError(
                f"{self.action} {self.time} of {self._storage.base!r} was taken over by another process, which took this "
                "one for dead; nothing of this run is visible"
            )

    def complete(self, body: bytes) -> Instant:
        """Create the completed file, after what the action changed is in the metadata table where the table has one.

        When the storage reports an error, the file is looked for, as it may be there all the same.
        """
        self._body = body
        write_table_metadata(self._storage, self._config, self.time, self.action, body)
        done = self._writer.complete(self.time, self.action, body)
        self._completed = f"{self._config.timeline_path}/{done.file_name}"
        return done

    def complete_fenced(
        self, body: bytes, lock: TableLock, seen: Timeline, check: Callable[[Timeline], None]
    ) -> Instant:
        """Complete an instant that others may stand against, and make sure that the lock was ours meanwhile.

        A process that is suspended for long is taken for dead and loses the lock. When it did so just before the
        create, others may have committed what it did not see, or may be undoing this instant: then the lock is taken
        again, so that they are through, the check is made again, and a commit that does not pass is taken back.
        """
        lock.check_held()
        done = self.complete(body)
        try:
            in_flight, held = self._storage.exists(self.path(State.INFLIGHT)), lock.is_held()
        except (OSError, StorageError) as error:
            logger.warning(
                "%s %s is completed; it could not be looked at again: %s", self.action, self.time, error
            )
            return done
        try:
            if not held:
                self._check_again(lock, seen, check, done)
            elif not in_flight:
                raise WriteConflictError(rolled_back(self._storage, self.time, self.action))
        except WriteConflictError as conflict:
            self._withdraw(conflict)
            raise
        return done

    def _withdraw(self, conflict: WriteConflictError) -> None:
        """Delete the completed file of a commit that must not stand; raises StorageError, caused by it, when it cannot."""
        try:
            if self.is_ours():
                self._writer.delete_completed(self.time, self.action)
        except (OSError, StorageError) as error:
            raise StorageError(
                f"{self.action} {self.time} of {self._storage.base!r} was completed although it conflicts with the work of another "
                f"process, and it could not be withdrawn: {error}. Delete {self._completed} before you write again"
            ) from conflict

    def is_ours(self) -> bool:
        """Return whether the completed file is there and this process's own, by its content."""
        if self._body is None:
            return False
        # An error may have come after the file had landed.
        path = self._completed or self._writer.completed_path(self.time, self.action)
        return path is not None and self._storage.exists(path) and self._storage.read(path) == self._body

    def void_late_commit(self) -> None:
        """Delete a completed file that another run of a claimed plan has made: it names files that are gone.

        That run hung in its create for so long that it counted as dead, and the plan was taken over since. The caller has made sure
        that the instant is its own.
        """
        path = self._writer.completed_path(self.time, self.action)
        if path is not None and not self.is_ours():
            self._storage.remove(path)
            logger.warning(
                "took back the commit of a dead run of %s %s, which came late", self.action, self.time
            )

    def _check_again(
        self, lock: TableLock, seen: Timeline, check: Callable[[Timeline], None], done: Instant
    ) -> None:
        """Take the lock again and check a commit that was made without it; raises as `complete_fenced`."""
        try:
            lock.regain()
            self.check_mine()
            before = self._as_of_completion(seen)
            self._check_not_passed(before, done)
            check(before)
        except WriteConflictError:
            raise
        except (OSError, HudiError) as error:
            raise StorageError(
                f"{self.action} {self.time} of {self._storage.base!r} was completed while another process had the lock, and it "
                f"is not known whether it is valid: {error}. Look for it on the timeline before you write again"
            ) from error

    def _check_not_passed(self, before: Timeline, done: Instant) -> None:
        """Refuse a completion time that was drawn earlier than that of a commit which was there before this one.

        Readers of changes that have seen the other commit begin after its completion time, and would never see this one.
        """
        drawn = done.completion_time
        passed = [each for each in before.completed_writes if drawn is not None and each.order > drawn]
        if passed:
            other = passed[-1]
            raise WriteConflictError(
                f"{self.action} {self.time} of {self._storage.base!r} cannot be committed at {drawn}: this process lost the "
                f"table's lock, and {other.action} {other.requested_time} was committed at {other.order}, which readers of changes "
                "may have passed. The table is as the other writer left it; run the write again"
            )

    def release(self) -> None:
        """Remove the owner file and know it no longer; one that cannot be removed is given up and goes with the next write."""
        if self.ownership is None:
            return
        try:
            self.ownership.release()
        except (OSError, StorageError) as error:
            logger.warning("could not remove the owner file of %s %s: %s", self.action, self.time, error)
        finally:
            self.ownership.end()

    def give_up(self) -> None:
        """Leave the instant to the next writer."""
        if self.ownership is not None:
            self.ownership.give_up()

    def __enter__(self) -> OpenInstant:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give up what was not released, whatever ended the work."""
        if self.ownership is not None:
            self.ownership.end()

    def back_to_plan(self) -> None:
        """Take the instant out of flight and keep its plan. The caller removes what was written."""
        self._writer.delete(self.time, self.action, State.INFLIGHT)

    def drop(self) -> None:
        """Remove an instant under which nothing was done."""
        logger.warning("dropping %s %s, under which nothing was done", self.action, self.time)
        self._writer.delete(self.time, self.action, State.INFLIGHT, State.REQUESTED)

    def is_completed(self) -> bool:
        """Return whether the instant has a completed file, whoever made it."""
        return self._writer.completed_path(self.time, self.action) is not None

    def path(self, state: State) -> str:
        """Return the path of its requested or inflight file, relative to the table's base path."""
        return self._writer.path(self.time, self.action, state)

    def _try_announce(self, body: bytes) -> bool:
        if self.ownership is not None and not self.ownership.announce():
            return False
        try:
            self._storage.create(self.path(State.REQUESTED), body)
        except FileExistsError:
            self.release()
            return False
        except BaseException:
            # Whether the request is there is not known, so its owner file stays.
            self.give_up()
            raise
        self._is_new = True
        return True

    def _as_of_completion(self, seen: Timeline) -> Timeline:
        """Return the timeline at the moment of the create: what was completed later has seen this instant itself."""
        mine = None if self._completed is None else self._storage.stat(self._completed)
        if mine is None:
            raise WriteConflictError(rolled_back(self._storage, self.time, self.action))
        current = Timeline.load(self._storage, self._config)
        before = {(each.requested_time, each.action) for each in seen.completed}
        kept = []
        for each in current.instants:
            if each.requested_time == self.time:
                continue
            status = self._storage.stat(f"{self._config.timeline_path}/{each.file_name}")
            earlier = status is None or status.modified_ms <= mine.modified_ms
            if not each.is_completed or (each.requested_time, each.action) in before or earlier:
                kept.append(each)
        return Timeline(self._storage, self._config, kept)


def stored_plan(
    storage: Storage, config: TableConfig, pending: Instant, parse: Callable[[bytes, str], Plan]
) -> Plan | None:
    """Return the plan of a pending action; None when its writer died before it was whole, so nothing was begun."""
    name = timeline_file_name(pending.requested_time, pending.action, State.REQUESTED)
    source = f"{storage.base}/{config.timeline_path}/{name}"
    try:
        data = storage.read(f"{config.timeline_path}/{name}")
    except FileNotFoundError as error:
        if pending.state is State.REQUESTED:
            return None
        raise CorruptTableError(
            f"{source} is missing, so what {pending.action} {pending.requested_time} should do is unknown. Restore the "
            "file, or delete the inflight file of that instant"
        ) from error
    if pending.state is State.REQUESTED:
        try:
            decode_avro_file(data)
        except CorruptTableError:
            return None
    return parse(data, source)
