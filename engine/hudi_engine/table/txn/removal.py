"""Taking one instant out of a table: the steps that rollback and restore share.

Every step can be repeated, so whoever finishes after a crash starts over with the same plan. The order is that
of `take_out`: unpublish, remove data, remove the instant's own timeline files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hudi_engine.format.config.enums import TableType
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.base_file import parse_base_file
from hudi_engine.format.filegroup.log_file import log_file_name, parse_log_file
from hudi_engine.format.filegroup.view import list_partition_files
from hudi_engine.format.logformat.format import HeaderKey
from hudi_engine.format.logformat.reader import read_blocks
from hudi_engine.format.logformat.writer import encode_rollback_block
from hudi_engine.format.parallel import on_threads
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.paths import join
from hudi_engine.format.timeline.instant import COMPLETED_ACTION, WRITE_ACTIONS, State, timeline_file_name
from hudi_engine.format.timeline.schema_commits import drop_history
from hudi_engine.format.timeline.writer import TimelineWriter
from hudi_engine.table.txn.metadata_table import drop_foreign_metadata_table
from hudi_engine.table.txn.open_instant import OpenInstant
from hudi_engine.table.txn.owner import heartbeat_path
from hudi_engine.table.txn.publication import Publication
from hudi_engine.table.txn.reconcile import announced_files, delete_announced_files, settle_markers
from hudi_engine.table.txn.rollback_plan import (
    RollbackPlan,
    RollbackRequest,
    absolute_path,
    belongs_to,
    holds_blocks_of,
    slice_log_files,
)

ROLLBACK_TOKEN = "1-0-1"
"""Write token of log files that no task wrote."""


def unpublish(removals: Sequence[Removal], config: TableConfig, publication: Publication) -> None:
    """Hide instants from readers before any of their files goes: from the timeline, and from the list of files they use.

    The list is rebuilt also when the instants had left the timeline before, by a run that was killed in between.

    Args:
        removals: The instants, in the order in which they go.
    """
    hidden = [removal.unpublish() for removal in removals]
    if any(hidden) or publication.shows({removal.plan.instant for removal in removals}):
        publication.renew(config)


def take_out(removals: Sequence[Removal], config: TableConfig, publication: Publication) -> None:
    """Take instants out of the table, hidden from readers first.

    Args:
        removals: The instants, in the order in which they go.
    """
    unpublish(removals, config, publication)
    late = []
    for removal in removals:
        removal.remove_data()
        late.append(removal.remove_instant())
    if any(late):
        publication.renew(config)


def undo(
    storage: Storage,
    config: TableConfig,
    opened: OpenInstant,
    removals: Callable[[], Sequence[Removal]],
    publication: Publication,
    body: Callable[[Sequence[Removal], int], bytes],
) -> Sequence[Removal]:
    """Carry out a rollback or restore, for the first time or again; return what went.

    A metadata table of another writer would still name the files that go, so it goes before them.

    Args:
        removals: Returns what is still to be taken out, once the instant is in flight.
        body: Returns the body of the completed instant, from what went and how many milliseconds it took.
    """
    started = time.monotonic()
    opened.start()
    gone = removals()
    if any(removal.plan.requests for removal in gone):
        config = drop_foreign_metadata_table(storage, config)
    take_out(gone, config, publication)
    opened.complete(body(gone, int((time.monotonic() - started) * 1000)))
    return gone


@dataclass
class PartitionOutcome:
    """What was done in one partition: paths relative to the base path, log files with their sizes."""

    deleted: list[str] = field(default_factory=list)
    command_blocks: dict[str, int] = field(default_factory=dict)
    failed_logs: dict[str, int] = field(default_factory=dict)


class Removal:
    """Carries out the plan for one instant.

    Args:
        time: Instant of the rollback or restore; command blocks carry it.
        of_run: Whether the instant is a plan that is to run again: its request stays, and so do logs named after it, which
            are of others.
    """

    def __init__(
        self, storage: Storage, config: TableConfig, time: str, plan: RollbackPlan, *, of_run: bool = False
    ) -> None:
        self.plan = plan
        self._of_run = of_run
        self.outcomes: dict[str, PartitionOutcome] = {}
        self._was_completed = False
        self._storage = storage
        self._config = config
        self._time = time
        self._writer = TimelineWriter(storage, config)

    def unpublish(self) -> bool:
        """Remove the completed file, so that no reader sees the instant while its files go; False if none."""
        if COMPLETED_ACTION.get(self.plan.action, self.plan.action) not in WRITE_ACTIONS:
            return False
        name = timeline_file_name(self.plan.instant, self.plan.action, State.COMPLETED)
        gone = self._storage.delete(f"{self._config.timeline_path}/{name}")
        self._was_completed = self._was_completed or gone
        return gone

    def remove_data(self) -> None:
        """Delete the data files, many at a time, and neutralise the log blocks of the plan."""
        going = [path for request in self.plan.requests for path in request.delete if self._goes(path)]
        on_threads(self._storage.delete, going)
        for request in self.plan.requests:
            outcome = self.outcomes.setdefault(request.partition, PartitionOutcome())
            outcome.deleted += filter(self._goes, request.delete)
            if self._is_all_there_is(request):
                on_threads(self._storage.delete, list(request.log_files))
                outcome.deleted += request.log_files
            elif request.log_files:
                path, size = self._neutralise(request)
                outcome.command_blocks[path] = size
                outcome.failed_logs.update(request.log_files)

    def remove_instant(self) -> bool:
        """Remove the pending files of the instant, its markers and heartbeat; return whether it was completed meanwhile.

        A writer that lost the lock while it completed the instant may have done so after it was hidden. From the end of the
        inflight file on such a writer notices that by itself.

        Tasks of a killed writer may outlive it. They look for the inflight file before they give a file its
        name, so what they have finished since the plan was made is looked for after its removal. One that had
        looked just before may come still later: its marker stays for the next writers to look.
        """
        self._remove_pending(State.INFLIGHT)
        late = self.unpublish()
        announced = announced_files(self._storage, self.plan.instant)
        if announced or not self._was_completed:
            self._delete_strays(announced)
        if not self._of_run:
            drop_history(self._storage, self.plan.instant)
            self._remove_pending(State.REQUESTED)
        if announced or not self._was_completed:
            settle_markers(self._storage, self.plan.instant, frozenset(self.deleted), announced=announced)
        self._storage.remove(heartbeat_path(self.plan.instant))
        return late

    @property
    def deleted(self) -> tuple[str, ...]:
        """Data files that went."""
        return tuple(path for outcome in self.outcomes.values() for path in outcome.deleted)

    @property
    def command_blocks(self) -> tuple[str, ...]:
        """Log files written to neutralise blocks."""
        return tuple(path for outcome in self.outcomes.values() for path in outcome.command_blocks)

    def metadata(self, took_ms: int) -> dict[str, Any]:
        """Return the record ``HoodieRollbackMetadata``."""
        return {
            "startRollbackTime": self._time,
            "timeTakenInMillis": took_ms,
            "totalFilesDeleted": len(self.deleted),
            "commitsRollback": [self.plan.instant],
            "partitionMetadata": {
                partition: {
                    "partitionPath": partition,
                    "successDeleteFiles": [absolute_path(self._storage, path) for path in outcome.deleted],
                    "failedDeleteFiles": [],
                    "rollbackLogFiles": self._with_uris(outcome.command_blocks),
                    "logFilesFromFailedCommit": self._with_uris(outcome.failed_logs),
                }
                for partition, outcome in self.outcomes.items()
            },
            "version": 1,
            "instantsRollback": [{"commitTime": self.plan.instant, "action": self.plan.action}],
        }

    def _neutralise(self, request: RollbackRequest) -> tuple[str, int]:
        """Write the command block of a slice unless an earlier run did; return its file and size."""
        logs = slice_log_files(self._storage, request.partition, request.file_id, request.base_instant)
        block = encode_rollback_block(self._time, self.plan.instant)
        for log in reversed(logs):
            if log.size == len(block) and self._is_command(self._storage.read(log.path)):
                return log.path, log.size
        version = max((log.version for log in logs), default=0) + 1
        while True:
            name = log_file_name(request.file_id, request.base_instant, version, ROLLBACK_TOKEN)
            path = join(request.partition, name)
            try:
                self._storage.create(path, block)
                return path, len(block)
            except FileExistsError:
                version += 1

    def _is_all_there_is(self, request: RollbackRequest) -> bool:
        """Return whether a slice has nothing but the instant's own logs.

        The write that had made the slice was rolled back meanwhile. Once that instant is older than the active timeline a
        slice of it counts as committed, and would hide the one before: its logs go.
        """
        if not request.log_files:
            return False
        for status in list_partition_files(self._storage, request.partition):
            log = parse_log_file(status.name, request.partition)
            base = parse_base_file(status.name, request.partition) if log is None else None
            each = log or base
            if each is None or (each.file_id, each.instant) != (request.file_id, request.base_instant):
                continue
            if base is not None or status.path not in request.log_files:
                return False
        return all(
            holds_blocks_of(self._storage.read(path), self.plan.instant, only=True)
            for path in request.log_files
            if self._storage.exists(path)
        )

    def _is_command(self, data: bytes) -> bool:
        return any(
            block.is_rollback
            and block.header.get(HeaderKey.INSTANT_TIME) == self._time
            and block.target_instant_time == self.plan.instant
            for block in read_blocks(data)
        )

    def _remove_pending(self, state: State) -> None:
        planned = [action for action, done in COMPLETED_ACTION.items() if done == self.plan.action]
        if self._config.table_type is TableType.COPY_ON_WRITE:
            planned = [action for action in planned if action == "clustering"]
        for action in (self.plan.action, *planned):
            self._writer.delete(self.plan.instant, action, state)

    def _delete_strays(self, announced: Sequence[str]) -> None:
        """Delete what the instant's tasks have finished since the plan was made, in the partitions of markers too."""
        storage, instant = self._storage, self.plan.instant
        marked = {path.rpartition("/")[0] for path in announced}
        partitions = sorted({*self.outcomes, *marked})
        listed = on_threads(partial(list_partition_files, storage), partitions)
        for partition, statuses in zip(partitions, listed, strict=True):
            for status in statuses:
                if belongs_to(status.path, partition, instant) and self._goes(status.path):
                    storage.remove(status.path)
                    self._note_deleted(partition, status.path)
        neutralised = {path for request in self.plan.requests for path in request.log_files}
        for path in delete_announced_files(storage, instant, announced, neutralised):
            self._note_deleted(path.rpartition("/")[0], path)

    def _goes(self, path: str) -> bool:
        """Return whether a file that is named after the instant goes with it."""
        partition, _, name = path.rpartition("/")
        return not (self._of_run and parse_log_file(name, partition))

    def _note_deleted(self, partition: str, path: str) -> None:
        self.outcomes.setdefault(partition, PartitionOutcome()).deleted.append(path)

    def _with_uris(self, sizes: dict[str, int]) -> dict[str, int]:
        return {self._storage.uri(path): size for path, size in sizes.items()}
