"""The options of the timestamp key generator, each with what it does to the folder of one row."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hudi_engine.errors import ConfigError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.keygen.generator import build_key_generator
from hudi_engine.table.write.define.definition import table_properties

TABLE = TableConfig.from_properties(
    {
        "hoodie.table.name": "t",
        "hoodie.table.type": "COPY_ON_WRITE",
        "hoodie.table.version": "6",
        "hoodie.table.recordkey.fields": "id",
        "hoodie.table.partition.fields": "at",
        "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
    }
)
TEXT = {
    "hoodie.keygen.timebased.timestamp.type": "DATE_STRING",
    "hoodie.keygen.timebased.input.dateformat": "yyyy-MM-dd HH:mm",
    "hoodie.keygen.timebased.output.dateformat": "yyyyMMddHH",
}
SCALAR = {
    "hoodie.keygen.timebased.timestamp.type": "SCALAR",
    "hoodie.keygen.timebased.output.dateformat": "yyyyMMddHH",
}


def folder(value: object, options: dict[str, str]) -> str:
    """Return the partition path of a row."""
    made = build_key_generator(TABLE, options=resolve_options(options))
    paths: list[str] = made.partition_paths(pa.table({"id": [1], "at": [value]})).to_pylist()
    return paths[0]


def test_zones_of_the_text_and_of_the_folder() -> None:
    east_in = {"hoodie.keygen.timebased.input.timezone": "GMT+2:00"}
    east_out = {"hoodie.keygen.timebased.output.timezone": "GMT+2:00"}
    utc_out = {"hoodie.keygen.timebased.output.timezone": "UTC"}
    both_utc = {"hoodie.keygen.timebased.timezone": "UTC"}

    assert folder("2026-01-02 23:10", TEXT) == "2026010223"
    assert folder("2026-01-02 23:10", {**TEXT, **east_in, **utc_out}) == "2026010221"
    assert folder("2026-01-02 23:10", {**TEXT, **east_out}) == "2026010301"
    assert folder("2026-01-02 23:10", {**TEXT, **east_in, **utc_out, **both_utc}) == "2026010223"


def test_an_offset_stays_in_tables_of_apache_hudi_and_becomes_utc_in_ours() -> None:
    pattern = {**TEXT, "hoodie.keygen.timebased.input.dateformat": "yyyy-MM-dd'T'HH:mm:ssZ"}
    utc = {"hoodie.keygen.timebased.input.timezone": "UTC"}
    text = "2023-04-01T23:01:00+0530"
    assert folder(text, pattern) == "2023040123"
    assert folder(text, {**pattern, **utc}) == "2023040117"

    ours = table_properties(
        name="t", record_key=["id"], precombine_field=None, partition_by=["at:timestamp"], table_type="cow",
        schema=None, options=pattern,
    )  # fmt: skip
    assert build_key_generator(ours).partition_paths(pa.table({"id": [1], "at": [text]})).to_pylist() == [
        "at=2023040117" if ours.hive_style else "2023040117"
    ]


def test_patterns_of_the_text_are_told_apart_by_their_delimiter() -> None:
    patterns = {
        "hoodie.keygen.timebased.input.dateformat": "yyyy-MM-dd HH:mm;dd.MM.yyyy",
        "hoodie.keygen.timebased.input.dateformat.list.delimiter.regex": ";",
    }

    assert folder("2026-01-02 23:10", {**TEXT, **patterns}) == "2026010223"
    assert folder("02.01.2026", {**TEXT, **patterns}) == "2026010200"


def test_numbers_are_of_the_unit_that_the_option_names() -> None:
    days = {"hoodie.keygen.timebased.timestamp.scalar.time.unit": "DAYS"}

    assert folder(86400, SCALAR) == "1970010200"
    assert folder(1, {**SCALAR, **days}) == "1970010200"


def test_a_zone_that_java_takes_as_utc_is_refused_until_the_write_names_one() -> None:
    out = "hoodie.keygen.timebased.output.timezone"
    table = TableConfig.from_properties({**TABLE.properties, **SCALAR, out: "-08:00"})
    row = pa.table({"id": [1], "at": [86400]})

    with pytest.raises(ConfigError, match="'GMT-08:00', and 'UTC' for a table that Hudi wrote with it"):
        build_key_generator(table, options=resolve_options({}))
    for zone, path in {"UTC": "1970010200", "GMT-08:00": "1970010116"}.items():
        made = build_key_generator(table, options=resolve_options({out: zone}))
        assert made.partition_paths(row).to_pylist() == [path]
