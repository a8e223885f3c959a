"""Texts of enums are among the symbols, at every level of a row."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hudi_engine.errors import SchemaError
from hudi_engine.format.schema.avro import avro_to_arrow
from hudi_engine.table.write.place.unit import check_symbols

COLOR = {"type": "enum", "name": "Color", "symbols": ["red", "blue"]}
INNER = {
    "type": "record",
    "name": "S",
    "fields": [{"name": "n", "type": "int"}, {"name": "c", "type": "Color"}],
}
RECORD = {
    "type": "record",
    "name": "t",
    "fields": [
        {"name": "c", "type": ["null", COLOR], "default": None},
        {"name": "s", "type": ["null", INNER], "default": None},
        {"name": "l", "type": {"type": "array", "items": ["null", "Color"]}},
        {"name": "m", "type": {"type": "map", "values": "S"}},
        {"name": "text", "type": "string"},
    ],
}


def rows(**others: Any) -> pa.Table:
    in_struct = {"n": 1, "c": "blue"}
    plain = {"c": "red", "s": in_struct, "l": ["red", None], "m": [("k", in_struct)], "text": "green"}
    known = [plain, {**plain, "c": None, "s": None, "l": [], "m": []}]
    return pa.Table.from_pylist([*known, {**plain, **others}], schema=avro_to_arrow(RECORD))


def test_symbols_and_nulls_pass() -> None:
    check_symbols(rows(), RECORD)
    check_symbols(rows().slice(1), RECORD)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("c", "green"),
        ("s.c", {"n": 1, "c": "green"}),
        ("l.element", ["blue", "green"]),
        ("m.value.c", [("k", {"n": 1, "c": "green"})]),
    ],
)
def test_another_text_is_refused_by_its_place(path: str, value: object) -> None:
    found = rows(**{path.partition(".")[0]: value})
    for part in (found, found.slice(2)):
        with pytest.raises(SchemaError, match=f"'{path}' is an enum of red, blue .*'green' is none of them"):
            check_symbols(part, RECORD)
    check_symbols(found.slice(0, 2), RECORD)
    without = [{**field, "type": "string"} for field in RECORD["fields"]]
    check_symbols(found.select(["text"]), {**RECORD, "fields": without})
