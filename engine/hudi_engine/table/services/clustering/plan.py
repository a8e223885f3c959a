"""Clustering plans, in ``T.replacecommit.requested`` (Hudi table format, clustering)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_engine.errors import CorruptTableError, UnsupportedTableError
from hudi_engine.format.config.declared.clustering_options import ClusteringOptions
from hudi_engine.format.config.enums import WriteOperation
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.paths import relative_path
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.avro_file import encode_avro_file
from hudi_engine.format.timeline.instant import Instant
from hudi_engine.format.timeline.schemas import REQUESTED_REPLACE_METADATA
from hudi_engine.table.services.clustering.write_group import GroupTask
from hudi_engine.table.services.result import PendingClustering
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.conflict import is_clustering

logger = logging.getLogger(__name__)

_VERSION = 1


@dataclass(frozen=True)
class PlannedSlice:
    """A file slice that goes into a clustering."""

    partition: str
    file_id: str
    names: frozenset[str]  # its base file and logs; compared with the table's, never opened

    @classmethod
    def of(cls, file_slice: FileSlice) -> PlannedSlice:
        """Return a slice as plans record it."""
        return cls(file_slice.partition, file_slice.file_id, _names(file_slice))


@dataclass(frozen=True)
class ClusteringGroup:
    """File groups of one partition that are rewritten together."""

    slices: tuple[PlannedSlice, ...]
    outputs: int = 1
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ClusteringPlan:
    """What one clustering does."""

    groups: tuple[ClusteringGroup, ...]
    strategy_class: str
    params: Mapping[str, str] = field(default_factory=dict)  # sort columns, and what else the run must know
    preserves_metadata: bool = True

    @property
    def partitions(self) -> frozenset[str]:
        """Partitions of its file groups."""
        return frozenset(each.partition for each in self.slices)

    @property
    def slices(self) -> tuple[PlannedSlice, ...]:
        """The slices of all groups."""
        return tuple(each for group in self.groups for each in group.slices)

    def to_bytes(self, storage: Storage, live: Mapping[tuple[str, str], FileSlice]) -> bytes:
        """Encode as Hudi's ``HoodieRequestedReplaceMetadata``."""
        record = {
            "operationType": WriteOperation.CLUSTER.value,
            "clusteringPlan": {
                "inputGroups": [
                    {
                        "slices": [
                            _slice_record(storage, live[each.partition, each.file_id])
                            for each in group.slices
                        ],
                        "metrics": dict(group.metrics),
                        "numOutputFileGroups": group.outputs,
                        "extraMetadata": None,
                        "version": _VERSION,
                    }
                    for group in self.groups
                ],
                "strategy": {
                    "strategyClassName": self.strategy_class,
                    "strategyParams": dict(self.params),
                    "version": _VERSION,
                },
                "extraMetadata": {},
                "version": _VERSION,
                "preserveHoodieMetadata": self.preserves_metadata,
            },
            "extraMetadata": {},
            "version": _VERSION,
        }
        return encode_avro_file(REQUESTED_REPLACE_METADATA, record)

    @classmethod
    def from_record(cls, record: Mapping[str, Any], source: str) -> ClusteringPlan:
        """Take over a decoded plan."""
        plan = record.get("clusteringPlan")
        if not plan:
            raise CorruptTableError(
                f"{source} holds no clustering plan; delete the instant if it is not Hudi's"
            )
        strategy = plan.get("strategy") or {}
        preserves = plan.get("preserveHoodieMetadata")
        return cls(
            tuple(_group(raw) for raw in plan.get("inputGroups") or ()),
            str(strategy.get("strategyClassName") or ""),
            {str(key): str(value) for key, value in (strategy.get("strategyParams") or {}).items()},
            # As Hudi reads a plan of a release that did not know the field.
            bool(preserves),
        )


def _group(raw: Mapping[str, Any]) -> ClusteringGroup:
    return ClusteringGroup(
        tuple(_planned(each) for each in raw.get("slices") or ()),
        max(1, int(raw.get("numOutputFileGroups") or 1)),
        {str(key): float(value) for key, value in (raw.get("metrics") or {}).items()},
    )


def _planned(raw: Mapping[str, Any]) -> PlannedSlice:
    paths = [raw.get("dataFilePath"), *(raw.get("deltaFilePaths") or ())]
    return PlannedSlice(
        relative_path(str(raw.get("partitionPath") or "")),
        str(raw.get("fileId") or ""),
        frozenset(str(path).rpartition("/")[2] for path in paths if path),
    )


def _slice_record(storage: Storage, file_slice: FileSlice) -> dict[str, Any]:
    base = file_slice.base_file
    return {
        "dataFilePath": "" if base is None else storage.uri(base.path),
        "deltaFilePaths": [storage.uri(log.path) for log in file_slice.log_files],
        "fileId": file_slice.file_id,
        "partitionPath": file_slice.partition,
        "bootstrapFilePath": "",
        "version": _VERSION,
    }


def _names(file_slice: FileSlice) -> frozenset[str]:
    base = [file_slice.base_file.name] if file_slice.base_file is not None else []
    return frozenset([*base, *(log.name for log in file_slice.log_files)])


_KNOWN = ("SparkSortAndSizeExecutionStrategy", "JavaSortAndSizeExecutionStrategy")


def is_known_strategy(given: str) -> bool:
    """Return whether a strategy is the sorting one, by its class name."""
    return given.rpartition(".")[2] in _KNOWN


def check_strategy(given: str) -> None:
    """Refuse a strategy that is not the sorting one."""
    if not is_known_strategy(given):
        raise UnsupportedTableError(
            f"{ClusteringOptions.EXECUTION_STRATEGY} is {given!r}; this engine carries out {' and '.join(_KNOWN)}. Plan with "
            "one of them, or let Apache Hudi run this plan"
        )


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
    """Return the pending clusterings whose strategy this engine knows, oldest first; others wait for their own writer."""
    found = []
    for instant in pending_clusterings(state.timeline):
        try:
            strategy = read_clustering_plan(state, instant).strategy_class
        except CorruptTableError:
            found.append(instant)  # its run raises what is damaged
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
    """Return what there is to do, with the slices as the table has them, or the first one that is not as planned."""
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
