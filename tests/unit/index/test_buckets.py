"""Bucket numbers of the bucket index."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hudi_engine.errors import ConfigError, InvalidKeyError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.index.buckets import (
    BucketForm,
    bucket_ids,
    bucket_of_file,
    java_hash,
    java_hashes,
    split_complex_keys,
)
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


def buckets_of(keys, count, fields="id", hashed=None, form=BucketForm.RELEASE_1, keygen=None):
    options = resolve_options({} if hashed is None else {"hoodie.bucket.index.hash.field": hashed})
    kind = keygen or ("COMPLEX" if "," in fields else "SIMPLE")
    batch = pa.table({"_hoodie_record_key": pa.chunked_array([pa.array(keys, pa.string())])})
    return bucket_ids(batch, config(fields, kind), count, options, form).to_pylist()


@pytest.mark.parametrize(("count", "expected"), [(4, [0, 1, 1, 1, 3, 2]), (256, [80, 81, 129, 77, 131, 66])])
def test_known_buckets(count, expected):
    assert buckets_of(KEYS, count) == expected


def test_known_bucket_of_two_fields():
    bucket = (-798673080 & 0x7FFFFFFF) % 1000
    assert buckets_of(["txn_id:TXN-002,account_id:ACC-B"], 1000, "txn_id,account_id") == [bucket]


@given(st.lists(st.text(max_size=30) | st.none(), max_size=30))
def test_columns_hash_like_single_strings(texts):
    expected = [0 if text is None else naive_hash(text) for text in texts]
    assert java_hashes(pa.array(texts, pa.string())).tolist() == expected
    assert [java_hash(text) & 0xFFFFFFFF for text in texts if text is not None] == [
        naive_hash(text) for text in texts if text is not None
    ]


def test_only_the_index_fields_count():
    one, two, three = buckets_of(["a:1,b:x", "a:1,b:y", "a:2,b:x"], 97, "a,b", "a")
    assert [one] == [two] == buckets_of(["1"], 97)
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


# What Hudi's own class gives for 256 buckets: key, hashed fields, Hudi 0.15.0, Hudi 1.2.0.
HUDIS = [
    ("a:1,b:2", "b,a", 226, 226),
    ("a:1,b:2", "a,b", 226, 226),
    ("id:1", "id", 80, 177),
    ("2024-01-01T10:00:00", "id", 1, 210),
    ("urn:x:1", "id", 1, 69),
    ("a:x,y,b:2", "a,b", 176, 78),
    ("a:x,z:1,b:2", "a,b", 123, 123),
    ("a:10:30,b:2", "a,b", 91, 91),
    ("a:10:30,b:2", "b", 81, 81),
    ("a:x,y,b:2", "b", 154, 81),
    ("a:,b:2", "a,b", 243, 243),
    ("a:__null__,b:__empty__", "a,b", 193, 193),
    ("id:x,y", "id", 194, 100),
    ("x,y", "id", 100, 100),
    ("urn:x,y", "id", 152, 219),
    ("id:a:b", "id", 168, 201),
    ("id:5,6:7", "id", 84, 84),
    ("a:1,b:x,", "a,b", 40, 100),
    ("a:1,b:,,", "a,b", 176, 48),
    ("a:,,,b:2", "a,b", 179, 115),
]


@pytest.mark.parametrize(("key", "hashed", "release_0", "release_1"), HUDIS)
def test_keys_are_in_the_buckets_of_the_release(key, hashed, release_0, release_1):
    fields = "a,b" if hashed != "id" else "id"
    for form, expected in ((BucketForm.RELEASE_0, release_0), (BucketForm.RELEASE_1, release_1)):
        other = "1" if fields == "id" else "a:1,b:1"
        assert buckets_of([key, other, key], 256, fields, hashed, form)[::2] == [expected] * 2


def test_the_option_names_the_fields_to_hash():
    assert buckets_of(["a:1,b:2"], 1000, "a,b", "b") == buckets_of(["2"], 1000)


@pytest.mark.parametrize("keys", ["a", "a,b"])
def test_other_fields_cannot_be_hashed(keys):
    options = resolve_options({"hoodie.bucket.index.hash.field": "price"})
    batch = pa.table({"_hoodie_record_key": ["a:1,b:2"]})
    with pytest.raises(ConfigError, match="names price.*choose among a"):
        bucket_ids(batch, config(keys, "COMPLEX"), 4, options)


@pytest.mark.parametrize("count", [0, -1, 100_000_000])
def test_the_number_of_buckets_fits_a_file_id(count):
    with pytest.raises(ConfigError, match="between 1 and 99999999"):
        buckets_of(["a"], count)


def test_no_rows_have_no_buckets():
    assert buckets_of([], 4) == []


@pytest.mark.parametrize(
    ("file_id", "bucket"),
    [("00000003-a", 3), ("00000004-a", -1), ("0000000²-a", -1), ("²²²²²²²²-a", -1), ("7b1c24d0-a", -1)],
)
def test_a_file_id_of_no_bucket_has_none(file_id: str, bucket: int) -> None:
    assert bucket_of_file(file_id, 4) == bucket
