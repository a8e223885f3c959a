"""Where new rows go: first into small files that have room, then into new file groups.

Room of a small file is (target size - its size) / average row size, as in Hudi's upsert partitioner. Merge-on-read offers
only its smallest file, whose logs are merged in then, and only up to a price: many bytes are not rewritten for a few rows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from hudi_engine.format.config.declared.engine_options import EngineOptions
from hudi_engine.format.config.declared.write_options import FileOptions
from hudi_engine.format.config.enums import TableType
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.lookup.unit import PartitionUnit, UnitPlan


@dataclass(frozen=True)
class InsertShare:
    """``rows`` new rows for a small file, or for new file groups when ``file_slice`` is None."""

    file_slice: FileSlice | None
    rows: int


def shares_of_new(context: WriteContext, plan: UnitPlan, unit: PartitionUnit, rows: int) -> list[InsertShare]:
    """Divide new rows of a partition as the write's plan has it; all go to new files where it does not pack."""
    if rows and (not plan.packing or plan.delete_only):
        return [InsertShare(None, rows)]
    frozen = {(unit.partition, file_id) for file_id in unit.frozen}
    return share_inserts(context, unit.slices, rows, frozen)


def share_inserts(
    context: WriteContext, slices: Sequence[FileSlice], rows: int, frozen: Collection[tuple[str, str]] = ()
) -> list[InsertShare]:
    """Divide new rows of one partition over small files and new files.

    Args:
        frozen: (partition, file id) pairs that must not be rewritten (pending compaction or clustering).

    Returns:
        Shares in order, their rows adding up to ``rows``.
    """
    shares: list[InsertShare] = []
    left = rows
    for small in small_files(context, slices, frozen):
        if left == 0:
            break
        room = context.file_size.room_in(small.size)
        if room <= 0:
            continue
        taken = min(left, room)
        shares.append(InsertShare(small, taken))
        left -= taken
    if left:
        shares.append(InsertShare(None, left))
    return shares


def small_files(
    context: WriteContext, slices: Sequence[FileSlice], frozen: Collection[tuple[str, str]] = ()
) -> list[FileSlice]:
    """Return slices of a partition that may take new rows, smallest first."""
    limit = context.options[FileOptions.SMALL_FILE_LIMIT]
    if limit == 0:
        return []
    config = context.config
    merge_on_read = config.table_type is TableType.MERGE_ON_READ
    if merge_on_read:
        limit = min(limit, context.options[EngineOptions.PACKING_MAX_BYTES])
    found = [
        each
        for each in slices
        if each.base_file is not None
        and each.size < limit
        and (each.partition, each.file_id) not in frozen
        # Changelog mode keeps changes in logs, which a rewritten base file would end.
        and not (config.keeps_operations and each.log_files)
    ]
    found.sort(key=lambda each: (each.size, each.file_id))
    return found[:1] if merge_on_read else found
