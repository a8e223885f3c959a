"""What every service does first: read the table anew, under its lock, and clean up after dead writers."""

from __future__ import annotations

from collections.abc import Callable

from hudi_engine.config.options import Options
from hudi_engine.config.table_config import TableConfig
from hudi_engine.errors import CorruptTableError
from hudi_engine.services.publication import Publication
from hudi_engine.storage.base import Storage
from hudi_engine.table_state import TableState
from hudi_engine.timeline.active import Timeline
from hudi_engine.timeline.avro_file import decode_avro_file
from hudi_engine.timeline.clock import InstantClock
from hudi_engine.timeline.instant import WRITE_ACTIONS, State
from hudi_engine.txn.owner import OwnerState, owner_state, storage_now_ms
from hudi_engine.txn.recovery import is_clustering, recover


def open_locked(
    storage: Storage,
    options: Options,
    *,
    clock: InstantClock | None = None,
    publication: Publication | None = None,
) -> TableState:
    """Return the table as it is after writes of dead writers were rolled back. The caller holds the lock.

    Args:
        storage: The table's storage.
        options: Options of the service.
        clock: Source of instants, for tests.
        publication: Published file lists, renewed before files of an instant that was visible are deleted.

    Raises:
        UnsupportedTableError: when this engine must not write to the table.
    """
    config = TableConfig.load(storage)
    config.check_writable()
    republish = None if publication is None else _renewal(publication)
    recovery = recover(storage, config, options, clock=clock, republish=republish)
    return TableState(storage, config, recovery.timeline)


def partitions_in_use(timeline: Timeline) -> frozenset[str] | None:
    """Return the partitions that writers in flight work on; None when it may be any of them.

    Such a writer has read the timeline before and will not notice what is planned now, so its partitions are
    left alone.
    """
    found: set[str] = set()
    for instant in timeline.pending:
        if instant.action not in WRITE_ACTIONS:
            continue
        if instant.action == "replacecommit" and is_clustering(timeline, instant):
            continue
        workload = timeline.planned_metadata(instant) if instant.state is State.INFLIGHT else None
        if workload is None or not workload.partition_to_write_stats:
            return None
        found.update(workload.partition_to_write_stats)
    return frozenset(found)


def was_cut_short(plan: bytes) -> bool:
    """Return whether the file of a plan cannot be decoded, as when its writer died in the middle of it.

    Nobody can have acted on such a plan: an action begins after its plan is whole.
    """
    try:
        decode_avro_file(plan)
    except CorruptTableError:
        return True
    return False


def state_of_owner(storage: Storage, instant: str, options: Options) -> OwnerState:
    """Return what is known about the process that carries out an instant."""
    return owner_state(
        storage,
        instant,
        interval_ms=options.int("hoodie.client.heartbeat.interval_in_ms"),
        tolerable_misses=options.int("hoodie.client.heartbeat.tolerable.misses"),
        now_ms=storage_now_ms(storage),
    )


def _renewal(publication: Publication) -> Callable[[], None]:
    def renew() -> None:
        publication.publish()

    return renew
