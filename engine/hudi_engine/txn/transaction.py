"""One write: an instant from its request to its commit, or to its rollback.

Killed anywhere before the completed file exists, readers never see the write and the next :meth:`begin` rolls
it back; killed after, the commit stands. Writers may work side by side: each checks at its commit, under the
table's lock, what the others committed meanwhile (:mod:`hudi_engine.txn.conflict`).
"""

from __future__ import annotations

import dataclasses
import logging
from types import TracebackType

from hudi_engine.config.options import Options
from hudi_engine.config.table_config import TableConfig
from hudi_engine.errors import ConfigError, HudiError, StorageError, TimelineError, WriteConflictError
from hudi_engine.filegroup.markers import delete_markers
from hudi_engine.storage.base import Storage
from hudi_engine.timeline.active import Timeline
from hudi_engine.timeline.avro_file import encode_avro_file
from hudi_engine.timeline.clock import InstantClock
from hudi_engine.timeline.commit_metadata import CommitMetadata
from hudi_engine.timeline.instant import WRITE_ACTIONS, Instant, State, timeline_file_name
from hudi_engine.timeline.schemas import REQUESTED_REPLACE_METADATA
from hudi_engine.timeline.writer import TimelineWriter
from hudi_engine.txn.conflict import KeyScope, Reads, check_conflicts, check_reads, merged_schema
from hudi_engine.txn.owner import Beating, Owner, heartbeat_path, register, unregister
from hudi_engine.txn.reconcile import delete_unwanted_files
from hudi_engine.txn.recovery import next_instant, recover, table_lock
from hudi_engine.txn.rollback import Republish, read_rollback_plan, rollback_instant
from hudi_engine.txn.storage_errors import storage_errors

logger = logging.getLogger(__name__)

_BEGIN_ATTEMPTS = 100


def check_inflight(storage: Storage, config: TableConfig, instant: str, action: str) -> None:
    """Raise unless the instant is still being written: cheap, for tasks before they give a file its name.

    Raises:
        WriteConflictError: when the instant was rolled back, or is committed already.
    """
    if not storage.exists(_path(config, instant, action, State.INFLIGHT)):
        raise WriteConflictError(
            f"{action} {instant} is no longer in flight in {storage.base!r}: its writer was taken for dead "
            "and it was "
            "rolled back. Nothing of it is visible; run the write again"
        )
    if storage.exists(_path(config, instant, action, State.COMPLETED)):
        raise WriteConflictError(
            f"{action} {instant} is committed already in {storage.base!r}: this task is a late copy of one "
            "that was "
            "done, and its file is not needed"
        )


class WriteTransaction:
    """A write from begin to commit or abort; made by :meth:`begin`, used as a context manager.

    Attributes:
        instant: Instant time; it names every file of the write.
        action: ``commit``, ``deltacommit`` or ``replacecommit``.
        operation: Hudi's operation name in upper case.
        config: The table's settings as read at begin.
        timeline: The timeline as of begin, after rollbacks: what this write reads.
        rolled_back: Instants of dead writers that begin rolled back.
    """

    def __init__(
        self,
        storage: Storage,
        config: TableConfig,
        options: Options,
        *,
        action: str,
        operation: str,
        timeline: Timeline,
        rolled_back: tuple[str, ...],
        clock: InstantClock | None,
    ) -> None:
        self.instant = ""
        self.action = action
        self.operation = operation
        self.config = config
        self.timeline = timeline
        self.rolled_back = rolled_back
        self._storage = storage
        self._options = options
        self._clock = clock
        self._writer = TimelineWriter(storage, config)
        self._owner = Owner.current(
            options.int("hoodie.client.heartbeat.interval_in_ms"),
            options.int("hoodie.client.heartbeat.tolerable.misses"),
        )
        self._beating: Beating | None = None
        self._state: State | None = None
        self._ended = False

    @classmethod
    def begin(
        cls,
        storage: Storage,
        config: TableConfig,
        options: Options,
        *,
        action: str,
        operation: str,
        clock: InstantClock | None = None,
        republish: Republish | None = None,
    ) -> WriteTransaction:
        """Clean up after dead writers and announce a new instant.

        Args:
            config: The table's settings; they are read again, since another writer may have upgraded the
                table.
            action: ``commit``, ``deltacommit`` or ``replacecommit``.
            operation: Hudi's operation name, such as ``UPSERT``.
            clock: Source of instants, for tests.
            republish: Called before data files of an instant that was visible are deleted.

        Raises:
            ConfigError: for another action.
            UnsupportedTableError: when the table has become one that this engine must not write.
            WriteConflictError: when the table's lock is not free in time.
            CorruptTableError, PathEscapeError: when what a dead writer left cannot be cleaned up safely.
        """
        if action not in WRITE_ACTIONS:
            raise ConfigError(
                f"action {action!r} is no write; legal values: {', '.join(sorted(WRITE_ACTIONS))}"
            )
        transaction: WriteTransaction | None = None
        try:
            with storage_errors(storage, "begin a write"), table_lock(storage, options):
                config = TableConfig.load(storage)
                config.check_writable()
                recovery = recover(storage, config, options, clock=clock, republish=republish)
                transaction = cls(
                    storage,
                    config,
                    options,
                    action=action,
                    operation=operation.upper(),
                    timeline=recovery.timeline,
                    rolled_back=recovery.rolled_back,
                    clock=clock,
                )
                transaction._announce()
            return transaction
        except BaseException as error:
            if transaction is not None:
                transaction._give_up(error)
            raise

    def inflight(self, profile: CommitMetadata) -> None:
        """Store the planned workload; data files may be written from now on.

        Raises:
            WriteConflictError: when the instant was rolled back meanwhile.
            TimelineError: when the transaction is in flight or has ended.
        """
        self._require(State.REQUESTED, "go in flight")
        with storage_errors(self._storage, f"start {self.action} {self.instant}"):
            self.still_ours()
            self._writer.to_inflight(self.instant, self.action, profile.to_json())
        self._state = State.INFLIGHT

    def still_ours(self) -> None:
        """Raise WriteConflictError when the instant was rolled back, so that nothing more is written for
        it.
        """
        if self._state is State.INFLIGHT:
            check_inflight(self._storage, self.config, self.instant, self.action)
        elif not self._storage.exists(self._path(State.REQUESTED)):
            raise WriteConflictError(self._rolled_back_message())

    def commit(
        self,
        metadata: CommitMetadata,
        *,
        key_scope: KeyScope = KeyScope.PARTITION,
        reads: Reads | None = None,
    ) -> None:
        """Make the write visible: one file, created under the table's lock after the conflict check.

        Data files that were announced but are not in ``metadata`` are deleted first: they belong to attempts
        that failed. On an error nothing is visible; leave the ``with`` block, or call :meth:`abort`.

        Args:
            metadata: What was written. Its schema is replaced by the table's when another writer has evolved
                the table meanwhile and this write has not.
            key_scope: Where a record key must be unique.
            reads: What of the table the rows were made from before begin; None when they come from elsewhere.

        Raises:
            WriteConflictError: when another writer's commit stands against this one, or the instant was
                rolled back.
            StorageError: when the storage failed so that it is not known whether the commit landed.
        """
        self._require(State.INFLIGHT, "be committed")
        with storage_errors(self._storage, f"commit {self.action} {self.instant}"):
            self._commit(metadata, key_scope, reads)
        self._state = State.COMPLETED
        self._clean_up()

    def _commit(self, metadata: CommitMetadata, key_scope: KeyScope, reads: Reads | None) -> None:
        self.still_ours()
        delete_unwanted_files(self._storage, self.instant, metadata)
        with table_lock(self._storage, self._options):
            current = Timeline.load(self._storage, self.config)
            self._check_ours(current)
            check_conflicts(
                metadata, instant=self.instant, base=self.timeline, current=current, key_scope=key_scope
            )
            if reads is not None:
                check_reads(metadata, instant=self.instant, reads=reads, current=current)
            self._complete(self._with_schema(metadata, current).to_json())
            self._withdraw_if_rolled_back()

    def abort(self, cause: BaseException | None = None) -> None:
        """Roll the instant back, unless it is committed; trouble is logged and left to the next writer.

        Args:
            cause: Why, for the log; the caller raises it.
        """
        if self._ended:
            return
        logger.info("aborting %s %s: %s", self.action, self.instant, cause)
        try:
            with table_lock(self._storage, self._options):
                timeline = Timeline.load(self._storage, self.config)
                mine = self._find_pending(timeline)
                if mine is not None:
                    time = next_instant(timeline, self._clock)
                    rollback_instant(self._storage, self.config, mine, rollback_time=time)
            self._clean_up()
        except Exception as error:  # the caller raises the cause, which nothing here may hide
            logger.warning(
                "could not roll back %s %s, the next write to the table will: %s",
                self.action,
                self.instant,
                error,
            )
        finally:
            self._end()

    def __enter__(self) -> WriteTransaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._ended:
            self.abort(error)

    def _announce(self) -> None:
        """Take a free instant: first the owner file, so that no instant is ever without an owner."""
        newest = self.timeline.latest_instant_time
        register(self._owner)
        for _ in range(_BEGIN_ATTEMPTS):
            newest = self.instant = (self._clock or InstantClock()).next(newest, self.timeline.zone)
            if self._try_announce():
                break
        else:
            raise StorageError(
                f"no free instant after {newest} in {self._storage.base!r}: {_BEGIN_ATTEMPTS} were taken in "
                "a row"
            )
        self._state = State.REQUESTED
        content = self._owner.to_json()
        self._beating = Beating(self._storage, heartbeat_path(self.instant), self._owner, content)
        self._beating.start()

    def _give_up(self, error: BaseException) -> None:
        """End a transaction that its caller never gets; after an interruption it is left to the next
        writer.
        """
        if isinstance(error, Exception) and self.instant:
            self.abort(error)
        self._end()

    def _try_announce(self) -> bool:
        try:
            self._storage.create(heartbeat_path(self.instant), self._owner.to_json())
        except FileExistsError:
            return False
        body = encode_avro_file(REQUESTED_REPLACE_METADATA, {}) if self.action == "replacecommit" else b""
        try:
            self._storage.create(self._path(State.REQUESTED), body)
        except FileExistsError:
            self._storage.delete(heartbeat_path(self.instant))
            return False
        return True

    def _check_ours(self, current: Timeline) -> None:
        """Refuse when somebody has rolled this instant back, or has begun to."""
        mine = self._find_pending(current)
        if mine is None or mine.state is not State.INFLIGHT:
            raise WriteConflictError(self._rolled_back_message())
        for pending in current.pending:
            if pending.action == "restore":
                raise WriteConflictError(self._rolled_back_message())
            if pending.action == "rollback":
                plan = read_rollback_plan(self._storage, self.config, current, pending)
                if plan is not None and plan.instant == self.instant:
                    raise WriteConflictError(self._rolled_back_message())

    def _find_pending(self, timeline: Timeline) -> Instant | None:
        for instant in timeline.pending:
            if (instant.requested_time, instant.action) == (self.instant, self.action):
                return instant
        return None

    def _with_schema(self, metadata: CommitMetadata, current: Timeline) -> CommitMetadata:
        schema = merged_schema(
            self.instant, metadata.schema_json, self.timeline.table_schema_json(), current.table_schema_json()
        )
        if schema is None or schema == metadata.schema_json:
            return metadata
        return dataclasses.replace(metadata, extra_metadata={**metadata.extra_metadata, "schema": schema})

    def _complete(self, body: bytes) -> None:
        """Create the completed file; when the storage reports an error, find out whether the file is
        there.
        """
        path = self._path(State.COMPLETED)
        try:
            self._storage.create(path, body)
        except (OSError, StorageError) as error:
            try:
                landed = self._storage.exists(path) and self._storage.read(path) == body
            except (OSError, StorageError):
                raise StorageError(
                    f"{self.action} {self.instant} of {self._storage.base!r}: the storage failed during the "
                    "commit and "
                    f"cannot say whether it landed ({error}). Look whether {path} exists before you write "
                    "again"
                ) from error
            if not landed:
                raise
            logger.warning("the commit of %s landed although the storage reported: %s", self.instant, error)

    def _withdraw_if_rolled_back(self) -> None:
        """Take the commit back when somebody who took this writer for dead has rolled it back in that
        moment.
        """
        try:
            if self._storage.exists(self._path(State.INFLIGHT)):
                return
        except (OSError, StorageError) as error:
            logger.warning(
                "the commit of %s landed; it could not be looked at again: %s", self.instant, error
            )
            return
        self._storage.delete(self._path(State.COMPLETED))
        raise WriteConflictError(self._rolled_back_message())

    def _clean_up(self) -> None:
        """Remove markers and owner file; what cannot be removed is left to the next writer."""
        try:
            if self._beating is not None:
                self._beating.stop()
            delete_markers(self._storage, self.instant)
            self._storage.delete(heartbeat_path(self.instant))
        except (OSError, HudiError) as error:
            logger.warning("could not remove leftovers of %s, the next write will: %s", self.instant, error)
        finally:
            self._end()

    def _end(self) -> None:
        self._ended = True
        if self._beating is not None:
            self._beating.stop()
        unregister(self._owner)

    def _require(self, state: State, verb: str) -> None:
        if self._ended or self._state is not state:
            known = "ended" if self._ended else str(getattr(self._state, "value", "new")).lower()
            raise TimelineError(
                f"{self.action} {self.instant} cannot {verb}: it is {known}, and must be "
                f"{state.value.lower()}"
            )

    def _rolled_back_message(self) -> str:
        return (
            f"{self.action} {self.instant} of {self._storage.base!r} was rolled back by another writer, "
            "which took "
            "this one for dead. Nothing of it is visible; run the write again"
        )

    def _path(self, state: State) -> str:
        return _path(self.config, self.instant, self.action, state)


def _path(config: TableConfig, instant: str, action: str, state: State) -> str:
    return f"{config.timeline_path}/{timeline_file_name(instant, action, state)}"
