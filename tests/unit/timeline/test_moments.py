"""Points in time with an offset become digits of a table's timeline, or are refused in one sentence."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hudi_engine.errors import TimelineError
from hudi_engine.format.timeline.moments import Moment, digits_of

from tests.helpers.table_settings import version_6

IN_UTC = version_6("id", "", {}, {"table__timeline__timezone": "UTC"})
INDIA = timezone(timedelta(hours=5, minutes=30))


@pytest.mark.parametrize(
    ("moment", "digits"),
    [
        ("2026-01-01T09:30:00+05:30", "20260101040000000"),
        ("2026-01-01 09:30:00.123456Z", "20260101093000123"),
        (datetime(2026, 1, 1, 9, 30, tzinfo=INDIA), "20260101040000000"),
        (datetime(2026, 1, 1, 9, 30), "20260101093000000"),
        ("0001-01-01 00:00:00Z", "00010101000000000"),
    ],
)
def test_a_moment_is_told_in_the_digits_of_the_timeline(moment: Moment, digits: str) -> None:
    assert digits_of(moment, IN_UTC) == digits


@pytest.mark.parametrize(
    "moment", ["0001-01-01 00:00:00+05:30", "9999-12-31T23:59:59-05:30", datetime.min.replace(tzinfo=INDIA)]
)
def test_a_moment_beyond_the_years_of_the_calendar_is_refused(moment: Moment) -> None:
    with pytest.raises(
        TimelineError, match="is no point in time: .* none of 1 to 9999; leave its offset out"
    ):
        digits_of(moment, IN_UTC)
