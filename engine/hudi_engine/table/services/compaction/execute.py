"""Running a planned compaction: claim, merge every file group, commit once (see `hudi_engine.table.services.planned`)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import numpy as np
import pyarrow as pa

from hudi_engine.errors import CorruptTableError, ServiceError
from hudi_engine.format.config.enums import WriteOperation
from hudi_engine.format.config.options import Options
from hudi_engine.format.filegroup.base_file import base_file_name
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.markers import write_marker
from hudi_engine.format.filegroup.view import WrittenLogs, list_files_of
from hudi_engine.format.index.filters.bloom import BloomFilter
from hudi_engine.format.index.filters.footer import key_footer
from hudi_engine.format.merge.base_reader import BaseFileRows, opened_base_file
from hudi_engine.format.merge.log_scanner import LogScan, scan_slice
from hudi_engine.format.merge.missing_columns import refuse_defaults
from hudi_engine.format.merge.modes.registry import merge_rule
from hudi_engine.format.merge.rows_at import taken
from hudi_engine.format.merge.slice_reader import ReadContext, SliceDelta, resolve_delta
from hudi_engine.format.parallel import RunTasks, run_in_threads
from hudi_engine.format.progress import note_file, under_way
from hudi_engine.format.schema.coded import decoded
from hudi_engine.format.schema.row_hash import ContentChange
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.paths import join
from hudi_engine.format.telemetry.services import measured
from hudi_engine.format.timeline.active import check_inflight
from hudi_engine.format.timeline.commit_metadata import NO_PREVIOUS_COMMIT, CommitMetadata, WriteStat
from hudi_engine.table.handles.base_file_options import BaseFileOptions
from hudi_engine.table.handles.base_file_writer import (
    BaseFileInfo,
    with_file_name,
    without_file_name,
    write_base_file,
)
from hudi_engine.table.handles.carried import (
    Block,
    GroupRows,
    OldGroups,
    changed_blocks,
    with_rows_at,
    write_carried_file,
)
from hudi_engine.table.handles.write_task import new_attempt
from hudi_engine.table.services.compaction.plan import (
    CompactionPlan,
    drop_torn_plans,
    pending_compactions,
    read_plan,
    require_merge_on_read,
    schedule_locked,
)
from hudi_engine.table.services.planned import (
    PlanRun,
    by_partition,
    choose_planned,
    done_as,
    run_planned,
    take_over,
)
from hudi_engine.table.services.result import CompactionResult
from hudi_engine.table.snapshot.publication import publication_of
from hudi_engine.table.state import TableState, full_avro
from hudi_engine.table.txn.publication import Publication
from hudi_engine.table.txn.receipts import content_of, keeps_receipts

_BLOCK_ROWS = 131_072


@dataclass(frozen=True)
class CompactionContext:
    """The fixed facts of one compaction; picklable."""

    instant: str
    read: ReadContext
    avro_schema: dict[str, object]
    base_files: BaseFileOptions
    receipts: bool = False


@dataclass(frozen=True)
class _Changes:
    """How many rows of the base file the logs replace, delete and add."""

    updated: int
    deleted: int
    inserted: int


def compact_file_group(context: CompactionContext, file_slice: FileSlice) -> WriteStat:
    """Write the new base file of one file group."""
    storage, base = context.read.storage, file_slice.base_file
    started = time.monotonic()
    with ExitStack() as opened:
        file = None if base is None else opened.enter_context(opened_base_file(context.read, base))
        delta, scan = _delta(context, file_slice, file)
        changes = _count(delta)
        scanned = time.monotonic()
        # A token that no other attempt has: tasks of a killed run may still be writing their files.
        name = base_file_name(file_slice.file_id, f"0-0-{new_attempt()}", context.instant)
        io_type = "CREATE" if base is None else "MERGE"
        write_marker(storage, context.instant, file_slice.partition, name, io_type)
        bloom = None
        if (
            file is not None
            and base is not None
            and not changes.inserted
            and context.base_files.bloom_enabled
        ):
            # With no new key the filter of the old base file holds every key of the new one.
            bloom = key_footer(file.texts, file.count, base.path).bloom
        content = ContentChange() if context.receipts else None
        info = _write(context, file_slice, delta, file, name, bloom, content)
    note_file(storage.base, info.rows)
    times = _milliseconds(started, scanned), _milliseconds(scanned, time.monotonic())
    stat = _stat(file_slice, info.path, (info.rows, info.size), changes, scan, times)
    stat.content = None if content is None else (content.rows, content.hash)
    return stat


def _delta(
    context: CompactionContext, file_slice: FileSlice, file: BaseFileRows | None
) -> tuple[SliceDelta, LogScan]:
    """Return what the logs do, and what was found in them for the commit; the logs' bytes and records are let go."""
    delta = resolve_delta(context.read, file_slice, file)
    scan = delta.logs.scan if delta.logs is not None else scan_slice(context.read, file_slice)
    return replace(delta, logs=None), replace(scan, blocks=())


def _count(delta: SliceDelta) -> _Changes:
    replacing = delta.replacing or 0
    return _Changes(replacing, len(delta.masked_positions) - replacing, delta.live.num_rows - replacing)


class _Logs:
    """What the logs do to the rows of the base file; what they replace stays in its place."""

    def __init__(self, delta: SliceDelta, columns: list[str], content: ContentChange | None) -> None:
        self._content = content
        self._masked = delta.masked_positions.to_numpy()
        self._places = self._masked[:0] if delta.places is None else delta.places.to_numpy()
        live = delta.live.select(columns)
        self._instead, self.new = live.slice(0, len(self._places)), live.slice(len(self._places))
        if content is not None:
            content.add(live)

    def touches(self, first_row: int, rows: int) -> bool:
        """Return whether the logs change or delete one of some rows."""
        low, high = np.searchsorted(self._masked, (first_row, first_row + rows))
        return bool(low < high)

    def apply(self, block: pa.Table, first_row: int) -> Block:
        """Return what becomes of some rows of the base file."""
        last = first_row + block.num_rows
        low, high = np.searchsorted(self._masked, (first_row, last))
        if low == high:
            return Block.untouched(block)
        begin, end = np.searchsorted(self._places, (first_row, last))
        places = self._places[begin:end]
        deleted = np.setdiff1d(self._masked[low:high], places, assume_unique=True) - first_row
        places = places - first_row
        before = decoded(taken(block, places))
        if self._content is not None:
            self._content.remove(before)
            self._content.remove(decoded(taken(block, deleted)))
        return with_rows_at(block, places, before, self._instead.slice(begin, end - begin), deleted)


def _write(
    context: CompactionContext,
    file_slice: FileSlice,
    delta: SliceDelta,
    file: BaseFileRows | None,
    name: str,
    bloom: BloomFilter | None,
    content: ContentChange | None,
) -> BaseFileInfo:
    """Write the new base file; all rows get its name, so the old one's is not read."""
    columns = without_file_name(context.read.schema)
    logs = _Logs(delta, columns, content)
    path, base = join(file_slice.partition, name), file_slice.base_file
    guard = partial(check_inflight, context.read.storage, context.read.config, context.instant, "compaction")
    new = with_file_name(logs.new, name)
    old = None
    if file is not None and base is not None:
        old = OldGroups.of(context.read, file, base, context.base_files)
    if old is not None:
        return write_carried_file(
            context.read.storage,
            path,
            old,
            chain(old.followed(logs, name, grows=new.num_rows > 0), [GroupRows(new)]),
            avro_schema_with_meta=context.avro_schema,
            before_publish=guard,
            reuse_bloom=bloom,
        )
    blocks = () if file is None else file.blocks(columns, rows=_BLOCK_ROWS)
    return write_base_file(
        context.read.storage,
        path,
        chain((block.rows for block in changed_blocks(logs, blocks, name)), [new]),
        avro_schema_with_meta=context.avro_schema,
        options=context.base_files,
        before_publish=guard,
        reuse_bloom=bloom,
    )


def _stat(
    file_slice: FileSlice,
    path: str,
    written: tuple[int, int],
    changes: _Changes,
    scan: LogScan,
    times: tuple[int, int],
) -> WriteStat:
    """Return what the commit contains of a merged slice, in the fields that Hudi's compaction fills."""
    rows, size = written
    base = file_slice.base_file
    # Keys that the logs change; Hudi counts records of the same key in several blocks several times.
    changed = changes.updated + changes.deleted + changes.inserted
    return WriteStat(
        file_id=file_slice.file_id,
        path=path,
        prev_commit=NO_PREVIOUS_COMMIT if base is None else base.instant,
        num_writes=rows,
        num_deletes=changes.deleted,
        num_update_writes=changes.updated,
        num_inserts=changes.inserted,
        total_write_bytes=size,
        partition_path=file_slice.partition,
        total_log_records=changed,
        total_log_files_compacted=len(file_slice.log_files),
        total_log_size_compacted=sum(log.size for log in file_slice.log_files),
        total_updated_records_compacted=changed,
        total_log_blocks=scan.total_blocks,
        total_corrupt_log_block=scan.corrupt_blocks,
        total_rollback_blocks=scan.rollback_blocks,
        file_size_in_bytes=size,
        runtime_stats={"totalScanTime": times[0], "totalUpsertTime": times[1], "totalCreateTime": 0},
    )


def _milliseconds(start: float, end: float) -> int:
    return int((end - start) * 1000)


@measured(done_as("compaction", "commit"))
def run_compaction(
    storage: Storage,
    options: Options,
    *,
    instant: str | None = None,
    run_tasks: RunTasks = run_in_threads,
    publish: Publication | None = None,
) -> CompactionResult:
    """Run a plan, the next by ``hoodie.compaction.order`` for None; without one make it first, whatever triggers say."""

    def claim(state: TableState) -> CompactionRun | CompactionResult:
        return _claim(state, options, instant, run_tasks)

    return run_planned("compaction", storage, options, publish or publication_of(storage), claim)


def _claim(
    state: TableState, options: Options, wanted: str | None, run_tasks: RunTasks
) -> CompactionRun | CompactionResult:
    state, plans = drop_torn_plans(state)
    require_merge_on_read(state)
    state.check_rows_writable()
    merge_rule(state.config)
    schema = state.data_schema()
    if schema is not None:
        refuse_defaults(state.config, state.avro_schema(schema))
    chosen = choose_planned(
        "compaction", state, options, pending_compactions(state.timeline, options), wanted
    )
    if chosen is None:
        scheduled = schedule_locked(state, options)
        if scheduled.instant is None:
            return scheduled
        state = TableState.load(state.storage)
        chosen = state.timeline.find(scheduled.instant, "compaction")
    plan = plans.get(chosen.requested_time) or read_plan(state, chosen)
    state, opened = take_over("compaction", state, options, chosen, plan.partitions)
    return CompactionRun("compaction", state, options, opened, plan.partitions, plan, run_tasks)


@dataclass(frozen=True)
class CompactionRun(PlanRun[CompactionResult]):
    """A plan that this process carries out."""

    plan: CompactionPlan
    run_tasks: RunTasks

    def work(self) -> list[WriteStat]:
        """Merge all file groups; every operation must come back once."""
        with under_way(self.state.storage.base, "compacted"):
            slices = self._slices()
            stats = self.run_tasks(partial(compact_file_group, self._context()), slices)
        planned = [(each.partition, each.file_id) for each in slices]
        if [(stat.partition_path, stat.file_id) for stat in stats] != planned:
            raise ServiceError(
                f"compaction {self.instant} planned {len(planned)} file groups, {len(stats)} came back, "
                "or others than planned; nothing was committed. Run it again"
            )
        return stats

    def metadata(self, stats: Sequence[WriteStat]) -> CommitMetadata:
        """Return the commit."""
        made = CommitMetadata(by_partition(stats), {}, WriteOperation.COMPACT.value, compacted=True)
        return replace(made, content=content_of(made))

    def result(self, stats: Sequence[WriteStat]) -> CompactionResult:
        """Return what was merged."""
        return CompactionResult(
            self.instant,
            "completed",
            len(stats),
            rows=sum(stat.num_writes or 0 for stat in stats),
            bytes_written=sum(stat.file_size_in_bytes or 0 for stat in stats),
            files_compacted=sum(len(operation.names) for operation in self.plan.operations),
        )

    def _slices(self) -> list[FileSlice]:
        """Return the planned slices with the sizes of their files; one that is missing is refused."""
        state, operations = self.state, self.plan.operations
        listed = list_files_of(state.storage, self.partitions)
        sizes = {status.path: status.size for found in listed.values() for status in found}
        for operation in operations:
            for name in sorted(operation.names):
                if join(operation.partition, name) not in sizes:
                    raise CorruptTableError(
                        f"compaction {self.instant} of {state.storage.base!r} needs {name!r} in partition "
                        f"{operation.partition!r}, which is missing. Restore the file, or restore the table to a savepoint"
                    )
        logs = [log for operation in operations for log in operation.logs]
        written = WrittenLogs(state.config, state.timeline).of_logs(logs)
        return [operation.file_slice(sizes, written) for operation in operations]

    def _context(self) -> CompactionContext:
        read, data_schema = self.reading()
        return CompactionContext(
            self.instant,
            read,
            full_avro(self.state.avro_schema(data_schema), self.state.config),
            BaseFileOptions.from_options(self.options),
            # the columns of a plan may be others than the ones that receipts count
            data_schema == self.state.data_schema() and keeps_receipts(self.state.timeline, self.options),
        )
