"""Sidecars for plain Spark SQL, made in the task that writes the log out of the sidecar before and the batch.

What cannot be made so is made after the commit from logs and base file (`hudi_engine.table.snapshot.sidecar`), which also is what
happens when another writer came between: a sidecar counts only for exactly the state that it was made for.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_engine.errors import HudiError
from hudi_engine.format.config.declared.engine_options import EngineOptions
from hudi_engine.format.config.enums import TableType
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.log_file import parse_log_file
from hudi_engine.format.logformat.reader import parquet_contents
from hudi_engine.format.merge.base_reader import read_base_file
from hudi_engine.format.merge.slice_reader import SliceDelta
from hudi_engine.format.parquet.file import ChunkFile, RowGroup
from hudi_engine.format.parquet.writer import columns_as_stored
from hudi_engine.format.schema.meta_fields import RECORD_KEY, without_meta_columns
from hudi_engine.format.storage.base import FileStatus
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_engine.table.handles.append import LogRows, LogTarget
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.lookup.tagging import SliceTag
from hudi_engine.table.lookup.unit import PartitionUnit, SidecarState, UnitPlan
from hudi_engine.table.snapshot.manifest import newest_manifest
from hudi_engine.table.snapshot.manifest_file import Manifest, is_derived, parse_line
from hudi_engine.table.snapshot.sidecar import (
    CHUNK_COLUMN,
    WORDS_COLUMN,
    LogBatch,
    SidecarStep,
    encoded_live_rows,
    has_steps,
    is_live,
    next_step,
    read_sidecar,
    sidecar_path,
    sidecar_schema,
    slice_digest,
    write_sidecar,
    write_sidecar_groups,
)
from hudi_engine.table.snapshot.snapshot_files import schema_digest
from hudi_engine.table.state import TableState

logger = logging.getLogger(__name__)


_MIN_BYTES = 64 * 1024
"""Live rows of fewer bytes are encoded again, into one row group."""
_SMALL_GROUP, _MAX_SMALL_GROUPS = 1024 * 1024, 8
"""Live rows in many row groups of fewer bytes are, too."""


def sidecar_state(
    context: WriteContext, state: TableState, units: Mapping[str, PartitionUnit]
) -> SidecarState | None:
    """Return what tasks need to make sidecars, None when they are to be made after the commit, or not at all."""
    config, schema = context.config, state.data_schema()
    if config.table_type is not TableType.MERGE_ON_READ or not has_steps(config) or state.columns is not None:
        return None
    if not context.options[EngineOptions.PUBLISH_MANIFEST] or context.read.schema_history is not None:
        return None
    if schema is None or schema != without_meta_columns(context.schema):
        return None
    logged = {name for name, unit in units.items() if any(each.log_files for each in unit.slices)}
    manifest = newest_manifest(context.storage) if logged else None
    pending = tuple(
        sorted(each.requested_time for each in state.timeline.pending if each.action == "deltacommit")
    )
    return SidecarState(schema_digest(schema), pending, _before(manifest, logged))


def _before(manifest: Manifest | None, partitions: set[str]) -> dict[tuple[str, str], tuple[str, str]]:
    """Return path and identity of the sidecars of some partitions."""
    if manifest is None or manifest.stamp is None:
        return {}
    inside = f"{manifest.stamp.base}/"
    found = {}
    for entry in (parse_line(line) for line in manifest.lines if is_derived(line)):
        origin = entry.origin
        if entry.is_delta and origin is not None and origin.partition in partitions:
            path = entry.uri.removeprefix(inside)
            found[origin.partition, origin.file_id] = (path, origin.digest)
    return found


def log_batch(
    tag: SliceTag, touched: pa.Table, rows: LogRows | None, mask: pa.Array | None, *, all_deleted: bool
) -> LogBatch:
    """Tell what is appended to the log of a tagged slice.

    Args:
        touched: The rows of the batch that the tag matches, one for each number there.
        mask: Which of them delete, None for none.
    """
    count = touched.num_rows
    deleted = np.zeros(count, dtype=bool) if mask is None else np.asarray(mask).astype(bool)
    if all_deleted:
        deleted = np.ones(count, dtype=bool)
    has_base = tag.file_slice.base_file is not None
    hits = np.flatnonzero(np.asarray(tag.batch_rows.is_valid())) if has_base else np.empty(0, np.int64)
    wanted = np.asarray(tag.batch_rows.take(pa.array(hits))).astype(np.int64)
    numbers = np.searchsorted(np.asarray(tag.matched), wanted)
    written, blocks = (None, []) if rows is None else (rows.rows, rows.blocks)
    return LogBatch(touched, deleted, written, hits, numbers, deletes_win=all_deleted, blocks=blocks)


def note_sidecar(
    context: WriteContext, plan: UnitPlan, target: LogTarget, batch: LogBatch, stats: Sequence[WriteStat]
) -> None:
    """Make the sidecar of a slice whose log was written, and note it in the write stat; not making it is no error."""
    state, file_slice = plan.sidecars, target.file_slice
    if state is None or not stats or target.instant not in (file_slice.base_instant, context.instant):
        return
    try:
        before = SidecarBefore.of(context, state, file_slice)
        if before is None:
            return
        base = file_slice.base_file
        step = next_step(
            context.config,
            before.keys,
            batch,
            lambda names: (
                read_base_file(context.read, base, names)
                if base is not None
                else context.schema.empty_table().select(names)
            ),
        )
        if step is None:
            return
        path = sidecar_path(file_slice, context.instant)
        size = before.write_next(step, batch, path)
        if size is not None:
            digest = slice_digest(_appended(file_slice, stats), state.pending, state.schema_digest)
            stats[0].sidecar = (path, size, digest)
    except (OSError, HudiError) as error:
        logger.debug("the sidecar of %s is left to the publisher: %s", file_slice.file_id, error)


def made_sidecars(metadata: CommitMetadata | None) -> dict[tuple[str, str, str], tuple[str, int]]:
    """Return path and bytes of the sidecars that a write made, by partition path, file id and identity."""
    if metadata is None:
        return {}
    return {
        (partition, stat.file_id or "", str(stat.sidecar[2])): (str(stat.sidecar[0]), int(stat.sidecar[1]))
        for partition, stat in metadata.write_stats()
        if stat.sidecar is not None
    }


def _appended(file_slice: FileSlice, stats: Sequence[WriteStat]) -> FileSlice:
    """Return a slice with the log files that were written."""
    logs = list(file_slice.log_files)
    for stat in stats:
        status = FileStatus(stat.file_name, stat.file_size_in_bytes or 0, 0, is_dir=False)
        log = parse_log_file(stat.file_name, file_slice.partition, status)
        if log is not None:
            logs.append(log)
    return replace(file_slice, log_files=tuple(logs))


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
        """Return what the logs of a slice did; None when it has logs but no sidecar of exactly this state."""
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
        groups = [] if stored is None else list(self._left(stored, before, step.removed, rows))
        groups += [group for each in logged for group in each.groups]
        if sum(group.size for group in groups) < _MIN_BYTES:
            return []
        groups += encoded_live_rows(rows, schema)
        size = sum(group.size for group in groups)
        return groups if size >= _SMALL_GROUP * (len(groups) - _MAX_SMALL_GROUPS) else []

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
    """Return whether a file stores the columns of a sidecar as one does; those of the mask may lack."""
    wanted, mask = columns_as_stored(schema).elements, {CHUNK_COLUMN, WORDS_COLUMN}
    same = all(wanted.get(name) == found for name, found in file.elements.items())
    return same and wanted.keys() - file.elements.keys() <= mask
