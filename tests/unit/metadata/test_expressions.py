"""Bounds of expression indexes: no value of the expression lies outside, in any time zone."""

from __future__ import annotations

import datetime
import random
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hudi_engine.errors import ConfigError
from hudi_engine.format.metadata.expressions import Expression
from hudi_engine.format.metadata.statistics import indexed_columns, values_bounds

FIELDS = [
    {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "d", "type": {"type": "int", "logicalType": "date"}},
    {"name": "n", "type": "long"},
    {"name": "t", "type": "string"},
]
KINDS = indexed_columns({"fields": FIELDS}, None, is_v2=True)
ZONES = ("UTC", "Pacific/Kiritimati", "Etc/GMT+12", "Europe/Berlin", "Asia/Kathmandu")
FORMS = {"yyyy": "%Y", "yyyy-MM": "%Y-%m", "yyyyMMdd": "%Y%m%d", "yyyy-MM-dd HH:mm:ss": "%Y-%m-%d %H:%M:%S"}


def bounds_of(text, values):
    expression = Expression.parse(text)
    kind = KINDS[expression.column]
    return expression.bounds(kind, values_bounds(pa.chunked_array([values]), kind))


@pytest.mark.parametrize("seed", range(20))
def test_times_of_every_zone_lie_within(seed):
    draw = random.Random(seed)
    moments = [
        datetime.datetime(1990, 1, 1, tzinfo=datetime.timezone.utc)
        + datetime.timedelta(seconds=draw.randrange(3 * 10**9), microseconds=draw.randrange(10**6))
        for _ in range(draw.randint(1, 4))
    ]
    of_micros = pa.array(moments, pa.timestamp("us", "UTC"))
    of_seconds = pa.array([int(each.timestamp()) for each in moments], pa.int64())
    for zone in ZONES:
        local = [each.astimezone(ZoneInfo(zone)) for each in moments]
        for pattern, form in FORMS.items():
            texts = [each.strftime(form).encode() for each in local]
            for text, values in (
                (f"date_format(ts, '{pattern}')", of_micros),
                (f"from_unixtime(n, '{pattern}')", of_seconds),
            ):
                found = bounds_of(text, values)
                assert found.low <= min(texts) <= max(texts) <= found.high
        days = [(each.date() - datetime.date(1970, 1, 1)).days for each in local]
        found = bounds_of("to_date(ts)", of_micros)
        assert min(days) - 2 <= found.low <= min(days) and max(days) <= found.high <= max(days) + 2
        found = bounds_of("year(ts)", of_micros)
        assert found.low <= min(each.year for each in local) <= max(each.year for each in local) <= found.high


def test_functions_of_dates_and_texts_are_exact():
    days = pa.array([datetime.date(2024, 2, 29), None, datetime.date(2025, 1, 1)])
    for text, low, high in [
        ("year(d)", 2024, 2025),
        ("to_date(d)", 19782, 20089),
        ("date_format(d, 'yyyy/MM')", b"2024/02", b"2025/01"),
    ]:
        found = bounds_of(text, days)
        assert (found.low, found.high, found.values, found.nulls) == (low, high, 2, 1)
    found = bounds_of("substring(t, 1, 2)", pa.array(["äbc", "zz", "a"]))
    assert (found.low, found.high) == (b"a", "äb".encode())
    found = bounds_of("substring(t, 1, 2)", pa.array([None], pa.string()))
    assert (found.low, found.high, found.values, found.nulls) == (None, None, 0, 1)


def test_years_without_four_digits_have_bounds_of_all_texts():
    long_after = pa.array([300_000_000_000_000_000], pa.int64()).cast(pa.timestamp("us", "UTC"))
    found = bounds_of("date_format(ts, 'yyyy-MM-dd')", long_after)
    assert found.low < b"+11476-08-15" < found.high
    assert bounds_of("year(ts)", long_after).high == 11476


@pytest.mark.parametrize(
    "text",
    ["hour(ts)", "lower(t)", "substring(t, 2, 3)", "substring(t, 1)", "date_format(ts, 'dd-MM-yyyy')",
     "date_format(ts, 'yyyy-dd')", "date_format(ts)", "year(ts, 1)", "ts", "year(ts) + 1", "date_format(ts, 'yy')"],
)  # fmt: skip
def test_others_are_refused_with_the_legal_ones(text):
    with pytest.raises(ConfigError, match=r"expression is .*; legal expressions: year\(column\), to_date"):
        Expression.parse(text)


def test_its_text_is_read_again():
    for text in (
        "year(ts)",
        "to_date(ts)",
        "date_format(ts, 'yyyy')",
        "from_unixtime(n)",
        "substring(t, 1, 20)",
    ):
        assert str(Expression.parse(text)) == text
    given = {
        "indexType": "column_stats",
        "sourceFields": ["t"],
        "indexOptions": {"len": 3, "expr": "substring", "pos": 1},
    }
    assert str(Expression.of(given)) == "substring(t, 1, 3)"
    assert Expression.of({**given, "indexType": "bloom_filters"}) is None
