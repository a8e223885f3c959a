"""Timelines in local time, as Apache Hudi keeps them unless it is told otherwise, wherever the writers are."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hudi_engine.errors import ConfigError
from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.config.table_config import ZONE_PROPERTY, TableConfig
from hudi_engine.format.filegroup.base_file import base_file_name
from hudi_engine.format.filegroup.partition_metadata import ensure_partition_metadata
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.clock import LOCAL, InstantClock, format_instant, parse_instant_time
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_engine.table.services.clean.execute import clean
from hudi_engine.table.services.compaction.plan import compaction_due
from hudi_engine.table.snapshot.publication import publication_of
from hudi_engine.table.txn.recovery import rollback_write
from hudi_engine.table.txn.savepoint import create_savepoint

import tests.faults.mini_table as mini

ZONES = range(-11, 15)


@pytest.fixture
def live_at(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """Move this process to a zone by its distance from Greenwich, or by name."""

    def move(zone: int | str) -> None:
        monkeypatch.setenv("TZ", zone if isinstance(zone, str) else f"XXX{-zone:+d}")
        time.tzset()

    yield move
    monkeypatch.undo()
    time.tzset()


def table_of(base: Path, zone: str | None) -> LocalStorage:
    """An empty table whose timeline is in a zone, by default in what its property's absence means."""
    storage = mini.create_table(str(base))
    properties = dict(TableConfig.load(storage).properties)
    del properties["hoodie.table.timeline.timezone"]
    if zone is not None:
        properties["hoodie.table.timeline.timezone"] = zone
    storage.replace(PROPERTIES_PATH, TableConfig.from_properties(properties).to_bytes())
    return storage


def digits(hours: float) -> str:
    """The present in the digits of a zone, as a program made by others writes them."""
    moment = datetime.now(timezone.utc) + timedelta(hours=hours)
    return moment.strftime("%Y%m%d%H%M%S%f")[:17]


def other_commit(storage: LocalStorage, instant: str, rows: dict[str, int]) -> None:
    """Commit a version of file group ``g-0`` as another program does."""
    name = base_file_name("g-0", "0-0-0", instant)
    ensure_partition_metadata(storage, "a", instant)
    storage.create(f"a/{name}", json.dumps(rows).encode())
    stat = WriteStat(file_id="g-0", path=f"a/{name}", partition_path="a", num_writes=len(rows))
    body = CommitMetadata({"a": [stat]}, {"schema": mini.SCHEMA}, "UPSERT").to_json()
    storage.create(f".hoodie/{instant}.commit", body)


@pytest.mark.parametrize("hours", ZONES)
def test_the_newest_commit_of_two_programs_in_local_time_is_what_readers_see(
    hours: int, tmp_path: Path, live_at
) -> None:
    live_at(hours)
    storage = table_of(tmp_path, None)
    other_commit(storage, digits(hours), {"k": 1})
    assert mini.content(storage) == {("a", "k"): 1}
    mini.write(storage, {"a": {"k": 2}})
    assert mini.content(storage) == {("a", "k"): 2}
    time.sleep(0.002)
    other_commit(storage, digits(hours), {"k": 3})
    assert mini.content(storage) == {("a", "k"): 3}


@pytest.mark.parametrize(("zone", "shift"), [(None, -5), ("LOCAL", -5), ("local", -5), ("UTC", 0)])
def test_instants_are_in_the_zone_that_the_table_says(
    zone: str | None, shift: int, tmp_path: Path, live_at
) -> None:
    live_at(-5)
    before = digits(shift)
    assert before <= mini.write(table_of(tmp_path, zone), {"a": {"k": 1}}) <= digits(shift)


@pytest.mark.parametrize("hours", ZONES)
@pytest.mark.parametrize("zone", ["LOCAL", "UTC"])
def test_a_clean_by_hours_counts_hours_in_the_zone_of_the_table(
    zone: str, hours: int, tmp_path: Path, live_at
) -> None:
    live_at(hours)
    storage = table_of(tmp_path, zone)
    shift = hours if zone == "LOCAL" else 0
    for age in (10, 9, 3, 1):
        other_commit(storage, digits(shift - age), {"k": age})
    retained = mini.options(hoodie__clean__policy="KEEP_LATEST_BY_HOURS", hoodie__clean__hours__retained=4)
    assert clean(storage, retained).files_deleted == 1
    kept = sorted(status.name for status in storage.list("a") if status.name.endswith(".parquet"))
    assert len(kept) == 3 and kept[0].startswith(f"g-0_0-0-0_{digits(shift - 9)[:10]}")


@pytest.mark.parametrize("hours", ZONES)
def test_elapsed_time_is_counted_in_the_zone_of_the_table(hours: int, tmp_path: Path, live_at) -> None:
    live_at(hours)
    storage = table_of(tmp_path, "LOCAL")
    storage.create(f".hoodie/{digits(hours - 2)}.deltacommit", CommitMetadata().to_json())
    timeline = Timeline.load(storage, TableConfig.load(storage))
    now = InstantClock().next(timeline.latest_time, timeline.zone)

    def due(seconds: int) -> bool:
        options = mini.options(
            hoodie__compact__inline__trigger__strategy="TIME_ELAPSED",
            hoodie__compact__inline__max__delta__seconds=seconds,
        )
        return compaction_due(timeline, options, now)

    assert due(2 * 3600 - 60)
    assert not due(2 * 3600 + 60)


def test_instants_go_on_rising_when_local_time_goes_back_an_hour(live_at) -> None:
    live_at("America/New_York")
    end_of_summer = datetime(2026, 11, 1, 5, 59, 59, tzinfo=timezone.utc)
    moments = iter(end_of_summer + timedelta(seconds=number) for number in range(5))
    clock, newest = InstantClock(lambda: next(moments)), None
    found = []
    for _ in range(5):
        newest = clock.next(newest, LOCAL)
        found.append(newest)
    assert found == [
        "20261101015959000", "20261101015959001", "20261101015959002", "20261101015959003", "20261101015959004"
    ]  # fmt: skip


@pytest.mark.parametrize("hours", ZONES)
def test_an_instant_in_local_time_stands_for_its_moment(hours: int, live_at) -> None:
    live_at(hours)
    moment = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
    assert parse_instant_time(format_instant(moment, LOCAL), LOCAL) == moment


def test_a_timeline_ahead_of_the_present_is_said_with_what_it_means(
    tmp_path: Path, live_at, caplog: pytest.LogCaptureFixture
) -> None:
    live_at(-5)
    storage = table_of(tmp_path, "LOCAL")
    other_commit(storage, digits(-5 + 0.1), {"k": 1})
    with caplog.at_level(logging.WARNING):
        mini.write(storage, {"a": {"k": 2}})
    assert re.search(r"newest instant \d{17} lies 0:05:5\d\.\d+ ahead of the present", caplog.text)
    assert "LOCAL, here XXX -0500" in caplog.text
    assert "Writers of a table need the same zone" in caplog.text


def test_a_zone_that_is_neither_utc_nor_local_is_refused_before_a_write(tmp_path: Path) -> None:
    storage = table_of(tmp_path, "Europe/Paris")
    with pytest.raises(Exception, match=r"timeline\.timezone='EUROPE/PARIS'; legal values: UTC and LOCAL"):
        mini.write(storage, {"a": {"k": 1}})
    assert [status.name for status in storage.list(".hoodie")] == ["hoodie.properties"]


def names_in(storage: LocalStorage) -> list[str]:
    """What is in the timeline folder."""
    return sorted(status.name for status in storage.list(".hoodie"))


@pytest.mark.parametrize(("hours", "said"), [(-5, "5 hours behind"), (5.5, "5.5 hours ahead of")])
def test_writers_of_another_zone_are_named_before_a_write(
    hours: float, said: str, tmp_path: Path, live_at
) -> None:
    live_at("UTC")
    storage = table_of(tmp_path, "LOCAL")
    for rows in ({"k": 1}, {"k": 2}):
        other_commit(storage, digits(hours), rows)
        time.sleep(0.002)
    before = names_in(storage)
    with pytest.raises(ConfigError, match=rf"are {said} the times at which this machine.*America/New_York"):
        mini.write(storage, {"a": {"k": 3}})
    assert names_in(storage) == before
    assert mini.content(storage) == {("a", "k"): 2}


def test_a_zone_that_a_writer_gives_is_kept_for_all_writers(tmp_path: Path, live_at) -> None:
    live_at("UTC")
    storage = table_of(tmp_path, "LOCAL")
    other_commit(storage, digits(-7), {"k": 1})
    given = mini.options(hoodie__table__timeline__timezone="America/Phoenix")
    assert create_savepoint(storage, given, publication_of(storage)).instant < digits(-7)
    for value in (2, 3):
        before = digits(-7)
        assert before <= mini.write(storage, {"a": {"k": value}}) <= digits(-7)
        assert mini.content(storage) == {("a", "k"): value}
        time.sleep(0.002)
    other_commit(storage, digits(-7), {"k": 4})
    assert mini.content(storage) == {("a", "k"): 4}


def test_writers_that_leave_the_zone_of_the_table_are_named(tmp_path: Path, live_at) -> None:
    live_at("UTC")
    storage = table_of(tmp_path, "LOCAL")
    config = TableConfig.load(storage)
    config.with_properties({ZONE_PROPERTY: "America/Phoenix"}).save(storage)
    other_commit(storage, digits(-5), {"k": 1})
    with pytest.raises(
        ConfigError, match=r"2 hours ahead of .* the zone that the table keeps, America/Phoenix"
    ):
        mini.write(storage, {"a": {"k": 2}})


def test_files_of_a_copied_table_have_no_zone(tmp_path: Path, live_at) -> None:
    live_at("UTC")
    storage = table_of(tmp_path, "LOCAL")
    other_commit(storage, digits(-5), {"k": 1})
    other_commit(storage, digits(-4.9), {"k": 2})
    mini.write(storage, {"a": {"k": 3}})
    assert mini.content(storage) == {("a", "k"): 3}


def test_an_unknown_zone_is_refused_before_a_write(tmp_path: Path) -> None:
    storage = table_of(tmp_path, "LOCAL")
    before = names_in(storage)
    with pytest.raises(ConfigError, match=r"timezone is 'New York'; legal values: LOCAL, UTC and IANA names"):
        rollback_write(
            storage, mini.options(hoodie__table__timeline__timezone="New York"), publication_of(storage)
        )
    assert names_in(storage) == before


def test_completion_times_tell_the_zone_of_writers(tmp_path: Path, live_at) -> None:
    live_at("UTC")
    storage = table_of(tmp_path, "LOCAL")
    config = TableConfig.load(storage).with_properties(
        {"hoodie.table.version": "9", "hoodie.timeline.layout.version": "2"}
    )
    storage.create(f"{config.timeline_path}/20200101000000000_{digits(2)}.commit", b"")
    assert Timeline.load(storage, config).zone_difference() == timedelta(hours=2)
