"""Structs in what dbt shows keep the names of their fields."""

from __future__ import annotations

import datetime

from pyspark.sql import Row
from pyspark.sql import types as T

from dbt.adapters.hudi.spark.handle import _converter

PAIR = T.StructType([T.StructField("x", T.IntegerType()), T.StructField("at", T.TimestampType())])


def test_structs_become_dictionaries_inside_of_arrays_and_maps_too() -> None:
    noon = datetime.datetime(2020, 1, 1, 12, tzinfo=datetime.timezone.utc)
    row, shown = Row(x=1, at=noon), {"x": 1, "at": noon.replace(tzinfo=None)}
    cases = [
        (PAIR, row, shown),
        (PAIR, None, None),
        (T.ArrayType(PAIR), [row, None], [shown, None]),
        (T.MapType(T.StringType(), PAIR), {"k": row}, {"k": shown}),
        (T.StructType([T.StructField("inner", PAIR)]), Row(inner=row), {"inner": shown}),
    ]
    for kind, given, wanted in cases:
        convert = _converter(kind)
        assert convert is not None and convert(given) == wanted


def test_what_a_dictionary_cannot_hold_stays_as_it_is() -> None:
    twice = T.StructType([T.StructField("x", T.IntegerType()), T.StructField("x", T.IntegerType())])
    convert = _converter(twice)
    assert convert is not None and tuple(convert(Row("x", "x")(1, 2))) == (1, 2)
    assert _converter(T.MapType(PAIR, T.IntegerType())) is None
