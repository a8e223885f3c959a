"""Dates and timestamps of Parquet files that Spark wrote in its calendar of before 3.0, Julian until 1582-10-15.

Such a file says so in its footer, and Spark turns its values into those of the Gregorian calendar wherever it reads it: the
date keeps its name, its number changes. Files of this engine have no such mark, so what goes to one has been turned before.
Source: Apache Spark, ``DataSourceUtils`` (marks) and ``RebaseDateTime`` (values).
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_engine.errors import UnsupportedTableError
from hudi_engine.format.schema.casting import with_leaves
from hudi_engine.format.schema.leaves import leaves_of

_VERSION, _ZONE = b"org.apache.spark.version", b"org.apache.spark.timeZone"
_DATES, _INT96 = (b"org.apache.spark.legacyDateTime", "3.0.0"), (b"org.apache.spark.legacyINT96", "3.1.0")
_FIRST_SAME_DAY = -141_427
"""1582-10-15."""
_FIRST_SAME_SECOND = -2_208_988_800
"""1900-01-01: until then clocks showed a time of their own in most zones, of which Spark's old release knew less."""
_DAY_SECONDS = 86_400
_MARCH_OF_YEAR_0 = -719_470
"""The Julian 0000-03-01: years that begin in March have their leap day last."""
_CYCLE_DAYS = 1461
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_OF_UTC = frozenset(
    {"UTC", "Etc/UTC", "GMT", "Etc/GMT", "Zulu", "Etc/Zulu", "UCT", "Etc/UCT", "Etc/Universal"}
)
_TABLE = "julian-gregorian-rebase-micros.json"

_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class OldCalendar:
    """What a footer says of old values in its file.

    Attributes:
        dates: Whether dates and timestamps are in the old calendar.
        int96: The columns whose timestamps of 96 bits are.
        zone: Time zone of who wrote them, None where it is not said.
    """

    dates: bool
    int96: frozenset[str]
    zone: str | None

    @classmethod
    def of(cls, footer: pq.FileMetaData, texts: Mapping[bytes, bytes] | None = None) -> OldCalendar | None:
        """Return what a footer says; None for a file whose values are as all readers take them.

        Args:
            texts: What it says by keys, where the caller has that.
        """
        told = (footer.metadata or {}) if texts is None else texts
        if _VERSION not in told:
            return None
        version = told[_VERSION].decode()
        dates, int96 = (mark in told or version < since for mark, since in (_DATES, _INT96))
        columns = frozenset(_columns_of_int96(footer)) if int96 else frozenset()
        if not dates and not columns:
            return None
        return cls(dates, columns, told[_ZONE].decode() if _ZONE in told else None)

    def turned(self, rows: pa.Table, source: str) -> pa.Table:
        """Return rows of the file with values as all readers take them; the same where no value is old.

        Args:
            rows: Rows under the names that the file has for its columns.

        Raises:
            UnsupportedTableError: An old timestamp is of a time zone that is not known here.
        """
        for number, field in enumerate(rows.schema):
            if not _has_time(field.type):
                continue
            turn = _Turn(self, field.name, source)
            stored = rows.column(number).chunks
            chunks = [with_leaves(chunk, turn) for chunk in stored]
            if any(new is not old for new, old in zip(chunks, stored, strict=True)):
                rows = rows.set_column(number, field, pa.chunked_array(chunks, field.type))
        return rows

    def may_be_old(self, footer: pq.FileMetaData, columns: pa.Schema) -> bool:
        """Tell whether the statistics of a file leave room for an old value in some columns."""
        names = {field.name for field in columns if _has_time(field.type)}
        for group in (footer.row_group(number) for number in range(footer.num_row_groups)):
            for leaf in (group.column(number) for number in range(footer.num_columns)):
                if leaf.path_in_schema.split(".")[0] in names and _leaf_may_be_old(leaf):
                    return True
        return False


@dataclass(frozen=True)
class _Turn:
    """Makes new values of the old ones of a column's leaves."""

    calendar: OldCalendar
    column: str
    source: str

    def __call__(self, values: pa.Array) -> pa.Array:
        kind = values.type
        if pa.types.is_date32(kind) and self.calendar.dates:
            return _changed(values, pa.int32(), _FIRST_SAME_DAY, days_turned)
        if pa.types.is_timestamp(kind) and self._is_old(kind):
            per_second = _PER_SECOND[kind.unit]
            first_same = _FIRST_SAME_SECOND * per_second
            return _changed(values, pa.int64(), first_same, lambda numbers: self._times(numbers, per_second))
        return values

    def _is_old(self, kind: pa.TimestampType) -> bool:
        """Tell whether timestamps are in the old calendar: without a zone only those are that were INT96."""
        return self.calendar.dates if kind.tz is not None else self.column in self.calendar.int96

    def _times(self, numbers: _Numbers, per_second: int) -> _Numbers:
        zone = self.calendar.zone
        if zone in _OF_UTC:
            days = numbers // (_DAY_SECONDS * per_second)
            return numbers + (days_turned(days) - days) * (_DAY_SECONDS * per_second)
        known = _switches().get(zone or "")
        if known is None or numbers.min() < known[0][0] * per_second:
            raise UnsupportedTableError(
                f"column {self.column!r} of {self.source} has timestamps before 1900 in the calendar of Spark before 3.0, written "
                f"in the time zone {zone or 'of a computer, which the file does not name'}; this engine cannot tell which times "
                "these are. Read them with Spark in that time zone and write them again with "
                "spark.sql.parquet.datetimeRebaseModeInWrite=CORRECTED and spark.sql.parquet.int96RebaseModeInWrite=CORRECTED"
            )
        switches, differences = known
        place = np.searchsorted(switches * per_second, numbers, side="right") - 1
        return numbers + differences[place] * per_second


def days_turned(days: _Numbers) -> _Numbers:
    """Return for days of the old calendar, as days since 1970-01-01, the days of the same names in the Gregorian one."""
    years = (4 * (days - _MARCH_OF_YEAR_0) + 3) // _CYCLE_DAYS
    turned: _Numbers = np.where(days < _FIRST_SAME_DAY, days + 2 - years // 100 + years // 400, days)
    return turned


def _changed(
    values: pa.Array, width: pa.DataType, first_same: int, change: Callable[[_Numbers], _Numbers]
) -> pa.Array:
    """Return values of which those before the first that is the same in both calendars are changed."""
    plain = values.view(width)
    least = pc.min(plain).as_py()
    if least is None or least >= first_same:
        return values
    numbers = pc.fill_null(plain, first_same).to_numpy(zero_copy_only=False).astype(np.int64)
    old = numbers < first_same
    numbers[old] = change(numbers[old])
    return pa.array(numbers, width, mask=plain.is_null().to_numpy(zero_copy_only=False)).view(values.type)


@lru_cache(maxsize=1)
def _switches() -> dict[str, tuple[_Numbers, _Numbers]]:
    """Return for each time zone from which seconds on old times differ by which seconds: Spark's own table, none without Spark."""
    for each in _jars():
        with zipfile.ZipFile(each) as jar:
            if _TABLE in jar.namelist():
                return {
                    zone["tz"]: (np.array(zone["switches"], np.int64), np.array(zone["diffs"], np.int64))
                    for zone in json.loads(jar.read(_TABLE))
                }
    return {}


def _jars() -> Iterator[Path]:
    """Yield the jars of Spark that may have its table: in its package, its home, and beside the archive that its workers import."""
    found = find_spec("pyspark")
    packages = [] if found is None else [Path(each) for each in found.submodule_search_locations or ()]
    homes = [*packages, *(above for each in packages for above in list(each.parents)[:4])]
    if "SPARK_HOME" in os.environ:
        homes.append(Path(os.environ["SPARK_HOME"]))
    for home in homes:
        yield from sorted(home.glob("jars/spark-sql-api_*.jar"))


def _leaf_may_be_old(leaf: pq.ColumnChunkMetaData) -> bool:
    if leaf.physical_type == "INT96":
        return True
    # Of times in another unit than milliseconds, old ones are below that too.
    first_same = {"INT32": _FIRST_SAME_DAY, "INT64": _FIRST_SAME_SECOND * _PER_SECOND["ms"]}.get(
        leaf.physical_type
    )
    if first_same is None:
        return False
    told = leaf.statistics
    return told is None or not told.has_min_max or bool(told.min_raw < first_same)


def _columns_of_int96(footer: pq.FileMetaData) -> Iterator[str]:
    for number in range(footer.num_columns):
        leaf = footer.schema.column(number)
        if leaf.physical_type == "INT96":
            yield leaf.path.split(".")[0]


def _has_time(kind: pa.DataType) -> bool:
    return any(pa.types.is_date32(leaf) or pa.types.is_timestamp(leaf) for _, leaf in leaves_of("", kind))
