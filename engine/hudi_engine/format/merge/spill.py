"""Merging more log records than memory should hold: they go to temporary Arrow files, split by the hash of their key.

All records of a key land in one file, in their order, so each file can be folded alone. What becomes of them is then put into
the order that it has where nothing is spilled: who reads a slice twice, keys alone and whole rows, finds a row in one place. The
result is read through a memory map, so that the system decides what of it is in memory.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.format.index.buckets import java_hashes
from hudi_engine.format.merge.entries import Entries
from hudi_engine.format.merge.rows_at import rows_at, taken

_LOGGER = logging.getLogger(__name__)
_KEY, _FLAGS, _PROVIDED, _PLACE = "__hudi_key", "__hudi_flags", "__hudi_provided", "__hudi_place"
_DELETED, _ALWAYS, _SEVERED = 1, 2, 4
_ORDERED_AT_ONCE = 16 * 1024 * 1024
"""Bytes of rows that are in memory at once while they are put into order."""

Positions = npt.NDArray[np.int64]


class SpillStore:
    """Temporary files of log records; use it as a context manager."""

    def __init__(self, folder: str | None, partitions: int) -> None:
        if folder is not None:
            Path(folder).mkdir(parents=True, exist_ok=True)
        self._folder = tempfile.TemporaryDirectory(prefix="hudi-merge-", dir=folder)
        self._partitions = partitions
        self._writers: dict[int, pa.ipc.RecordBatchFileWriter] = {}
        self._added = 0

    def __enter__(self) -> SpillStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()
        self._folder.cleanup()

    def add(self, entries: Entries) -> None:
        """Append records."""
        places = np.arange(self._added, self._added + len(entries))
        self._added += len(entries)
        hashes = java_hashes(entries.keys.combine_chunks()) % np.uint32(self._partitions)
        for number in np.unique(hashes):
            rows = np.flatnonzero(hashes == number)
            table = _to_table(entries.take(rows)).append_column(_PLACE, pa.array(places[rows]))
            self._writer(int(number), table.schema).write_table(table)

    def fold(self, fold: Callable[[Entries], Entries]) -> Entries | None:
        """Fold every file and give back the winners, mapped from disk; None when nothing was added."""
        paths = [self._path(number) for number in sorted(self._writers)]
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()
        if not paths:
            return None
        folded: list[pa.Table] = []
        places: list[Positions] = []
        for path in paths:
            records = _map(path)
            winners = fold(_from_table(records.drop_columns([_PLACE])))
            places.append(_first_places(records, winners.keys))
            folded.append(_written(path.with_suffix(".winners"), [_to_table(winners)]))
            path.unlink()
        _LOGGER.info("merged log records on disk in %d parts", len(paths))
        if len(folded) == 1:
            return _from_table(folded[0])
        order = np.argsort(np.concatenate(places), kind="stable")
        return _from_table(_written(Path(self._folder.name) / "ordered", _ordered(folded, order)))

    def _path(self, number: int) -> Path:
        return Path(self._folder.name) / f"{number}.arrow"

    def _writer(self, number: int, schema: pa.Schema) -> pa.ipc.RecordBatchFileWriter:
        if number not in self._writers:
            self._writers[number] = pa.ipc.new_file(str(self._path(number)), schema)
        return self._writers[number]


def _first_places(records: pa.Table, keys: pa.ChunkedArray) -> Positions:
    """Return for each key the place of its first record among all that were added."""
    encoded = records.column(_KEY).combine_chunks().dictionary_encode()
    _, firsts = np.unique(encoded.indices.to_numpy(), return_index=True)
    numbers = pc.index_in(keys, value_set=encoded.dictionary).to_numpy()
    places: Positions = records.column(_PLACE).to_numpy()[firsts][numbers]
    return places


def _ordered(parts: list[pa.Table], order: Positions) -> Iterator[pa.Table]:
    """Yield the rows of parts that follow each other in another order, some at a time: those of a part come in their order."""
    ends = np.cumsum([part.num_rows for part in parts])
    size = sum(part.nbytes for part in parts)
    count = max(1, len(order) * _ORDERED_AT_ONCE // max(1, size))
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


def _written(path: Path, tables: Iterable[pa.Table]) -> pa.Table:
    """Write tables of one kind into a file and return it mapped."""
    remaining = iter(tables)
    first = next(remaining)
    with pa.ipc.new_file(str(path), first.schema) as writer:
        for table in chain([first], remaining):
            writer.write_table(table)
    return _map(path)


def _map(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_file(file).read_all()


def _to_table(entries: Entries) -> pa.Table:
    flags = entries.deleted * _DELETED + entries.always * _ALWAYS + entries.severed * _SEVERED
    if entries.provided is None:
        provided = pa.nulls(len(entries), pa.binary())
    else:
        packed = np.packbits(entries.provided, axis=1)
        provided = pa.array([row.tobytes() for row in packed], pa.binary())
    table = entries.rows.append_column(_KEY, entries.keys)
    table = table.append_column(_FLAGS, pa.array(flags.astype(np.uint8)))
    return table.append_column(_PROVIDED, provided)


def _from_table(table: pa.Table) -> Entries:
    flags = table.column(_FLAGS).to_numpy()
    rows = table.drop_columns([_KEY, _FLAGS, _PROVIDED])
    packed = table.column(_PROVIDED)
    provided = None
    if packed.null_count < len(packed):
        width = rows.num_columns
        full = np.packbits(np.ones((1, width), dtype=bool), axis=1)[0].tobytes()
        bits = np.frombuffer(b"".join(packed.fill_null(full).to_pylist()), np.uint8).reshape(len(packed), -1)
        provided = np.unpackbits(bits, axis=1, count=width).astype(bool)
    return Entries(
        rows,
        table.column(_KEY),
        (flags & _DELETED) > 0,
        (flags & _ALWAYS) > 0,
        (flags & _SEVERED) > 0,
        provided,
    )
