"""Avro data blocks, judged by fastavro working row by row."""

from __future__ import annotations

import io
import json
import struct
import sys
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hudi_engine.errors import CorruptTableError, SchemaError, UnsupportedTableError
from hudi_engine.format.logformat.blocks import data_avro
from hudi_engine.format.schema.avro import arrow_to_avro
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from values import tables  # noqa: E402

PEOPLE = pa.table({"id": ["a", "b", None], "n": pa.array([1, -65, 2**40]), "ok": [True, None, False]})


def _maps_as_dicts(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {key: _maps_as_dicts(item, kind.item_type) for key, item in value}
    if pa.types.is_list(kind):
        return [_maps_as_dicts(item, kind.value_type) for item in value]
    if pa.types.is_struct(kind):
        return {field.name: _maps_as_dicts(value[field.name], field.type) for field in kind}
    return value


def _judge(table: pa.Table, avro: dict) -> bytes:
    parsed = fastavro.parse_schema(json.loads(json.dumps(avro)))
    out = bytearray(struct.pack(">ii", 3, table.num_rows))
    for row in table.to_pylist():
        sink = io.BytesIO()
        values = {field.name: _maps_as_dicts(row[field.name], field.type) for field in table.schema}
        fastavro.schemaless_writer(sink, parsed, values)
        out += struct.pack(">i", len(sink.getvalue())) + sink.getvalue()
    return bytes(out)


@settings(max_examples=60, deadline=None)
@given(tables())
def test_bytes_are_those_of_a_row_by_row_encoder_and_come_back_equal(table: pa.Table) -> None:
    avro = arrow_to_avro(table.schema, "t")

    contents = list(data_avro.encode(table, avro, 10**9))

    assert contents == ([_judge(table, avro)] if table.num_rows else [])
    for content in contents:
        assert data_avro.decode(memoryview(content), json.dumps(avro)).equals(table)


@settings(max_examples=30, deadline=None)
@given(tables(max_rows=30), st.integers(1, 400))
def test_blocks_hold_every_row_in_order_and_keep_their_limit(table: pa.Table, limit: int) -> None:
    avro = arrow_to_avro(table.schema, "t")

    contents = list(data_avro.encode(table, avro, limit))

    rows = [data_avro.decode(memoryview(content), json.dumps(avro)) for content in contents]
    assert pa.concat_tables([table.slice(0, 0), *rows]).equals(table)
    assert all(
        len(content) <= limit or decoded.num_rows == 1
        for content, decoded in zip(contents, rows, strict=True)
    )


def test_text_of_any_bytes_comes_back_as_it_was_written() -> None:
    odd = pc.cast(
        pa.array([b"caf\xe9", None, b"ok"]), options=pc.CastOptions(pa.string(), allow_invalid_utf8=True)
    )
    entries = pa.MapArray.from_arrays([0, 1, 1, 3], odd.fill_null("k"), odd)
    table = pa.table({"text": odd, "texts": pa.ListArray.from_arrays([0, 1, 1, 3], odd), "map": entries})
    avro = arrow_to_avro(table.schema, "t")

    (content,) = data_avro.encode(table, avro, 10**9)

    assert data_avro.decode(memoryview(content), json.dumps(avro)).equals(table)


def test_columns_are_matched_by_name_widened_and_filled() -> None:
    avro = arrow_to_avro(pa.schema([("n", pa.float64()), ("new", pa.string()), ("id", pa.string())]), "t")

    (content,) = data_avro.encode(PEOPLE, avro, 10**9)

    decoded = data_avro.decode(memoryview(content), json.dumps(avro)).to_pydict()
    assert decoded == {"n": [1.0, -65.0, float(2**40)], "new": [None] * 3, "id": ["a", "b", None]}


def test_other_writers_schemas_are_understood() -> None:
    fields = {
        "reversed": ["long", "null"],
        "required": "string",
        "color": {"type": "enum", "name": "E", "symbols": ["red", "blue"]},
        "ms": {"type": "long", "logicalType": "timestamp-millis"},
        "dec": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        "raw": {"type": "fixed", "name": "F", "size": 2},
    }
    schema = {"type": "record", "name": "r", "fields": [{"name": n, "type": t} for n, t in fields.items()]}
    # null by branch 1, "x", symbol 1, 1 ms before the epoch, -1.23 in two bytes, two raw bytes
    datum = bytes([2, 2, ord("x"), 2, 1, 4, 0xFF, 0x85, 0x00, 0xFF])
    content = struct.pack(">iii", 3, 1, len(datum)) + datum

    table = data_avro.decode(memoryview(content), json.dumps(schema))

    assert {name: str(table.column(name)[0]) for name in table.column_names} == {
        "reversed": "None",
        "required": "x",
        "color": "blue",
        "ms": "1969-12-31 23:59:59.999000+00:00",
        "dec": "-1.23",
        "raw": str(b"\x00\xff"),
    }
    (again,) = data_avro.encode(table, schema, 10**9)
    assert data_avro.decode(memoryview(again), json.dumps(schema)).equals(table)


def test_arrays_in_blocks_with_a_byte_size_are_read() -> None:
    schema = json.dumps(
        {"type": "record", "name": "r", "fields": [{"name": "a", "type": {"type": "array", "items": "int"}}]}
    )
    # Two items in a block that says its size (count -2), one in a plain block, the end.
    datum = bytes([0x03, 0x04, 0x02, 0x04, 0x02, 0x06, 0x00])
    content = struct.pack(">iii", 3, 1, len(datum)) + datum

    assert data_avro.decode(memoryview(content), schema).to_pydict() == {"a": [[1, 2, 3]]}


def test_a_null_where_the_schema_forbids_it_names_the_column() -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "string"}]}

    with pytest.raises(SchemaError, match="'id' holds a null"):
        list(data_avro.encode(PEOPLE, schema, 10**9))


AVRO = arrow_to_avro(PEOPLE.schema, "t")
GOOD = next(data_avro.encode(PEOPLE, AVRO, 10**9))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damage_is_found_or_harmless_but_never_another_error(data: st.DataObject) -> None:
    damaged = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(damaged)))
    try:
        data_avro.decode(memoryview(bytes(damaged[:cut])), json.dumps(AVRO))
    except (CorruptTableError, UnsupportedTableError):
        pass


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x00\x00\x00\x03", "at least 8"),
        (struct.pack(">ii", 3, 2**31 - 1), "cannot hold 2147483647 records"),
        (struct.pack(">iii", 3, 1, 2**31 - 1), "impossible length"),
        (struct.pack(">iii", 3, 1, -1), "impossible length"),
        (GOOD + b"\x00", "1 bytes after"),
        (struct.pack(">iii", 3, 1, 7) + b"\x02\xfe\xff\xff\xff\x0f\x00", "impossible length"),
    ],
)
def test_impossible_lengths_are_refused_before_anything_is_allocated(content: bytes, words: str) -> None:
    with pytest.raises(CorruptTableError, match=words):
        data_avro.decode(memoryview(content), json.dumps(AVRO))


def test_an_unknown_content_version_is_refused_by_number() -> None:
    with pytest.raises(UnsupportedTableError, match="content version 7"):
        data_avro.decode(memoryview(struct.pack(">ii", 7, 0)), json.dumps(AVRO))
