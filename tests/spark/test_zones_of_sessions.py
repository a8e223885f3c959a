"""Times without a zone, of pandas, Polars and Arrow, under every kind of name that Spark takes for a session's time zone."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

import pyarrow as pa
import pytest
from hudi_engine.spark.write.rows.frames import as_frame
from pyspark.sql import SparkSession

ZONE = "spark.sql.session.timeZone"
NAMES = ["UTC", "Z", "GMT0", "Europe/Paris", "US/Pacific", "Etc/GMT+5", "CET"]
OFFSETS = [
    "+01:02:03",
    "+2",
    "+02",
    "-0330",
    "+2:00",
    "+02:3",
    "+02:30",
    "+02:00:00",
    "GMT+05:30",
    "GMT-5",
    "UTC+02:00",
    "UT+1",
]
SHORT = "EST MST HST ACT AET AGT ART AST BET BST CAT CNT CST CTT EAT ECT IET IST JST MIT NET NST PLT PNT PRT PST SST VST"
WINTER, SUMMER = datetime.datetime(2026, 1, 1, 12), datetime.datetime(2026, 7, 1, 12)


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    before = spark.conf.get(ZONE)
    yield spark
    spark.conf.set(ZONE, str(before))


def test_times_without_a_zone_are_the_moments_that_spark_takes_them_for(session: SparkSession) -> None:
    rows = pa.table({"winter": [WINTER], "summer": [SUMMER]})
    differ = []
    for name in [*NAMES, *OFFSETS, *SHORT.split()]:
        session.conf.set(ZONE, name)
        by_spark = session.sql(f"select unix_micros(timestamp'{WINTER}'), unix_micros(timestamp'{SUMMER}')")
        ours = as_frame(session, rows).selectExpr("unix_micros(winter)", "unix_micros(summer)")
        if tuple(ours.first() or ()) != tuple(by_spark.first() or ()):
            differ.append(name)
    assert differ == []
