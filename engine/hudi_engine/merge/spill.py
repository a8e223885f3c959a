"""Merging more log records than memory should hold: they go to temporary Arrow files, split by the hash of their key.

All records of a key land in one file, in their order, so each file can be folded alone. The result is read
through a memory map, so that the system decides what of it is in memory.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa

from hudi_engine.index.buckets import java_hashes
from hudi_engine.merge.entries import Entries, concat_entries

_LOGGER = logging.getLogger(__name__)
_KEY, _FLAGS, _PROVIDED = "__hudi_key", "__hudi_flags", "__hudi_provided"
_DELETED, _ALWAYS, _SEVERED = 1, 2, 4


class SpillStore:
    """Temporary files of log records; use it as a context manager.

    Args:
        folder: Where the files go, None for the system's temp folder.
        partitions: How many files the records are split over.
    """

    def __init__(self, folder: str | None, partitions: int) -> None:
        if folder is not None:
            Path(folder).mkdir(parents=True, exist_ok=True)
        self._folder = tempfile.TemporaryDirectory(prefix="hudi-merge-", dir=folder)
        self._partitions = partitions
        self._writers: dict[int, pa.ipc.RecordBatchFileWriter] = {}
        self._columns: pa.Schema | None = None

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
        """Append records.

        Args:
            entries: Records newer than all added before, always with the same columns.
        """
        self._columns = entries.rows.schema
        hashes = java_hashes(entries.keys.combine_chunks()) % np.uint32(self._partitions)
        for number in np.unique(hashes):
            rows = np.flatnonzero(hashes == number)
            table = _to_table(entries.take(rows))
            self._writer(int(number), table.schema).write_table(table)

    def fold(self, fold: Callable[[Entries], Entries]) -> Entries | None:
        """Fold every file and give back the winners, mapped from disk; None when nothing was added.

        Args:
            fold: Turns records in order into one a key.
        """
        paths = [self._path(number) for number in sorted(self._writers)]
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()
        results: list[Entries] = []
        for path in paths:
            winners = fold(_from_table(_map(path)))
            result = path.with_suffix(".winners")
            table = _to_table(winners)
            with pa.ipc.new_file(str(result), table.schema) as writer:
                writer.write_table(table)
            path.unlink()
            results.append(_from_table(_map(result)))
        _LOGGER.info("merged log records on disk in %d parts", len(paths))
        return concat_entries(results) if results else None

    def _path(self, number: int) -> Path:
        return Path(self._folder.name) / f"{number}.arrow"

    def _writer(self, number: int, schema: pa.Schema) -> pa.ipc.RecordBatchFileWriter:
        if number not in self._writers:
            self._writers[number] = pa.ipc.new_file(str(self._path(number)), schema)
        return self._writers[number]


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
