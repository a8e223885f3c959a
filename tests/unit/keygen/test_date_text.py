"""Columns of date texts are read as the general parser reads each text."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hudi_engine.format.keygen.joda.columns import DateColumnReader
from hudi_engine.format.keygen.joda.parser import DateTextError, JodaParser
from hudi_engine.format.keygen.joda.time_zone import find_zone
from hypothesis import given
from hypothesis import strategies as st

ISO = "yyyy-MM-dd'T'HH:mm:ss.SSSZ"
TEXTS = st.one_of(
    st.datetimes().map(lambda at: at.isoformat(timespec="milliseconds") + "Z"),
    st.tuples(st.datetimes(), st.sampled_from(["+05:30", "-0800", "+99:00", "+01", "z", ""])).map(
        lambda pair: pair[0].isoformat(timespec="milliseconds") + pair[1]
    ),
    st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{1,4}Z", fullmatch=True),
    st.sampled_from(
        ["", "2024-02-30T00:00:00.000Z", "0000-01-01T00:00:00.000Z", "2024-1-1T0:0:0.0Z", "2024-01-01\n"]
    ),
)


@given(st.lists(TEXTS, max_size=20))
def test_every_text_read_here_reads_the_same_alone(texts):
    reader = DateColumnReader.for_pattern(ISO, find_zone("UTC"))
    millis, good = reader.read(pa.array(texts, pa.string()))
    parser = JodaParser(ISO)
    for text, found, valid in zip(texts, millis.tolist(), good.tolist(), strict=True):
        if valid:
            assert parser.parse(text).millis == found


@pytest.mark.parametrize(
    "pattern", ["yyyy-MM-dd", "yyyyMMdd HHmmss", "dd.MM.yyyy", "yyyy-MM-dd HH:mm:ss.SSSSSS", ISO]
)
@pytest.mark.parametrize("zone", ["UTC", "GMT+5:30", "GMT-03:00"])
def test_well_formed_texts_are_read_here(pattern, zone):
    reader = DateColumnReader.for_pattern(pattern, find_zone(zone))
    example = {"yyyy": "2024", "MM": "02", "dd": "29", "HH": "23", "mm": "58", "ss": "57", "SSSSSS": "123456"}
    text = pattern.replace("'T'", "T")
    for letters, digits in (*example.items(), ("SSS", "123"), ("Z", "+01:00")):
        text = text.replace(letters, digits)
    millis, good = reader.read(pa.array([text]))
    assert good.tolist() == [True]
    assert millis.tolist() == [JodaParser(pattern).parse(text, find_zone(zone)).millis]


@pytest.mark.parametrize(
    ("pattern", "zone"),
    [
        ("yyyy-MM-dd", "Europe/Paris"),
        ("yy-MM-dd", "UTC"),
        ("MM-dd", "UTC"),
        ("d MMM yyyy", "UTC"),
        ("yyyy-MM-dd yyyy", "UTC"),
    ],
)
def test_other_patterns_and_zones_are_left_to_the_general_parser(pattern, zone):
    assert DateColumnReader.for_pattern(pattern, find_zone(zone)) is None


@pytest.mark.parametrize("text", ["2023-02-29", "2024-13-01", "2024-00-01", "2024-01-00", "x", "2024-01-01 "])
def test_impossible_dates_are_left_too(text):
    reader = DateColumnReader.for_pattern("yyyy-MM-dd", find_zone("UTC"))
    assert reader.read(pa.array([text]))[1].tolist() == [False]
    with pytest.raises(DateTextError):
        JodaParser("yyyy-MM-dd").parse(text)
