"""One write: an instant from its request to its commit, or to its rollback.

Killed anywhere before the completed file exists, readers never see the write and the next :meth:`begin` rolls
it back; killed after, the commit stays. Writers may work side by side: each checks at its commit, under the
table's lock, what the others committed meanwhile (:mod:`hudi_engine.table.txn.conflict`).
"""

from __future__ import annotations

import dataclasses
import logging
from types import TracebackType

from hudi_engine.errors import ConfigError, HudiError, TimelineError, WriteConflictError
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import Storage, storage_errors
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.avro_file import encode_avro_file
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.format.timeline.instant import WRITE_ACTIONS, Instant, State
from hudi_engine.format.timeline.schemas import REQUESTED_REPLACE_METADATA
from hudi_engine.format.timeline.writer import check_inflight, rolled_back
from hudi_engine.table.metadata.build import check_metadata_options, initialize_metadata_table
from hudi_engine.table.txn.conflict import (
    OVERWRITES,
    FileGroup,
    Footprint,
    KeyScope,
    ReadsOfWrite,
    check_conflicts,
    check_reads,
    check_unnamed_writers,
    kind_of,
    rolls_back_plans,
    updates_allowed,
    yields_to_overwrites,
)
from hudi_engine.table.txn.metadata_conflicts import (
    check_batch,
    check_checkpoint_parent,
    check_only_checkpoint,
    check_schema_and_checkpoint,
    merged_schema,
    with_checkpoint,
    with_column_ids,
)
from hudi_engine.table.txn.open_instant import OpenInstant
from hudi_engine.table.txn.owner import Liveness, OwnerState
from hudi_engine.table.txn.publication import (
    Publication,
)
from hudi_engine.table.txn.receipts import with_receipt
from hudi_engine.table.txn.recovery import Recovery, pending_writes, recover, table_lock
from hudi_engine.table.txn.removal import delete_unwanted_files, settle_markers
from hudi_engine.table.txn.rollback import check_not_rolled_back, rollback_instant
from hudi_engine.table.txn.swap import swap_is_conflict

logger = logging.getLogger(__name__)


class WriteTransaction:
    """A write from begin to commit or abort; made by :meth:`begin`, used as a context manager.

    Attributes:
        instant: Instant time; it names every file of the write.
        action: ``commit``, ``deltacommit`` or ``replacecommit``.
        operation: Hudi's operation name in upper case.
        config: The table's settings as read at begin.
        timeline: The timeline as of begin, after rollbacks: what this write reads.
        rolled_back: Instants of dead writers that begin rolled back.
        committed: The timeline right after the commit, None before.
    """

    def __init__(
        self,
        storage: Storage,
        config: TableConfig,
        options: Options,
        publication: Publication,
        opened: OpenInstant,
        *,
        operation: str,
        recovery: Recovery,
    ) -> None:
        self.instant = opened.time
        self.action = opened.action
        self.operation = operation
        self.config = config
        self.timeline = recovery.timeline
        self.rolled_back = recovery.rolled_back
        self.committed: Timeline | None = None
        self._storage = storage
        self._options = options
        self._publication = publication
        self._opened = opened
        self._state = State.REQUESTED
        self._ended = False

    @classmethod
    def begin(
        cls,
        storage: Storage,
        config: TableConfig,
        options: Options,
        publication: Publication,
        *,
        action: str,
        operation: str,
    ) -> WriteTransaction:
        """Clean up after dead writers and announce a new instant.

        Args:
            operation: Hudi's operation name, such as ``UPSERT``.
        """
        if action not in WRITE_ACTIONS:
            raise ConfigError(
                f"action {action!r} is no write; legal values: {', '.join(sorted(WRITE_ACTIONS))}"
            )
        body = encode_avro_file(REQUESTED_REPLACE_METADATA, {}) if action == "replacecommit" else b""
        transaction: WriteTransaction | None = None
        try:
            with (
                storage_errors(storage, "begin a write"),
                swap_is_conflict(storage),
                table_lock(storage, options),
            ):
                config = TableConfig.load(storage)
                config.check_writable()
                check_metadata_options(config, options)
                recovery = recover(storage, config, options, publication)
                config = recovery.timeline.config
                opened = OpenInstant.announce(
                    storage, config, recovery.timeline, action, body, owned_by=options
                )
                transaction = cls(
                    storage,
                    config,
                    options,
                    publication,
                    opened,
                    operation=operation.upper(),
                    recovery=recovery,
                )
            return transaction
        except BaseException as error:
            if transaction is not None:
                transaction._leave(error)
            raise

    def inflight(self, profile: CommitMetadata) -> None:
        """Store the planned workload; data files may be written from now on."""
        self._require(State.REQUESTED, "go in flight")
        with storage_errors(self._storage, f"start {self.action} {self.instant}"):
            self.still_ours()
            self._opened.start(profile.to_bytes(self.config.table_version))
        self._state = State.INFLIGHT

    def still_ours(self) -> None:
        """Raise WriteConflictError when the instant was rolled back, so that nothing more is written for it."""
        if self._state is State.INFLIGHT:
            check_inflight(self._storage, self.config, self.instant, self.action)
        elif not self._storage.exists(self._opened.path(State.REQUESTED)):
            raise WriteConflictError(self._rolled_back_message())

    def drop_unwanted_files(self, metadata: CommitMetadata) -> None:
        """Delete the data files of attempts that failed, so that a look at the files shows what the commit will."""
        self._require(State.INFLIGHT, "be looked at")
        with storage_errors(self._storage, f"look at {self.action} {self.instant}"):
            self.still_ours()
            delete_unwanted_files(self._storage, self.instant, metadata)

    def commit(
        self,
        metadata: CommitMetadata,
        *,
        key_scope: KeyScope = KeyScope.PARTITION,
        reads: ReadsOfWrite | None = None,
        left: frozenset[FileGroup] = frozenset(),
        follows: str | None = None,
    ) -> None:
        """Make the write visible: one file, created under the table's lock after the conflict check.

        Data files that were announced but are not in ``metadata`` are deleted first: they belong to attempts
        that failed. On an error nothing is visible; leave the ``with`` block, or call :meth:`abort`.

        Args:
            reads: What of the table the rows were made from before begin; None when they come from elsewhere.
            left: File groups with rows that were compared with what came, and left as they are.
            follows: The checkpoint that its own follows; None when that does not matter.
        """
        self._require(State.INFLIGHT, "be committed")
        with storage_errors(self._storage, f"commit {self.action} {self.instant}"):
            self.still_ours()
            with table_lock(self._storage, self._options) as lock:
                current = Timeline.load(self._storage, self.config)
                mine = self._find_pending(current)
                if mine is None or mine.state is not State.INFLIGHT:
                    raise WriteConflictError(self._rolled_back_message())

                def check(timeline: Timeline) -> None:
                    self._check(metadata, timeline, key_scope, reads, left, follows)

                check(current)
                if rolls_back_plans(self._options) or self._overwrites_plans(metadata):
                    current = self._take_plans_back(metadata, current)
                gone = delete_unwanted_files(self._storage, self.instant, metadata)
                final = self._settled(metadata, current)

                def check_again(timeline: Timeline) -> None:
                    check(timeline)
                    if self._settled(metadata, timeline) != final:
                        raise WriteConflictError(
                            f"instant {self.instant} ({self.operation}) cannot be committed: another writer changed the table's "
                            "columns or its checkpoint in the moment of the commit. The table is as the other writer left it; "
                            "run this write again"
                        )

                committed = with_column_ids(self._storage, current, self.instant, final)
                body = committed.to_bytes(self.config.table_version)
                initialize_metadata_table(
                    self._storage,
                    self.config,
                    self._options,
                    committed.schema_json or current.table_schema_json(),
                )
                done = self._opened.complete_fenced(body, lock, current, check_again)
        self.committed = current.as_if_completed(self.instant, self.action, committed, done.completion_time)
        self._state = State.COMPLETED
        self._clean_up(metadata, gone)

    def abort(self, cause: BaseException | None = None) -> None:
        """Roll the instant back, unless it is committed; trouble is logged and left to the next writer."""
        if self._ended:
            return
        logger.info("aborting %s %s: %s", self.action, self.instant, cause)
        try:
            with table_lock(self._storage, self._options):
                config = TableConfig.load(self._storage)
                timeline = Timeline.load(self._storage, config)
                mine = self._find_pending(timeline)
                if mine is not None:
                    rollback_instant(self._storage, config, timeline, mine, self._publication)
            self._opened.release()
        except Exception as error:  # the caller raises the cause, which nothing here may hide
            logger.warning(
                "could not roll back %s %s, the next write to the table will: %s",
                self.action,
                self.instant,
                error,
            )
            self._opened.give_up()
        finally:
            self._end()

    def __enter__(self) -> WriteTransaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._ended:
            self.abort(error)

    def _check(
        self,
        metadata: CommitMetadata,
        current: Timeline,
        key_scope: KeyScope,
        reads: ReadsOfWrite | None,
        left: frozenset[FileGroup],
        follows: str | None,
    ) -> None:
        """Raise when the write must not be committed on this timeline."""
        check_not_rolled_back(self._storage, self.config, current, self._opened)
        check_conflicts(
            metadata,
            instant=self.instant,
            base=self.timeline,
            current=current,
            key_scope=key_scope,
            left=left,
            into_planned_clusterings=updates_allowed(self._options) or self._overwrites_plans(metadata),
        )
        check_batch(metadata, instant=self.instant, current=current)
        if follows is None:
            check_only_checkpoint(metadata, instant=self.instant, base=self.timeline, current=current)
        else:
            check_checkpoint_parent(metadata, follows, instant=self.instant, current=current)
        if reads is not None:
            check_reads(metadata, instant=self.instant, reads=reads, current=current)
        living = Liveness(self._storage, self.config, self._options)
        others = [each for each in pending_writes(current) if each.requested_time != self.instant]
        unnamed = [each for each in others if living.of(each) is OwnerState.UNNAMED]
        check_unnamed_writers(metadata, unnamed, instant=self.instant, current=current, key_scope=key_scope)

    def _overwrites_plans(self, metadata: CommitMetadata) -> bool:
        """Return whether planned clusterings give way to this write."""
        return kind_of(metadata) in OVERWRITES and yields_to_overwrites(self._options)

    def _take_plans_back(self, metadata: CommitMetadata, current: Timeline) -> Timeline:
        """Roll back the planned clusterings whose file groups this write changes; return the timeline after that."""
        closed = current.pending_clustering_file_groups()
        going = {closed[group] for group in Footprint.of(metadata).touched if group in closed}
        for time in sorted(going):
            instant = current.find(time, self.config.table_version.clustering_action)
            config = TableConfig.load(self._storage)
            rollback_instant(
                self._storage, config, current, instant, self._publication, owned_by=self._options
            )
            current = Timeline.load(self._storage, config)
            logger.warning(
                "%s changes what clustering %s had planned; it was rolled back", self.instant, time
            )
        return current

    def _find_pending(self, timeline: Timeline) -> Instant | None:
        for instant in timeline.pending:
            if (instant.requested_time, instant.action) == (self.instant, self.action):
                return instant
        return None

    def _settled(self, metadata: CommitMetadata, current: Timeline) -> CommitMetadata:
        """Return what is committed, with the schema and the checkpoint that the table has from then on."""
        merged = self._with_schema(metadata, current)
        check_schema_and_checkpoint(merged, instant=self.instant, current=current)
        noted = with_checkpoint(merged, instant=self.instant, current=current)
        return with_receipt(noted, instant=self.instant, current=current)

    def _with_schema(self, metadata: CommitMetadata, current: Timeline) -> CommitMetadata:
        schema = merged_schema(
            self.instant, metadata.schema_json, self.timeline.table_schema_json(), current.table_schema_json()
        )
        if schema is None or schema == metadata.schema_json:
            return metadata
        return dataclasses.replace(metadata, extra_metadata={**metadata.extra_metadata, "schema": schema})

    def _clean_up(self, metadata: CommitMetadata, gone: list[str]) -> None:
        """Remove late files, markers and owner file; what cannot be removed is left to the next writer."""
        try:
            settle_markers(self._storage, self.instant, gone, metadata.file_paths())
        except (OSError, HudiError) as error:
            logger.warning("could not remove leftovers of %s, the next write will: %s", self.instant, error)
        finally:
            self._opened.release()
            self._end()

    def _leave(self, error: BaseException) -> None:
        """End a transaction that its caller never gets; after an interruption it is left to the next writer."""
        if isinstance(error, Exception):
            self.abort(error)
        self._end()

    def _end(self) -> None:
        self._ended = True
        if self._opened.ownership is not None:
            self._opened.ownership.end()

    def _require(self, state: State, verb: str) -> None:
        if self._ended or self._state is not state:
            known = "ended" if self._ended else self._state.value.lower()
            raise TimelineError(
                f"{self.action} {self.instant} cannot {verb}: it is {known}, and must be {state.value.lower()}"
            )

    def _rolled_back_message(self) -> str:
        return rolled_back(self._storage, self.instant, self.action)
