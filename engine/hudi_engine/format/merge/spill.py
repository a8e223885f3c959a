"""Rows that are more than memory should hold: temporary Arrow files, mapped once they are complete."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.declared.engine_options import MergeOptions
from hudi_engine.format.index.buckets import java_hashes
from hudi_engine.format.merge.rows_at import rows_at, taken
from hudi_engine.format.schema.nested import one_array

PLACE = "__hudi_order"
_ORDERED_AT_ONCE = 16 * 1024 * 1024
"""Bytes of rows that are in memory at once while they are put into order."""

Positions = npt.NDArray[np.int64]


class SpillStore(ExitStack):
    """Temporary Arrow files of rows, one for each share of them; use it as a context manager.

    Where shares are of keys, all rows of a key are in one file, so each file is folded alone. What is left then gets the order that
    it has where nothing is spilled, as a slice may be read twice, keys alone and whole rows.
    """

    def __init__(self, folder: str | None) -> None:
        super().__init__()
        try:
            if folder is not None:
                Path(folder).mkdir(parents=True, exist_ok=True)
            made = tempfile.TemporaryDirectory(prefix="hudi-merge-", dir=folder)
        except OSError as error:
            where = "the system's temp folder" if folder is None else f"{folder!r}"
            raise ConfigError(
                f"rows are more than are held in memory, and no file for them can be made in {where}: {error}. Name a local folder "
                f"that this user may write to in {MergeOptions.SPILL_FOLDER}"
            ) from error
        self._folder = Path(self.enter_context(made))
        self._writers: dict[int, pa.ipc.RecordBatchFileWriter] = {}
        self._added = 0

    def add(self, rows: pa.Table, shares: npt.NDArray[np.integer[Any]] | None = None) -> None:
        """Append rows, which may have their places; without the number of each one's share all go to one file."""
        if PLACE not in rows.column_names:
            places = np.arange(self._added, self._added + rows.num_rows)
            self._added += rows.num_rows
            rows = rows.append_column(PLACE, pa.array(places))
        shares = np.zeros(rows.num_rows, np.uint8) if shares is None else shares
        for number in np.unique(shares):
            table = rows_at(rows, np.flatnonzero(shares == number))
            self._writer(int(number), table.schema).write_table(table)

    def parts(self) -> Iterator[tuple[int, pa.Table]]:
        """Yield the number of each share with its rows, mapped from a file that goes with the next one."""
        for writer in self._writers.values():
            writer.close()
        for number in sorted(self._writers):
            yield number, _mapped(self._path(number))
            self._path(number).unlink()

    def fold(self, fold: Callable[[pa.Table], Iterable[pa.Table] | None]) -> pa.Table:
        """Fold the rows of every file and give back what is left, mapped from disk, in the order of its places.

        Args:
            fold: Gets rows with their places, and yields those that are left, or returns None for all.
        """
        folded: list[pa.Table] = []
        for number, rows in self.parts():
            left = fold(rows)
            path = self._path(number).with_suffix(".left")
            folded.append(rows if left is None else _mapped(_written(path, left)))
            del rows, left
        places = np.concatenate([each.column(PLACE).to_numpy() for each in folded])
        folded = [each.drop_columns([PLACE]) for each in folded]
        if len(folded) == 1 and bool(np.all(places[1:] >= places[:-1])):
            return folded[0]
        order = np.argsort(places, kind="stable")
        path = _written(self._folder / "ordered", ordered(folded, order))
        folded.clear()  # all that is mapped counts where memory is limited
        return _mapped(path)

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}.arrow"

    def _writer(self, number: int, schema: pa.Schema) -> pa.ipc.RecordBatchFileWriter:
        if number not in self._writers:
            writer = pa.ipc.new_file(str(self._path(number)), schema)
            self._writers[number] = self.enter_context(writer)
        return self._writers[number]


def shares_of(keys: pa.ChunkedArray, count: int) -> npt.NDArray[np.uint8]:
    """Return for each key which of some shares it belongs to, at most 256 of them."""
    return np.concatenate([java_hashes(each) % np.uint32(count) for each in keys.chunks]).astype(np.uint8)


def first_places(rows: pa.Table, keys: pa.ChunkedArray, wanted: pa.ChunkedArray) -> pa.Array:
    """Return for each wanted key the place of its first row among rows with some keys."""
    encoded = one_array(keys).dictionary_encode()
    firsts = np.full(len(encoded.dictionary), np.iinfo(np.int64).max)
    np.minimum.at(firsts, encoded.indices.to_numpy(), rows.column(PLACE).to_numpy())
    return pa.array(firsts[pc.index_in(wanted, value_set=encoded.dictionary).to_numpy()])


def ordered(parts: list[pa.Table], order: Positions) -> Iterator[pa.Table]:
    """Yield rows of parts that follow each other by their numbers, some at a time."""
    ends = np.cumsum([part.num_rows for part in parts])
    size = sum(part.nbytes for part in parts)
    count = max(1, int(ends[-1]) * _ORDERED_AT_ONCE // max(1, size))
    for start in range(0, len(order), count):
        wanted = order[start : start + count]
        by_place = np.argsort(wanted)
        bounds = np.searchsorted(wanted[by_place], [0, *ends])
        rows = pa.concat_tables(
            rows_at(part, wanted[by_place[low:high]] - (end - part.num_rows))
            for part, end, low, high in zip(parts, ends, bounds, bounds[1:])
            if low < high
        )
        back = np.empty(len(wanted), np.int64)
        back[by_place] = np.arange(len(wanted))
        yield taken(rows, back)


def _written(path: Path, tables: Iterable[pa.Table]) -> Path:
    """Write tables of one kind into a file."""
    remaining = iter(tables)
    first = next(remaining)
    with pa.ipc.new_file(str(path), first.schema) as writer:
        for table in chain([first], remaining):
            writer.write_table(table)
    return path


def _mapped(path: Path) -> pa.Table:
    try:
        with pa.memory_map(str(path)) as file:
            return pa.ipc.open_file(file).read_all()
    except OSError as error:
        if os.strerror(errno.ENOMEM) in str(error):
            raise MemoryError(str(error)) from error
        raise
