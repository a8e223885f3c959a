"""A change of columns leaves the rest of a table's Avro schema as its writers wrote it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hudi_engine.format.schema.avro import avro_to_arrow
from hudi_engine.format.schema.avro_change import avro_with_columns

COLOR = {"type": "enum", "name": "Color", "symbols": ["red", "blue"]}
AT = {"type": "long", "logicalType": "timestamp-millis"}
FIELDS: dict[str, dict[str, Any]] = {
    "id": {"name": "id", "type": "string", "doc": "the key"},
    "n": {"name": "n", "type": "int", "default": 7},
    "at": {"name": "at", "type": ["null", AT], "default": None},
    "local": {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
    "color": {"name": "color", "type": COLOR, "default": "red"},
    "again": {"name": "again", "type": [{"type": "string"}, "null"], "default": "x"},
    "raw": {"name": "raw", "type": {"type": "fixed", "name": "Raw", "size": 16}},
    "s": {"name": "s", "type": {"type": "record", "name": "S", "fields": [{"name": "a", "type": "int"}]}},
    "l": {"name": "l", "type": {"type": "array", "items": "int"}},
}
RECORD = {"type": "record", "name": "source", "namespace": "flink", "fields": list(FIELDS.values())}
COLUMNS = avro_to_arrow(RECORD)


def changed(columns: pa.Schema, record: dict[str, Any] = RECORD) -> dict[str, dict[str, Any]]:
    found = avro_with_columns(record, columns, "t")
    assert avro_to_arrow(found).equals(columns)
    return {field["name"]: field for field in found["fields"]}


def retyped(name: str, kind: pa.DataType) -> pa.Schema:
    return COLUMNS.set(COLUMNS.get_field_index(name), pa.field(name, kind))


def test_a_new_column_comes_last_and_the_record_keeps_its_name() -> None:
    found = avro_with_columns(RECORD, COLUMNS.append(pa.field("new", pa.int64())), "t")

    assert found == {
        **RECORD,
        "fields": [*FIELDS.values(), {"name": "new", "type": ["null", "long"], "default": None}],
    }


def test_a_column_that_goes_takes_nothing_with_it() -> None:
    assert changed(COLUMNS.remove(1)) == {name: field for name, field in FIELDS.items() if name != "n"}


@pytest.mark.parametrize(
    ("column", "kind", "expected"),
    [
        ("n", pa.int64(), {"name": "n", "type": "long", "default": 7}),
        ("n", pa.string(), {"name": "n", "type": "string"}),
        ("l", pa.list_(pa.int64()), {"name": "l", "type": {"type": "array", "items": "long"}}),
        ("at", pa.timestamp("us", "UTC"),
         {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}], "default": None}),
    ],
    ids=["a-default-that-fits", "a-default-that-does-not", "elements", "a-unit"],
)  # fmt: skip
def test_a_wider_column_stays_required_or_not(
    column: str, kind: pa.DataType, expected: dict[str, Any]
) -> None:
    assert changed(retyped(column, kind)) == {**FIELDS, column: expected}


def test_a_new_field_of_a_struct_leaves_the_others_alone() -> None:
    kind = pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.int32())]))])

    found = changed(retyped("s", kind))["s"]["type"]

    assert found["name"] == "S" and found["fields"][0] == {"name": "a", "type": "int"}
    assert found["fields"][1]["type"][1]["namespace"] == "flink.S"


def test_a_type_that_another_column_named_before_it_went_is_told_in_full() -> None:
    record = {**RECORD, "fields": [FIELDS["color"], {"name": "other", "type": "Color"}]}

    assert changed(pa.schema([("other", pa.string())]), record)["other"]["type"] == ["null", "string"]
