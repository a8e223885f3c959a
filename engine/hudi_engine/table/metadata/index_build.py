"""The build of an index as an instant of the table's timeline, and what becomes of one that was cut short.

Source: Hudi indexing action. The whole build runs under the table's lock, so an instant of this engine that is pending when another
process has the lock is that of a process that died. Builds of Apache Hudi, which go on beside its writers, are left alone.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.metadata.definitions import IndexDefinitions
from hudi_engine.format.metadata.table import METADATA_FOLDER
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.below import StorageBelow
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.avro_file import StoredPlan, encode_avro_file
from hudi_engine.format.timeline.instant import Instant, State, timeline_file_name
from hudi_engine.format.timeline.schemas import INDEX_COMMIT_METADATA, INDEX_PLAN
from hudi_engine.format.timeline.writer import TimelineWriter
from hudi_engine.table.metadata.commit import DELTACOMMIT

logger = logging.getLogger(__name__)

INDEXING = "indexing"
INFLIGHT_PROPERTY = "hoodie.table.metadata.partitions.inflight"
_BUILDER, _ENGINE = "builder", "hudi-engine"


@dataclass(frozen=True)
class IndexPlan(StoredPlan):
    """What is built.

    Args:
        partitions: Partitions of the metadata table.
        upto: Newest completed instant of the table then.
        is_own: Whether this engine builds.
    """

    partitions: tuple[str, ...]
    upto: str
    is_own: bool = True

    def to_bytes(self) -> bytes:
        """Encode as Hudi's ``HoodieIndexPlan``."""
        return encode_avro_file(INDEX_PLAN, {"version": 1, "indexPartitionInfos": self._infos()})

    def commit_bytes(self) -> bytes:
        """Encode what was done as Hudi's ``HoodieIndexCommitMetadata``."""
        return encode_avro_file(
            INDEX_COMMIT_METADATA, {"version": 1, "operationType": None, "indexPartitionInfos": self._infos()}
        )

    def _infos(self) -> list[dict[str, Any]]:
        return [
            {
                "version": 1,
                "metadataPartitionPath": each,
                "indexUptoInstant": self.upto,
                "extraMetadata": {_BUILDER: _ENGINE},
            }
            for each in self.partitions
        ]

    @classmethod
    def _from_record(cls, record: Mapping[str, Any], source: str) -> IndexPlan:
        infos = record.get("indexPartitionInfos")
        if not infos:
            raise CorruptTableError(f"{source} names no partition of the metadata table to build")
        builders = {(each.get("extraMetadata") or {}).get(_BUILDER) for each in infos}
        names = tuple(str(each["metadataPartitionPath"]) for each in infos)
        upto = max((str(each.get("indexUptoInstant") or "") for each in infos), default="")
        return cls(names, upto, builders == {_ENGINE})


def names_of_building(config: TableConfig) -> list[str]:
    """Return the partitions that are being built, of which readers know nothing yet."""
    names = config.properties.get(INFLIGHT_PROPERTY, "").split(",")
    return [each.strip() for each in names if each.strip()]


def _pending_builds(timeline: Timeline) -> list[tuple[Instant, IndexPlan | None]]:
    """Return the builds that have not completed, with their plans; None for one whose plan cannot be read."""
    found: list[tuple[Instant, IndexPlan | None]] = []
    for each in timeline.pending:
        if each.action == INDEXING:
            name = timeline_file_name(each.requested_time, INDEXING, State.REQUESTED)
            try:
                found.append((each, IndexPlan.from_bytes(timeline.read_file(name), name)))
            except (FileNotFoundError, CorruptTableError):
                found.append((each, None))
    return found


def end_dead_builds(storage: Storage, timeline: Timeline) -> Timeline:
    """Complete the builds of dead processes whose indexes the properties name, take the others back; return the timeline then."""
    # Only a request may be torn, and then nothing was done under it.
    own = [
        (each, plan)
        for each, plan in _pending_builds(timeline)
        if (plan.is_own if plan is not None else each.state is State.REQUESTED)
    ]
    for each, plan in own:
        config = TableConfig.load(storage)
        writer = TimelineWriter(storage, config)
        names = () if plan is None else plan.partitions
        if plan is not None and set(names) <= set(config.metadata_partitions):
            logger.info("completing %s %s of %s", INDEXING, each.requested_time, storage.base)
            if each.state is State.REQUESTED:
                writer.to_inflight(each.requested_time, INDEXING)
            writer.complete(each.requested_time, INDEXING, plan.commit_bytes())
            continue
        logger.warning("%s: taking back the build of %s", storage.base, ", ".join(names) or "an index")
        _take_back(storage, config, each.requested_time, names)
        writer.delete(each.requested_time, INDEXING, State.INFLIGHT, State.REQUESTED)
    return Timeline.load(storage, TableConfig.load(storage)) if own else timeline


def _take_back(storage: Storage, config: TableConfig, instant: str, names: Sequence[str]) -> None:
    """Remove the partitions of a build that no reader knows; each step can be repeated."""
    left = [each for each in names if each not in config.metadata_partitions]
    building = names_of_building(config)
    others = ",".join(each for each in building if each not in left)
    if not set(building).isdisjoint(left):
        changed = ({INFLIGHT_PROPERTY: others}, ()) if others else ({}, (INFLIGHT_PROPERTY,))
        config.with_properties(*changed).save(storage)
    if left and not config.metadata_partitions:
        storage.delete_tree(METADATA_FOLDER)
    definitions = IndexDefinitions.load(storage, config)
    if not definitions.entries.keys().isdisjoint(left):
        definitions.without(left).save(storage)
    below = StorageBelow(storage, METADATA_FOLDER)
    if below.exists(".hoodie/hoodie.properties"):
        own = TimelineWriter(below, TableConfig.load(below))
        own.delete_completed(instant, DELTACOMMIT)
        own.delete(instant, DELTACOMMIT)
    for each in left:
        below.delete_tree(storage.checked(each))
