"""Key generators: record keys and partition paths of whole tables."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from hudi_engine.errors import ConfigError, InvalidKeyError, PathEscapeError, SchemaError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.keygen.generator import KeyGenerator, build_key_generator
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.table_settings import version_6

PEOPLE = pa.table({"id": [1, 2], "name": ["Alice", "Bob"], "byteField": [10, 20], "shortField": [300, 301]})


def config(keys: str, partitions: str = "", keygen: str | None = None, **more: str) -> TableConfig:
    generator = (
        {} if keygen is None else {"hoodie.table.keygenerator.class": f"org.apache.hudi.keygen.{keygen}"}
    )
    return version_6(keys, partitions, generator, more)


def generator(*args: str, **more: str) -> KeyGenerator:
    return build_key_generator(config(*args, **more))


HIVE = {"datasource__write__hive_style_partitioning": "true"}
MILLIS = {
    "keygen__timebased__timestamp__type": "EPOCHMILLISECONDS",
    "keygen__timebased__output__dateformat": "yyyyMM",
}


@pytest.mark.parametrize(
    ("rules", "keys", "paths"),
    [
        (("id", "byteField", "SimpleKeyGenerator"), ["1", "2"], ["10", "20"]),
        (("id,name", "byteField", "ComplexKeyGenerator"), ["id:1,name:Alice", "id:2,name:Bob"], ["10", "20"]),
        (("id", "", "NonpartitionedKeyGenerator"), ["1", "2"], ["", ""]),
        (("id,name", "", "NonpartitionedKeyGenerator"), ["id:1,name:Alice", "id:2,name:Bob"], ["", ""]),
        (("id", "byteField,shortField", "CustomKeyGenerator"), ["1", "2"], ["10/300", "20/301"]),
        (("id", "byteField", "GlobalDeleteKeyGenerator"), ["1", "2"], ["", ""]),
    ],
)
def test_the_generators_of_hudi(rules, keys, paths):
    made = generator(*rules)
    assert made.record_keys(PEOPLE).to_pylist() == keys
    assert made.partition_paths(PEOPLE).to_pylist() == paths


def test_hive_style_folders():
    made = generator("id,name", "byteField,shortField", "ComplexKeyGenerator", **HIVE)
    assert made.partition_paths(PEOPLE).to_pylist() == [
        "byteField=10/shortField=300",
        "byteField=20/shortField=301",
    ]


@pytest.mark.parametrize(
    ("version", "prefix", "key"),
    [
        ("6", None, "1"),
        ("6", False, "1"),
        ("6", True, "id:1"),
        ("8", None, "1"),
        ("9", None, "id:1"),
        ("9", False, "1"),
    ],
)
def test_a_lone_complex_field_is_written_as_told(version, prefix, key):
    layout = {"timeline__layout__version": "1" if version == "6" else "2", "table__version": version}
    settings = config("id", "byteField,shortField", "ComplexKeyGenerator", **layout)
    made = build_key_generator(settings, complex_single_prefix=prefix)
    assert made.record_keys(PEOPLE)[0].as_py() == key


def test_the_custom_generator_mixes_kinds():
    table = pa.table({"k": ["a"], "league": ["L1"], "ev": [1709251200000]})
    made = generator("k", "league:SIMPLE,ev:TIMESTAMP", "CustomKeyGenerator", **MILLIS)
    assert made.partition_paths(table).to_pylist() == ["L1/202403"]


def test_kinds_that_the_table_lacks_come_from_the_write():
    table = pa.table({"k": ["a"], "league": ["L1"], "ev": [1709251200000]})
    options = resolve_options(
        {
            "hoodie.datasource.write.partitionpath.field": "league:SIMPLE,ev:TIMESTAMP",
            "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
            "hoodie.keygen.timebased.output.dateformat": "yyyyMM",
        }
    )
    made = build_key_generator(config("k", "league,ev", "CustomKeyGenerator"), options=options)
    assert made.partition_paths(table).to_pylist() == ["L1/202403"]


def test_timestamp_settings_without_kinds_are_not_guessed():
    with pytest.raises(ConfigError, match="does not say which .*league:simple,ev:timestamp"):
        generator("k", "league,ev", "CustomKeyGenerator", **MILLIS)


def test_a_timestamp_generator_gets_what_the_table_lacks_from_the_write():
    settings = config(
        "k", "ev", "TimestampBasedKeyGenerator", **HIVE, keygen__timebased__output__dateformat="yyyy/MM"
    )
    table = pa.table({"k": ["a", "b"], "ev": [1709251200000, None]})
    with pytest.raises(ConfigError, match=r"timestamp\.type is not set"):
        build_key_generator(settings).partition_paths(table)
    options = resolve_options({"hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS"})
    made = build_key_generator(settings, options=options)
    assert made.partition_paths(table).to_pylist() == ["ev=2024/03", "ev=1970/01"]


def test_slashes_of_a_date_pattern_are_encoded_with_the_value():
    table = pa.table({"k": ["a"], "ev": [0]})
    encode = {"datasource__write__partitionpath__urlencode": "true"}
    made = generator(
        "k",
        "ev",
        "TimestampBasedKeyGenerator",
        **MILLIS | encode | {"keygen__timebased__output__dateformat": "yyyy/MM"},
    )
    assert made.partition_paths(table).to_pylist() == ["1970%2F01"]


def test_timestamps_as_raw_numbers_or_text():
    table = pa.table({"at": pa.array([1706933106123456], pa.timestamp("us", "UTC"))})
    assert generator("at").record_keys(table).to_pylist() == ["1706933106123456"]
    option = {"datasource__write__keygenerator__consistent__logical__timestamp__enabled": "true"}
    assert generator("at", **option).record_keys(table).to_pylist() == ["2024-02-03 04:05:06.123"]


def test_nested_fields_are_named_with_dots():
    table = pa.table({"a": [{"b": {"c": 7}}, {"b": None}, None], "k": ["x", "y", "z"]})
    made = generator("k,a.b.c", "a.b.c", "ComplexKeyGenerator", **HIVE)
    assert made.record_keys(table).to_pylist() == ["k:x,a.b.c:7", "k:y,a.b.c:__null__", "k:z,a.b.c:__null__"]
    assert made.partition_paths(table).to_pylist() == [
        "a.b.c=7",
        "a.b.c=__HIVE_DEFAULT_PARTITION__",
        "a.b.c=__HIVE_DEFAULT_PARTITION__",
    ]


def test_names_match_without_regard_to_case_when_only_one_does():
    assert generator("ID").record_keys(PEOPLE).to_pylist() == ["1", "2"]
    with pytest.raises(SchemaError, match="'ID' is not among id, Id"):
        generator("ID").record_keys(pa.table({"id": [1], "Id": [2]}))


@pytest.mark.parametrize("field", ["missing", "id.x", "name.first"])
def test_missing_fields_are_named(field):
    with pytest.raises(SchemaError, match=f"field '{field}' is not in the data"):
        generator(field).record_keys(PEOPLE)


@pytest.mark.parametrize(("value", "shown"), [(None, "null"), ("", "''")])
def test_rows_without_a_key_are_refused_with_a_sample(value, shown):
    table = pa.table({"id": ["a", value, value], "n": [1, 2, 3]})
    with pytest.raises(InvalidKeyError, match=rf"2 row\(s\) .*\(id\).* row 1: id={shown}, n=2\."):
        generator("id").record_keys(table)
    assert generator("id").record_keys_or_null(table).to_pylist() == ["a", None, None]


def test_a_complex_key_needs_one_field_that_is_filled():
    table = pa.table({"a": ["x", None, ""], "b": ["", "y", "z"]})
    assert generator("a,b").record_keys(table).to_pylist() == [
        "a:x,b:__empty__",
        "a:__null__,b:y",
        "a:__empty__,b:z",
    ]
    empty = pa.table(
        {"a": [None, ""], "b": ["", None]}, schema=pa.schema([("a", pa.string()), ("b", pa.string())])
    )
    with pytest.raises(InvalidKeyError, match=r"2 row\(s\)"):
        generator("a,b").record_keys(empty)


def test_tables_with_generated_keys_have_no_key_columns():
    assert generator("", "byteField").record_keys(PEOPLE) is None


def test_values_that_leave_the_table_are_refused():
    table = pa.table({"k": [1], "p": ["../other"]})
    with pytest.raises(PathEscapeError, match="'../other'"):
        generator("k", "p").partition_paths(table)


@pytest.mark.parametrize("keygen", ["SimpleKeyGenerator", "TimestampBasedKeyGenerator"])
def test_generators_of_one_field_refuse_two(keygen):
    with pytest.raises(ConfigError, match="takes one record key field.*id, name"):
        generator("id,name", "byteField", keygen, **MILLIS)


def test_unknown_kinds_of_partition_fields_are_refused():
    with pytest.raises(ConfigError, match="'shortField' .*kind 'hash'"):
        generator("id", "byteField:simple,shortField:hash", "CustomKeyGenerator")


def test_a_table_without_rows_has_no_keys():
    made = generator("id,name", "byteField", "ComplexKeyGenerator")
    assert made.record_keys(PEOPLE.slice(0, 0)).to_pylist() == []
    assert made.partition_paths(PEOPLE.slice(0, 0)).to_pylist() == []


def naive_key(row: dict[str, str | None], names: list[str]) -> str | None:
    """One row at a time, by the letter of the rule."""
    if len(names) == 1:
        return row[names[0]] or None
    if not any(row[name] for name in names):
        return None
    parts = []
    for name in names:
        value = row[name]
        parts.append(f"{name}:{'__null__' if value is None else value or '__empty__'}")
    return ",".join(parts)


ROWS = st.lists(st.fixed_dictionaries({name: st.none() | st.text(max_size=4) for name in "abc"}), max_size=12)


@given(ROWS, st.sampled_from([["a"], ["a", "b"], ["c", "a", "b"]]))
def test_keys_of_columns_equal_keys_of_rows(rows, names):
    table = pa.Table.from_pylist(rows, schema=pa.schema([(name, pa.string()) for name in "abc"]))
    found = generator(",".join(names)).record_keys_or_null(table)
    assert found.to_pylist() == [naive_key(row, names) for row in rows]


def test_the_generator_travels_to_other_processes():
    made = generator("id", "shortField", "TimestampBasedKeyGenerator", **MILLIS)
    again = pickle.loads(pickle.dumps(made))  # noqa: S301
    assert again.partition_paths(PEOPLE).to_pylist() == ["197001", "197001"]
