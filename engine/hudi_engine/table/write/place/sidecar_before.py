"""The sidecar of a slice before a write, and the one that follows it, of row groups that are encoded already where that can be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.logformat.reader import parquet_contents
from hudi_engine.format.merge.slice_reader import SliceDelta
from hudi_engine.format.parquet.file import ChunkFile, RowGroup
from hudi_engine.format.parquet.writer import columns_as_stored
from hudi_engine.format.schema.meta_fields import RECORD_KEY
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.lookup.unit import SidecarState
from hudi_engine.table.snapshot.mask import CHUNK_COLUMN, WORDS_COLUMN
from hudi_engine.table.snapshot.sidecar import (
    encoded_live_rows,
    is_live,
    read_sidecar,
    sidecar_schema,
    slice_digest,
    write_sidecar,
    write_sidecar_groups,
)
from hudi_engine.table.snapshot.sidecar_step import LogBatch, SidecarStep

_MIN_BYTES = 64 * 1024
"""Live rows of fewer bytes are encoded anew, into one row group."""
_SMALL_GROUP, _MOST_SMALL_GROUPS = 1024 * 1024, 8
"""Live rows in many row groups of fewer bytes are, too."""


@dataclass(frozen=True)
class SidecarBefore:
    """What the logs of a slice did so far.

    Args:
        keys: The rows that they mask, and at least keys and ordering values of those they brought.
        path: The sidecar that has their other columns; None where `keys` has all.
    """

    context: WriteContext
    keys: SliceDelta
    path: str | None

    @classmethod
    def of(cls, context: WriteContext, state: SidecarState, file_slice: FileSlice) -> SidecarBefore | None:
        """Return it; None when no sidecar is there that says it."""
        if not file_slice.log_files:
            return cls(context, SliceDelta(pa.array([], pa.int64()), context.schema.empty_table()), None)
        path, digest = state.before.get((file_slice.partition, file_slice.file_id), ("", ""))
        if digest != slice_digest(file_slice, state.pending, state.schema_digest):
            return None
        if not context.storage.is_near:
            return cls(context, read_sidecar(context.storage, path, context.schema), None)
        named = {RECORD_KEY, *context.config.ordering_fields}
        columns = [name for name in context.schema.names if name in named]
        return cls(context, read_sidecar(context.storage, path, context.schema, columns), path)

    def write_next(self, step: SidecarStep, batch: LogBatch, path: str) -> int | None:
        """Write the next sidecar, with the row groups of before and of the log where all their rows stay; returns its bytes."""
        storage, schema = self.context.storage, self.context.schema
        masked = pa.array(step.masked, pa.int64())
        with ExitStack() as opened:
            groups = self._groups(step, batch, opened)
            if groups:
                return write_sidecar_groups(storage, path, sidecar_schema(schema), masked, groups)
        before = self.keys if self.path is None else read_sidecar(storage, self.path, schema)
        return write_sidecar(storage, path, schema, step.taken(before, batch))

    def _groups(self, step: SidecarStep, batch: LogBatch, opened: ExitStack) -> list[RowGroup]:
        """Return the row groups of all live rows, none where they are many and small, or written in another way."""
        storage, schema = self.context.storage, sidecar_schema(self.context.schema)
        if not storage.is_near:
            return []
        before = None if self.path is None else opened.enter_context(storage.open_input(self.path))
        if sum(map(len, batch.blocks)) + (0 if before is None else before.size()) < _MIN_BYTES:
            return []
        logged, rows = [], []
        if step.added.all():
            logged = [ChunkFile(pa.BufferReader(each)) for each in parquet_contents(batch.blocks)]
            if len(logged) < len(batch.blocks):
                return []
        elif batch.rows is not None:
            rows.append(batch.rows.filter(pa.array(step.added)))
        stored = None if before is None else ChunkFile(before)
        if not all(_holds(each, schema) for each in ([] if stored is None else [stored]) + logged):
            return []
        groups = [] if stored is None else list(self._left(stored, before, step.gone, rows))
        groups += [group for each in logged for group in each.groups]
        if sum(group.size for group in groups) < _MIN_BYTES:
            return []
        groups += encoded_live_rows(rows, schema)
        size = sum(group.size for group in groups)
        return groups if size >= _SMALL_GROUP * (len(groups) - _MOST_SMALL_GROUPS) else []

    def _left(
        self, stored: ChunkFile, source: pa.NativeFile, gone: npt.NDArray[np.int64], rows: list[pa.Table]
    ) -> Iterator[RowGroup]:
        """Yield the live row groups of the sidecar that lose no row; what is left of the others is added to ``rows``."""
        keep = np.ones(self.keys.live.num_rows, dtype=bool)
        keep[gone] = False
        lose, start = [], 0
        for number, group in enumerate(stored.groups):
            if not is_live(group):
                continue
            if keep[start : start + group.rows].all():
                yield group
            elif keep[start : start + group.rows].any():
                lose.append((number, keep[start : start + group.rows]))
            start += group.rows
        if lose:
            numbers, kept = zip(*lose, strict=True)
            file = pq.ParquetFile(source, page_checksum_verification=True)
            found = file.read_row_groups(list(numbers), columns=self.context.schema.names)
            rows.append(found.filter(pa.array(np.concatenate(kept))))


def _holds(file: ChunkFile, schema: pa.Schema) -> bool:
    """Tell whether a file stores the columns of a sidecar as one does; those of the mask may lack."""
    wanted, mask = columns_as_stored(schema).elements, {CHUNK_COLUMN, WORDS_COLUMN}
    same = all(wanted.get(name) == found for name, found in file.elements.items())
    return same and wanted.keys() - file.elements.keys() <= mask
