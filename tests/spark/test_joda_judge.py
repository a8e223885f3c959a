"""The date patterns against the Joda-Time library itself, which comes with Spark."""

from __future__ import annotations

import random

import pytest
from hudi_engine.errors import ConfigError
from hudi_engine.keygen.joda.parser import DateTextError, JodaParser
from hudi_engine.keygen.joda.pattern import format_millis, tokenize
from hudi_engine.keygen.joda.time_zone import find_zone

ZONES = ["UTC", "Asia/Kolkata", "America/New_York", "Pacific/Auckland", "+05:30"]
SEPARATORS = ["-", "/", " ", "'T'", "''", ".", ":", ""]
WRITABLE = (
    "yyyy yy y YYYY M MM MMM MMMM d dd D DDD E EEEE e a h hh H HH k K m mm s ss S SSS SSSS Z ZZ ZZZ xxxx ww w C G"
).split()
READABLE = "yyyy yy MM MMM MMMM d dd DDD E EEEE a h hh H HH k K m mm s ss SSS SSSS ZZ".split()


@pytest.fixture
def joda(spark):
    """Joda-Time's formatter of a pattern in a zone, in English."""
    time = spark._jvm.org.joda.time
    english = spark._jvm.java.util.Locale.ENGLISH

    def formatter(pattern: str, zone: str):
        return (
            time.format.DateTimeFormat.forPattern(pattern)
            .withLocale(english)
            .withZone(time.DateTimeZone.forID(zone))
        )

    return formatter


def random_pattern(rand: random.Random, tokens: list[str]) -> str:
    return "".join(rand.choice(tokens) + rand.choice(SEPARATORS) for _ in range(rand.randint(1, 5)))


def test_every_instant_is_written_as_joda_writes_it(joda):
    rand = random.Random(20)
    for _ in range(300):
        pattern, zone = random_pattern(rand, WRITABLE), rand.choice(ZONES)
        millis = rand.randint(-(10**13), 4 * 10**13)
        expected = joda(pattern, zone).print(millis)
        assert format_millis(tokenize(pattern), millis, find_zone(zone)) == expected, (pattern, zone, millis)


def test_texts_are_read_or_refused_as_joda_does(joda):
    rand = random.Random(21)
    read = refused = 0
    while read < 150 or refused < 60:
        # Once each, for parts that contradict each other are where Joda-Time's own rules become arbitrary.
        letters = rand.sample(READABLE, rand.randint(1, 5))
        if len({letter[0] for letter in letters}) < len(letters):
            continue
        pattern = "".join(letter + rand.choice(SEPARATORS[:-1]) for letter in letters)
        zone, millis = rand.choice(ZONES), rand.randint(0, 2 * 10**12)
        try:
            parser = JodaParser(pattern)
        except ConfigError:
            continue
        formatter = joda(pattern, zone)
        text = spoil(rand, formatter.print(millis))
        try:
            expected = formatter.parseDateTime(text).getMillis()
            read += 1
        except Exception:
            expected = None
            refused += 1
        try:
            found = parser.parse(text, find_zone(zone)).millis
        except DateTextError:
            found = None
        assert found == expected, (pattern, text, zone)


def spoil(rand: random.Random, text: str) -> str:
    """Sometimes change or drop a character."""
    dice = rand.random()
    if dice < 0.3:
        place = rand.randrange(len(text))
        return text[:place] + rand.choice("0123456789-/: Tabc") + text[place + 1 :]
    return text[:-1] if dice < 0.4 else text
