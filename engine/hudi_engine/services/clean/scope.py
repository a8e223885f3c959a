"""Where a clean has to look: only where something became obsolete since the last one, when that is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_engine.config.options import Options
from hudi_engine.services.clean.plan import SAVEPOINTED, RetainedInstant
from hudi_engine.table_state import TableState
from hudi_engine.timeline.avro_file import decode_avro_file

COMPLETE = "hoodie.engine.clean.complete"
"""Extra metadata: ``true`` when a clean left nothing behind that its policy gave up, save what savepoints
hold."""


def partitions_to_clean(
    state: TableState, options: Options, retained: RetainedInstant | None
) -> frozenset[str] | None:
    """Return the partitions in which files can have become obsolete since the last clean; None for all.

    A file becomes obsolete when the oldest retained instant moves past a write that replaced it. So those are
    the partitions of the writes between the instant that the last clean retained and the one to retain now.
    All partitions are looked at when the last clean left something behind, a savepoint that held files back
    has gone, or writes in between are archived.

    Args:
        state: The table.
        options: ``hoodie.clean.incremental.enabled``.
        retained: Oldest instant to retain, None when the policy goes by file versions.
    """
    if retained is None or not options.bool("hoodie.clean.incremental.enabled"):
        return None
    last = _last_clean(state)
    if last is None:
        return None
    since = str(last.get("earliestCommitToRetain") or "")
    extra = last.get("extraMetadata") or {}
    saved = set(str(extra.get(SAVEPOINTED) or "").split(",")) - {""}
    writes = state.timeline.completed_writes
    if (
        extra.get(COMPLETE) != "true"
        or any(each.get("failedDeleteFiles") for each in (last.get("partitionMetadata") or {}).values())
        or not saved <= {instant.requested_time for instant in state.timeline.savepoints}
        or not since
        or since < (state.timeline.first_write_time or "")
    ):
        return None
    found: set[str] = set()
    for write in writes:
        if since <= write.requested_time < retained.time:
            metadata = state.timeline.commit_metadata(write)
            found.update(metadata.partition_to_write_stats)
            found.update(metadata.partition_to_replace_file_ids or ())
    return frozenset(found)


def _last_clean(state: TableState) -> Mapping[str, Any] | None:
    cleans = [instant for instant in state.timeline.completed if instant.action == "clean"]
    if not cleans:
        return None
    name = cleans[-1].file_name
    return decode_avro_file(state.timeline.read_file(name), f"{state.config.timeline_path}/{name}")
