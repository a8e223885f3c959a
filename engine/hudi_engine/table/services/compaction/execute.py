"""Running a planned compaction: claim, merge every file group, commit once.

Readers and writers continue meanwhile: files are only added, and nobody sees them before the one file that
completes the instant. Whatever fails, or dies, leaves the plan as it was, to be run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from hudi_engine.errors import ServiceError
from hudi_engine.format.config.enums import WriteOperation
from hudi_engine.format.config.options import Options
from hudi_engine.format.filegroup.view import WrittenLogs
from hudi_engine.format.merge.missing_columns import refuse_defaults
from hudi_engine.format.merge.modes.registry import merge_rule
from hudi_engine.format.parallel import RunTasks, run_in_threads
from hudi_engine.format.progress import under_way
from hudi_engine.format.storage.base import Storage, storage_errors
from hudi_engine.format.telemetry.services import measured
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_engine.table.handles.base_file_options import BaseFileOptions
from hudi_engine.table.services.compaction.merge_group import CompactionContext, compact_file_group
from hudi_engine.table.services.compaction.operation import CompactionOperation
from hudi_engine.table.services.compaction.pending import drop_torn_plans, next_to_run, read_plan
from hudi_engine.table.services.compaction.plan import CompactionPlan, require_merge_on_read, schedule_locked
from hudi_engine.table.services.opening import open_locked
from hudi_engine.table.services.planned import PlanRun, done_as, publish_service, take_over
from hudi_engine.table.services.result import CompactionResult
from hudi_engine.table.snapshot.publication import publication_of
from hudi_engine.table.state import TableState, full_avro
from hudi_engine.table.txn.publication import Publication, drop_foreign_metadata_table
from hudi_engine.table.txn.recovery import table_lock


@measured(done_as("compaction", "commit"))
def run_compaction(
    storage: Storage,
    options: Options,
    *,
    instant: str | None = None,
    run_tasks: RunTasks | None = None,
    publish: Publication | None = None,
) -> CompactionResult:
    """Run a planned compaction; plan one first when there is none, whatever the triggers say.

    Args:
        options: ``hoodie.compaction.*``, base file layout, memory limit.
        instant: Run this plan; None for the next in the order of ``hoodie.compaction.order``.
        run_tasks: Spreads the file groups; threads of this process by default.
        publish: Published file lists, renewed after the commit; None for those there are, rebuilt without Spark.

    Returns:
        What was done, or the reason why there was nothing to do.

    Raises:
        ConfigError: when the table is copy-on-write, or its merge rule may not be imported.
        UnsupportedTableError: when the table merges with a class that this engine does not know.
        TimelineError: when ``instant`` is not planned.
        ServiceError: when another process is running it, or it failed; the plan stays and can be run again.
        HudiError: a typed reason for the failure, such as CorruptTableError for a missing file of the plan.
    """
    publication = publish if publish is not None else publication_of(storage)
    with ExitStack() as stack:
        with storage_errors(storage, "begin a compaction"):
            claim = _claim(storage, options, instant, publication, stack)
        if isinstance(claim, CompactionResult):
            return claim
        stats = claim.run.carry_out(
            options, lambda: claim.work(options, run_tasks or run_in_threads), _metadata
        )
    publish_service(publication, claim.run.state.config, "compaction", claim.run.instant)
    return CompactionResult(
        claim.run.instant,
        "completed",
        len(stats),
        rows=sum(stat.num_writes or 0 for stat in stats),
        bytes_written=sum(stat.file_size_in_bytes or 0 for stat in stats),
        files_compacted=sum(len(operation.names) for operation in claim.plan.operations),
    )


def _claim(
    storage: Storage, options: Options, wanted: str | None, publication: Publication, stack: ExitStack
) -> _Claim | CompactionResult:
    with table_lock(storage, options):
        state = drop_torn_plans(open_locked(storage, options, publication))
        require_merge_on_read(state)
        state.check_rows_writable()
        merge_rule(state.config)
        schema = state.data_schema()
        if schema is not None:
            refuse_defaults(state.config, state.avro_schema(schema))
        chosen = next_to_run(state, options, wanted)
        if chosen is None:
            scheduled = schedule_locked(state, options)
            if scheduled.instant is None:
                return scheduled
            state = TableState.load(storage)
            chosen = state.timeline.find(scheduled.instant, "compaction")
        state = replace(state, config=drop_foreign_metadata_table(storage, state.config))
        plan = read_plan(state, chosen)
        opened = take_over("compaction", state, options, chosen, plan.partitions)
        stack.enter_context(opened).start()
    return _Claim(PlanRun("compaction", state, opened, frozenset(plan.partitions)), plan)


@dataclass(frozen=True)
class _Claim:
    """A plan that this process carries out."""

    run: PlanRun
    plan: CompactionPlan

    def work(self, options: Options, run_tasks: RunTasks) -> list[WriteStat]:
        """Merge all file groups; every operation must come back once."""
        operations = list(self.plan.operations)
        with under_way(self.run.state.storage.base, "compacted"):
            stats = run_tasks(partial(compact_file_group, self._context(options)), operations)
        if [(stat.partition_path, stat.file_id) for stat in stats] != [_group(each) for each in operations]:
            raise ServiceError(
                f"compaction {self.run.instant} planned {len(operations)} file groups, {len(stats)} came back, "
                "or others than planned; nothing was committed. Run it again"
            )
        return stats

    def _context(self, options: Options) -> CompactionContext:
        state = self.run.state
        read, data_schema = self.run.reading(options)
        logs = [log for operation in self.plan.operations for log in operation.logs]
        return CompactionContext(
            self.run.instant,
            read,
            full_avro(state.avro_schema(data_schema), state.config),
            BaseFileOptions.from_options(options),
            WrittenLogs(state.config, state.timeline).of_logs(logs),
        )


def _metadata(stats: Sequence[WriteStat]) -> CommitMetadata:
    partitions: dict[str, list[WriteStat]] = {}
    for stat in stats:
        partitions.setdefault(stat.partition_path or "", []).append(stat)
    return CommitMetadata(partitions, {}, WriteOperation.COMPACT.value, compacted=True)


def _group(operation: CompactionOperation) -> tuple[str, str]:
    return operation.partition, operation.file_id
