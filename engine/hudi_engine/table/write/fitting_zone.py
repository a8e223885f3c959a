"""Which zone puts the rows of another engine's table where they lie, where the table does not say one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timezone

import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import HudiError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.keygen.generator import KeyGenerator, field_values
from hudi_engine.format.keygen.joda.time_zone import clock_of, find_zone, zones_meant
from hudi_engine.format.keygen.timestamp_format import PREFIX, TimestampFormat, zones_that_count

_ROWS_IN_ZONES = 100
"""Of a file, as many that lie elsewhere than their values say and as many that do not."""
_FIXED = [
    f"GMT{sign}{minutes // 60:02d}:{minutes % 60:02d}"
    for minutes in range(15, 14 * 60 + 1, 15)
    for sign in "+-"
]
"""Zones without summer time, those near UTC first."""
_WITH_SUMMER_TIME = (
    "Europe/London", "Europe/Paris", "Europe/Athens", "Europe/Chisinau", "Atlantic/Azores", "Africa/Casablanca",
    "Africa/Cairo", "Asia/Beirut", "Asia/Jerusalem", "Asia/Amman", "Asia/Tehran", "Australia/Adelaide",
    "Australia/Sydney", "Australia/Lord_Howe", "Pacific/Auckland", "Pacific/Chatham", "America/St_Johns",
    "America/Halifax", "America/New_York", "America/Chicago", "America/Denver", "America/Los_Angeles",
    "America/Anchorage", "America/Havana", "America/Mexico_City", "America/Santiago", "America/Asuncion",
    "America/Sao_Paulo",
)  # fmt: skip
"""One zone of each clock that was turned within the last years."""


@dataclass(frozen=True)
class Compared:
    """Rows of one file.

    Args:
        paths: Partition path of each by the settings of the write.
    """

    partition: str
    rows: pa.Table
    paths: pa.Array

    @property
    def others(self) -> pa.Array:
        """Which rows would lie elsewhere."""
        return pc.not_equal(self.paths, self.partition)


def fitting_zone(generator: KeyGenerator, found: Sequence[Compared], config: TableConfig) -> str:
    """Return the setting of a zone by which the rows of all files lie where they are, as ``key=value``; "" when there is none.

    Args:
        generator: Makes the paths by the settings of the write.
        config: The table; where it says a zone that readers take for different ones, those are tried.
    """
    times = generator.timestamp_format
    if times is None:
        return ""
    samples = _samples(found)
    has_texts = _has_texts(generator, found[0].rows)
    for name, zone in _other_zones(times, config, of_texts=has_texts):
        moved = replace(generator, timestamp_format=_with_zone(times, name, zone))
        if all(_lie_there(moved, rows, partition) for partition, rows in samples):
            return f"{PREFIX}{name}={zone}"
    return ""


def _lie_there(generator: KeyGenerator, rows: pa.Table, partition: str) -> bool:
    try:
        return bool(pc.all(pc.equal(generator.partition_paths(rows), partition)).as_py())
    except HudiError:  # a time that a clock which was turned forward does not show
        return False


def _samples(found: Sequence[Compared]) -> list[tuple[str, pa.Table]]:
    """Return some rows of each file with their partition path: first those that lie elsewhere, which few zones explain."""
    masks = [(each, each.others) for each in found] + [(each, pc.invert(each.others)) for each in found]
    samples = [(each.partition, each.rows.filter(mask).slice(0, _ROWS_IN_ZONES)) for each, mask in masks]
    return [(partition, rows) for partition, rows in samples if rows.num_rows]


def zones_in_doubt(config: TableConfig) -> Mapping[str, str]:
    """Return the zones that a table says and that readers take for different ones, by the names of their settings."""
    return {
        name: zone for name, zone in zones_that_count(config.timestamp_keygen).items() if zones_meant(zone)
    }


def _has_texts(generator: KeyGenerator, rows: pa.Table) -> bool:
    """Tell whether times are texts: the zone that they come in means nothing for numbers."""
    times = [name for name, kind in generator.partition_fields if kind == "timestamp"]
    return any(pa.types.is_string(field_values(rows, name).type) for name in times)


def _other_zones(times: TimestampFormat, config: TableConfig, *, of_texts: bool) -> Iterator[tuple[str, str]]:
    """Yield settings of zones that may have been meant: of texts as they come and of what is written, in the likely order."""
    for name, zone in zones_in_doubt(config).items():
        yield from ((name, meant) for meant in zones_meant(zone))
    written_in = zones_that_count(config.timestamp_keygen).keys() & {"output.timezone", "timezone"}
    if of_texts and not times.input_timezone:
        yield "input.timezone", "UTC"
        name = "input.timezone" if times.output_timezone else "output.timezone"
        yield from ((name, zone) for zone in (*_FIXED, *_WITH_SUMMER_TIME))
    elif not times.output_timezone:
        yield from (("output.timezone", zone) for zone in (*_FIXED, *_WITH_SUMMER_TIME))
    elif not of_texts and not written_in:
        yield from (("output.timezone", zone) for zone in _turned(times.output_timezone))


def _with_zone(times: TimestampFormat, name: str, zone: str) -> TimestampFormat:
    read_in = times.input_timezone if name == "output.timezone" else zone
    written_in = times.output_timezone if name == "input.timezone" else zone
    return replace(times, input_timezone=read_in, output_timezone=written_in)


def _turned(given: str) -> list[str]:
    """Return the zones with summer time that have a given offset for a part of the year; none of UTC and of names."""
    zone = find_zone(given)
    if zone is timezone.utc or not isinstance(zone, timezone):
        return []
    return [each for each in _WITH_SUMMER_TIME if zone.utcoffset(None) in clock_of(find_zone(each))]
