"""A batch's rows in the places of a file's rows, block by block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.merge.merge_rows import merge_rows
from hudi_engine.format.merge.rows_at import taken
from hudi_engine.format.schema.casting import with_values
from hudi_engine.format.schema.coded import decoded
from hudi_engine.format.schema.meta_fields import FILE_NAME, META_FIELDS, RECORD_KEY
from hudi_engine.table.handles.carried import Block, with_rows_at, without_rows
from hudi_engine.table.handles.create import stamp_rows
from hudi_engine.table.handles.write_task import WriteTask


@dataclass(frozen=True)
class FileChanges:
    """What a batch does to one file.

    Args:
        batch_rows: For each row of the base file the number of its row in ``updates``, null where untouched; None when
            the file only takes new rows.
        updates: Rows with key and data columns that ``batch_rows`` refers to.
        deletes: Which of ``updates`` delete, None for none.
        delete_always: Deletes win whatever their ordering value (the delete operation).
        inserts: Rows with new keys that go into this file.
        update_columns: Only these columns of a touched row are replaced; None for all.
    """

    batch_rows: pa.Array | None
    updates: pa.Table | None
    deletes: pa.Array | None = None
    delete_always: bool = False
    inserts: pa.Table | None = None
    update_columns: tuple[str, ...] | None = None

    def check_places(self, file_slice: FileSlice, rows: pa.Table) -> None:
        """Refuse rows, logs merged in, that do not have the looked-up keys at their places; raises CorruptTableError."""
        if self.batch_rows is None or self.updates is None:
            return
        touched = np.flatnonzero(np.asarray(self.batch_rows.is_valid()))
        given = self.updates.column(RECORD_KEY).take(self.batch_rows.drop_null())
        if len(self.batch_rows) == rows.num_rows:
            stored = taken(rows.select([RECORD_KEY]), touched).column(0)
            if stored.cast(pa.string()).equals(given.cast(pa.string())):
                return
        raise CorruptTableError(
            f"file group {file_slice.file_id!r} of partition {file_slice.partition!r} was not read twice in one order, so its rows "
            "cannot be matched; nothing was changed. Compact it (compact()) and write again"
        )


class Collector(Protocol):
    """What notes the rows of a file that come, go or become others."""

    def collect(self, change: str, before: pa.Table | None, after: pa.Table | None) -> None:
        """Note rows, which are aligned: of an ``update`` those of before and after, one of them of a ``delete`` or ``insert``."""


@dataclass(frozen=True)
class Updates:
    """The rows that meet rows of the file, in the file's order.

    Args:
        picks: The number of the batch's row for each of them; None where all are deleted.
    """

    task: WriteTask
    partition: str
    touched: npt.NDArray[np.int64]
    picks: pa.Array | None
    changes: FileChanges
    collectors: Sequence[Collector] = ()

    @classmethod
    def of(
        cls, task: WriteTask, partition: str, changes: FileChanges, collectors: Sequence[Collector]
    ) -> Updates:
        """Return what a batch does to a file."""
        touched, picks = np.empty(0, dtype=np.int64), None
        if changes.batch_rows is not None and changes.updates is not None:
            touched = np.flatnonzero(np.asarray(changes.batch_rows.is_valid()))
            picks = None if changes.delete_always or not len(touched) else changes.batch_rows.drop_null()
        return cls(task, partition, touched, picks, changes, collectors)

    def touches(self, first_row: int, rows: int) -> bool:
        """Return whether a row meets one of the batch."""
        low, high = np.searchsorted(self.touched, [first_row, first_row + rows])
        return bool(low < high)

    def apply(self, block: pa.Table, first_row: int) -> Block:
        """Return a block of the file after the updates."""
        low, high = np.searchsorted(self.touched, [first_row, first_row + block.num_rows])
        if low == high:
            return Block.untouched(block)
        places = self.touched[low:high] - first_row
        if self.picks is None:
            for each in self.collectors:
                each.collect("delete", decoded(taken(block, places)), None)
            return without_rows(block, places)
        incoming, deletes = self._incoming(self.picks.slice(low, high - low))
        before = decoded(taken(block, places))
        if self.changes.update_columns is not None:
            incoming = replace_columns(incoming, before, self.changes.update_columns)
        outcome = merge_rows(before, incoming, self.task.context.config, deletes)
        changed = np.asarray(pc.or_(outcome.changed, outcome.deleted))
        removed = np.asarray(outcome.deleted)
        if not changed.any():
            return Block.untouched(block)
        stays = changed & ~removed
        old, new = _where(before, stays), _where(outcome.rows, stays)
        if self.collectors:
            gone = _where(before, removed)
            for each in self.collectors:
                each.collect("update", old, new)
                each.collect("delete", gone, None)
        return with_rows_at(block, places[stays], old, new, places[removed])

    def _incoming(self, picks: pa.Array) -> tuple[pa.Table, pa.BooleanArray | None]:
        """Return rows of the batch without a file name, and which of them delete; block by block, to have them in memory once."""
        assert self.changes.updates is not None
        rows = stamp_rows(self.task, self.partition, taken(self.changes.updates, np.asarray(picks)), "")
        deletes = None if self.changes.deletes is None else self.changes.deletes.take(picks)
        return rows.drop_columns([FILE_NAME]), deletes


def _where(rows: pa.Table, mask: npt.NDArray[np.bool_]) -> pa.Table:
    """Return the rows of a mask; mostly it is all or none of them, and nothing is copied."""
    return rows if mask.all() else rows.filter(pa.array(mask)) if mask.any() else rows.slice(0, 0)


def replace_columns(incoming: pa.Table, before: pa.Table, update_columns: tuple[str, ...]) -> pa.Table:
    """Return the stored rows ``before`` with only ``update_columns`` taken from ``incoming``; meta columns are incoming's."""
    wanted, known = (
        {name.lower() for name in update_columns},
        set(before.column_names).difference(META_FIELDS),
    )
    stay = [name for name in incoming.column_names if name in known and name.lower() not in wanted]
    return with_values(incoming, {name: before.column(name) for name in stay})
