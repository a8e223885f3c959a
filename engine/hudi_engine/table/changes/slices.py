"""The slices of some file groups at several states of a table, from one listing."""

from __future__ import annotations

from collections.abc import Iterable

from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.view import (
    ChosenByCommit,
    FileGroup,
    PartitionFiles,
    SliceRules,
    WrittenLogs,
    file_groups,
    list_files_of,
    list_table_files,
)
from hudi_engine.format.timeline.active import FileGroupKey
from hudi_engine.table.changes.window import Point
from hudi_engine.table.state import TableState


def slices_of_whole(state: TableState, point: Point) -> list[FileSlice]:
    """Return the slices that are the table at a state, from one listing.

    Raises:
        CorruptTableError: A file of a commit that is in the state is lost.
        TimelineError: Files of the state may have been deleted while they were listed.
    """
    listed = None if point.newest is None else state.still_view(as_of=point.newest).listed
    return StatesOfGroups(state, listed=listed).live_slices(point)


class StatesOfGroups:
    """The file groups of some partitions, None for all, through time; listed once unless ``listed`` has their files."""

    def __init__(
        self,
        state: TableState,
        partitions: Iterable[str] | None = None,
        *,
        listed: PartitionFiles | None = None,
    ) -> None:
        """List the files, unless they are given."""
        self._state = state
        if listed is None:
            listed = (
                list_table_files(state.storage, state.config)
                if partitions is None
                else list_files_of(state.storage, partitions)
            )
        self._groups: dict[FileGroupKey, FileGroup] = {
            (partition, file_id): group
            for partition, statuses in listed.items()
            for file_id, group in file_groups(partition, statuses).items()
        }
        self._choose = ChosenByCommit(state.timeline)
        self._written: dict[Point, WrittenLogs] = {}
        self._replaced = [
            (instant.requested_time, frozenset(state.timeline.replaced_by(instant)))
            for instant in state.timeline.completed_writes
            if instant.action == "replacecommit"
        ]

    def slice_at(self, key: FileGroupKey, point: Point) -> FileSlice | None:
        """Return the newest slice a group had at a state, whether or not a replace commit took it out."""
        group = self._groups.get(key)
        slices = [] if group is None else self._rules(point).slices(group)
        if not slices:
            return None
        written = self._written.setdefault(
            point, WrittenLogs(self._state.config, self._state.timeline, point.visible)
        )
        return written.in_slices(slices[:1])[0]

    def is_replaced(self, key: FileGroupKey, point: Point) -> bool:
        """Return whether a replace commit of the state took the group out."""
        return any(key in keys for instant, keys in self._replaced if point.visible(instant))

    def live_slices(self, point: Point) -> list[FileSlice]:
        """Return the slices that are the table at a state."""
        found = (
            self.slice_at(key, point) for key in sorted(self._groups) if not self.is_replaced(key, point)
        )
        return [each for each in found if each is not None]

    def _rules(self, point: Point) -> SliceRules:
        return SliceRules(
            by_completion_time=self._state.config.layout_version >= 2,
            is_committed=point.visible,
            completion_time=self._state.timeline.completion_time,
            as_of=point.newest if self._state.config.layout_version == 1 else None,
            choose=self._choose,
        )
