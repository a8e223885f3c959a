"""The rule by which an older and a newer record of one key become one.

Source: Hudi table format, merging base and log records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.format.merge.entries import Entries
from hudi_engine.format.merge.ordering import newer_wins
from hudi_engine.format.merge.rows_at import values_at
from hudi_engine.format.schema.meta_fields import META_FIELDS

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class MergeRule:
    """What a merge mode does to aligned pairs of records.

    Attributes:
        compares: Whether ordering values decide which record comes first; otherwise the newer does.
        fills: Whether nulls of the winning record are filled from the other one.
        deletes_obey_order: Whether a delete can lose against a record with a greater ordering value.
        revives: Whether a record that follows a delete always wins.
        remembers_deletes: Whether a record that replaced a delete is never filled from what was there before the
            delete.
        keeps_meta: Whether a row whose gaps are filled keeps its meta columns; otherwise they are the newer
            record's.
        gap_text: Text that represents "no value" in the winning record, where nulls do not.
        logs: Rule among the records of the logs, where it is another one than between them and the base file.
    """

    compares: bool
    fills: bool = False
    deletes_obey_order: bool = True
    revives: bool = False
    remembers_deletes: bool = True
    keeps_meta: bool = False
    logs: MergeRule | None = None
    gap_text: str | None = None

    @property
    def in_logs(self) -> MergeRule:
        """Rule among the records of the logs."""
        return self.logs or self

    @property
    def fills_one_by_one(self) -> bool:
        """Whether log records are merged into the stored row one after the other, not with each other first."""
        return self.sees_whole_rows and self.logs is None

    @property
    def asks_each_pair(self) -> bool:
        """Whether a subclass decides pair by pair, so that no order of all records represents it."""
        own = type(self)
        return own.first is not MergeRule.first or own.merge is not MergeRule.merge

    @property
    def sees_whole_rows(self) -> bool:
        """Whether more than ordering values may decide, so that all columns of both records are wanted."""
        return self.fills or self.asks_each_pair

    @property
    def composes(self) -> bool:
        """Whether what is merged may be neither of the two records; else it is the one that :meth:`first` chooses."""
        return self.fills or type(self).merge is not MergeRule.merge

    def needs_old(self, ordering_fields: Sequence[str], columns: Sequence[str]) -> list[str]:
        """Return columns of the older record that :meth:`merge` looks at."""
        if self.sees_whole_rows:
            return list(columns)
        return list(ordering_fields) if self.compares else []

    def first(self, old: Entries, new: Entries, ordering_fields: Sequence[str]) -> Mask:
        """For aligned entries: where the newer record comes before the older one."""
        if not self.compares or not ordering_fields:
            return np.ones(len(new), dtype=bool)
        wins = newer_wins(
            [old.rows.column(name) for name in ordering_fields],
            [new.rows.column(name) for name in ordering_fields],
        )
        wins |= new.always | old.always
        if not self.deletes_obey_order:
            wins |= new.deleted | old.deleted
        if self.revives:
            wins |= old.deleted
        return wins

    def merge(self, old: Entries, new: Entries, ordering_fields: Sequence[str]) -> Entries:
        """Fold the newer records into the older ones, aligned."""
        wins = self.first(old, new, ordering_fields)
        # A row that replaces a delete has nothing older behind it: not within a log, nor in the base file.
        severed = np.where(wins, new.severed | old.deleted | old.severed, old.severed)
        if not self.remembers_deletes:
            severed = np.zeros_like(severed)
        lends = np.where(wins, ~old.deleted & ~new.severed, ~new.deleted)
        rows, provided = self._compose(old, new, wins, lends)
        if provided is not None:
            provided |= severed[:, None]
        deleted = np.where(wins, new.deleted, old.deleted)
        always = np.where(wins, new.always, old.always)
        return Entries(rows, new.keys, deleted, always, severed, provided)

    def _compose(self, old: Entries, new: Entries, wins: Mask, lends: Mask) -> tuple[pa.Table, Mask | None]:
        """Return column by column: the winner's value, or the loser's where the winner has none to give."""
        columns, provided = [], []
        for number, name in enumerate(new.rows.column_names):
            older, newer = old.rows.column(name), new.rows.column(name)
            has_old, has_new = _has_values(old, number), _has_values(new, number)
            has_value, other_has = np.where(wins, has_new, has_old), np.where(wins, has_old, has_new)
            takes_new = wins
            gap = ~has_value & other_has & lends
            if self.fills and name in META_FIELDS:
                takes_new, gap = np.ones_like(wins) if not self.keeps_meta else wins, np.zeros_like(wins)
            elif self.fills:
                gap |= self._gaps(older, newer, wins) & other_has & lends
            columns.append(pick(older, newer, takes_new ^ gap))
            provided.append(has_value | gap)
        rows = pa.Table.from_arrays(columns, schema=new.rows.schema)
        partial = old.provided is not None or new.provided is not None
        return rows, np.column_stack(provided) if partial and provided else None

    def _gaps(self, older: pa.ChunkedArray, newer: pa.ChunkedArray, wins: Mask) -> Mask:
        if self.gap_text is None:
            masks = [column.is_null() for column in (older, newer)]
        elif pa.types.is_string(newer.type) or pa.types.is_binary(newer.type):
            text = pa.scalar(self.gap_text, pa.string()).cast(newer.type)
            masks = [pc.fill_null(pc.equal(column, text), False) for column in (older, newer)]
        else:
            return np.zeros_like(wins)
        old_gaps, new_gaps = (mask.to_numpy().astype(bool) for mask in masks)
        gaps: Mask = np.where(wins, new_gaps, old_gaps)
        return gaps


def pick(older: pa.ChunkedArray, newer: pa.ChunkedArray, takes_new: Mask) -> pa.ChunkedArray:
    """Return row by row the newer or the older value; works for nested types too."""
    if takes_new.all():
        return newer
    count = len(takes_new)
    both = pa.chunked_array([*older.chunks, *newer.chunks], newer.type)
    return values_at(both, np.arange(count) + takes_new * count)


def _has_values(entries: Entries, column: int) -> Mask:
    if entries.provided is None:
        return np.ones(len(entries), dtype=bool)
    found: Mask = entries.provided[:, column]
    return found
