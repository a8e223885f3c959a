"""Points in time as callers give them, in the digits of a table's timeline."""

from __future__ import annotations

from datetime import datetime

from hudi_engine.config.table_config import TableConfig
from hudi_engine.timeline.clock import format_instant, query_instant

Moment = str | datetime
"""An instant, ``yyyy-MM-dd[ HH:mm:ss[.SSS]]`` in the zone of the table's timeline, or a datetime."""


def digits_of(moment: Moment, config: TableConfig) -> str:
    """Return a moment in the digits of the table's timeline.

    Raises:
        TimelineError: It is no point in time.
    """
    if not isinstance(moment, datetime):
        return query_instant(moment)
    if moment.tzinfo is not None:
        return format_instant(moment, config.timeline_zone)
    return f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}"
