"""Nulls in required columns: those columns become optional, and no others."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hudi_engine.format.schema.avro_change import columns_with_nulls, has_required, with_nulls_allowed

INNER = {
    "type": "record",
    "name": "S",
    "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "int"}],
}
KINDS: dict[str, Any] = {
    "id": "string",
    "n": "int",
    "s": INNER,
    "l": {"type": "array", "items": "int"},
    "m": {"type": "map", "values": "int"},
}
RECORD = {
    "type": "record",
    "name": "r",
    "fields": [{"name": name, "type": kind} for name, kind in KINDS.items()],
}
FULL = {"id": "k", "n": 1, "s": {"a": 1, "b": 1}, "l": [1], "m": {"x": 1}}
ROWS = pa.schema(
    [("id", pa.string()), ("n", pa.int32()), ("s", pa.struct([("a", pa.int32()), ("b", pa.int32())])),
     ("l", pa.list_(pa.int32())), ("m", pa.map_(pa.string(), pa.int32()))]
)  # fmt: skip


OPTIONAL = {
    "n": ["null", "int"],
    "s": [
        "null",
        {**INNER, "fields": [{"name": name, "type": ["null", "int"], "default": None} for name in "ab"]},
    ],
    "l": ["null", {"type": "array", "items": ["null", "int"]}],
    "m": ["null", {"type": "map", "values": ["null", "int"]}],
}


@pytest.mark.parametrize(
    ("row", "changed"),
    [
        ({}, ""),
        ({"n": None}, "n"),
        ({"s": None}, "s"),
        ({"s": {"a": 1, "b": None}}, "s"),
        ({"l": [1, None]}, "l"),
        ({"m": {"x": None}}, "m"),
        ({"l": None, "m": None}, "lm"),
    ],
    ids=["no-null", "column", "struct", "field", "element", "value", "list-and-map"],
)
def test_only_columns_with_a_null_become_optional(row: dict[str, Any], changed: str) -> None:
    rows = pa.Table.from_pylist([FULL, {**FULL, **row}], schema=ROWS)

    found = with_nulls_allowed(RECORD, columns_with_nulls(rows, RECORD))

    kinds = {field["name"]: field["type"] for field in found["fields"]}
    assert kinds == {**KINDS, **{name: OPTIONAL[name] for name in changed}}
    assert not changed or not has_required(
        {**found, "fields": [each for each in found["fields"] if each["name"] in changed]}
    )


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ({"type": "int", "default": 0}, {"type": ["int", "null"], "default": 0}),
        ({"type": "int"}, {"type": ["null", "int"], "default": None}),
        ({"type": ["int", "string"], "default": 0}, {"type": ["int", "string", "null"], "default": 0}),
        ({"type": ["int", "null"], "default": 0}, {"type": ["int", "null"], "default": 0}),
    ],
)
def test_a_default_stays_a_value_of_the_unions_first_type(field: Any, expected: Any) -> None:
    record = {"type": "record", "name": "r", "fields": [{"name": "n", **field}]}

    found = with_nulls_allowed(record, {"n"})

    assert found["fields"] == [{"name": "n", **expected}]


def test_a_table_of_spark_has_no_required_columns() -> None:
    optional = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "l", "type": ["null", {"type": "array", "items": ["null", "int"]}]}],
    }

    assert not has_required(optional)
    assert has_required(RECORD)
