"""Nulls in required columns: those columns become optional, and no others."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hudi_engine.format.schema.required import has_required, nulls_of_rows, with_nulls_allowed

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


def kinds(*rows: dict[str, Any]) -> dict[str, Any]:
    found = with_nulls_allowed(RECORD, nulls_of_rows(pa.Table.from_pylist([FULL, *rows], schema=ROWS)))
    return {field["name"]: field["type"] for field in found["fields"]}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({}, {}),
        ({"n": None}, {"n": ["null", "int"]}),
        ({"s": None}, {"s": ["null", INNER]}),
        ({"s": {"a": 1, "b": None}},
         {"s": {**INNER, "fields": [INNER["fields"][0], {"name": "b", "type": ["null", "int"], "default": None}]}}),
        ({"l": [1, None]}, {"l": {"type": "array", "items": ["null", "int"]}}),
        ({"m": {"x": None}}, {"m": {"type": "map", "values": ["null", "int"]}}),
        ({"l": None, "m": None}, {"l": ["null", KINDS["l"]], "m": ["null", KINDS["m"]]}),
    ],
    ids=["no-null", "column", "struct", "field", "element", "value", "list-and-map"],
)  # fmt: skip
def test_only_what_has_a_null_becomes_optional(row: dict[str, Any], expected: dict[str, Any]) -> None:
    assert kinds({**FULL, **row}) == {**KINDS, **expected}


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

    found = with_nulls_allowed(record, pa.schema([pa.field("n", pa.int32(), nullable=True)]))

    assert found["fields"] == [{"name": "n", **expected}]


def test_a_table_of_spark_has_no_required_columns() -> None:
    optional = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "l", "type": ["null", {"type": "array", "items": ["null", "int"]}]}],
    }

    assert not has_required(optional)
    assert has_required(RECORD)
