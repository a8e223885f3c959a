"""Bucket numbers of the bucket index."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hudi_engine.config.options import resolve_options
from hudi_engine.config.table_config import TableConfig
from hudi_engine.errors import ConfigError, InvalidKeyError
from hudi_engine.index.buckets import bucket_ids, hashed_buckets, java_hash, java_hashes, split_complex_keys
from hypothesis import given
from hypothesis import strategies as st

KEYS = ["1", "2", "abc", "TXN-001", "é中", "c8abbe79-8d89-47ea-b4ce-4d224bae5bfa"]


def naive_hash(text: str) -> int:
    value = 0
    for character in text:
        units = [ord(character)]
        if ord(character) > 0xFFFF:
            rest = ord(character) - 0x10000
            units = [0xD800 + (rest >> 10), 0xDC00 + (rest & 0x3FF)]
        for unit in units:
            value = (31 * value + unit) % 2**32
    return value


@pytest.mark.parametrize(("count", "expected"), [(4, [0, 1, 1, 1, 3, 2]), (256, [80, 81, 129, 77, 131, 66])])
def test_known_buckets(count, expected):
    assert hashed_buckets(pa.array(KEYS), count).to_pylist() == expected


def test_known_bucket_of_two_fields():
    bucket = (-798673080 & 0x7FFFFFFF) % 1000
    keys = pa.array(["txn_id:TXN-002,account_id:ACC-B"])
    assert hashed_buckets(keys, 1000, key_fields=["txn_id", "account_id"]).to_pylist() == [bucket]


@given(st.lists(st.text(max_size=30) | st.none(), max_size=30))
def test_columns_hash_like_single_strings(texts):
    expected = [0 if text is None else naive_hash(text) for text in texts]
    assert java_hashes(pa.array(texts, pa.string())).tolist() == expected
    assert [java_hash(text) & 0xFFFFFFFF for text in texts if text is not None] == [
        naive_hash(text) for text in texts if text is not None
    ]


def test_only_the_index_fields_count():
    keys = pa.array(["a:1,b:x", "a:1,b:y", "a:2,b:x"])
    one, two, three = hashed_buckets(keys, 97, key_fields=["a", "b"], index_fields=["a"]).to_pylist()
    assert one == two == hashed_buckets(pa.array(["1"]), 97)[0].as_py()
    assert one != three


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("a:1,b:2", {"a": "1", "b": "2"}),
        ("a:x,y:z,b:2", {"a": "x,y:z", "b": "2"}),
        ("a:__null__,b:__empty__", {"a": None, "b": ""}),
        ("a:line\nbreak,b:", {"a": "line\nbreak", "b": ""}),
    ],
)
def test_complex_keys_come_apart(key, expected):
    split = split_complex_keys(pa.array([key]), ["a", "b"])
    assert {name: values[0].as_py() for name, values in split.items()} == expected


@pytest.mark.parametrize("key", ["1", "b:2,a:1", "a:1", "xa:1,b:2"])
def test_keys_of_another_form_are_refused(key):
    with pytest.raises(InvalidKeyError, match="does not have the form 'a:<value>,b:<value>'"):
        split_complex_keys(pa.array([key]), ["a", "b"])


def config(keys: str, keygen: str) -> TableConfig:
    return TableConfig.from_properties(
        {
            "hoodie.table.name": "t",
            "hoodie.table.type": "COPY_ON_WRITE",
            "hoodie.table.version": "6",
            "hoodie.table.recordkey.fields": keys,
            "hoodie.table.keygenerator.type": keygen,
        }
    )


def test_a_lone_field_hashes_its_value_however_the_key_is_written():
    options = resolve_options({})
    for keygen, key in (("SIMPLE", "k1"), ("COMPLEX", "k1"), ("COMPLEX", "id:k1")):
        batch = pa.table({"_hoodie_record_key": [key]})
        found = bucket_ids(batch, config("id", keygen), 1000, options)
        assert found.to_pylist() == hashed_buckets(pa.array(["k1"]), 1000).to_pylist()


def test_the_option_names_the_fields_to_hash():
    batch = pa.table({"_hoodie_record_key": ["a:1,b:2"]})
    options = resolve_options({"hoodie.bucket.index.hash.field": "b"})
    found = bucket_ids(batch, config("a,b", "COMPLEX"), 1000, options)
    assert found.to_pylist() == hashed_buckets(pa.array(["2"]), 1000).to_pylist()


@pytest.mark.parametrize("keys", ["a", "a,b"])
def test_other_fields_cannot_be_hashed(keys):
    options = resolve_options({"hoodie.bucket.index.hash.field": "price"})
    batch = pa.table({"_hoodie_record_key": ["a:1,b:2"]})
    with pytest.raises(ConfigError, match="names price.*choose among a"):
        bucket_ids(batch, config(keys, "COMPLEX"), 4, options)


@pytest.mark.parametrize("count", [0, -1, 100_000_000])
def test_the_number_of_buckets_fits_a_file_id(count):
    with pytest.raises(ConfigError, match="between 1 and 99999999"):
        hashed_buckets(pa.array(["a"]), count)


def test_no_rows_have_no_buckets():
    assert hashed_buckets(pa.chunked_array([], pa.string()), 4).to_pylist() == []
