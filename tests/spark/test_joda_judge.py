"""The date patterns against the Joda-Time library itself, which comes with Spark."""

from __future__ import annotations

import datetime as dt
import random

import pyarrow as pa
import pytest
from hudi_engine.errors import ConfigError
from hudi_engine.format.keygen.time_zone import find_zone
from hudi_engine.format.keygen.timestamp_format import DateReader, format_millis, tokenize, utc_of_local

ZONES = ["UTC", "Asia/Kolkata", "America/New_York", "Pacific/Auckland", "GMT+05:30"]
SHORT_IDS = (
    "ACT AET AGT ART AST BET BST CAT CNT CST CTT EAT ECT EST HST IET IST JST MET MIT MST NET NST PLT PNT PRT PST SST VST"
).split()
OTHER_IDS = (
    "Z UT utc GMT Zulu GMT0 GMT+5 GMT-8 GMT+530 GMT+05:30 GMT+23:59 Etc/GMT+5 US/Pacific CET CST6CDT".split()
)
TAKEN_AS_UTC = "-08:00 +05:30 UTC+5 UT+5 gmt+5 GMT+24 GMT+5:3 GMT5 CDT EDT est PST8 europe/paris nowhere localtime".split()
SEPARATORS = ["-", "/", " ", "'T'", "''", ".", ":", ""]
WRITABLE = ("yyyy yy y YYYY M MM MMM MMMM d dd D DDD E EEEE a h hh H HH m mm s ss S SSS SSSS Z ZZ").split()
READABLE = "yyyy MM d dd H HH m mm s ss S SSS SSSS ZZ".split()


@pytest.fixture
def joda(spark):
    """Joda-Time's formatter of a pattern in a zone, in English."""
    time = spark._jvm.org.joda.time
    english = spark._jvm.java.util.Locale.ENGLISH

    def formatter(pattern: str, zone: str):
        return (
            time.format.DateTimeFormat.forPattern(pattern)
            .withLocale(english)
            .withZone(zone_of_hudi(spark, zone))
        )

    return formatter


def zone_of_hudi(spark, zone: str):
    """The zone that Hudi's key generator has for a setting: Joda-Time's of what Java knows by it."""
    java = spark._jvm.java.util.TimeZone.getTimeZone(zone)
    return spark._jvm.org.joda.time.DateTimeZone.forTimeZone(java)


def random_pattern(rand: random.Random, tokens: list[str]) -> str:
    return "".join(rand.choice(tokens) + rand.choice(SEPARATORS) for _ in range(rand.randint(1, 5)))


@pytest.mark.parametrize("zone", [*SHORT_IDS, *OTHER_IDS])
def test_zones_are_those_of_hudi(spark, zone):
    rand = random.Random(22)
    theirs, ours = zone_of_hudi(spark, zone), find_zone(zone)
    for _ in range(20):
        # From 2000 on, before which releases of the zone database differ.
        millis = rand.randint(946_684_800_000, 1_800_000_000_000)
        offset = dt.datetime.fromtimestamp(millis / 1000, ours).utcoffset()
        assert offset == dt.timedelta(milliseconds=theirs.getOffset(millis)), (zone, millis)


@pytest.mark.parametrize("zone", TAKEN_AS_UTC)
def test_zones_that_hudi_takes_as_utc_are_refused(spark, zone):
    assert zone_of_hudi(spark, zone).getID() == "UTC"
    with pytest.raises(ConfigError, match="not known to Java"):
        find_zone(zone)


def test_every_instant_is_written_as_joda_writes_it(joda):
    rand = random.Random(20)
    for _ in range(300):
        pattern, zone = random_pattern(rand, WRITABLE), rand.choice(ZONES)
        if "ZZZ" in pattern:  # the name of a zone
            continue
        millis = rand.randint(-(10**13), 4 * 10**13)
        expected = joda(pattern, zone).print(millis)
        assert format_millis(tokenize(pattern), millis, find_zone(zone)) == expected, (pattern, zone, millis)


def test_texts_are_read_as_joda_does_or_refused(joda):
    rand = random.Random(21)
    read = refused = 0
    while read < 150 or refused < 60:
        # Once each, for parts that contradict each other are where Joda-Time's own rules become arbitrary.
        letters = rand.sample(READABLE, rand.randint(1, 5))
        if len({letter[0] for letter in letters}) < len(letters):
            continue
        pattern = "".join(letter + rand.choice(SEPARATORS[:-1]) for letter in letters)
        zone, millis = rand.choice(ZONES), rand.randint(0, 2 * 10**12)
        if "Z:" in pattern:  # Joda-Time takes what follows for the seconds of the offset
            continue
        try:
            reader = DateReader(pattern)
        except ConfigError:
            continue
        formatter = joda(pattern, zone)
        whole = formatter.print(millis)
        text = spoil(rand, whole)
        try:
            expected = formatter.parseDateTime(text).getMillis()
            read += 1
        except Exception:
            expected = None
            refused += 1
        found = instant_of(reader, text, zone)
        # of years Joda-Time reads signs and more digits, too
        assert found == expected or (text != whole and found is None), (pattern, text, zone)


def instant_of(reader: DateReader, text: str, zone: str) -> int | None:
    found = reader.read(pa.array([text], pa.string()))
    utc, exists = utc_of_local(found.millis, find_zone(zone))
    if not found.good[0] or not (found.has_offset[0] or exists[0]):
        return None
    return int(found.millis[0] - found.offsets[0] if found.has_offset[0] else utc[0])


def spoil(rand: random.Random, text: str) -> str:
    """Sometimes change or drop a character."""
    dice = rand.random()
    if dice < 0.3:
        place = rand.randrange(len(text))
        return text[:place] + rand.choice("0123456789-/: Tabc") + text[place + 1 :]
    return text[:-1] if dice < 0.4 else text
