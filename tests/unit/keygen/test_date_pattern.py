"""Date patterns of the timestamp-based key generator: writing and reading."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from hudi_engine.errors import ConfigError, InvalidKeyError
from hudi_engine.format.keygen.time_zone import find_zone
from hudi_engine.format.keygen.timestamp_format import DateReader, format_millis, tokenize, utc_of_local
from hypothesis import given
from hypothesis import strategies as st

# 2024-02-03 was a Saturday.
SATURDAY = 1706933106123


def written(pattern: str, millis: int = SATURDAY, zone: str = "UTC") -> str:
    return format_millis(tokenize(pattern), millis, find_zone(zone))


def read(pattern: str, text: str, zone: str = "UTC") -> str | None:
    """The instant of a text; None for one that does not fit."""
    found = DateReader(pattern).read(pa.array([text], pa.string()))
    utc, exists = utc_of_local(found.millis, find_zone(zone))
    if not found.good[0] or not (found.has_offset[0] or exists[0]):
        return None
    millis = int(found.millis[0] - found.offsets[0] if found.has_offset[0] else utc[0])
    at = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(milliseconds=millis)
    return at.isoformat(timespec="milliseconds")


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
        ("a D ZZ", "AM 34 +00:00"),
        ("'day='yyyyMMdd", "day=20240203"),
        ("hh 'o''clock'", "04 o'clock"),
        ("''yyyy''", "'2024'"),
        ("yyyy年MM月", "2024年02月"),
    ],
)
def test_writing(pattern: str, expected: str) -> None:
    assert written(pattern) == expected


@pytest.mark.parametrize(
    ("millis", "zone", "pattern", "expected"),
    [
        (SATURDAY, "Asia/Kolkata", "yyyyMMddHHmm ZZ", "202402030935 +05:30"),
        (SATURDAY, "America/New_York", "dd HH Z", "02 23 -0500"),
        (SATURDAY, "GMT+8:00", "dd HH ZZ", "03 12 +08:00"),
        (SATURDAY, "GMT-03:30", "HH Z", "00 -0330"),
        (-1, "UTC", "yyyy-MM-dd HH:mm:ss.SSS", "1969-12-31 23:59:59.999"),
        (12 * 3_600_000, "UTC", "h a", "12 PM"),
        (0, "UTC", "h a", "12 AM"),
    ],
)
def test_writing_at_other_instants_and_zones(millis: int, zone: str, pattern: str, expected: str) -> None:
    assert written(pattern, millis, zone) == expected


@pytest.mark.parametrize("millis", [253402300800000, -62198755200000])
def test_years_of_more_than_four_digits_are_refused(millis: int) -> None:
    with pytest.raises(InvalidKeyError, match=r"not in the years 1 to 9999; check \S+timestamp.type"):
        written("yyyy", millis)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSSZ", "2023-04-01T12:01:00.123Z", "2023-04-01T12:01:00.123+00:00"),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSZ", "2020-04-01T13:01:33.428+05:30", "2020-04-01T07:31:33.428+00:00"),
        ("yyyy-MM-dd HH:mm:ssZZ", "2020-04-01 13:01:33-0100", "2020-04-01T14:01:33.000+00:00"),
        ("yyyy-MM-dd HH Z", "2020-04-01 13 +01", "2020-04-01T12:00:00.000+00:00"),
        ("yyyyMMdd", "20240203", "2024-02-03T00:00:00.000+00:00"),
        ("yyyyMMdd", "2024023", "2024-02-03T00:00:00.000+00:00"),
        ("yyyyMMddHHmmssSSS", "20240203040506123", "2024-02-03T04:05:06.123+00:00"),
        ("yyyy-MM-dd", "2024-2-3", "2024-02-03T00:00:00.000+00:00"),
        ("yyyy", "2024", "2024-01-01T00:00:00.000+00:00"),
        ("yyyy-MM-dd HH:mm:ss.SSSSSS", "2024-02-03 04:05:06.5", "2024-02-03T04:05:06.500+00:00"),
        ("yyyy-MM-dd'T'HH", "2024-02-03t04", "2024-02-03T04:00:00.000+00:00"),
    ],
)
def test_reading(pattern: str, text: str, expected: str) -> None:
    assert read(pattern, text) == expected


def test_texts_without_an_offset_are_in_the_given_zone() -> None:
    zone = "America/New_York"
    assert read("yyyy-MM-dd HH", "2024-07-01 12", zone) == "2024-07-01T16:00:00.000+00:00"
    assert read("yyyy-MM-dd HH Z", "2024-07-01 12 +01:00", zone) == "2024-07-01T11:00:00.000+00:00"
    assert read("yyyy-MM-dd HH", "2024-07-01 12", "GMT+5:30") == "2024-07-01T06:30:00.000+00:00"


def test_the_earlier_of_two_equal_times_is_taken() -> None:
    assert read("yyyy-MM-dd HH:mm", "2024-11-03 01:30", "America/New_York") == "2024-11-03T05:30:00.000+00:00"


@pytest.mark.parametrize(
    ("pattern", "text", "zone"),
    [
        ("yyyy-MM-dd", "2024-02-30", "UTC"),
        ("yyyy-MM-dd", "2023-02-29", "UTC"),
        ("yyyy-MM-dd", "2024-13-01", "UTC"),
        ("yyyy-MM-dd", "2024-00-01", "UTC"),
        ("yyyy-MM-dd", "2024-01-00", "UTC"),
        ("yyyy-MM-dd", "2024-02-03 ", "UTC"),
        ("yyyy-MM-dd", "2024-02-03\n", "UTC"),
        ("yyyy-MM-dd", "", "UTC"),
        ("yyyyMMdd", "202402", "UTC"),
        ("yyyy HH:mm", "2024 24:00", "UTC"),
        ("yyyy-MM-dd Z", "2024-01-01 01:00", "UTC"),
        ("yyyy-MM-dd Z", "2024-01-01 +99", "UTC"),
        ("yyyy ss.SSSZ", "2024 1.Z", "UTC"),
        ("yyyy-MM-dd HH:mm", "2024-03-10 02:30", "America/New_York"),
    ],
)
def test_texts_that_do_not_fit_are_marked(pattern: str, text: str, zone: str) -> None:
    assert read(pattern, text, zone) is None


@given(
    st.integers(-62_135_510_400_000, 253_402_214_399_999),
    st.sampled_from(["UTC", "Asia/Kolkata", "GMT-03:30", "Pacific/Auckland"]),
)
def test_what_is_written_reads_back(millis: int, zone: str) -> None:
    pattern = "yyyy-MM-dd HH:mm:ss.SSS ZZ" if millis > 0 else "yyyy-MM-dd HH:mm:ss.SSS"
    text = written(pattern, millis, zone if millis > 0 else "UTC")
    assert read(pattern, text) == written("yyyy-MM-dd'T'HH:mm:ss.SSSZZ", millis)


@pytest.mark.parametrize(
    "pattern", ["yyyy-MM-ddTHH", "jj", "", "yyyy b", "G yyyy", "xxxx-ww", "CC", "HH z", "k"]
)
def test_unsupported_letters_are_refused(pattern: str) -> None:
    with pytest.raises(
        ConfigError, match="pattern.*(supported are y, Y, M, d, D, E, a, H, h, m, s, S, Z|is empty)"
    ):
        tokenize(pattern)


@pytest.mark.parametrize(
    "pattern", ["EEE yyyy", "yyyy DDD", "yyyy hh a", "yyyy MMM", "yy-MM-dd", "MM-dd", "yyyy yyyy"]
)
def test_input_formats_need_plain_numbers(pattern: str) -> None:
    with pytest.raises(ConfigError, match="supported are y, M, d, H, m, s, S, Z|input format"):
        DateReader(pattern)


def test_names_of_zones_are_refused() -> None:
    with pytest.raises(ConfigError, match="supported are Z and ZZ"):
        tokenize("HH ZZZ")


@pytest.mark.parametrize("name", ["Mars/Olympus", "", "../etc/passwd", "/etc/localtime", "GMT+99:00", "PST8"])
def test_unknown_zones_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="not known"):
        find_zone(name)


@pytest.mark.parametrize(
    ("name", "instead"), [("-08:00", "GMT-08:00"), ("UTC+5", "GMT+5"), ("0530", "GMT+5:30")]
)
def test_offsets_that_java_takes_as_utc_are_refused(name: str, instead: str) -> None:
    with pytest.raises(ConfigError, match="reads it as UTC") as caught:
        find_zone(name)
    assert f"such as '{instead}'" in str(caught.value)


@pytest.mark.parametrize("name", ["posix/Europe/Paris", "right/Europe/Paris", "localtime", "Factory"])
def test_names_of_some_machines_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="not known to Java"):
        find_zone(name)


@pytest.mark.parametrize(
    ("name", "zone"),
    [
        ("EST", "America/New_York"),
        ("MST", "America/Denver"),
        ("PST", "America/Los_Angeles"),
        ("IST", "Asia/Kolkata"),
        ("CET", "CET"),
        ("GMT+530", "UTC+05:30"),
        ("GMT-8", "UTC-08:00"),
        ("zulu", "UTC"),
    ],
)
def test_short_ids_are_the_zones_of_joda(name: str, zone: str) -> None:
    assert str(find_zone(name)) == zone
