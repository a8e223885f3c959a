"""Keys of the metadata table, against those that Apache Hudi 1.2.0 wrote."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hudi_engine.format.metadata.keys import (
    bloom_filter_key,
    column_stats_key,
    groups_of,
    hashed,
    java_hashes,
    partition_stats_key,
)
from hudi_engine.format.metadata.secondary_index import (
    IndexedRows,
    changed_keys,
    hashed_parts,
    is_indexed_type,
    key_prefixes,
    secondary_keys,
    split_secondary_key,
)

from tests.helpers.metadata_table import group_of

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


def secondary_key(value: Any, record_key: str, kind: pa.DataType | None = None) -> str:
    found: str = (
        secondary_keys(pa.array([value], kind or pa.string()), pa.array([record_key]))[0].as_py().decode()
    )
    return found


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
    hashed_text = hashed_parts(pa.array([key]))
    assert hashed_text == key_prefixes(pa.array([value]))
    assert group_of(hashed_text[0].as_py(), 10) == group


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (-5, pa.int32(), "-5"),
        (10**12, pa.int64(), "1000000000000"),
        (datetime.date(1960, 1, 1), pa.date32(), "-3653"),
        (1577934245678901, pa.timestamp("us", "UTC"), "1577934245678901"),
    ],
)
def test_values_have_the_text_of_what_avro_stores(value: Any, kind: pa.DataType, text: str) -> None:
    assert is_indexed_type(kind) and secondary_key(value, "a", kind) == f"{text}$a"


@pytest.mark.parametrize("kind", [pa.float64(), pa.bool_(), pa.decimal128(9, 2), pa.timestamp("us")])
def test_other_types_have_no_secondary_index(kind: pa.DataType) -> None:
    assert not is_indexed_type(kind)


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


@pytest.mark.parametrize("kind", [pa.string(), pa.int64()])
def test_keys_change_for_rows_whose_value_differs_alone(kind: pa.DataType) -> None:
    before = {"a": "1", "b": None, "c": "3", "d": "4", "e": None, "f": "6"}
    after = {"g": None, "f": "6", "e": "5", "d": None, "c": "9", "b": None}
    old, new = (
        IndexedRows(pa.array(rows.values()).cast(pa.string()), pa.array(rows)) for rows in (before, after)
    )
    new = IndexedRows(new.values.cast(kind), new.keys)
    removed, added = changed_keys(old, new)
    assert set(removed.to_pylist()) == {b"1$a", b"3$c", b"4$d", b"\0$e"}
    assert set(added.to_pylist()) == {b"\0$g", b"5$e", b"\0$d", b"9$c"}


def test_a_record_key_that_is_there_twice_has_the_keys_of_both_values() -> None:
    old = IndexedRows(pa.array(["1", "2"]), pa.array(["a", "a"]))
    new = IndexedRows(pa.array(["1", "3"]), pa.array(["a", "a"]))
    removed, added = changed_keys(old, new)
    assert (removed.to_pylist(), added.to_pylist()) == ([b"2$a"], [b"3$a"])
