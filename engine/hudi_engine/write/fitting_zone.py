"""Which zone puts the rows of another engine's table where they lie, where the table does not say one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.keygen.generator import KeyGenerator, field_values
from hudi_engine.keygen.timestamp_format import PREFIX, TimestampFormat

_ROWS_IN_ZONES = 100
"""Of a file, as many that lie elsewhere than their values say and as many that do not."""
_SHIFTS = [sign * minutes for minutes in range(15, 14 * 60 + 1, 15) for sign in (1, -1)]
"""Minutes by which zones are apart, small ones first."""


@dataclass(frozen=True)
class Compared:
    """Rows of one file.

    Args:
        partition: Partition path they lie in.
        rows: Their partition columns.
        paths: Partition path of each by the settings of the write.
    """

    partition: str
    rows: pa.Table
    paths: pa.Array

    @property
    def others(self) -> pa.Array:
        """Which rows would lie elsewhere."""
        return pc.not_equal(self.paths, self.partition)


def fitting_zone(generator: KeyGenerator, found: Sequence[Compared]) -> str:
    """Return the setting of a zone by which the rows of all files lie where they are, as ``key=value``; "" when there is none.

    Args:
        generator: Makes the paths by the settings of the write.
        found: Rows of files of several partitions.
    """
    times = generator.timestamp_format
    if times is None or (times.output_timezone and times.input_timezone):
        return ""
    samples = [(each.partition, _some_of_each(each)) for each in found]
    for there in _in_other_zones(times, of_texts=_has_texts(generator, found[0].rows)):
        moved = replace(generator, timestamp_format=there)
        if all(
            pc.all(pc.equal(moved.partition_paths(rows), partition)).as_py() for partition, rows in samples
        ):
            if there.input_timezone != times.input_timezone:
                return f"{PREFIX}input.timezone={there.input_timezone}"
            return f"{PREFIX}output.timezone={there.output_timezone}"
    return ""


def _some_of_each(compared: Compared) -> pa.Table:
    """Return some rows that lie elsewhere than their values say, and some that do not."""
    parts = [compared.rows.filter(mask) for mask in (compared.others, pc.invert(compared.others))]
    return pa.concat_tables([part.slice(0, _ROWS_IN_ZONES) for part in parts])


def _has_texts(generator: KeyGenerator, rows: pa.Table) -> bool:
    """Tell whether times are texts: the zone that they come in means nothing for numbers."""
    times = [name for name, kind in generator.partition_fields if kind == "timestamp"]
    return any(pa.types.is_string(field_values(rows, name).type) for name in times)


def _in_other_zones(times: TimestampFormat, *, of_texts: bool) -> Iterator[TimestampFormat]:
    """Yield the format with a zone that is not set, of texts as they come and of what is written, in the likely order."""
    if of_texts and not times.input_timezone:
        yield replace(times, input_timezone="UTC")
    if times.output_timezone and not of_texts:
        return
    for minutes in _SHIFTS:
        zone = f"GMT{'+' if minutes > 0 else '-'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
        yield (
            replace(times, input_timezone=zone)
            if times.output_timezone
            else replace(times, output_timezone=zone)
        )
