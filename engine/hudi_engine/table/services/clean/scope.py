"""Where a clean has to look: only where something became obsolete since the last one, when that is known."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_engine.format.config.declared.service_options import CleanOptions
from hudi_engine.format.config.options import Options
from hudi_engine.table.services.clean.plan import SAVEPOINTED, RetainedInstant
from hudi_engine.table.state import TableState

COMPLETE = "hoodie.engine.clean.complete"
"""Extra metadata: ``true`` when a clean left nothing behind that its policy gave up, save what savepoints
hold."""


@dataclass(frozen=True)
class LastClean:
    """What the newest completed clean says about itself.

    Args:
        since: Oldest instant that it retained, ``""`` when its policy goes by file versions.
        complete: Whether it left nothing behind that its policy gave up, save what savepoints held.
    """

    since: str
    complete: bool
    savepoints: frozenset[str]

    @property
    def left_nothing(self) -> bool:
        """Whether no file that was obsolete before ``since`` can be left."""
        return self.complete and not self.savepoints

    @classmethod
    def of(cls, state: TableState) -> LastClean | None:
        """Read it; None when the timeline has no clean, or an empty file that says nothing."""
        cleans = [instant for instant in state.timeline.completed if instant.action == "clean"]
        if not cleans:
            return None
        record = state.timeline.record(cleans[-1])
        if not record:
            return None
        extra = record.get("extraMetadata") or {}
        partitions = (record.get("partitionMetadata") or {}).values()
        failed = any(each.get("failedDeleteFiles") for each in partitions)
        return cls(
            str(record.get("earliestCommitToRetain") or ""),
            extra.get(COMPLETE) == "true" and not failed,
            frozenset(str(extra.get(SAVEPOINTED) or "").split(",")) - {""},
        )


def partitions_to_clean(
    state: TableState, options: Options, retained: RetainedInstant | None
) -> frozenset[str] | None:
    """Return the partitions in which files can have become obsolete since the last clean; None for all.

    A file becomes obsolete when the oldest retained instant moves past a write that replaced it. So those are
    the partitions of the writes between the instant that the last clean retained and the one to retain now.
    All partitions are looked at when the last clean left something behind, a savepoint that held files back
    has gone, or writes in between are archived.

    Args:
        options: ``hoodie.clean.incremental.enabled``.
        retained: Oldest instant to retain, None when the policy goes by file versions.
    """
    if retained is None or not options[CleanOptions.INCREMENTAL]:
        return None
    last = LastClean.of(state)
    writes = state.timeline.completed_writes
    if (
        last is None
        or not last.complete
        or not last.savepoints <= {instant.requested_time for instant in state.timeline.savepoints}
        or not last.since
        or last.since < (state.timeline.first_write_time or "")
    ):
        return None
    found: set[str] = set()
    for write in writes:
        if last.since <= write.requested_time < retained.time:
            metadata = state.timeline.commit_metadata(write)
            found.update(metadata.partition_to_write_stats)
            found.update(metadata.partition_to_replace_file_ids or ())
    return frozenset(found)
