"""Which rows the strategies that replace rows take out: columns, or a window of time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from dbt.adapters.hudi.model.reading import Problems, names
from dbt.adapters.hudi.model.table import ModelTable, RawConfig


@dataclass(frozen=True)
class BatchWindow:
    """The window of time of one batch of a microbatch model.

    Args:
        column: The model's ``event_time``.
        start: First moment; None when dbt runs no batch.
    """

    column: str
    start: datetime | None = None
    end: datetime | None = None


def delete_columns(raw: RawConfig, table: ModelTable, problems: Problems) -> tuple[str, ...]:
    """Return the columns of delete+insert, which need not be the record key."""
    columns = names("unique_key", raw.config.get("unique_key"), problems) or table.record_key
    if not columns:
        problems.add(
            "incremental_strategy 'delete+insert' needs unique_key, the columns whose values say which rows go; set it, or use "
            "replace_where with incremental_predicates"
        )
    return columns


def batch_window(config: Mapping[str, object], problems: Problems) -> BatchWindow | None:
    """Return the window of time of a microbatch model; dbt says its bounds when it runs a batch."""
    column = config.get("event_time")
    if not isinstance(column, str) or not column.strip():
        problems.add(
            f"incremental_strategy 'microbatch' needs event_time, a column of the model, and event_time is {column!r}; set it, "
            "with begin and batch_size"
        )
        return None
    start, end = (config.get(f"__dbt_internal_microbatch_event_time_{each}") for each in ("start", "end"))
    return BatchWindow(column.strip(), _moment(start), _moment(end))


def _moment(value: object) -> datetime | None:
    return datetime.fromisoformat(value) if isinstance(value, str) else value  # type: ignore[return-value]
