"""What a write tells dbt: the fields of ``adapter_response`` and the line dbt prints."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.contracts.connection import AdapterResponse

_UNITS = ("B", "KB", "MB", "GB", "TB")


@dataclass
class HudiAdapterResponse(AdapterResponse):
    """Result of one write to a Hudi table.

    Args:
        instant: The commit's instant time, None when nothing was committed.
        rows_inserted: Rows that were new.
        rows_updated: Rows that replaced an older version.
        rows_deleted: Rows removed.
        files_written: Base and log files written.
        bytes_written: Bytes of those files.
        partitions_written: Partitions touched.
    """

    instant: str | None = None
    rows_inserted: int | None = None
    rows_updated: int | None = None
    rows_deleted: int | None = None
    files_written: int | None = None
    bytes_written: int | None = None
    partitions_written: int | None = None


def format_bytes(size: int) -> str:
    """A byte count a person can read, for example ``1.2 MB``."""
    value = float(size)
    for unit in _UNITS:
        if value < 1024 or unit == _UNITS[-1]:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError("unreachable")


def write_response(
    operation: str,
    *,
    instant: str | None,
    inserted: int,
    updated: int,
    deleted: int,
    files: int,
    size: int,
    partitions: int,
) -> HudiAdapterResponse:
    """Build the response of one commit.

    Args:
        operation: Name of the write operation, for example ``upsert``.
        instant: Instant time, None when the write had nothing to commit.
        inserted: Rows inserted.
        updated: Rows updated.
        deleted: Rows deleted.
        files: Files written.
        size: Bytes written.
        partitions: Partitions touched.
    """
    code = operation.upper()
    counts = " ".join(
        f"{sign}{count}"
        for sign, count in (("+", inserted), ("~", updated), ("-", deleted))
        if count or sign == "+"
    )
    plural = "file" if files == 1 else "files"
    message = f"{code} {instant or 'no commit'} {counts} rows, {files} {plural}, {format_bytes(size)}"
    return HudiAdapterResponse(
        _message=message,
        code=code,
        rows_affected=inserted + updated + deleted,
        instant=instant,
        rows_inserted=inserted,
        rows_updated=updated,
        rows_deleted=deleted,
        files_written=files,
        bytes_written=size,
        partitions_written=partitions,
    )
