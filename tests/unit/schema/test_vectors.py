"""Columns of vectors of Apache Hudi 1.2: what their Avro schema means, their bytes, and that they are not written."""

from __future__ import annotations

import json
import struct
from typing import Any

import pyarrow as pa
import pytest
from hudi_engine.errors import SchemaError, UnsupportedTableError
from hudi_engine.format.logformat.blocks import data_avro
from hudi_engine.format.schema.avro import avro_to_arrow
from hudi_engine.format.schema.casting import cast_array
from hudi_engine.format.schema.only_read import refuse_only_read


def vector(element: str, dimension: int, size: int, **more: object) -> dict[str, Any]:
    """Give the Avro type of a vector as Apache Hudi 1.2.0 writes it."""
    return {
        "type": "fixed", "name": f"vector_{element.lower()}_{dimension}", "namespace": "", "size": size,
        "logicalType": "vector", "dimension": dimension, "elementType": element, "storageBacking": "FIXED_BYTES",
        **more,
    }  # fmt: skip


def record(**columns: Any) -> dict[str, Any]:
    fields = [{"name": name, "type": ["null", kind], "default": None} for name, kind in columns.items()]
    return {"type": "record", "name": "t_record", "namespace": "hoodie.t", "fields": fields}


def list_of(kind: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", kind))


KINDS = record(
    e=vector("FLOAT", 3, 12), d=vector("DOUBLE", 2, 16), b=vector("INT8", 4, 4), again="vector_float_3"
)
FLOATS, DOUBLES, BYTES = (1.5, -2.25, 0.0), (0.1, -2.0), (1, -2, 127, -128)


def test_a_vector_is_a_list_of_its_numbers_also_where_its_type_is_named_only() -> None:
    floats = list_of(pa.float32())

    assert avro_to_arrow(KINDS) == pa.schema(
        {"e": floats, "d": list_of(pa.float64()), "b": list_of(pa.int8()), "again": floats}
    )


def test_other_fixed_columns_stay_bytes() -> None:
    assert avro_to_arrow(record(f={"type": "fixed", "name": "F", "size": 12})).field("f").type == pa.binary()


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (vector("FLOAT16", 3, 6), "'FLOAT16'.*known are FLOAT, DOUBLE, INT8"),
        (vector("FLOAT", 3, 12, storageBacking="ARRAY"), "'ARRAY'"),
        (vector("FLOAT", 3, 16), "vector of 3 FLOAT in 16 bytes"),
    ],
)
def test_vectors_that_are_not_known_are_refused_by_name(kind: dict[str, Any], told: str) -> None:
    with pytest.raises(SchemaError, match=f"column 'e'.*{told}"):
        avro_to_arrow(record(e=kind))


def test_vectors_in_avro_logs_are_read_with_nulls_between() -> None:
    row = struct.pack("<3f", *FLOATS), struct.pack("<2d", *DOUBLES), struct.pack("4b", *BYTES)
    full = b"".join(b"\x02" + part for part in (*row, row[0]))
    datums = [full, b"\x00" * 4, full]
    content = struct.pack(">ii", 3, len(datums)) + b"".join(
        struct.pack(">i", len(each)) + each for each in datums
    )

    rows = data_avro.decode(memoryview(content), json.dumps(KINDS))

    rows.validate(full=True)
    assert rows.schema == avro_to_arrow(KINDS)
    told = {"e": list(FLOATS), "d": list(DOUBLES), "b": list(BYTES), "again": list(FLOATS)}
    assert rows.to_pylist() == [told, dict.fromkeys(told), told]


@pytest.mark.parametrize("start", range(4))
def test_vectors_in_parquet_are_read_also_from_a_slice(start: int) -> None:
    parts = [struct.pack("<2d", *DOUBLES), None, struct.pack("<2d", 3.0, 4.0), None]
    stored = pa.array(parts, pa.binary(16)).slice(start)

    vectors = cast_array(stored, list_of(pa.float64()), "d")

    vectors.validate(full=True)
    assert vectors.to_pylist() == [list(DOUBLES), None, [3.0, 4.0], None][start:]


def test_bytes_that_are_no_whole_numbers_are_refused() -> None:
    with pytest.raises(SchemaError, match="6 bytes of a vector"):
        cast_array(pa.array([b"123456"], pa.binary(6)), list_of(pa.float32()), "e")


def test_a_table_with_vectors_is_not_written_and_all_of_them_are_named() -> None:
    with pytest.raises(
        UnsupportedTableError, match=r"table 't' has vectors \(VECTOR\) in 'e', 'd', 'b', 'again'"
    ):
        refuse_only_read(json.dumps(KINDS), "t")
    refuse_only_read(
        record(day={"type": "int", "logicalType": "date"}, tags={"type": "array", "items": "long"}), "t"
    )


def test_a_variant_is_refused_by_name() -> None:
    fields = [{"name": name, "type": "bytes"} for name in ("metadata", "value")]
    variant = {
        "type": "record",
        "name": "variant",
        "namespace": "",
        "fields": fields,
        "logicalType": "variant",
    }

    with pytest.raises(SchemaError, match="column 'v' is a VARIANT"):
        avro_to_arrow(record(v=variant))
