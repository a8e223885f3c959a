"""Some rows of a base file, and what becomes of them in the next one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_engine.format.merge.row_equality import unchanged_columns
from hudi_engine.format.merge.rows_at import taken
from hudi_engine.format.schema.coded import coded_like
from hudi_engine.table.handles.base_file_writer import with_file_name

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Block:
    """Some rows of the new file.

    Args:
        same: Columns that are unchanged in all of them, if none of the rows was deleted.
    """

    rows: pa.Table
    same: frozenset[str] = frozenset()
    updated: int = 0
    deleted: int = 0

    @classmethod
    def untouched(cls, rows: pa.Table) -> Block:
        """Return rows that are as they were."""
        return cls(rows, frozenset(rows.column_names))


class Changer(Protocol):
    """What happens to the rows of a file."""

    def touches(self, first_row: int, rows: int) -> bool:
        """Return whether one of some rows may become another one."""

    def apply(self, block: pa.Table, first_row: int) -> Block:
        """Return what becomes of a block that begins with a row of the file."""


def changed_blocks(
    changer: Changer, blocks: Iterable[pa.Table], name: str, first_row: int = 0
) -> Iterator[Block]:
    """Yield the rows of a file after a change, block by block, with the name of the new file."""
    for block in blocks:
        part = changer.apply(block, first_row)
        first_row += block.num_rows
        yield replace(part, rows=with_file_name(part.rows, name))


def without_rows(block: pa.Table, gone: Places) -> Block:
    """Return a block without some of its rows."""
    keep = np.ones(block.num_rows, dtype=bool)
    keep[gone] = False
    return Block(block.filter(pa.array(keep)), deleted=len(gone))


def with_rows_at(block: pa.Table, places: Places, before: pa.Table, rows: pa.Table, gone: Places) -> Block:
    """Return a block with ``rows`` at ``places`` and without the rows ``gone``; order is kept."""
    if len(gone):
        return Block(_spliced(block, places, rows, gone), updated=len(places), deleted=len(gone))
    same = unchanged_columns(before, rows)
    others = [name for name in block.column_names if name not in same]
    spliced = _spliced(block.select(others), places, rows, gone)
    for name in others:
        number = block.schema.get_field_index(name)
        block = block.set_column(number, spliced.schema.field(name), spliced.column(name))
    return Block(block, same, updated=len(places))


def _spliced(block: pa.Table, places: Places, rows: pa.Table, gone: Places) -> pa.Table:
    """Return the block with other rows in some places; one take over both."""
    order: Places = np.arange(block.num_rows, dtype=np.int64)
    order[places] = block.num_rows + np.arange(len(places))
    if len(gone):
        keep = np.ones(block.num_rows, dtype=bool)
        keep[gone] = False
        order = order[keep]
    return taken(pa.concat_tables([block, coded_like(rows, block.schema)]), order)
