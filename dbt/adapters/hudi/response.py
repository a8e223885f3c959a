"""The response of a write: the fields of ``adapter_response`` and the line dbt prints."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from dbt.adapters.contracts.connection import AdapterResponse
from hudi_engine.format.config.enums import WriteOperation
from hudi_engine.format.telemetry.figures import RowCounts
from hudi_engine.table.report.markup import size
from hudi_engine.table.write.result import WriteResult

from dbt.adapters.hudi.preview import PREVIEW


@dataclass
class HudiAdapterResponse(AdapterResponse):
    """Result of one write to a Hudi table.

    Args:
        rows_set_aside: Rows that are in the error table instead; None without one.
        files_read: New files that the write took (`hudi_new_files`), None for other models; ``files_set_aside`` of them are in
            the error table.
        bytes_rewritten: Bytes of base files that replace an earlier one; ``bytes_changed`` of them are of changed rows, about.
        seconds: Seconds by phase, such as ``{"prepare": 0.4, "write": 1.2}``.
    """

    instant: str | None = None
    rows_inserted: int | None = None
    rows_updated: int | None = None
    rows_deleted: int | None = None
    files_written: int | None = None
    bytes_written: int | None = None
    partitions_written: int | None = None
    rows_in: int | None = None
    rows_shuffled: int | None = None
    bytes_rewritten: int | None = None
    bytes_changed: int | None = None
    seconds: dict[str, float] | None = None
    rows_set_aside: int | None = None
    files_read: int | None = None
    files_set_aside: int | None = None


def short_number(number: int) -> str:
    """Return a count a person can read, for example ``1.2 M``."""
    for limit, unit in ((1_000_000_000, "G"), (1_000_000, "M")):
        if number >= limit:
            return f"{number / limit:.1f} {unit}"
    return f"{number:,}"


def counted(number: int, noun: str) -> str:
    """Return a count with its noun, for example ``1 file`` and ``2 files``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def write_response(
    result: WriteResult, name: str | None = None, *, set_aside: int = 0
) -> HudiAdapterResponse:
    """Return what dbt prints and keeps of one write.

    Args:
        name: Name of the write where it is not the engine's operation, such as ``microbatch``.
        set_aside: Rows that are in the error table instead.
    """
    PREVIEW.note_write(result, set_aside)
    code, figures = (name or result.operation).upper(), result.figures
    signed = (("+", result.rows_inserted), ("~", result.rows_updated), ("-", result.rows_deleted))
    errors = f", {counted(set_aside, 'row')} to the error table" if set_aside else ""
    services = f" | {', '.join(result.services)}" if result.services else ""
    counts = " ".join(f"{sign}{count}" for sign, count in signed if count or sign == "+")
    # rows that an overwrite or a rebuild replaces are no result of the model
    is_new = "OVERWRITE" in result.operation.upper() or result.operation == WriteOperation.BULK_INSERT.value
    replaced = 0 if is_new else result.rows_deleted
    did: dict[str, Any] = {each.name: getattr(result, each.name) for each in fields(RowCounts)}
    return HudiAdapterResponse(
        _message=f"{code} {result.instant or 'no commit'} {counts} rows, "
        f"{counted(result.files_written, 'file')}, {size(result.bytes_written)}{errors}{services}",
        code=code,
        rows_affected=result.rows_inserted + result.rows_updated + replaced,
        instant=result.instant,
        files_written=result.files_written,
        partitions_written=len(result.partitions_written),
        rows_in=None if figures is None else figures.rows_in,
        rows_shuffled=None if figures is None else figures.rows_shuffled,
        bytes_rewritten=None if figures is None else figures.bytes_rewritten,
        bytes_changed=None if figures is None else figures.bytes_changed,
        seconds=dict(result.seconds) or None,
        rows_set_aside=set_aside or None,
        **did,
    )
