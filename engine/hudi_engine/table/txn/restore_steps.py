"""The steps of a restore, and finishing one that was killed. The caller holds the table's lock.

The plan is stored first. Then every later write is unpublished, newest first, before any file goes, so
readers see the table as of some commit between the newest and the target, never a mix. Which files are in the
way is looked up again after a crash: an instant is done when none of its timeline files is left (Hudi table
format, restore).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from hudi_engine.errors import CorruptTableError, WriteConflictError
from hudi_engine.format.config.enums import TableType
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.avro_file import StoredPlan, encode_avro_file
from hudi_engine.format.timeline.instant import WRITE_ACTIONS, Instant, State
from hudi_engine.format.timeline.schemas import RESTORE_METADATA, RESTORE_PLAN
from hudi_engine.table.txn.open_instant import OpenInstant, stored_plan
from hudi_engine.table.txn.publication import Publication
from hudi_engine.table.txn.removal import Removal, undo
from hudi_engine.table.txn.rollback import plan_removal
from hudi_engine.table.txn.rollback_plan import RollbackPlan

logger = logging.getLogger(__name__)

TAKEN_BACK = WRITE_ACTIONS | {"compaction", "logcompaction", "clustering", "indexing"}
"""Actions that a restore takes back; cleans, rollbacks and savepoints stay, and so do indexes that are built.

The building of an index goes with the metadata table that it was for. What is left of one that was built says nothing of data.
"""


@dataclass(frozen=True)
class RestorePlan(StoredPlan):
    """A restore's plan.

    Args:
        instants: Requested time and action of what goes, newest first.
    """

    target: str
    instants: tuple[tuple[str, str], ...]

    def to_bytes(self) -> bytes:
        """Encode as Hudi's ``HoodieRestorePlan``."""
        infos = [{"commitTime": time_, "action": action} for time_, action in self.instants]
        record = {"instantsToRollback": infos, "version": 2, "savepointToRestoreTimestamp": self.target}
        return encode_avro_file(RESTORE_PLAN, record)

    @classmethod
    def _from_record(cls, record: Mapping[str, Any], source: str) -> RestorePlan:
        target = str(record.get("savepointToRestoreTimestamp") or "")
        found = [(str(info["commitTime"]), str(info["action"])) for info in record["instantsToRollback"]]
        for time_, action in found:
            if not time_.isdigit() or action not in TAKEN_BACK or time_ == target:
                raise CorruptTableError(
                    f"{source} wants to take back {action} {time_}, which is {target!r} itself or no write. Nothing was changed; "
                    "look at the file, and remove it from the timeline if it is not Hudi's and the restore is not in flight"
                )
        return cls(target, tuple(sorted(found, reverse=True)))


@dataclass(frozen=True)
class RestoreResult:
    """What a restore did.

    Args:
        restore_time: Instant of the restore; None when there was nothing to take back.
        taken_back: Requested times of what went, newest first.
        deleted: Data files that went, relative to the base path.
    """

    restore_time: str | None
    target: str
    taken_back: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    command_blocks: tuple[str, ...] = ()


def later_instants(timeline: Timeline, target: str) -> tuple[Instant, ...]:
    """Return what a restore to ``target`` has to take back, newest first."""
    return tuple(each for each in reversed(timeline.instants) if each.requested_time > target and _goes(each))


def check_can_go(storage: Storage, config: TableConfig, timeline: Timeline, plan: RestorePlan) -> None:
    """Find once what the instants of a restore have written: what cannot be found must be known before the restore begins."""
    _plans(storage, config, timeline, plan)


def carry_out_restore(
    storage: Storage, config: TableConfig, opened: OpenInstant, plan: RestorePlan, publication: Publication
) -> RestoreResult:
    """Carry out a stored plan, for the first time or again."""
    removals = undo(
        storage,
        config,
        opened,
        lambda: _removals(storage, config, opened.time, plan),
        publication,
        partial(_metadata, opened.time, plan),
    )
    return RestoreResult(
        opened.time,
        plan.target,
        tuple(time_ for time_, _ in plan.instants),
        tuple(path for removal in removals for path in removal.deleted),
        tuple(path for removal in removals for path in removal.command_blocks),
    )


def resume_restores(
    storage: Storage, config: TableConfig, timeline: Timeline, publication: Publication
) -> tuple[RestoreResult, ...]:
    """Finish the restores that somebody began and did not complete; one whose plan was cut short is dropped."""
    done = []
    for pending in timeline.pending:
        if pending.action != "restore":
            continue
        plan = stored_plan(storage, config, pending, RestorePlan.from_bytes)
        opened = OpenInstant(storage, config, pending.requested_time, "restore")
        if plan is None:
            opened.drop()
            continue
        _check_older(storage, config, timeline, pending, plan)
        logger.info("finishing restore %s to %s", opened.time, plan.target)
        done.append(carry_out_restore(storage, config, opened, plan, publication))
    return tuple(done)


def _check_older(
    storage: Storage, config: TableConfig, timeline: Timeline, pending: Instant, plan: RestorePlan
) -> None:
    """Refuse a plan that takes back what the target was built upon.

    Apache Hudi from 1.0 on goes by the order of completion: what began before the target and completed later goes too, and what
    has not completed yet. What is missing has gone already. A compaction goes by its request, as commits from before the target
    may have written into its slices.
    """
    present = {each.requested_time: each for each in timeline.instants if each.action in TAKEN_BACK}
    older = [each for each in plan.instants if each[0] <= plan.target]
    for time_, action in older:
        found = present.get(time_)
        if found is None and (pending.state is State.INFLIGHT or time_ in timeline.undone_since()):
            continue
        compacts = action == "compaction" or (
            action == "commit" and config.table_type is TableType.MERGE_ON_READ
        )
        if found is None or compacts or not _is_later(storage, config, timeline, found, plan.target):
            raise CorruptTableError(
                f"restore {pending.requested_time} of {storage.base!r} wants to take back {action} {time_}, which the commit "
                f"{plan.target} that it goes back to came after. Nothing was changed; let Apache Hudi finish the restore if it "
                "is one of its own"
            )


def _is_later(
    storage: Storage, config: TableConfig, timeline: Timeline, instant: Instant, target: str
) -> bool:
    """Return whether an instant has not completed, or did so after a commit: by their files, as Apache Hudi in layout 1."""
    if not instant.is_completed:
        return True
    names = [each.file_name for each in timeline.completed_writes if each.requested_time == target]
    kept = [storage.stat(f"{config.timeline_path}/{name}") for name in (*names, instant.file_name)]
    times = [each.modified_ms for each in kept if each is not None]
    return len(times) == 2 and times[0] < times[1]


def _goes(instant: Instant) -> bool:
    return instant.action in TAKEN_BACK and not (instant.action == "indexing" and instant.is_completed)


def _removals(storage: Storage, config: TableConfig, restore_time: str, plan: RestorePlan) -> list[Removal]:
    """Plan the removal of what is still there, newest first."""
    planned = _plans(storage, config, Timeline.load(storage, config), plan)
    return [Removal(storage, config, restore_time, each) for each in planned]


def _plans(
    storage: Storage, config: TableConfig, timeline: Timeline, plan: RestorePlan
) -> list[RollbackPlan]:
    present = {instant.requested_time: instant for instant in timeline.instants if _goes(instant)}
    return [
        _without_doomed_slices(plan_removal(storage, config, timeline, present[time_], action), plan)
        for time_, action in plan.instants
        if time_ in present
    ]


def _without_doomed_slices(removal: RollbackPlan, plan: RestorePlan) -> RollbackPlan:
    """Leave out log blocks in slices that go as a whole, since a command block would outlive its slice."""
    gone = {time_ for time_, _ in plan.instants}
    kept = [
        request for request in removal.requests if not (request.log_files and request.base_instant in gone)
    ]
    return replace(removal, requests=tuple(kept))


def _metadata(restore_time: str, plan: RestorePlan, removals: Sequence[Removal], took_ms: int) -> bytes:
    done = {removal.plan.instant: removal for removal in removals}
    return encode_avro_file(
        RESTORE_METADATA,
        {
            "startRestoreTime": restore_time,
            "timeTakenInMillis": took_ms,
            "instantsToRollback": [time_ for time_, _ in plan.instants],
            "hoodieRestoreMetadata": {time_: [done[time_].metadata(0)] for time_ in done},
            "version": 1,
            "restoreInstantInfo": [
                {"commitTime": time_, "action": action} for time_, action in plan.instants
            ],
        },
    )


def check_not_rolled_back(
    storage: Storage, config: TableConfig, current: Timeline, opened: OpenInstant
) -> None:
    """Refuse to complete an instant that a pending rollback or restore is about to take back."""
    undoing = pending_rollback_of(storage, config, current, opened.time)
    if undoing is not None:
        raise WriteConflictError(
            f"{opened.action} {opened.time} of {storage.base!r} is no longer in flight: it is rolled back by "
            f"{undoing.action} {undoing.requested_time}, which was begun meanwhile. Nothing of it is visible"
        )


def pending_rollback_of(
    storage: Storage, config: TableConfig, timeline: Timeline, time: str
) -> Instant | None:
    """Return the pending rollback or restore that takes an instant back, None when nobody has begun that."""
    return next((each for each in timeline.pending if _takes_back(storage, config, each, time)), None)


def _takes_back(storage: Storage, config: TableConfig, pending: Instant, time: str) -> bool:
    if pending.action == "restore":
        restore = stored_plan(storage, config, pending, RestorePlan.from_bytes)
        if restore is None:
            return False
        return time > restore.target or any(time == planned for planned, _ in restore.instants)
    if pending.action == "rollback":
        rollback = stored_plan(storage, config, pending, RollbackPlan.from_bytes)
        return rollback is not None and time == rollback.instant
    return False
