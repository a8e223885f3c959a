"""A write that is planned: it begins and takes its steps, and no instant of it is announced."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.table.txn.recovery import next_instant


@dataclass(frozen=True)
class PlannedTransaction:
    """What the steps of a write need of `hudi_engine.table.txn.transaction.WriteTransaction`, without lock and instant."""

    instant: str
    action: str
    config: TableConfig
    timeline: Timeline

    @classmethod
    def begin(cls, config: TableConfig, timeline: Timeline, action: str) -> PlannedTransaction:
        """Begin on a state; what dead writers have left stays, as no reader sees it."""
        return cls(next_instant(timeline), action, config, timeline)

    def inflight(self, profile: CommitMetadata) -> None:
        """Store nothing of the workload."""
