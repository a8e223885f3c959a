"""The changes of one file group in one step; runs in a Spark task, with Arrow alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.format.config.enums import MergeMode
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.merge.modes.fold import key_codes
from hudi_engine.format.merge.modes.registry import merge_rule
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.merge.record_keys import record_keys
from hudi_engine.format.merge.rows_at import rows_at
from hudi_engine.format.merge.slice_reader import read_slice
from hudi_engine.format.schema.meta_fields import COMMIT_TIME, PARTITION_PATH, RECORD_KEY
from hudi_engine.table.changes.window import AFTER, ALL, BEFORE, CHANGE_TYPE, COMMITTED, DELETE, INSERT, STEP
from hudi_engine.table.changes.written import (
    ChangeFile,
    Matched,
    compare_rows,
    rows_of_change_files,
    touched_rows,
    without_equal,
)

Positions = npt.NDArray[np.int64]
TASK_BYTES = 8 * 1024 * 1024
"""Below this much of files a task of its own costs more than it saves."""


@dataclass(frozen=True)
class Comparison:
    """A file group in a step.

    Args:
        before: Slice before the step; None when the group was not in the table.
        after: Slice after it; None when the group is not in the table any more.
        commit: Newest write of the step that touched the group.
        meets_others: Rows may have moved between this file group and others of its partition.
        change_data: Change data files; empty where the slices have to be compared.
    """

    step: int
    partition: str
    before: FileSlice | None
    after: FileSlice | None
    commit: str
    meets_others: bool
    change_data: tuple[ChangeFile, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of the slices before and after."""
        return sum(each.size for each in (self.before, self.after) if each is not None)


def compare_group(
    reads: tuple[ReadContext, ReadContext], unit: Comparison, writes: frozenset[str], mode: str
) -> pa.Table:
    """Return the changed rows of a file group in one step.

    Args:
        reads: How the slices of before and after are read.
        writes: Instants of the step that may have changed rows.
        mode: ``net`` or ``all``; in ``all`` updates come with the row before.

    Raises:
        CorruptTableError: A file of a slice is damaged.
        TimelineError: A file was deleted since it was listed.
    """
    before, after, matched = matched_rows(reads, unit)
    if unit.change_data:
        matched = without_equal(before, after, matched)
    return changed_rows(before, after, matched, mode, _Stamp(unit.step, unit.commit, writes))


def matched_rows(
    reads: tuple[ReadContext, ReadContext], unit: Comparison
) -> tuple[pa.Table, pa.Table, Matched]:
    """Return the rows of a file group before and after a step, and what became of which; change data has unchanged rows too."""
    slices = (unit.before, unit.after)
    if unit.change_data:
        return rows_of_change_files(reads, unit.change_data, slices, (unit.partition, unit.commit))
    trusts_writes = _trusts_writes(reads[1].config)
    touched = _touched(reads, unit, trusts_writes=trusts_writes)
    if touched is not None:
        return touched
    before, after = (
        _rows(read, file_slice, unit.partition) for read, file_slice in zip(reads, slices, strict=True)
    )
    keys = before.column(RECORD_KEY), after.column(RECORD_KEY)
    return before, after, compare_rows(before, after, keys, trusts_writes=trusts_writes)


def _touched(
    reads: tuple[ReadContext, ReadContext], unit: Comparison, *, trusts_writes: bool
) -> tuple[pa.Table, pa.Table, Matched] | None:
    """Return what `matched_rows` does, of the rows that the writes touched alone; None where the files do not tell them."""
    if unit.before is None or unit.after is None or not reads[1].config.populate_meta_fields:
        return None
    found = touched_rows(
        reads, unit.before, unit.after, trusts_writes=trusts_writes, with_keys=unit.meets_others
    )
    if found is None:
        return None
    before, after, matched = found
    places = [pa.repeat(pa.scalar(unit.partition), rows.num_rows) for rows in (before, after)]
    return _with(before, PARTITION_PATH, places[0]), _with(after, PARTITION_PATH, places[1]), matched


@dataclass(frozen=True)
class _Stamp:
    step: int
    commit: str
    writes: frozenset[str]


def changed_rows(before: pa.Table, after: pa.Table, matched: Matched, mode: str, stamp: _Stamp) -> pa.Table:
    """Return matched rows with what happened to them."""
    parts = [
        _stamped(rows_at(after, matched.new), INSERT, stamp),
        _stamped(rows_at(after, matched.now), AFTER, stamp),
        _stamped(rows_at(before, matched.removed), DELETE, stamp),
    ]
    if mode == ALL:
        old = _stamped(rows_at(before, matched.old), BEFORE, stamp)
        place = old.column_names.index(COMMITTED)
        parts.append(old.set_column(place, COMMITTED, parts[1].column(COMMITTED)))
    return pa.concat_tables(parts)


def _stamped(rows: pa.Table, kind: str, stamp: _Stamp) -> pa.Table:
    commits = pa.repeat(pa.scalar(stamp.commit, pa.string()), rows.num_rows)
    if kind in (INSERT, AFTER):
        written = rows.column(COMMIT_TIME)
        of_step = pc.is_in(written, value_set=pa.array(sorted(stamp.writes), pa.string()))
        commits = pc.if_else(of_step, written, commits)
    rows = rows.append_column(CHANGE_TYPE, pa.repeat(pa.scalar(kind), rows.num_rows))
    rows = rows.append_column(COMMITTED, commits)
    return rows.append_column(STEP, pa.repeat(pa.scalar(stamp.step, pa.int32()), rows.num_rows))


def meet(rows: pa.Table, mode: str) -> pa.Table:
    """Return the changes of several file groups as those of one: a row deleted here and inserted there has moved.

    Args:
        rows: Changes, in the schema of `task_schema`; all of a key are there.
        mode: ``net`` or ``all``; in ``net`` those of several steps become those of one too.
    """
    kinds = rows.column(CHANGE_TYPE)
    before, after = rows.filter(pc.equal(kinds, DELETE)), rows.filter(pc.equal(kinds, INSERT))
    others = rows.filter(pc.is_in(kinds, value_set=pa.array([BEFORE, AFTER])))
    matched = compare_rows(before, after, (_places(before), _places(after)), trusts_writes=False)
    old, now = rows_at(before, matched.old), rows_at(after, matched.now)
    parts = [
        others,
        rows_at(before, matched.removed),
        rows_at(after, matched.new),
        _as_kind(now, AFTER),
    ]
    if mode == ALL:
        place = old.column_names.index(COMMITTED)
        parts.append(_as_kind(old.set_column(place, COMMITTED, now.column(COMMITTED)), BEFORE))
        return pa.concat_tables(parts)
    return _one_a_key(pa.concat_tables(parts))


def _one_a_key(rows: pa.Table) -> pa.Table:
    """Return the net changes of several steps as those of one: what the last step tells of a key, seen from before the first."""
    steps = rows.column(STEP).to_numpy()
    if not len(steps) or steps.min() == steps.max():
        return rows
    codes, distinct = key_codes(_places(rows, of_step=False))
    first, last = np.full(distinct, steps.max()), np.full(distinct, steps.min())
    np.minimum.at(first, codes, steps)
    np.maximum.at(last, codes, steps)
    kinds = rows.column(CHANGE_TYPE)
    came, went = (pc.equal(kinds, kind).to_numpy() for kind in (INSERT, DELETE))
    was_there = np.isin(codes, codes[~came & (steps == first[codes])])
    counts = steps == last[codes]
    parts = [
        _as_kind(rows.filter(pa.array(counts & mask)), kind)
        for mask, kind in (
            (went & was_there, DELETE),
            (~went & was_there, AFTER),
            (~went & ~was_there, INSERT),
        )
    ]
    return pa.concat_tables(parts)


def _as_kind(rows: pa.Table, kind: str) -> pa.Table:
    place = rows.column_names.index(CHANGE_TYPE)
    return rows.set_column(place, CHANGE_TYPE, pa.repeat(pa.scalar(kind), rows.num_rows))


def _places(rows: pa.Table, *, of_step: bool = True) -> pa.ChunkedArray:
    """Step, partition and key of each row as one text; a newline is in no partition path."""
    names = [*([STEP] if of_step else []), PARTITION_PATH, RECORD_KEY]
    found = pc.binary_join_element_wise(*(rows.column(name).cast(pa.string()) for name in names), "\n")
    return found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found], pa.string())


def _rows(read: ReadContext, file_slice: FileSlice | None, partition: str) -> pa.Table:
    """Return rows of a slice with key and partition filled in where the table does not keep them."""
    if file_slice is None:
        return read.schema.empty_table()
    rows = read_slice(read, file_slice)
    if read.config.populate_meta_fields:
        return rows
    rows = _with(rows, RECORD_KEY, record_keys(rows, read.config))
    return _with(rows, PARTITION_PATH, pa.repeat(pa.scalar(partition), rows.num_rows))


def _with(rows: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    return rows.set_column(rows.column_names.index(name), name, values)


def _trusts_writes(config: TableConfig) -> bool:
    if config.merge_mode is MergeMode.CUSTOM or not config.populate_meta_fields:
        return False
    rule = merge_rule(config)
    return not (rule.fills or rule.in_logs.fills)
