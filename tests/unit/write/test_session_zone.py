"""Times without a zone under zones that are offsets, which not every release of Arrow takes for the name of a zone."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hudi_engine.errors import ConfigError
from hudi_engine.spark.write.rows.frames import in_session_zone

TIMES = [datetime(2026, 7, 1, 12, 30, 1, 5), None, datetime(1969, 12, 31, 23)]
assume_timezone = pc.assume_timezone


def names_only(times: Any, zone: str, **options: Any) -> Any:
    """Refuse offsets, as Arrow does before release 22."""
    if re.fullmatch(r"[+-]\d\d:?\d\d", zone):
        raise pa.ArrowInvalid(f"Cannot locate timezone '{zone}': {zone} not found in timezone database")
    return assume_timezone(times, zone, **options)


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
@pytest.mark.parametrize(
    ("zone", "same"),
    [
        ("EST", "Etc/GMT+5"),
        ("MST", "Etc/GMT+7"),
        ("HST", "Etc/GMT+10"),
        ("+05:30", "Asia/Kolkata"),
        ("-7", "Etc/GMT+7"),
        ("GMT+05:45", "Asia/Kathmandu"),
        ("UTC-03:00:00", "Etc/GMT+3"),
        ("-00:00", "UTC"),
    ],
)
def test_an_offset_is_taken_also_where_arrow_knows_names_only(
    zone: str, same: str, unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pc, "assume_timezone", names_only)
    summer = TIMES if unit != "s" else [each and each.replace(microsecond=0) for each in TIMES]
    # India and Nepal had other offsets before
    summer = summer[:2] if same.startswith("Asia/") else summer
    times = pa.chunked_array([summer[:1], [], summer[1:]], pa.timestamp(unit))

    moments = in_session_zone(times, zone)

    wanted = [each and each.replace(tzinfo=ZoneInfo(same)).astimezone(timezone.utc) for each in summer]
    assert moments.cast(pa.timestamp("us", "UTC")).to_pylist() == wanted
    assert moments.type.unit == unit and moments.type.tz is not None


def test_what_is_neither_offset_nor_name_is_refused() -> None:
    times = pa.chunked_array([TIMES], pa.timestamp("us"))
    with pytest.raises(ConfigError, match="such as '\\+05:30'"):
        in_session_zone(times, "+01:02:03")
