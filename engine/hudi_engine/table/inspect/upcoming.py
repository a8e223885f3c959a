"""What the services of a table would take if they ran now; nothing is written."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_engine.format.config.enums import TableType
from hudi_engine.format.config.options import Options
from hudi_engine.format.timeline.instant import Instant
from hudi_engine.table.inspect.snapshot import Snapshot
from hudi_engine.table.services.archive.select import select_instants
from hudi_engine.table.services.clean.execute import make_plan
from hudi_engine.table.services.compaction.plan import choose_operations
from hudi_engine.table.services.result import CleanResult
from hudi_engine.table.snapshot.manifest import live_manifest_files
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.publication import Publication
from hudi_engine.table.txn.recovery import next_instant


@dataclass(frozen=True)
class Upcoming:
    """What one service would take.

    Args:
        service: ``compaction``, ``clean`` or ``archive``.
        items: File groups to merge, files to delete or instants to move, in the order in which they go.
        bytes: Bytes read by a compaction, or given free by a clean.
    """

    service: str
    items: tuple[str, ...] = ()
    bytes: int = 0
    reason: str = ""


def upcoming(state: TableState, options: Options, snapshot: Snapshot) -> list[Upcoming]:
    """Return what compaction (of a merge-on-read table), clean and archive would take now."""
    found = [_clean(state, options, snapshot), _archive(state, options)]
    if state.config.table_type is TableType.MERGE_ON_READ:
        found.insert(0, _compaction(state, options, snapshot))
    return found


def _compaction(state: TableState, options: Options, snapshot: Snapshot) -> Upcoming:
    operations, reason = choose_operations(state, options)
    sizes = {(each.partition, each.file_id): each.size for each in snapshot.slices}
    groups = [(each.partition, each.file_id) for each in operations]
    names = tuple(f"{partition}/{file_id}".lstrip("/") for partition, file_id in groups)
    return Upcoming("compaction", names, sum(sizes.get(each, 0) for each in groups), reason)


def _clean(state: TableState, options: Options, snapshot: Snapshot) -> Upcoming:
    readers = Publication(publish=lambda _: None, live_files=lambda: live_manifest_files(state.storage))
    plan = make_plan(state, options, readers, now=next_instant(state.timeline))
    if isinstance(plan, CleanResult):
        return Upcoming("clean", reason=plan.reason)
    paths = frozenset(plan.paths)
    listed = (status for partition in plan.files for status in snapshot.view.files(partition))
    freed = sum(status.size for status in listed if status.path in paths)
    return Upcoming("clean", tuple(sorted(paths)), freed)


def _archive(state: TableState, options: Options) -> Upcoming:
    chosen = select_instants(state, options, next_instant(state.timeline))
    names = tuple(_named(each) for each in chosen.instants)
    return Upcoming("archive", names, reason=chosen.reason)


def _named(instant: Instant) -> str:
    return f"{instant.requested_time} {instant.action}"
