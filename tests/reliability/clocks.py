"""Clocks that differ, go back and lie in other zones: what was written is read, and instants go on rising."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hudi_engine import HudiTable
from hudi_engine.errors import ConfigError
from hudi_engine.format.config.declared.table_options import TableOptions
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.local import LocalStorage

from tests.golden.golden import unpack
from tests.reliability import real_table
from tests.reliability.figures import Figures
from tests.reliability.kill import Size
from tests.reliability.real_table import (
    KINDS,
    Content,
    batch,
    by_hudi_rs,
    content,
    in_version,
    published,
    told,
)

# Distances from Greenwich as the C library has them, and places that have summer time.
ZONES = (
    *(f"XXX{-hours:+d}" for hours in range(-11, 15)),
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",
)
# Both changes of each zone with summer time in a year, and a day without one; all in the past.
BEGINNINGS = (
    datetime(2025, 3, 9, 6, 59, 58, tzinfo=timezone.utc),
    datetime(2025, 11, 2, 5, 59, 58, tzinfo=timezone.utc),
    datetime(2025, 3, 30, 0, 59, 58, tzinfo=timezone.utc),
    datetime(2025, 10, 26, 0, 59, 58, tzinfo=timezone.utc),
    datetime(2025, 4, 5, 14, 59, 58, tzinfo=timezone.utc),
    datetime(2025, 6, 1, 23, 59, 58, tzinfo=timezone.utc),
)
TURNS = 8
MOST_TABLES = 2 * len(ZONES)
MADE_BY_HUDI = ("v6_cow_simple_overwrite_h0150", "v6_mor_simple_deletes_h0150")
HOUR = timedelta(hours=1)


def run(spark: Any, root: Path, size: Size, seed: int = 11) -> Figures:
    """Run the row: ``share`` of all tables, every zone in turn; a point for each comparison."""
    figures, chance = Figures(), random.Random(seed)
    order = chance.sample(range(MOST_TABLES), MOST_TABLES)
    for number in order[: max(1, round(MOST_TABLES * size.share))]:
        if size.is_over(figures):
            break
        zone = ZONES[number % len(ZONES)]
        version = size.version_of(number)
        game = Game(spark, root / f"clocks{number}", zone, random.Random(seed + number), version)
        figures.try_point(game.play, figures)
        figures.count("tables")
    for number, name in enumerate(MADE_BY_HUDI[: 1 if size.share < 0.5 else None]):
        zone = ZONES[(number * 13) % len(ZONES)]
        figures.try_point(goes_on, spark, root / f"made{number}", name, zone, figures)
        figures.count("tables")
    return figures


class WornClock:
    """A clock of a machine that is wrong, and goes on by a few milliseconds a look.

    Args:
        start: What it shows at first.
    """

    def __init__(self, start: datetime) -> None:
        self.shown = start
        self._back_after = -1

    def __call__(self) -> datetime:
        """Show the time."""
        self._back_after -= 1
        if self._back_after == 0:
            self.shown -= HOUR
        self.shown += timedelta(milliseconds=7)
        return self.shown

    def go_back_after(self, looks: int) -> None:
        """Jump back by an hour when it is looked at so many times from now."""
        self._back_after = looks


@contextmanager
def living(zone: str, clock: WornClock | None = None) -> Iterator[None]:
    """Let this process be in a zone, with a clock of its own."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = zone
    time.tzset()
    try:
        if clock is None:
            yield
        else:
            with patch("hudi_engine.format.timeline.clock._utc_now", clock):
                yield
    finally:
        del os.environ["TZ"]
        if before is not None:
            os.environ["TZ"] = before
        time.tzset()


class Game:
    """One table, written in turn by machines whose clocks are not those of each other.

    Args:
        spark: The session.
        path: Where the table is made.
        zone: Of the machines, where the timeline is in local time; else each has its own.
        chance: Decides what happens.
        version: Table version.
    """

    def __init__(self, spark: Any, path: Path, zone: str, chance: random.Random, version: int) -> None:
        self._chance, self._zone = chance, zone
        kind = in_version(KINDS[chance.choice(("cow", "mor"))], version)
        self._table = real_table.create(spark, path, kind)
        self._is_local = chance.random() < 0.5
        storage = LocalStorage(str(path))
        said = "LOCAL" if self._is_local else "UTC"
        TableConfig.load(storage).with_properties({"hoodie.table.timeline.timezone": said}).save(storage)
        self._clock = WornClock(chance.choice(BEGINNINGS))
        self._rows: Content = {}
        self._states: dict[str, Content] = {}
        self._done: list[str] = [f"{said} {zone} {kind.table_type} version {version}"]

    def play(self, figures: Figures) -> None:
        """Write some commits with trouble between and within them, and compare after each."""
        for turn in range(1, TURNS + 1):
            trouble = self._trouble()
            self._done.append(trouble)
            zone = self._zone if self._is_local else self._chance.choice(ZONES)
            with living(zone, self._clock):
                self._write(turn)
                self._compare(figures)
        with living(self._zone, self._clock):
            self._compare_states(figures)

    def _trouble(self) -> str:
        trouble = self._chance.choice(("none", "back", "back within", "ahead", "a second"))
        if trouble == "back":
            self._clock.shown -= HOUR
        elif trouble == "back within":
            self._clock.go_back_after(self._chance.randint(1, 4))
        elif trouble == "ahead":
            self._clock.shown += 3 * HOUR
        elif trouble == "a second":
            self._clock.shown += timedelta(seconds=1)
        return trouble

    def _write(self, turn: int) -> None:
        """Do a write, seldom a delete, and sometimes a service after it."""
        parts, keys = "abc", self._chance.sample(range(9), 3)
        rows = [(parts[key % 3], f"k{key}", turn, f"{turn}.{key}") for key in keys]
        if turn > 2 and self._chance.random() < 0.2:
            self._table.delete(batch(rows))
            for part, key, *_ in rows:
                self._rows.pop((part, key), None)
        else:
            self._table.upsert(batch(rows))
            self._rows.update({(part, key): (ts, text) for part, key, ts, text in rows})
        newest = real_table.commits(self._table)[-1].requested_time
        before = max(self._states, default="")
        assert newest > before, f"{self._done}: instant {newest} is not after {before}"
        self._states[newest] = dict(self._rows)
        if turn == TURNS // 2 and self._table.config.table_type.value == "MERGE_ON_READ":
            self._table.compact()
        elif self._chance.random() < 0.2:
            self._table.clean(4)

    def _compare(self, figures: Figures) -> None:
        path = self._table.path
        for way, reader in (("read()", content), ("manifest", published), ("hudi-rs", by_hudi_rs)):
            found = reader(path)
            figures.points += 1
            if found is not None and found != self._rows:
                raise AssertionError(f"{self._done}, {way}: {told(found)}, not {told(self._rows)}")

    def _compare_states(self, figures: Figures) -> None:
        """Look at the last states by their instants; a clean keeps four."""
        for instant, rows in list(self._states.items())[-3:]:
            found = content(self._table.path, instant)
            figures.points += 1
            if found != rows:
                raise AssertionError(f"{self._done}, as of {instant}: {told(found)}, not {told(rows)}")


def goes_on(spark: Any, root: Path, name: str, zone: str, figures: Figures) -> None:
    """Go on with a table that Apache Hudi made in local time, in another zone and with a clock that is before that.

    Its files show the zone of its writers, so that the first write is refused until it gives the zone.
    """
    path = str(unpack(name, root))
    storage = LocalStorage(path)
    config = TableConfig.load(storage)
    config.with_properties({"hoodie.table.timeline.timezone": "LOCAL"}).save(storage)
    newest = HudiTable.open(spark, path).timeline()[-1].requested_time
    year = int(newest[:4])
    with living(zone, WornClock(datetime(year - 1, 1, 1, tzinfo=timezone.utc))):
        figures.points += 1
        try:
            HudiTable.open(spark, path, options=real_table.CALM).delete_where("true")
        except ConfigError as refusal:
            assert "written in another time zone" in str(refusal), f"{name} in {zone}: {refusal}"
        else:
            raise AssertionError(f"{name} in {zone}: a write did not notice the zone of the others")
        given = {**real_table.CALM, str(TableOptions.TIMELINE_ZONE): "Etc/UTC"}
        table = HudiTable.open(spark, path, options=given)
        for _ in range(2):
            before = keys_by_hudi_rs(path)
            gone = before[0]
            table.delete_where(f"_hoodie_record_key = '{gone}'")
            figures.points += 2
            written = real_table.commits(table)[-1].requested_time
            assert written > newest, f"{name} in {zone}: {written} is not after {newest}"
            newest = written
            assert keys_by_hudi_rs(path) == before[1:], f"{name} in {zone}: {gone} was to go"


def keys_by_hudi_rs(path: str) -> list[str]:
    """Return the record keys that hudi-rs reads."""
    from tests.helpers.hudi_rs import rows_by_hudi_rs

    return [row[0] for row in rows_by_hudi_rs(path, ["_hoodie_record_key"])]
