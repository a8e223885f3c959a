"""Which file groups a part of a timeline touched, from the commits' own metadata: nothing of the table is listed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.config.enums import MergeMode, WriteOperation
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
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.format.timeline.instant import Instant
from hudi_engine.table.changes.window import Point, Window, point_at
from hudi_engine.table.changes.written import ChangeFile
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


OVERWRITES = frozenset({WriteOperation.INSERT_OVERWRITE, WriteOperation.INSERT_OVERWRITE_TABLE})


@dataclass
class Step:
    """From one state of a table to a later one.

    Args:
        writes: Requested times of the writes in between that may have changed rows.
        groups: File groups that they, or a clustering of what they touched, wrote or took out, with the newest such write.
        previous: Instant of the slice a group had before, as the writer saw it.
        moving: Partitions in which a row may be deleted in one file group, or step, and inserted in another.
        files: Paths of data files that the writes made in a group, each with the write's requested time.
        change_data: Change data files of a group, in a step of one write.
        clusterings: Those that rewrote rows of the groups.
    """

    before: Point
    after: Point
    writes: frozenset[str] = frozenset()
    groups: dict[FileGroupKey, str] = field(default_factory=dict)
    previous: dict[FileGroupKey, str] = field(default_factory=dict)
    moving: set[str] = field(default_factory=set)
    files: dict[FileGroupKey, list[tuple[str, str]]] = field(default_factory=dict)
    change_data: dict[FileGroupKey, tuple[ChangeFile, ...]] = field(default_factory=dict)
    clusterings: list[Instant] = field(default_factory=list)


def newest_step(state: TableState, steps: Sequence[Step]) -> Step | None:
    """Return the step whose rows say what wrote them; of several, a later one may have changed or deleted a row."""
    return steps[0] if len(steps) == 1 and _keeps_commit_times(state, steps[0]) else None


def _keeps_commit_times(state: TableState, step: Step) -> bool:
    """Return whether rows say which write of the step made them: a clustering may have given them its own instant."""
    if not state.config.populate_meta_fields:
        return False
    for instant in step.clusterings:
        try:
            plan = (state.timeline.plan(instant) or {}).get("clusteringPlan") or {}
        except CorruptTableError:
            return False
        if not plan.get("preserveHoodieMetadata"):
            return False
    return True


def without_overwrites(state: TableState, window: Window) -> list[Window]:
    """Return the parts of a window between the overwrites of partitions or the table, these left out."""
    parts, start, writes = [], window.start, list[Instant]()
    for instant in window.writes:
        if state.timeline.commit_metadata(instant).operation_type.upper() in OVERWRITES:
            parts.append(Window(start, writes[-1].order if writes else start, tuple(writes)))
            start, writes = instant.order, []
        else:
            writes.append(instant)
    return [*parts, Window(start, window.end, tuple(writes))]


def net_step(state: TableState, window: Window) -> Step:
    """Return the whole window as one step."""
    timeline = state.timeline
    before, after = point_at(timeline, window.start), point_at(timeline, window.end)
    return _step(state, before, after, window.writes)


def merged_steps(steps: list[Step]) -> list[Step]:
    """Return net steps whose rows meet where several of them touched a partition, so that a key has one change."""
    touched = Counter(
        partition for step in steps for partition in {partition for partition, _ in step.groups}
    )
    for step in steps:
        step.moving.update(partition for partition, count in touched.items() if count > 1)
    return steps


def single_steps(state: TableState, window: Window) -> list[Step]:
    """Return one step for each write of the window that may have changed rows."""
    steps = []
    for number, instant in enumerate(window.writes):
        if not state.timeline.commit_metadata(instant).is_of_service:
            reached = window.writes[number - 1] if number else None
            before = point_at(state.timeline, reached.order if reached is not None else window.start)
            steps.append(_step(state, before, point_at(state.timeline, instant.order), [instant]))
    return steps


def _step(state: TableState, before: Point, after: Point, writes: Iterable[Instant]) -> Step:
    """Gather what the commits between two points touched; change data counts only for a step of one commit."""
    step = Step(before, after)
    moved: dict[Instant, dict[str, set[FileGroupKey]]] = {}
    changed = []
    for instant in writes:
        metadata = state.timeline.commit_metadata(instant)
        if not metadata.is_of_service:
            changed.append(instant.requested_time)
            _take(step, metadata, instant.requested_time)
            if state.config.record_key_fields:
                step.change_data = _change_data(metadata)
        elif metadata.partition_to_replace_file_ids:
            moved[instant] = _groups_of(metadata)
    _follow(step, list(moved.values()))
    step.clusterings = [
        instant for instant, of in moved.items() if any(step.groups.keys() & groups for groups in of.values())
    ]
    if len(changed) > 1 or moved:
        step.change_data = {}
    step.writes = frozenset(changed)
    if state.config.merge_mode is MergeMode.CUSTOM:
        step.moving.update(partition for partition, _ in step.groups)
    return step


def _take(step: Step, metadata: CommitMetadata, instant: str) -> None:
    """Note what a write did: the groups it wrote or took out, the files it made, and where rows may have moved."""
    for partition, stat in metadata.write_stats():
        key = (partition, str(stat.file_id))
        step.groups[key] = instant
        if stat.has_content:
            step.files.setdefault(key, []).append((str(stat.path), instant))
        if stat.prev_commit and stat.prev_commit.isdigit():
            step.previous.setdefault(key, stat.prev_commit)
        # a count that another writer left out may be any
        if stat.num_deletes != 0:
            step.moving.add(partition)
    step.groups.update(dict.fromkeys(metadata.replaced, instant))
    step.moving.update(metadata.partition_to_replace_file_ids or ())


def _change_data(metadata: CommitMetadata) -> dict[FileGroupKey, tuple[ChangeFile, ...]]:
    return {
        (partition, str(stat.file_id)): tuple(sorted(stat.cdc_stats.items()))
        for partition, stat in metadata.write_stats()
        if stat.cdc_stats
    }


def _groups_of(metadata: CommitMetadata) -> dict[str, set[FileGroupKey]]:
    """Return what a clustering read and wrote, by partition: rows stay in their partition."""
    found: dict[str, set[FileGroupKey]] = {}
    for partition, stat in metadata.write_stats():
        found.setdefault(partition, set()).add((partition, str(stat.file_id)))
    for group in metadata.replaced:
        found.setdefault(group[0], set()).add(group)
    return found


def _follow(step: Step, moved: list[dict[str, set[FileGroupKey]]]) -> None:
    """Add the file groups that clusterings linked with touched ones; a clustering of other rows changed nothing."""
    waiting = [(partition, groups) for each in moved for partition, groups in each.items()]
    grown = True
    while grown:
        grown = False
        for partition, groups in waiting:
            known = groups & step.groups.keys()
            if not known:
                continue
            step.moving.add(partition)
            newest = max(step.groups[key] for key in known)
            for key in groups - known:
                step.groups[key] = newest
                grown = True
