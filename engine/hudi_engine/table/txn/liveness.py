"""Whether somebody still works on a pending instant: by its owner file, or by its age where it has none.

Apache Hudi and Flink write no heartbeat file by default, so the youth of an instant's files is the only sign of
life there is. It counts as long as a heartbeat would.
"""

from __future__ import annotations

from functools import cached_property

from hudi_engine.format.config.declared.engine_options import WriterOptions
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.markers import marker_folder
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.instant import Instant, State
from hudi_engine.format.timeline.writer import TimelineWriter
from hudi_engine.table.txn.lock import LOCK_PATH
from hudi_engine.table.txn.owner import OwnerState, owner_state, storage_now_ms


class Liveness:
    """Judges the owners of pending instants by one clock, the storage's.

    Args:
        options: ``hoodie.client.heartbeat.interval_in_ms`` and ``.tolerable.misses``.
    """

    def __init__(self, storage: Storage, config: TableConfig, options: Options) -> None:
        self._storage = storage
        self._config = config
        self._interval_ms = options[WriterOptions.HEARTBEAT_INTERVAL]
        self._misses = options[WriterOptions.TOLERABLE_MISSES]

    @cached_property
    def now_ms(self) -> int:
        """The storage's time, epoch ms: that of the lock, if there is one, was just made by it."""
        lock = self._storage.stat(LOCK_PATH)
        return lock.modified_ms if lock is not None else storage_now_ms(self._storage)

    def of_time(self, instant: str) -> OwnerState:
        """Judge the owner file of an instant by its time."""
        return owner_state(
            self._storage,
            instant,
            interval_ms=self._interval_ms,
            tolerable_misses=self._misses,
            now_ms=self.now_ms,
        )

    def of(self, instant: Instant) -> OwnerState:
        """Judge a pending instant; ``UNNAMED`` when it has no owner file and is young."""
        state = self.of_time(instant.requested_time)
        if state is OwnerState.UNKNOWN and self._age_ms(instant) <= self._interval_ms * self._misses:
            return OwnerState.UNNAMED
        return state

    def is_at_work(self, instant: Instant) -> bool:
        """Return whether the owner of a pending instant lives, or may live."""
        return self.of(instant) in (OwnerState.ALIVE, OwnerState.UNNAMED)

    def is_unnamed(self, instant: Instant) -> bool:
        """Return whether a pending instant may have a writer that no owner file tells of."""
        return self.of(instant) is OwnerState.UNNAMED

    def _age_ms(self, instant: Instant) -> int:
        """Return how long ago the newest timeline file or marker of an instant was made."""
        paths = [
            TimelineWriter(self._storage, self._config).path(instant.requested_time, instant.action, state)
            for state in (State.REQUESTED, State.INFLIGHT)
        ]
        found = [self._storage.stat(path) for path in paths]
        found += self._storage.list(marker_folder(instant.requested_time), recursive=True)
        made = [each.modified_ms for each in found if each is not None and not each.is_dir]
        return self.now_ms - max(made, default=0)
