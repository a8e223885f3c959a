"""New instants never repeat and never go back."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import pytest
from hudi_engine.errors import TimelineError
from hudi_engine.format.timeline.clock import InstantClock, format_instant, parse_instant_time, query_instant

NOON = datetime(2024, 2, 29, 12, 0, 0, 123456, tzinfo=timezone.utc)


def test_an_instant_is_the_time_in_utc_to_the_millisecond() -> None:
    tokyo = NOON.astimezone(timezone(timedelta(hours=9)))

    assert InstantClock(lambda: tokyo).next() == "20240229120000123"


def test_a_standing_clock_still_gives_increasing_instants() -> None:
    clock = InstantClock(lambda: NOON)

    assert [clock.next() for _ in range(3)] == ["20240229120000123", "20240229120000124", "20240229120000125"]


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (None, "20240229120000123"),
        ("20240229115959999", "20240229120000123"),
        ("20240229120000123", "20240229120000124"),
        ("20240229235959999", "20240301000000000"),
        ("20240229120000", "20240229120000123"),
        ("20240301000000", "20240301000001000"),
    ],
)
def test_an_instant_lies_after_the_newest_one_even_when_that_is_ahead(
    after: str | None, expected: str
) -> None:
    assert InstantClock(lambda: NOON).next(after) == expected


def test_a_clock_that_went_back_does_not_matter() -> None:
    moments = iter([NOON, NOON - timedelta(hours=1)])
    clock = InstantClock(lambda: next(moments))

    assert clock.next() < clock.next()


def test_an_instant_ahead_that_is_no_date_is_refused() -> None:
    with pytest.raises(TimelineError, match="'99999999999999999' is no instant time"):
        InstantClock(lambda: NOON).next("99999999999999999")


def test_threads_never_get_the_same_instant() -> None:
    clock = InstantClock()
    with ThreadPoolExecutor(8) as pool:
        instants = list(pool.map(lambda _: clock.next(), range(200)))

    assert len(set(instants)) == 200


@pytest.mark.parametrize("instant", ["20240229120000123", "19991231235959999", "08850301000000000"])
def test_an_instant_is_parsed_back(instant: str) -> None:
    assert format_instant(parse_instant_time(instant)) == instant


@pytest.mark.parametrize("odd", ["²²²", "٣٣٣", "12x"])
def test_an_instant_of_other_digits_is_refused(odd: str) -> None:
    with pytest.raises(TimelineError, match="an instant has 14 or 17 digits"):
        parse_instant_time(f"20240229120000{odd}")


def test_a_short_instant_stands_for_the_end_of_its_second() -> None:
    assert format_instant(parse_instant_time("20240229120000")) == "20240229120000999"


@pytest.mark.parametrize("instant", ["00000000000001", "00000000000002"])
def test_an_instant_of_a_bootstrap_is_a_point_in_time_before_all_others(instant: str) -> None:
    assert query_instant(instant) == instant
    assert parse_instant_time(instant) < parse_instant_time("19700101000001000")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("20240229120000123", "20240229120000123"),
        ("20240229120000", "20240229120000"),
        ("2024-02-29", "20240229000000000"),
        ("2024-02-29 12:00:01", "20240229120001000"),
        ("2024-02-29T12:00:01.045", "20240229120001045"),
    ],
)
def test_a_point_in_time_is_written_in_several_ways(text: str, expected: str) -> None:
    assert query_instant(text) == expected


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2024-02-30", "202402", "2024-02-29 25:00:00", "20240229120000٣٣٣"]
)
def test_what_is_no_point_in_time_is_refused_with_what_is(text: str) -> None:
    with pytest.raises(TimelineError, match="no point in time; legal values: an instant such as"):
        query_instant(text)


def test_no_instant_follows_the_last_one_there_can_be() -> None:
    with pytest.raises(TimelineError, match="no instant can follow 99991231235959999"):
        InstantClock().next("99991231235959999")
