"""Whether somebody has begun to take an instant back: by the plans of the rollbacks and restores that are not through."""

from __future__ import annotations

from hudi_engine.errors import WriteConflictError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.instant import Instant
from hudi_engine.table.txn.open_instant import OpenInstant, stored_plan
from hudi_engine.table.txn.restore_steps import RestorePlan
from hudi_engine.table.txn.rollback_plan import RollbackPlan


def check_not_undone(storage: Storage, config: TableConfig, current: Timeline, opened: OpenInstant) -> None:
    """Refuse to complete an instant that a pending rollback or restore is about to take back.

    Raises:
        WriteConflictError: naming what takes it back.
    """
    undoing = undone_by(storage, config, current, opened.time)
    if undoing is not None:
        raise WriteConflictError(
            f"{opened.action} {opened.time} of {storage.base!r} is no longer in flight: it is rolled back by "
            f"{undoing.action} {undoing.requested_time}, which was begun meanwhile. Nothing of it is visible"
        )


def undone_by(storage: Storage, config: TableConfig, timeline: Timeline, time: str) -> Instant | None:
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
