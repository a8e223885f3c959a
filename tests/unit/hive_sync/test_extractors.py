"""The values of a partition, by the rules of Apache Hudi's extractors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hudi_engine.errors import ConfigError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.spark.hive_sync import sync
from hudi_engine.spark.hive_sync.entry import PartitionValues

from tests.helpers.table_settings import version_6

HIVE = "org.apache.hudi.hive."


def values(partitions, path, extractor=None, decode=False, **more):
    config = version_6("id", partitions, {}, more)
    return PartitionValues(config, extractor and HIVE + extractor, decode=decode).of(path)


@pytest.mark.parametrize(
    ("extractor", "path", "expected"),
    [
        ("MultiPartKeysValueExtractor", "eu/2024", ("eu", "2024")),
        ("MultiPartKeysValueExtractor", "region=eu/year=2024", ("eu", "2024")),
        ("HiveStylePartitionValueExtractor", "region=eu", ("eu",)),
        ("SinglePartPartitionValueExtractor", "2024/01/02", ("2024/01/02",)),
        ("SlashEncodedDayPartitionValueExtractor", "2024/1/02", ("2024-01-02",)),
        ("SlashEncodedDayPartitionValueExtractor", "y=2024/m=01/d=02", ("2024-01-02",)),
        ("SlashEncodedHourPartitionValueExtractor", "2024/01/02/03", ("2024-01-02-03",)),
        ("NonPartitionedExtractor", "anything", ()),
    ],
)
def test_each_extractor_reads_its_paths(extractor, path, expected):
    partitions = "region,year" if len(expected) == 2 else "region"
    assert values(partitions, path, extractor) == expected


def country_and_year(path):
    country, _, rest = path.partition("-")
    return [country.upper(), rest[:4]]


class OfDays:
    def __call__(self, path):
        return [path.replace("/", "")]


def no_list(path):
    return path


def of_python(name, path, fields=()):
    config = version_6("id", "region", {}, {})
    return PartitionValues(config, f"{__name__}:{name}", decode=False, fields=fields).of(path)


def test_a_function_of_ones_own_reads_paths():
    assert of_python("country_and_year", "de-20240102", ("land", "year")) == ("DE", "2024")
    assert of_python("OfDays", "2024/01/02") == ("20240102",)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("absent", "cannot be imported"),
        ("HIVE", "it must be a function"),
        ("no_list", "no list of texts"),
        ("country_and_year", "2 values for 1 partition columns"),
    ],
)
def test_a_function_that_does_not_fit_is_refused(name, said):
    with pytest.raises(ConfigError, match=said):
        of_python(name, "de-20240102")


def test_partition_fields_name_the_values_of_a_path():
    config = version_6("id", "day", {}, {})
    options = {"hoodie.datasource.hive_sync.partition_fields": "year, month, day"}
    found = sync._values(config, resolve_options(options))
    assert (found.fields, found.of("2024/01/02")) == (("year", "month", "day"), ("2024", "01", "02"))


def test_without_an_extractor_the_partitioning_decides():
    style = {"datasource__write__hive_style_partitioning": "true"}
    assert values("region", "region=eu", **style) == ("eu",)
    assert values("region,year", "region=eu/year=2024", **style) == ("eu", "2024")
    assert values("region", "eu") == ("eu",)


def test_escaped_characters_stay_unless_they_are_to_be_decoded():
    # hoodie.meta.sync.decode_partition
    assert values("region", "a%2Fb") == ("a%2Fb",)
    assert values("region", "a%2Fb", decode=True) == ("a/b",)


@pytest.mark.parametrize(
    ("extractor", "path", "said"),
    [
        (
            "SlashEncodedDayPartitionValueExtractor",
            "2024-01-02",
            "cannot read the partition path '2024-01-02'",
        ),
        ("MultiPartKeysValueExtractor", "a/b", "2 values for 1 partition columns"),
        ("HiveStylePartitionValueExtractor", "eu", "not one folder named column=value"),
        ("com.example.Mine", "a", "legal values: org.apache.hudi.hive.NonPartitionedExtractor"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_option_to_set(extractor, path, said):
    with pytest.raises(ConfigError, match=said) as refused:
        values("region", path, extractor)
    assert "hoodie.datasource.hive_sync.partition_extractor_class" in str(refused.value)


def test_the_function_of_the_page_reads_its_path():
    page = (Path(__file__).parents[3] / "docs" / "hive-entries.md").read_text("utf-8")
    (text,) = re.findall(r"```python\n(def .*?)```", page, re.DOTALL)
    known = {}
    exec(text, known)  # noqa: S102 - our own page
    assert known["country_and_year"]("de-20260102") == ["DE", "2026"]
