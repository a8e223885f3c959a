"""The bounded small-batch path: the batch is in memory on the driver, threads tag and write."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from hudi_engine.handles.write_context import WriteContext
from hudi_engine.handles.write_task import WriteTask
from hudi_engine.index.lookup.partition import TaggedUnit, tag_unit
from hudi_engine.index.lookup.unit import PartitionUnit, UnitPlan, split_by_partition
from hudi_engine.schema.meta_fields import PARTITION_PATH
from hudi_engine.timeline.commit_metadata import WriteStat
from hudi_engine.write.place.unit import write_unit


def run_on_driver(
    context: WriteContext,
    plan: UnitPlan,
    units: Mapping[str, PartitionUnit],
    batch: pa.Table,
    planned: Callable[[list[TaggedUnit]], None],
) -> list[WriteStat]:
    """Tag every partition's rows, say what is planned, then write.

    Args:
        context: The write.
        plan: How rows are treated.
        units: Known partitions by path.
        batch: All rows with key columns.
        planned: Called once between tagging and writing, with everything tagged (workload profile).

    Returns:
        The write stats.
    """
    groups = split_by_partition(batch, PARTITION_PATH)
    workers = max(1, min(8, os.cpu_count() or 1, len(groups) or 1))
    with ThreadPoolExecutor(max_workers=workers, thread_name_prefix="hudi-write") as pool:
        tagged = list(
            pool.map(
                lambda group: tag_unit(context, plan, units.get(group[0], PartitionUnit(group[0])), group[1]),
                groups,
            )
        )
        planned(tagged)
        written = list(
            pool.map(
                lambda numbered: write_unit(WriteTask(context, numbered[0]), plan, numbered[1]),
                enumerate(tagged),
            )
        )
    return [stat for stats in written for stat in stats]
