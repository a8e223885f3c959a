"""Collected values as dbt reads them: SQL takes a time that a model writes down for the moment that it was."""

from __future__ import annotations

import datetime

import pytest
from pyspark.sql import Row
from pyspark.sql import types as T

from dbt.adapters.hudi.spark.handle import values_for_dbt

PAIR = T.StructType([T.StructField("x", T.IntegerType()), T.StructField("at", T.TimestampType())])
NOON = datetime.datetime(2026, 7, 1, 12, tzinfo=datetime.timezone.utc)
AS_COLLECTED = NOON.astimezone().replace(tzinfo=None)
"""PySpark gives times in the zone of the host."""


def text_of(zone: str | None) -> str:
    schema = T.StructType([T.StructField("at", T.TimestampType())])
    ((value,),) = values_for_dbt([Row(at=AS_COLLECTED)], schema, zone)
    return str(value)


@pytest.mark.parametrize("zone", ["UTC", "GMT", "Etc/UTC", "Z", "+00:00", None])
def test_a_time_of_a_session_in_utc_has_no_offset(zone: str | None) -> None:
    assert text_of(zone) == "2026-07-01 12:00:00"


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        ("America/New_York", "2026-07-01 08:00:00-04:00"),
        ("Europe/Berlin", "2026-07-01 14:00:00+02:00"),
        ("+05:30", "2026-07-01 17:30:00+05:30"),
        ("GMT-3", "2026-07-01 09:00:00-03:00"),
        ("UTC+01:00", "2026-07-01 13:00:00+01:00"),
        ("SystemV/AST4", "2026-07-01 12:00:00+00:00"),
    ],
)
def test_a_time_of_a_session_elsewhere_says_its_offset(zone: str, text: str) -> None:
    assert text_of(zone) == text


def test_times_inside_of_others_are_converted_and_other_values_stay() -> None:
    moment, plain = T.TimestampType(), T.TimestampNTZType()
    inner = T.StructType([T.StructField("at", moment), T.StructField("n", T.IntegerType())])
    schema = T.StructType(
        [
            T.StructField("list", T.ArrayType(moment)),
            T.StructField("map", T.MapType(T.StringType(), moment)),
            T.StructField("struct", inner),
            T.StructField("plain", plain),
            T.StructField("none", moment),
        ]
    )
    row = ([AS_COLLECTED, None], {"a": AS_COLLECTED}, Row(at=AS_COLLECTED, n=1), AS_COLLECTED, None)
    ((items, mapped, struct, naive, none),) = values_for_dbt([row], schema, "Europe/Berlin")
    assert items == [NOON, None] and items[0].utcoffset() == datetime.timedelta(hours=2)
    assert mapped == {"a": NOON} and struct == {"at": NOON, "n": 1}
    assert naive == AS_COLLECTED and naive.tzinfo is None and none is None


def test_the_first_and_the_last_times_stay_as_they_came() -> None:
    schema = T.StructType([T.StructField("at", T.TimestampType())])
    edges = [datetime.datetime.min, datetime.datetime.max]
    found = values_for_dbt([Row(at=edge) for edge in edges], schema, "Pacific/Kiritimati")
    assert [value.year for (value,) in found] == [1, 9999]


def test_structs_become_dictionaries_inside_of_arrays_and_maps_too() -> None:
    row, shown = Row(x=1, at=AS_COLLECTED), {"x": 1, "at": NOON.replace(tzinfo=None)}
    cases = [
        (PAIR, row, shown),
        (PAIR, None, None),
        (T.ArrayType(PAIR), [row, None], [shown, None]),
        (T.MapType(T.StringType(), PAIR), {"k": row}, {"k": shown}),
        (T.StructType([T.StructField("inner", PAIR)]), Row(inner=row), {"inner": shown}),
    ]
    for kind, given, wanted in cases:
        schema = T.StructType([T.StructField("value", kind)])
        assert values_for_dbt([Row(value=given)], schema, "UTC") == [(wanted,)]


def test_what_a_dictionary_cannot_hold_stays_as_it_is() -> None:
    twice = T.StructType([T.StructField("x", T.IntegerType()), T.StructField("x", T.IntegerType())])
    ((value,),) = values_for_dbt(
        [Row(value=Row("x", "x")(1, 2))], T.StructType([T.StructField("value", twice)]), "UTC"
    )
    assert tuple(value) == (1, 2)
    rows = [Row(value={Row(x=1, at=AS_COLLECTED): 1})]
    keyed = T.MapType(PAIR, T.IntegerType())
    assert values_for_dbt(rows, T.StructType([T.StructField("value", keyed)]), "UTC") is rows
