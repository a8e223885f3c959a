"""Points in time as callers give them, in the digits of a table's timeline."""

from __future__ import annotations

import re
from datetime import datetime

from hudi_engine.errors import TimelineError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.timeline.clock import format_instant, instant_digits, query_instant

Moment = str | datetime
"""An instant, ``yyyy-MM-dd[ HH:mm:ss[.SSS]]`` in the zone of the table's timeline or with an offset, or a datetime."""

_WITH_OFFSET = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d{3}|\.\d{6})?)?(Z|[+-]\d\d:\d\d)")


def digits_of(moment: Moment, config: TableConfig) -> str:
    """Return a moment in the digits of the table's timeline."""
    if not isinstance(moment, datetime):
        text = str(moment).strip()
        if not _WITH_OFFSET.fullmatch(text):
            return query_instant(moment)
        try:
            moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
        except ValueError as error:
            raise TimelineError(f"{text!r} is no point in time: {error}") from error
    if moment.tzinfo is not None:
        try:
            return format_instant(moment, config.timeline_zone)
        except (OverflowError, OSError) as error:
            raise TimelineError(
                f"{str(moment)!r} is no point in time: in the zone of the table's timeline its year is none of 1 to 9999; leave "
                "its offset out, or take a later or earlier day"
            ) from error
    return instant_digits(moment)
