"""A few of the rows that a planned write changes, before and after."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.merge.slice_reader import read_slice
from hudi_engine.format.schema.meta_fields import META_FIELDS, RECORD_KEY
from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.table.handles.write_context import WriteContext

_EXAMPLES = "examplesOfPlan"
Row = dict[str, Any]


@dataclass(frozen=True)
class Example:
    """A row that changes; ``before`` is None for a new one, ``after`` for one that goes. Values are those of JSON."""

    change: str
    before: Row | None
    after: Row | None


@dataclass
class Examples:
    """The first ``most`` rows of each kind of change in one file."""

    most: int
    found: list[Example] = field(default_factory=list)

    @classmethod
    def of(cls, context: WriteContext) -> Examples | None:
        """Return an empty collection, None where no examples are wanted."""
        return cls(context.examples) if context.storage.is_planned and context.examples else None

    def logged(
        self, context: WriteContext, file_slice: FileSlice, rows: pa.Table | None, deletes: pa.Array | None
    ) -> None:
        """Note what a log gets: rows, and the keys of those that go."""
        new = pa.array([], pa.string()) if rows is None else rows.column(RECORD_KEY).slice(0, self.most)
        keys = [*new.to_pylist(), *(() if deletes is None else deletes.slice(0, self.most).to_pylist())]
        known = pc.field(RECORD_KEY).isin(pa.array(keys, pa.string()))
        stored = read_slice(context.read, file_slice, filters=known)
        before = dict(zip(stored.column(RECORD_KEY).to_pylist(), _rows_of(stored), strict=True))
        for key, row in zip(
            new.to_pylist(), [] if rows is None else _rows_of(rows.slice(0, self.most)), strict=True
        ):
            self._add("update" if key in before else "insert", before.get(key), row)
        for key in keys[len(new) :]:
            self._add("delete", before.get(key), None)

    def note(self, stat: WriteStat) -> None:
        """Put the rows into a write stat, with which they come to the driver."""
        stat.other[_EXAMPLES] = [[each.change, each.before, each.after] for each in self.found]

    def collect(self, change: str, before: pa.Table | None, after: pa.Table | None) -> None:
        """Note rows that are inserted, updated or deleted."""
        old = None if before is None else _rows_of(before.slice(0, self.most))
        new = None if after is None else _rows_of(after.slice(0, self.most))
        for number in range(len(old or new or ())):
            self._add(change, None if old is None else old[number], None if new is None else new[number])

    def _add(self, change: str, before: Row | None, after: Row | None) -> None:
        if sum(each.change == change for each in self.found) < self.most:
            self.found.append(Example(change, before, after))


def examples_of(stats: list[WriteStat], most: int) -> tuple[Example, ...]:
    """Return the rows that write stats have, at most so many of each change."""
    together = Examples(most)
    for stat in stats:
        for change, before, after in stat.other.get(_EXAMPLES, ()):
            together._add(change, before, after)
    return tuple(together.found)


def _rows_of(rows: pa.Table) -> list[Row]:
    names = [name for name in rows.column_names if name not in META_FIELDS and not name.startswith("__hudi")]
    found: list[Row] = json.loads(json.dumps(rows.select(names).to_pylist(), default=str))
    return found
