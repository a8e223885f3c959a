"""Planned clusterings: which there are, and whether their file groups are as they were planned."""

from __future__ import annotations

import logging

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.instant import Instant
from hudi_engine.table.services.clustering.plan import ClusteringPlan, PlannedSlice
from hudi_engine.table.services.clustering.strategy import is_known_strategy
from hudi_engine.table.services.clustering.write_group import GroupTask
from hudi_engine.table.services.result import PendingClustering
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.conflict import is_clustering

logger = logging.getLogger(__name__)

_ACTIONS = ("replacecommit", "clustering")


def show_clusterings(storage: Storage) -> list[PendingClustering]:
    """Return the clusterings of the active timeline, planned, running and completed, oldest first."""
    timeline = TableState.load(storage).timeline
    found = []
    for instant in timeline.instants:
        record = timeline.plan(instant) if instant.action in _ACTIONS else None
        if record is None or not record.get("clusteringPlan"):
            continue
        plan = ClusteringPlan.from_record(record, instant.file_name)
        found.append(
            PendingClustering(
                instant.requested_time,
                instant.state.value,
                len(plan.slices),
                len(plan.groups),
                tuple(sorted(plan.partitions)),
            )
        )
    return found


def pending_clusterings(timeline: Timeline) -> list[Instant]:
    """Return the clusterings that have not completed, oldest first."""
    return [each for each in timeline.pending if is_clustering(timeline, each)]


def runnable_clusterings(state: TableState) -> list[Instant]:
    """Return the pending clusterings whose strategy this engine knows, oldest first; others wait for whoever planned them."""
    found = []
    for instant in pending_clusterings(state.timeline):
        try:
            strategy = read_clustering_plan(state, instant).strategy_class
        except CorruptTableError:
            found.append(instant)  # its run tells what is damaged
            continue
        if is_known_strategy(strategy):
            found.append(instant)
        else:
            logger.info(
                "clustering %s is left to the writer that planned it by %r", instant.requested_time, strategy
            )
    return found


def read_clustering_plan(state: TableState, instant: Instant) -> ClusteringPlan:
    """Return the plan of a clustering that has not completed."""
    record = state.timeline.plan(instant)
    if record is None:
        raise CorruptTableError(
            f"the plan of clustering {instant.requested_time} of {state.storage.base!r} is missing; roll that instant back"
        )
    return ClusteringPlan.from_record(record, f"{state.storage.base}/{instant.file_name}")


def group_tasks(state: TableState, plan: ClusteringPlan) -> tuple[tuple[GroupTask, ...], PlannedSlice | None]:
    """Return what there is to do, with the slices as the table has them, or the first one that is not as planned.

    Args:
        plan: The plan; its paths are only compared with what the table holds.
    """
    live = {(each.partition, each.file_id): each for each in state.view(plan.partitions).latest_slices()}
    tasks = []
    for number, group in enumerate(plan.groups):
        slices: list[FileSlice] = []
        for planned in group.slices:
            found = live.get((planned.partition, planned.file_id))
            if found is None or PlannedSlice.of(found) != planned:
                return (), planned
            slices.append(found)
        tasks.append(GroupTask(number, tuple(slices), group.outputs))
    return tuple(tasks), None
