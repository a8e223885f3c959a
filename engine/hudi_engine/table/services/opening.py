"""What every service does first: read the table again, under its lock, and clean up after dead writers."""

from __future__ import annotations

from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.instant import WRITE_ACTIONS, State
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.conflict import is_clustering
from hudi_engine.table.txn.publication import Publication
from hudi_engine.table.txn.recovery import recover


def open_locked(storage: Storage, options: Options, publication: Publication) -> TableState:
    """Return the table as it is after writes of dead writers were rolled back. The caller holds the lock."""
    config = TableConfig.load(storage)
    config.check_writable()
    return TableState(storage, config, recover(storage, config, options, publication).timeline)


def partitions_in_use(timeline: Timeline) -> frozenset[str] | None:
    """Return the partitions that writers in flight work on; None when it may be any of them.

    Such a writer has read the timeline before and will not notice what is planned now, so its partitions are
    left alone.
    """
    found: set[str] = set()
    for instant in timeline.pending:
        if instant.action not in WRITE_ACTIONS:
            continue
        if is_clustering(timeline, instant):
            continue
        workload = timeline.planned_metadata(instant) if instant.state is State.INFLIGHT else None
        if workload is None or not workload.partition_to_write_stats:
            return None
        found.update(workload.partition_to_write_stats)
    return frozenset(found)
