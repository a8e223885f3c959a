"""A clustering plan: what stands in ``T.replacecommit.requested`` (Hudi table format, clustering)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.config.enums import WriteOperation
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.paths import relative_path
from hudi_engine.format.timeline.avro_file import encode_avro_file
from hudi_engine.format.timeline.schemas import REQUESTED_REPLACE_METADATA

_VERSION = 1


@dataclass(frozen=True)
class PlannedSlice:
    """A file slice that goes into a clustering.

    Args:
        names: Names of its base file and logs. They are compared with the table's and never opened by.
    """

    partition: str
    file_id: str
    names: frozenset[str]

    @classmethod
    def of(cls, file_slice: FileSlice) -> PlannedSlice:
        """Return what a plan says of a slice."""
        return cls(file_slice.partition, file_slice.file_id, _names(file_slice))


@dataclass(frozen=True)
class ClusteringGroup:
    """File groups of one partition that are rewritten together."""

    slices: tuple[PlannedSlice, ...]
    outputs: int = 1
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ClusteringPlan:
    """What one clustering does.

    Args:
        strategy_class: Class name of how it is carried out.
        params: Sort columns, and what else the run must know.
        preserves_metadata: Whether rows keep commit time and sequence number.
    """

    groups: tuple[ClusteringGroup, ...]
    strategy_class: str
    params: Mapping[str, str] = field(default_factory=dict)
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
        """Encode as Hudi's ``HoodieRequestedReplaceMetadata``.

        Args:
            storage: The table's storage; the plan names files by their full path, as Hudi's.
            live: The table's slices by partition and file id.
        """
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
        """Take over a decoded plan.

        Raises:
            CorruptTableError: when it holds no clustering plan.
        """
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
