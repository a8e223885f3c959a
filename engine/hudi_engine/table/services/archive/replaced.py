"""Whether the file groups that a replacecommit took out are gone from the storage.

A reader knows only from the active timeline that a file group was replaced. So a replacecommit stays on it
until no file of such a group is left, or their rows would be there again.
"""

from __future__ import annotations

from hudi_engine.format.filegroup.base_file import parse_base_file
from hudi_engine.format.filegroup.listing import list_partition_files
from hudi_engine.format.filegroup.log_file import parse_log_file
from hudi_engine.format.timeline.instant import Instant
from hudi_engine.table.services.clean.scope import LastClean
from hudi_engine.table.state import TableState


class ReplacedGroups:
    """Looks for files of replaced file groups; every partition is listed once at most."""

    def __init__(self, state: TableState) -> None:
        self._state = state
        self._file_ids: dict[str, frozenset[str]] = {}
        self._clean = LastClean.of(state)

    def may_show_again(self, write: Instant) -> bool:
        """Return whether a file of a group that the write replaced is still there.

        A clean that left nothing behind proves it for what was replaced before its oldest retained instant;
        otherwise the folders are looked at.
        """
        metadata = self._state.timeline.commit_metadata(write)
        replaced = metadata.partition_to_replace_file_ids or {}
        if not any(replaced.values()):
            return False
        clean = self._clean
        if clean is not None and clean.left_nothing and write.requested_time < clean.since:
            return False
        return any(
            not self._present(partition).isdisjoint(file_ids)
            for partition, file_ids in replaced.items()
            if file_ids
        )

    def _present(self, partition: str) -> frozenset[str]:
        if partition not in self._file_ids:
            found = set()
            for status in list_partition_files(self._state.storage, partition):
                file = parse_base_file(status.name, partition) or parse_log_file(status.name, partition)
                if file is not None:
                    found.add(file.file_id)
            self._file_ids[partition] = frozenset(found)
        return self._file_ids[partition]
