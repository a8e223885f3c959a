"""Table services run on a table, and what dbt prints of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt.adapters.contracts.connection import AdapterResponse
from hudi_engine import HudiTable
from hudi_engine.table.report.markup import size

from dbt.adapters.hudi.response import HudiAdapterResponse, counted, service_response


def compacted(table: HudiTable, op: str, options: Mapping[str, str]) -> AdapterResponse:
    """Schedule or run a compaction.

    Args:
        op: ``schedule``, or ``run`` (schedules when nothing is pending).
    """
    if op == "schedule":
        planned = table.schedule_compaction(options=options)
        return service_response("SCHEDULE COMPACTION", planned, counted(planned.file_groups, "file group"))
    result = table.compact(options=options)
    details = f"{counted(result.file_groups, 'file group')}, {counted(result.rows, 'row')}, {size(result.bytes_written)}"
    return service_response("COMPACT", result, details)


def clustered(
    table: HudiTable, op: str, asked: Mapping[str, Any], options: Mapping[str, str]
) -> AdapterResponse:
    """Schedule or run a clustering, or say what it would take.

    Args:
        op: ``schedule``, ``dry_run``, or ``run`` (schedules when nothing is pending).
    """
    if op != "run":
        planned = table.schedule_clustering(**asked, dry_run=op == "dry_run", options=options)
        details = f"{planned.file_groups} file groups in {len(planned.partitions)} partitions"
        if op == "dry_run" and not planned.reason:
            return HudiAdapterResponse(_message=f"{details} would be rewritten", code="CLUSTER")
        return service_response("SCHEDULE CLUSTERING", planned, details)
    result = table.cluster(**asked, options=options)
    details = (
        f"{result.file_groups} file groups became {result.files_written}, {result.rows} rows, "
        f"{size(result.bytes_written)}"
    )
    return service_response("CLUSTER", result, details)


def cleaned(table: HudiTable, retain_commits: int | None, options: Mapping[str, str]) -> AdapterResponse:
    """Remove files no retained commit needs."""
    result = table.clean(retain_commits=retain_commits, options=options)
    details = f"{counted(result.files_deleted, 'file')} deleted in {counted(result.partitions, 'partition')}"
    return service_response("CLEAN", result, details)


def archived(table: HudiTable, dry_run: bool, options: Mapping[str, str]) -> AdapterResponse:
    """Move the oldest instants to the archive, or say which would go."""
    result = table.archive(dry_run=dry_run, options=options)
    done = f"{counted(len(result.instants), 'instant')} {'would go' if dry_run else 'archived'}"
    names = f": {', '.join(result.instants)}" if dry_run and result.instants else ""
    return HudiAdapterResponse(_message=f"ARCHIVE: {result.reason or done + names}", code="ARCHIVE")


def undone(table: HudiTable, instant: str) -> AdapterResponse:
    """Undo the newest commit."""
    table.rollback(instant)
    return HudiAdapterResponse(_message=f"ROLLBACK of {instant}", code="ROLLBACK", instant=instant)
