"""Date patterns of Joda-Time: writing and reading."""

from __future__ import annotations

import datetime as dt

import pytest
from hudi_engine.errors import ConfigError
from hudi_engine.format.keygen.joda.parser import DateTextError, JodaParser
from hudi_engine.format.keygen.joda.pattern import format_millis, tokenize
from hudi_engine.format.keygen.joda.time_zone import find_zone
from hypothesis import given
from hypothesis import strategies as st

# 2024-02-03 was a Saturday.
SATURDAY = 1706933106123


def written(pattern: str, millis: int = SATURDAY, zone: str = "UTC") -> str:
    return format_millis(tokenize(pattern), millis, find_zone(zone))


def read(pattern: str, text: str, zone: str = "UTC") -> str:
    parsed = JodaParser(pattern).parse(text, find_zone(zone))
    return dt.datetime.fromtimestamp(parsed.millis / 1000, dt.timezone.utc).isoformat(timespec="milliseconds")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("yyyy/MM/dd/HH", "2024/02/03/04"),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSZ", "2024-02-03T04:05:06.123+0000"),
        ("yy M d H h m s", "24 2 3 4 4 5 6"),
        ("y YYYYY", "2024 02024"),
        ("S SS SSSSS", "1 12 12300"),
        ("E EEE EEEE", "Sat Sat Saturday"),
        ("MMM MMMM", "Feb February"),
        ("a k K D e", "AM 4 4 34 6"),
        ("xxxx-'W'ww", "2024-W05"),
        ("CC G", "20 AD"),
        ("ZZ ZZZ z", "+00:00 UTC UTC"),
        ("'day='yyyyMMdd", "day=20240203"),
        ("hh 'o''clock'", "04 o'clock"),
        ("''yyyy''", "'2024'"),
        ("yyyy年MM月", "2024年02月"),
    ],
)
def test_writing(pattern, expected):
    assert written(pattern) == expected


@pytest.mark.parametrize(
    ("millis", "zone", "pattern", "expected"),
    [
        (SATURDAY, "Asia/Kolkata", "yyyyMMddHHmm ZZ z", "202402030935 +05:30 IST"),
        (SATURDAY, "America/New_York", "dd HH Z z ZZZ", "02 23 -0500 EST America/New_York"),
        (SATURDAY, "GMT+8:00", "dd HH ZZ z", "03 12 +08:00 +08:00"),
        (SATURDAY, "GMT-03", "HH Z", "01 -0300"),
        (-1, "UTC", "yyyy-MM-dd HH:mm:ss.SSS", "1969-12-31 23:59:59.999"),
        (253402300800000, "UTC", "yyyy-MM-dd", "10000-01-01"),
        (1706933106123456, "UTC", "yyyy", "56060"),
        (-62198755200000, "UTC", "yyyy-MM-dd Y", "-0001-01-01 2"),
        (12 * 3_600_000, "UTC", "h K a", "12 0 PM"),
        (0, "UTC", "h k a", "12 24 AM"),
    ],
)
def test_writing_at_other_instants_and_zones(millis, zone, pattern, expected):
    assert written(pattern, millis, zone) == expected


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSSZ", "2023-04-01T12:01:00.123Z", "2023-04-01T12:01:00.123+00:00"),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSZ", "2020-04-01T13:01:33.428+05:30", "2020-04-01T07:31:33.428+00:00"),
        ("yyyy-MM-dd HH:mm:ssZZ", "2020-04-01 13:01:33-0100", "2020-04-01T14:01:33.000+00:00"),
        ("yyyyMMdd", "20240203", "2024-02-03T00:00:00.000+00:00"),
        ("yyyyMMddHHmmssSSS", "20240203040506123", "2024-02-03T04:05:06.123+00:00"),
        ("yyyy-MM-dd", "2024-2-3", "2024-02-03T00:00:00.000+00:00"),
        ("d MMMM yyyy", "3 february 2024", "2024-02-03T00:00:00.000+00:00"),
        ("EEE, d MMM yyyy HH:mm", "Sat, 3 FEB 2024 4:05", "2024-02-03T04:05:00.000+00:00"),
        ("yyyy-MM-dd hh:mm a", "2024-02-03 12:30 am", "2024-02-03T00:30:00.000+00:00"),
        ("yyyy-MM-dd hh:mm a", "2024-02-03 12:30 PM", "2024-02-03T12:30:00.000+00:00"),
        ("yyyy-MM-dd kk", "2024-02-03 24", "2024-02-03T00:00:00.000+00:00"),
        ("yyyy DDD", "2024 060", "2024-02-29T00:00:00.000+00:00"),
        ("yyyy", "2024", "2024-01-01T00:00:00.000+00:00"),
        ("MM-dd", "02-29", "2000-02-29T00:00:00.000+00:00"),
        ("HH:mm", "10:30", "1970-01-01T10:30:00.000+00:00"),
        ("ss.SSS", "1.5", "1970-01-01T00:00:01.500+00:00"),
        ("yyyy-MM-dd ZZZ", "2024-07-01 Europe/Paris", "2024-06-30T22:00:00.000+00:00"),
        ("yyyy-MM-dd z", "2024-07-01 EST", "2024-07-01T04:00:00.000+00:00"),
        ("yyyy-MM-dd'T'HH", "2024-02-03t04", "2024-02-03T04:00:00.000+00:00"),
    ],
)
def test_reading(pattern, text, expected):
    assert read(pattern, text) == expected


def test_texts_without_an_offset_are_read_in_the_given_zone():
    assert read("yyyy-MM-dd HH", "2024-07-01 12", "America/New_York") == "2024-07-01T16:00:00.000+00:00"
    assert (
        read("yyyy-MM-dd HH Z", "2024-07-01 12 +01:00", "America/New_York") == "2024-07-01T11:00:00.000+00:00"
    )


def test_two_digit_years_lie_around_today():
    this_year = dt.datetime.now(dt.timezone.utc).year
    for year in (this_year - 80, this_year, this_year + 19):
        assert read("yyMMdd", f"{year % 100:02d}0101") == f"{year}-01-01T00:00:00.000+00:00"


def test_of_two_equal_times_the_earlier_is_meant():
    assert read("yyyy-MM-dd HH:mm", "2024-11-03 01:30", "America/New_York") == "2024-11-03T05:30:00.000+00:00"


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd", "2024-02-30"),
        ("yyyy-MM-dd", "2023-02-29"),
        ("yyyy-MM-dd", "2024-13-01"),
        ("yyyy-MM-dd", "2024-02-03 "),
        ("yyyy-MM-dd", ""),
        ("yyyy-MM-dd", "n/a"),
        ("yyyyMMdd", "2024023"),
        ("HH:mm", "24:00"),
        ("hh a", "13 PM"),
        ("yyyy DDD", "2023 366"),
        ("yyyy-MM-dd Z", "2024-01-01 01:00"),
        ("yyyy-MM-dd Z", "2024-01-01 +99"),
        ("yyyy-MM-dd ZZZ", "2024-01-01 Mars/Olympus"),
        ("MMM", "Febtember"),
        ("MMM", "fEb"),
        ("ss.SSSZ", "1.Z"),
    ],
)
def test_texts_that_do_not_fit_are_refused(pattern, text):
    if pattern == "yyyyMMdd":
        assert read(pattern, text) == "2024-02-03T00:00:00.000+00:00"
        return
    with pytest.raises(DateTextError):
        JodaParser(pattern).parse(text)


def test_a_time_that_clocks_skip_is_refused():
    with pytest.raises(DateTextError, match="turned forward"):
        JodaParser("yyyy-MM-dd HH:mm").parse("2024-03-10 02:30", find_zone("America/New_York"))


@given(
    st.integers(-62_135_596_800_000, 253_402_300_799_999),
    st.sampled_from(["UTC", "Asia/Kolkata", "GMT-03:30", "Pacific/Auckland"]),
)
def test_what_is_written_reads_back(millis, zone):
    pattern = "yyyy-MM-dd HH:mm:ss.SSS ZZ" if millis > 0 else "yyyy-MM-dd HH:mm:ss.SSS"
    used = zone if millis > 0 else "UTC"
    assert JodaParser(pattern).parse(written(pattern, millis, used)).millis == millis


@pytest.mark.parametrize("pattern", ["yyyy-MM-ddTHH", "jj", "", "yyyy b"])
def test_patterns_without_meaning_are_refused(pattern):
    with pytest.raises(ConfigError, match="pattern"):
        tokenize(pattern)


@pytest.mark.parametrize("pattern", ["G yyyy", "xxxx-ww", "CC", "zzzz"])
def test_patterns_that_can_only_be_written_are_refused_for_reading(pattern):
    with pytest.raises(ConfigError, match="can be written but not read"):
        JodaParser(pattern)


@pytest.mark.parametrize("name", ["Mars/Olympus", "", "../etc/passwd", "/etc/localtime", "GMT+99:00", "PST8"])
def test_unknown_zones_are_refused(name):
    with pytest.raises(ConfigError, match="not known"):
        find_zone(name)


@pytest.mark.parametrize(
    ("name", "instead"), [("-08:00", "GMT-08:00"), ("UTC+5", "GMT+5"), ("0530", "GMT+5:30")]
)
def test_offsets_that_java_takes_as_utc_are_refused_with_what_to_give(name, instead):
    with pytest.raises(ConfigError, match="reads it as UTC") as caught:
        find_zone(name)
    assert f"such as '{instead}'" in str(caught.value)


@pytest.mark.parametrize("name", ["posix/Europe/Paris", "right/Europe/Paris", "localtime", "Factory"])
def test_names_that_only_some_machines_have_are_refused(name):
    with pytest.raises(ConfigError, match="not known to Java"):
        find_zone(name)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("EST", "America/New_York"),
        ("MST", "America/Denver"),
        ("HST", "Pacific/Honolulu"),
        ("PST", "America/Los_Angeles"),
        ("IST", "Asia/Kolkata"),
        ("CET", "CET"),
        ("GMT+530", "+05:30"),
        ("GMT-8", "-08:00"),
        ("Z", "UTC"),
        ("zulu", "UTC"),
    ],
)
def test_short_ids_are_the_zones_that_joda_makes_of_them(name, text):
    assert written("ZZZ", zone=name) == text


def test_a_zone_in_a_text_may_be_a_bare_offset():
    assert read("yyyy-MM-dd HH ZZZ", "2024-02-03 04 -08:00") == "2024-02-03T12:00:00.000+00:00"


@pytest.mark.parametrize("pattern", ["EEE HH:mm", "e", "yyyy DDD dd", "MM DDD", "HH hh", "k H"])
def test_patterns_that_can_contradict_themselves_are_refused_for_reading(pattern):
    with pytest.raises(ConfigError, match="say date and time once each"):
        JodaParser(pattern)
