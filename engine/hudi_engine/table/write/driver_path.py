"""The bounded small-batch path: the batch is in memory on the driver, threads tag and write, file group by file group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pyarrow as pa

from hudi_engine.format.config.declared.engine_options import EngineOptions
from hudi_engine.format.filegroup.markers import MarkerBook
from hudi_engine.format.parallel import each_once, in_turn, on_threads, run_in_threads
from hudi_engine.format.schema.meta_fields import PARTITION_PATH
from hudi_engine.format.storage.base import storage_errors
from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.handles.write_task import WriteTask
from hudi_engine.table.lookup.partition import TaggedUnit, tag_unit
from hudi_engine.table.lookup.tagging import DRIVER_KEYS
from hudi_engine.table.lookup.unit import PartitionUnit, UnitPlan, split_by_partition
from hudi_engine.table.txn.planned import PlannedTransaction
from hudi_engine.table.txn.transaction import WriteTransaction
from hudi_engine.table.write.place.partitions import tagged_profile
from hudi_engine.table.write.place.shares import planned_markers, shares_of
from hudi_engine.table.write.place.unit import write_unit

MAX_THREADS = 8
"""Each holds the rows of a base file."""


def write_on_driver(
    context: WriteContext,
    plan: UnitPlan,
    batch: pa.Table,
    units: Mapping[str, PartitionUnit],
    transaction: WriteTransaction | PlannedTransaction,
) -> tuple[str, list[WriteStat]]:
    """Write the rows of a transaction by threads of this process; returns the name of the way taken, and what was written."""

    def planned(tagged: Sequence[TaggedUnit]) -> None:
        transaction.inflight(tagged_profile(context.operation, tagged))

    return "driver", run_on_driver(context, plan, units, batch, planned)


def run_on_driver(
    context: WriteContext,
    plan: UnitPlan,
    units: Mapping[str, PartitionUnit],
    batch: pa.Table,
    planned: Callable[[list[TaggedUnit]], None],
) -> list[WriteStat]:
    """Tag every partition's rows, note the plan, then write."""
    with storage_errors(context.storage, "write data files"):
        groups = split_by_partition(batch, PARTITION_PATH)
        threads = partial(run_in_threads, most=MAX_THREADS)
        limit = context.options[EngineOptions.KEY_CACHE_BYTES]
        keys_of, keep_keys = DRIVER_KEYS.keys_of(limit), DRIVER_KEYS.keeping(limit) if limit else None
        # Where there is but one partition, its files are what threads share.
        look = threads if len(groups) == 1 else in_turn
        tagged = threads(
            lambda group: tag_unit(
                context, plan, units.get(group[0], PartitionUnit(group[0])), group[1], look, keys_of
            ),
            groups,
        )
        shares = [share for each in tagged for share in shares_of(context, plan, each)]
        work = [
            (WriteTask(context, number, keep_keys=keep_keys), share) for number, share in enumerate(shares)
        ]
        with _markers_of(context, plan, work) as markers:
            first: list[Callable[[], None]] = [partial(planned, tagged)]
            if markers is not None:
                first.append(markers.open)
            on_threads(lambda make: make(), first)
            written = threads(lambda each: write_unit(replace(each[0], markers=markers), plan, each[1]), work)
        return [stat for stats in each_once(written, work, "file groups") for stat in stats]


@contextmanager
def _markers_of(
    context: WriteContext, plan: UnitPlan, work: Sequence[tuple[WriteTask, TaggedUnit]]
) -> Iterator[MarkerBook | None]:
    """Yield the markers that the threads share, closed at the end; None where no two files are foreseen."""
    foreseen = [marker for task, share in work for marker in planned_markers(task, plan, share)]
    if len(foreseen) < 2:
        yield None
        return
    markers = MarkerBook(context.storage, context.instant, foreseen)
    try:
        yield markers
    finally:
        markers.close()
