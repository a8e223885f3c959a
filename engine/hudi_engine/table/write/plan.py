"""What a write would do: the figures of its commit, which is not made."""

from __future__ import annotations

import json
import statistics
from dataclasses import replace

import pyarrow as pa

from hudi_engine.format.schema.any_case import AnyCase
from hudi_engine.format.storage.planned import PlanWish
from hudi_engine.format.telemetry.figures import FIGURES
from hudi_engine.format.telemetry.phases import seconds_so_far
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.table.handles.examples import examples_of
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.planned import PlannedTransaction
from hudi_engine.table.write.result import WritePlan, WriteResult

_COMMITS_LOOKED_AT, _NEAREST = 20, 3


def planned_result(
    state: TableState, transaction: PlannedTransaction, result: WriteResult, wish: PlanWish
) -> WriteResult:
    """Return the result of a write that was planned up to the metadata of its commit.

    Args:
        state: The table before the write.
        result: The counts of the commit.
    """
    metadata, figures = result.metadata, result.figures
    assert metadata is not None and figures is not None
    stats = [stat for _, stat in metadata.write_stats()]
    groups = {*((stat.partition_path or "", stat.file_id) for stat in stats), *metadata.replaced}
    counts = [(each.num_inserts, each.num_update_writes, each.num_deletes) for each in stats]
    changed = sum(count or 0 for each in counts for count in each)
    came = figures.rows_written if figures.rows_in is None else figures.rows_in
    after = state.timeline.as_if_completed(transaction.instant, transaction.action, metadata)
    before = replace(state, columns=None).data_schema()
    plan = WritePlan(
        came,
        0 if metadata.partition_to_replace_file_ids else max(0, came - changed),
        result.partitions_written,
        len(groups),
        figures.bytes_rewritten,
        changes_of_columns(before, TableState(state.storage, state.config, after).data_schema()),
        seconds=guessed_seconds(state.timeline, metadata.operation_type, figures.rows_written),
        examples=examples_of(stats, wish.examples),
    )
    return replace(result, plan=plan, action=transaction.action, committed=after, seconds=seconds_so_far())


def changes_of_columns(before: pa.Schema | None, after: pa.Schema | None) -> tuple[str, ...]:
    """Return which columns a table gets, loses or changes; none for one that is made."""
    if before is None or after is None:
        return ()
    old, new = (AnyCase((field.name, field.type) for field in each) for each in (before, after))
    added = [f"+ {field.name} {field.type}" for field in after if field.name not in old]
    gone = [f"- {field.name}" for field in before if field.name not in new]
    other = [
        f"~ {field.name} {old[field.name]} to {field.type}"
        for field in after
        if field.name in old and old[field.name] != field.type
    ]
    return (*added, *gone, *other)


def guessed_seconds(timeline: Timeline, operation: str, rows: int) -> float | None:
    """Return about how long a write takes: the median of the earlier ones of its operation that are nearest in rows.

    Args:
        rows: Rows in the files that it writes; a write of more rows than any before takes as much longer.
    """
    known = []
    for instant in list(reversed(timeline.completed_writes))[:_COMMITS_LOOKED_AT]:
        metadata = timeline.commit_metadata(instant)
        if metadata.operation_type != operation or FIGURES not in metadata.extra_metadata:
            continue
        figures = json.loads(metadata.extra_metadata[FIGURES])
        known.append((int(figures["rowsWritten"]), sum(figures["seconds"].values())))
    nearest = sorted(known, key=lambda each: abs(each[0] - rows))[:_NEAREST]
    if not nearest:
        return None
    most = max(each[0] for each in nearest)
    return float(statistics.median(seconds for _, seconds in nearest)) * max(1.0, rows / max(most, 1))
