"""What has to be read for the changes of a window: which slices are compared, and how; no Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from hudi_engine.errors import HistoryGapError
from hudi_engine.format.config.enums import CdcLogging
from hudi_engine.format.config.options import Options
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.missing import check_slice_whole
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.timeline.active import FileGroupKey
from hudi_engine.format.timeline.moments import Moment, digits_of
from hudi_engine.table.changes.gaps import CleanedFiles, check_known, check_start, check_timeline, check_types
from hudi_engine.table.changes.group import Comparison, compare_group, meet
from hudi_engine.table.changes.touched import (
    StatesOfGroups,
    Step,
    merged_steps,
    net_step,
    single_steps,
    without_overwrites,
)
from hudi_engine.table.changes.window import (
    ALL,
    COMMITTED,
    NET,
    STEP,
    Point,
    change_columns,
    task_schema,
    window_of,
)
from hudi_engine.table.state import TableState


@dataclass(frozen=True)
class ChangePlan:
    """The comparisons for the changes of a window; picklable.

    Args:
        read: How slices are read, in the columns of the result.
        points: State before, state after and the writes of each step.
        mode: ``net`` or ``all``.
    """

    read: ReadContext
    points: tuple[tuple[Point, Point, frozenset[str]], ...]
    units: tuple[Comparison, ...]
    mode: str

    def compare(self, unit: Comparison) -> pa.Table:
        """Return the changes of one file group; raises as compare_group does."""
        return compare_group(self.reads_of(unit), unit, self.points[unit.step][2], self.mode)

    def change_rows(self, unit: Comparison) -> pa.Table:
        """Return the changes of one file group in the columns of changes; as `compare`."""
        return self.compare(unit).select(change_columns(self.read.schema))

    def reads_of(self, unit: Comparison) -> tuple[ReadContext, ReadContext]:
        """Return how the slices of before and after a step are read."""
        before, after, _ = self.points[unit.step]
        return context_at(self.read, before), context_at(self.read, after)

    def rows(self) -> pa.Table:
        """Return all changes at once, by commit; for small windows, read in this process."""
        found: dict[bool, list[pa.Table]] = {True: [], False: []}
        for unit in self.units:
            found[unit.meets_others].append(self.compare(unit))
        parts = [task_schema(self.read.schema).empty_table(), *found[False]]
        if found[True]:
            parts.append(meet(pa.concat_tables(found[True]), self.mode))
        changes = pa.concat_tables(parts).sort_by([(STEP, "ascending"), (COMMITTED, "ascending")])
        return changes.select(change_columns(self.read.schema))


def context_of_end(state: TableState, options: Options, last: Point) -> ReadContext | None:
    """Return how slices are read in the columns that a table has at the end of a window, None while it has none."""
    data_schema = state.data_schema(last.newest)
    if data_schema is None:
        return None
    read = state.read_context(data_schema, options)
    if read.schema_history is None or last.newest is None:
        return read
    # By the ids of today a column that was renamed since would not be found under its name of then.
    return replace(read, schema_history=read.schema_history.up_to(last.newest))


def context_at(read: ReadContext, point: Point) -> ReadContext:
    """Return a read of the rows of one state, whose blocks may lie behind those of later instants, as incremental reads do."""
    return replace(read, is_committed=point.visible)


def steps_since(
    state: TableState,
    start: Moment,
    end: Moment | None,
    *,
    mode: str = NET,
    known: bool = False,
    skip_insert_overwrite: bool = False,
) -> tuple[list[Step], CleanedFiles]:
    """Return the steps of a window, none when nothing was written, and what proves that their files exist.

    Args:
        end: Included; None for now.
        mode: ``all`` gives a step for each commit; otherwise the window is one.
        known: The start is an instant that the table must have had.
        skip_insert_overwrite: Overwrites are no part of a step, so that the window is a step between each two of them.

    Raises:
        HistoryGapError: Commits of the window are not on the timeline, or its start was undone.
        TimelineError: An invalid point in time, or an end before the start.
    """
    digits = digits_of(start, state.config)
    if known:
        check_known(state, digits)
    else:
        check_start(state, start)
    window = window_of(state, start, end)
    check_timeline(state, window, digits)
    cleaned = CleanedFiles(state, window, digits)
    windows = without_overwrites(state, window) if skip_insert_overwrite else [window]
    if mode == ALL:
        return [step for each in windows for step in single_steps(state, each)], cleaned
    return merged_steps([net_step(state, each) for each in windows if each.writes]), cleaned


def newest_slices(state: TableState, step: Step, cleaned: CleanedFiles) -> list[FileSlice]:
    """Return the slices that have the rows which a step wrote, without a look at earlier ones.

    Raises:
        HistoryGapError: Files of the end of the step were deleted.
        CorruptTableError: A file that a write of the step made is lost.
    """
    states = StatesOfGroups(state, {partition for partition, _ in step.groups})
    cleaned.look_again()
    found = (
        _checked_after(state, states, step, key, cleaned)
        for key in sorted(step.groups)
        if not states.is_replaced(key, step.after)
    )
    return [each for each in found if each is not None]


def plan_changes(
    state: TableState, read: ReadContext, steps: Sequence[Step], cleaned: CleanedFiles, mode: str
) -> ChangePlan:
    """Return the comparisons of some steps.

    Raises:
        HistoryGapError: Files of before or after a step were deleted, or have columns of unreadable types.
        CorruptTableError: A file that a write of a step made is lost.
    """
    points, units = _points(steps), tuple(_comparisons(state, steps, cleaned))
    check_types(state, read, points, units, cleaned.start)
    return ChangePlan(read, points, units, mode)


def _points(steps: Sequence[Step]) -> tuple[tuple[Point, Point, frozenset[str]], ...]:
    return tuple((step.before, step.after, step.writes) for step in steps)


def _check_base_is_there(state: TableState, key: FileGroupKey, found: FileSlice | None) -> None:
    """Refuse a slice that has only logs although its first write made a base file; raises CorruptTableError."""
    if found is None or found.base_file is not None:
        return
    begun = (each for each in state.timeline.completed_writes if each.requested_time == found.base_instant)
    for instant in begun:
        made = [
            (stat.path, instant.requested_time)
            for partition, stat in state.timeline.commit_metadata(instant).write_stats()
            if (partition, stat.file_id) == key and stat.path and stat.has_content
        ]
        check_slice_whole(state.storage, state.config, state.timeline, found, made)


def _checked_before(
    state: TableState,
    cleaned: CleanedFiles,
    step: Step,
    key: FileGroupKey,
    found: FileSlice | None,
    *,
    has_before: bool,
) -> FileSlice | None:
    """Return the slice of before a step; none in place of an older one where change data has the rows."""
    try:
        cleaned.check_before(step, key, found)
    except HistoryGapError:
        if not has_before:
            raise
        return None
    if not has_before:
        _check_base_is_there(state, key, found)
    return found


def _checked_after(
    state: TableState, states: StatesOfGroups, step: Step, key: FileGroupKey, cleaned: CleanedFiles
) -> FileSlice | None:
    """Return the slice of after a step, which no replace commit took out; raises as `newest_slices` does."""
    found = states.slice_at(key, step.after)
    cleaned.check_after(step, key, found)
    check_slice_whole(state.storage, state.config, state.timeline, found, step.files.get(key, ()))
    return found


def _comparisons(state: TableState, steps: Sequence[Step], cleaned: CleanedFiles) -> Iterator[Comparison]:
    """Pair the slices before and after each step; what has been cleaned meanwhile is refused, not left out."""
    states = StatesOfGroups(state, {partition for step in steps for partition, _ in step.groups})
    cleaned.look_again()
    for number, step in enumerate(steps):
        for key, commit in sorted(step.groups.items()):
            before = after = None
            files = step.change_data.get(key, ())
            if not states.is_replaced(key, step.before):
                # of key and operation alone the rows before are those of the slice
                has_before = bool(files) and state.config.cdc_logging is not CdcLogging.OP_KEY_ONLY
                found = states.slice_at(key, step.before)
                before = _checked_before(state, cleaned, step, key, found, has_before=has_before)
            if not states.is_replaced(key, step.after):
                after = _checked_after(state, states, step, key, cleaned)
            if before is not None or after is not None:
                yield Comparison(number, key[0], before, after, commit, key[0] in step.moving, files)
