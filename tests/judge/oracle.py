"""A plain dictionary that knows what a table must hold: the oracle of the judge tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Row = dict[str, Any]


class Oracle:
    """Rows by key, changed by the same operations as the table.

    Args:
        key: Key columns.
        partition: Partition column, None for a table without partitions.
        ordering: Ordering column; None means that the row written last wins.
    """

    def __init__(self, key: tuple[str, ...], partition: str | None, ordering: str | None) -> None:
        self._key, self._partition, self._ordering = key, partition, ordering
        self._rows: dict[tuple[Any, ...], Row] = {}

    def upsert(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Insert rows, or replace those with a smaller or equal ordering value."""
        for row in rows:
            present = self._rows.get(self._identity(row))
            if present is None or self._ordering is None or row[self._ordering] >= present[self._ordering]:
                self._rows[self._identity(row)] = dict(row)

    def delete(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Remove the keys of some rows."""
        for row in rows:
            self._rows.pop(self._identity(row), None)

    def overwrite_partitions(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Replace the partitions that some rows belong to."""
        new = list(rows)
        touched = {row[self._partition] if self._partition else None for row in new}
        self._rows = {
            identity: row
            for identity, row in self._rows.items()
            if (row[self._partition] if self._partition else None) not in touched
        }
        self.upsert(new)

    def rows(self) -> list[Row]:
        """Give all rows."""
        return list(self._rows.values())

    def _identity(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        names = self._key if self._partition is None else (*self._key, self._partition)
        return tuple(row[name] for name in names)
