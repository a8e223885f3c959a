"""Avro schemas of tables and their Arrow form."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hudi_engine.errors import SchemaError
from hudi_engine.format.schema.avro import (
    arrow_to_avro,
    avro_to_arrow,
    check_avro_names,
    decimal_size,
    sanitize_name,
    with_meta_fields,
    without_meta_fields,
)
from hudi_engine.format.schema.meta_fields import META_FIELDS

NESTED = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("price", pa.decimal128(10, 2)),
        pa.field("day", pa.date32()),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("st", pa.struct([("z", pa.struct([("p", pa.float64())]))])),
        pa.field("ast", pa.list_(pa.struct([("v", pa.decimal128(15, 3))]))),
        pa.field("mp", pa.map_(pa.string(), pa.struct([("n", pa.int32())]))),
    ]
)


def test_a_table_schema_survives_the_way_through_avro() -> None:
    assert avro_to_arrow(json.dumps(arrow_to_avro(NESTED, "orders"))).equals(NESTED)


def test_names_follow_the_form_of_hudis_spark_writers() -> None:
    record = arrow_to_avro(NESTED, "orders")
    types = {field["name"]: field["type"][1] for field in record["fields"]}

    assert (record["namespace"], record["name"]) == ("hoodie.orders", "orders_record")
    assert types["price"] == {
        "type": "fixed",
        "name": "fixed",
        "namespace": "hoodie.orders.orders_record.price",
        "size": 5,
        "logicalType": "decimal",
        "precision": 10,
        "scale": 2,
    }
    inner = types["st"]["fields"][0]["type"][1]
    assert (types["st"]["namespace"], inner["namespace"]) == (
        "hoodie.orders.orders_record",
        "hoodie.orders.orders_record.st",
    )
    element = types["ast"]["items"][1]
    assert (element["name"], element["fields"][0]["type"][1]["namespace"]) == (
        "ast",
        "hoodie.orders.orders_record.ast.v",
    )
    assert all(field["type"][0] == "null" and field["default"] is None for field in record["fields"])


def test_unions_are_read_in_either_order_and_named_types_by_reference() -> None:
    schema = {
        "type": "record",
        "name": "r",
        "namespace": "n",
        "fields": [
            {"name": "a", "type": ["long", "null"]},
            {"name": "b", "type": {"type": "record", "name": "P", "fields": [{"name": "x", "type": "int"}]}},
            {"name": "c", "type": ["null", "P"]},
            {"name": "d", "type": {"type": "enum", "name": "E", "symbols": ["u", "v"]}},
            {"name": "e", "type": {"type": "bytes", "logicalType": "decimal", "precision": 7, "scale": 1}},
        ],
    }
    point = pa.struct([("x", pa.int32())])
    expected = [pa.int64(), point, point, pa.string(), pa.decimal128(7, 1)]

    assert [field.type for field in avro_to_arrow(schema)] == expected


def test_meta_fields_are_put_in_front_once_and_taken_off() -> None:
    plain = arrow_to_avro(pa.schema([("id", pa.string())]), "t")
    full = with_meta_fields(with_meta_fields(plain))

    assert [field["name"] for field in full["fields"]] == [*META_FIELDS, "id"]
    assert without_meta_fields(full) == plain


@pytest.mark.parametrize(
    ("precision", "size"), [(1, 1), (2, 1), (3, 2), (5, 3), (10, 5), (15, 7), (18, 8), (19, 9), (38, 16)]
)
def test_decimals_take_the_fewest_bytes(precision: int, size: int) -> None:
    assert decimal_size(precision) == size


@pytest.mark.parametrize(("name", "safe"), [("orders", "orders"), ("a-b.c", "a__b__c"), ("1x", "__x")])
def test_table_names_become_legal_avro_names(name: str, safe: str) -> None:
    assert sanitize_name(name) == safe


def test_illegal_column_names_come_in_one_message() -> None:
    inner = pa.struct([("a-b", pa.int32())])
    schema = pa.schema([("Id", pa.int32()), ("id", pa.int32()), ("", pa.int32()), ("st", inner)])

    with pytest.raises(SchemaError, match="'id' appears twice.*'' is not allowed.*'st.a-b' is not allowed"):
        check_avro_names(schema)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (pa.timestamp("us"), "'c'.*time zone"),
        (pa.map_(pa.int32(), pa.string()), "'c.key'.*strings"),
        (pa.duration("us"), "'c'.*duration"),
        (pa.list_(pa.null()), "'c.element'.*null"),
    ],
)
def test_what_avro_cannot_hold_is_refused_by_name(kind: pa.DataType, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        arrow_to_avro(pa.schema([("c", kind)]), "t")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not valid JSON"),
        ('"string"', "record"),
        ('{"type":"record","name":"r","fields":[{"name":"a","type":["int","string"]}]}', "union of 2"),
        ('{"type":"record","name":"r","fields":[{"name":"a","type":"Missing"}]}', "'Missing'"),
        ('{"type":"record","name":"r","fields":[{"name":"a","type":["null","r"]}]}', "recursive"),
    ],
)
def test_malformed_schemas_are_one_clear_error(text: str, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        avro_to_arrow(text)
