"""Partition values of the timestamp-based key generator."""

from __future__ import annotations

import datetime as dt
import decimal
import pickle

import pyarrow as pa
import pytest
from hudi_engine.errors import ConfigError, InvalidKeyError, SchemaError
from hudi_engine.format.keygen.time_zone import find_zone
from hudi_engine.format.keygen.timestamp_format import TimestampFormat, format_millis, tokenize
from hypothesis import given
from hypothesis import strategies as st

ISO = "yyyy-MM-dd'T'HH:mm:ss.SSSZ"


def values(
    data: list[object], kind: pa.DataType | None = None, consistent: bool = False, **settings: str
) -> list[str]:
    """Partition values; names of ``settings`` have underscores for dots."""
    dated = TimestampFormat.from_settings({name.replace("_", "."): value for name, value in settings.items()})
    array = pa.array(data, kind)
    return dated.partition_values(array, "at", consistent_logical_timestamp=consistent).to_pylist()


@pytest.mark.parametrize(
    ("data", "settings", "expected"),
    [
        (
            "2023-04-01T12:01:00.123Z",
            {"timestamp_type": "DATE_STRING", "input_dateformat": ISO},
            "2023/04/01/12",
        ),
        ("2023-04-04T13:01:00.123Z", {"input_dateformat": ISO}, "2023/04/04/13"),
        (1705311000000, {"timestamp_type": "EPOCHMILLISECONDS"}, "2024/01/15/09"),
        (1705367700000, {"timestamp_type": "EPOCHMILLISECONDS"}, "2024/01/16/01"),
        (1705311000, {"timestamp_type": "UNIX_TIMESTAMP"}, "2024/01/15/09"),
        (1705311000000000, {"timestamp_type": "EPOCHMICROSECONDS"}, "2024/01/15/09"),
        (19737, {"timestamp_type": "SCALAR", "timestamp_scalar_time_unit": "days"}, "2024/01/15/00"),
        (473697, {"timestamp_type": "SCALAR", "timestamp_scalar_time_unit": "HOURS"}, "2024/01/15/09"),
        (1705311000, {"timestamp_type": "SCALAR"}, "2024/01/15/09"),
        (1705311000.9, {"timestamp_type": "UNIX_TIMESTAMP"}, "2024/01/15/09"),
        (decimal.Decimal("1705311000.9"), {"timestamp_type": "UNIX_TIMESTAMP"}, "2024/01/15/09"),
        (1705311000000, {"timestamp_type": "EPOCHMILLISECONDS", "timezone": "GMT+8:00"}, "2024/01/15/17"),
        (
            1705311000000,
            {"timestamp_type": "EPOCHMILLISECONDS", "output_timezone": "America/New_York"},
            "2024/01/15/04",
        ),
        (dt.date(2024, 1, 15), {}, "2024/01/15/00"),
    ],
)
def test_known_values(data, settings, expected):
    assert values([data], output_dateformat="yyyy/MM/dd/HH", **settings) == [expected]


@pytest.mark.parametrize(
    ("kind", "settings", "expected"),
    [
        (pa.int64(), {"timestamp_type": "EPOCHMILLISECONDS"}, "1970/01/01"),
        (pa.int64(), {"timestamp_type": "SCALAR", "timestamp_scalar_time_unit": "DAYS"}, "1970/01/02"),
        (pa.string(), {"timestamp_type": "DATE_STRING", "input_dateformat": "yyyyMMdd"}, "1970/01/01"),
        (
            pa.string(),
            {"timestamp_type": "MIXED", "input_dateformat": ISO, "timezone": "GMT-1"},
            "1969/12/31",
        ),
        (pa.timestamp("us", "UTC"), {}, "1970/01/01"),
    ],
)
def test_null_stands_for_one_unit_after_1970(kind, settings, expected):
    assert values([None], kind, output_dateformat="yyyy/MM/dd", **settings) == [expected]


def test_several_input_formats_are_tried_in_order():
    data = ["2020-04-01T13:01:33.428+05:30", "20200401", "20200401"]
    formats = f"{ISO} , yyyyMMdd"
    assert values(data, input_dateformat=formats, output_dateformat="yyyyMMddHH") == [
        "2020040113",
        "2020040100",
        "2020040100",
    ]


def test_another_delimiter_lets_patterns_hold_commas():
    found = values(
        ["3, 2, 2024", "2024"],
        input_dateformat="d, M, yyyy|yyyy",
        input_dateformat_list_delimiter_regex="\\|",
        output_dateformat="yyyyMMdd",
    )
    assert found == ["20240203", "20240101"]


def test_a_text_keeps_its_offset_when_no_zone_is_set():
    text = ["2020-04-01T00:30:00.000+05:30"]
    common = {"input_dateformat": ISO, "output_dateformat": "yyyyMMddHH"}
    assert values(text, **common) == ["2020040100"]
    assert values(text, **common, input_timezone="") == ["2020040100"]
    assert values(text, **common, input_timezone="UTC") == ["2020033119"]
    assert values(text, **common, output_timezone="UTC") == ["2020033119"]


def test_a_text_without_offset_is_in_the_input_zone():
    common = {"input_dateformat": "yyyy-MM-dd HH", "output_dateformat": "yyyyMMddHH"}
    assert values(["2024-07-01 23"], **common, input_timezone="America/New_York") == ["2024070123"]
    found = values(["2024-07-01 23"], **common, input_timezone="America/New_York", output_timezone="UTC")
    assert found == ["2024070203"]


def test_timestamp_columns_need_no_type_and_obey_the_consistent_option():
    at = dt.datetime(2024, 1, 15, 9, 30, tzinfo=dt.timezone.utc)
    kind = pa.timestamp("us", "UTC")
    common = {"output_dateformat": "yyyy/MM/dd/HH"}
    assert values([at], kind, **common) == ["2024/01/15/09"]
    assert values([at], kind, **common, timestamp_type="EPOCHMICROSECONDS") == ["2024/01/15/09"]
    # Taken as raw numbers, as Hudi does without its option, microseconds are no milliseconds.
    with pytest.raises(InvalidKeyError, match="not in the years 1 to 9999"):
        values([at], kind, **common, timestamp_type="EPOCHMILLISECONDS")
    assert values([at], kind, True, **common, timestamp_type="EPOCHMILLISECONDS") == ["2024/01/15/09"]


@given(
    st.lists(st.integers(-(10**13), 10**13), max_size=12),
    st.sampled_from(["UTC", "America/New_York", "Africa/Monrovia", "Asia/Kathmandu", "GMT+05:30"]),
    st.sampled_from(["yyyy", "yyyy/MM/dd", "yyyyMMddHH a", "HHmm", "ss", "SSS", "EEE", "DDD", "dd hh Z"]),
)
def test_columns_are_formatted_like_single_values(millis, zone, pattern):
    found = values(
        millis,
        pa.int64(),
        timestamp_type="EPOCHMILLISECONDS",
        output_dateformat=pattern,
        output_timezone=zone,
    )
    assert found == [format_millis(tokenize(pattern), each, find_zone(zone)) for each in millis]


@pytest.mark.parametrize(
    "zone", ["Asia/Kathmandu", "Pacific/Chatham", "America/St_Johns", "America/New_York"]
)
def test_every_quarter_of_an_hour_is_told_apart(zone):
    """Zones are up to 45 minutes off the hour, and change their offset at any of these times."""
    millis = list(range(1709424000000, 1712534400000, 900_000))
    found = values(
        millis, timestamp_type="EPOCHMILLISECONDS", output_dateformat="yyyyMMddHH Z", output_timezone=zone
    )
    tokens = tokenize("yyyyMMddHH Z")
    assert found == [format_millis(tokens, each, find_zone(zone)) for each in millis]


def test_microseconds_before_1970_are_cut_towards_zero():
    found = values([-1, -999, -1000], timestamp_type="EPOCHMICROSECONDS", output_dateformat="yyyy SSS")
    assert found == ["1970 000", "1970 000", "1969 999"]


@pytest.mark.parametrize("text", ["", "yesterday", "2024-02-30"])
def test_texts_that_fit_no_pattern_are_refused_with_the_value(text):
    with pytest.raises(InvalidKeyError, match=f"column 'at' holds '{text}'.*'yyyy-MM-dd'"):
        values([text], input_dateformat="yyyy-MM-dd", output_dateformat="yyyy")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({}, "output.dateformat is not set"),
        ({"output_dateformat": "yyyy", "timestamp_type": "DATE"}, "'DATE'; legal values: UNIX_TIMESTAMP"),
        ({"output_dateformat": "yyyy", "timestamp_type": "DATE_STRING"}, "needs .*input.dateformat"),
        (
            {"output_dateformat": "yyyy", "timestamp_scalar_time_unit": "WEEKS"},
            "'WEEKS'; legal values: NANOSECONDS",
        ),
        ({"output_dateformat": "yyyy", "timezone": "Nowhere"}, "'Nowhere' is not known"),
        ({"output_dateformat": "yyyy b"}, "letter 'b'"),
        ({"output_dateformat": "yyyy", "input_dateformat": "xxxx"}, "letter 'x'"),
        (
            {"output_dateformat": "yyyy", "input_dateformat_list_delimiter_regex": "("},
            "no regular expression",
        ),
    ],
)
def test_settings_without_sense_are_refused(settings, problem):
    with pytest.raises(ConfigError, match=problem):
        values([], pa.int64(), **settings)


@pytest.mark.parametrize(
    ("data", "settings", "error", "problem"),
    [
        ([1], {}, ConfigError, "timestamp.type is not set"),
        ([1], {"timestamp_type": "DATE_STRING", "input_dateformat": "yyyy"}, ConfigError, "holds numbers"),
        (["1"], {"timestamp_type": "UNIX_TIMESTAMP"}, ConfigError, "holds text"),
        ([2**62], {"timestamp_type": "UNIX_TIMESTAMP"}, InvalidKeyError, "too large for a time in seconds"),
        ([True], {"timestamp_type": "UNIX_TIMESTAMP"}, SchemaError, "cannot be a time"),
        ([float("nan")], {"timestamp_type": "UNIX_TIMESTAMP"}, InvalidKeyError, "no time"),
    ],
)
def test_columns_that_do_not_fit_the_settings_are_refused(data, settings, error, problem):
    with pytest.raises(error, match=problem):
        values(data, output_dateformat="yyyy", **settings)


def test_the_format_travels_to_other_processes():
    dated = TimestampFormat.from_settings({"output.dateformat": "yyyy", "input.dateformat": ISO})
    again = pickle.loads(pickle.dumps(dated))  # noqa: S301
    assert again.partition_values(pa.array(["2024-01-01T00:00:00.000Z"]), "at").to_pylist() == ["2024"]
