"""Keys of the metadata table, against those that Apache Hudi 1.2.0 wrote."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hudi_engine.format.metadata.keys import (
    bloom_filter_key,
    column_stats_key,
    group_of,
    groups_of,
    hashed,
    hashed_part,
    java_hashes,
    partition_stats_key,
    secondary_key,
    split_secondary_key,
)

FILE = "dc206eab-a373-4de8-bf2b-ffbf52b0997f-0_0-37-47_20261128165929415.parquet"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("", "DW/eaNVbRdo="),
        (".", "FXThHwelITM="),
        ("name", "F5SYxeUa1U8="),
        ("_hoodie_commit_time", "JBBzUToHtLc="),
        ("dt=2024-01-01", "kt4hIToG1LE="),
        ("é", "LUZDkiDptdI="),
        ("__partition_stat__", "2CMHrhWVE9w="),
    ],
)
def test_columns_and_partitions_are_hashed_as_in_hudi(text: str, key: str) -> None:
    assert hashed(text) == key


def test_keys_of_statistics_are_those_of_hudi() -> None:
    assert column_stats_key("d", "", FILE) == "4/hcUlKiZ3Y=FXThHwelITM=ms8Xd1UjmgUXxyzMLr227A=="
    assert partition_stats_key("name", "p=a") == "F5SYxeUa1U8=s2AMmwSBZPw="
    assert bloom_filter_key("", FILE) == "FXThHwelITM=ms8Xd1UjmgUXxyzMLr227A=="


@pytest.mark.parametrize(
    ("value", "record_key", "key", "group"),
    [
        ("eve", "k5", "eve$k5", 6),
        ("dé$a", "k4", "dé\\$a$k4", 2),
        (None, "k3", "\0$k3", 6),
        ("a\\b", "k7", "a\\\\b$k7", 5),
    ],
)
def test_secondary_keys_are_those_of_hudi(value: str | None, record_key: str, key: str, group: int) -> None:
    assert secondary_key(value, record_key) == key
    assert split_secondary_key(key) == (value, record_key)
    assert group_of(hashed_part(key), 10) == group


@pytest.mark.parametrize("text", ["", "$", "\\", "\\$", "a$b\\", "\0", "x\0y"])
def test_any_text_comes_back_from_a_secondary_key(text: str) -> None:
    value, key = split_secondary_key(secondary_key(text + "v", text))

    assert (value, key) == (text + "v", text)


@pytest.mark.parametrize(
    ("key", "groups"),
    [
        ("k1", {1: 0, 2: 0, 4: 2, 10: 6, 97: 68}),
        ("id:1,name:Alice", {2: 1, 4: 1, 10: 9, 97: 74}),
        ("é中", {2: 0, 10: 6, 97: 76}),
        ("polygenelubricants", {2: 0, 10: 8, 97: 66}),
        ("", {10: 0}),
    ],
)
def test_keys_go_to_the_group_that_hudi_looks_in(key: str, groups: dict[int, int]) -> None:
    assert {count: group_of(key, count) for count in groups} == groups


def test_many_keys_are_hashed_at_once_as_one_by_one() -> None:
    keys = [f"k{number}" for number in range(500)] + ["", "é中", "😀"]

    together = groups_of(pa.array(keys), 7)

    assert together.tolist() == [group_of(key, 7) for key in keys]
    assert java_hashes(pa.array(["", "x" * 70])[1:]).dtype == np.int32
