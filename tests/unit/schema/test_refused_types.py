"""Types of Apache Hudi 1.2 that are refused by name."""

from __future__ import annotations

from typing import Any

import pytest
from hudi_engine.errors import SchemaError
from hudi_engine.format.schema.avro import avro_to_arrow

VECTOR = {
    "type": "fixed", "name": "vector_float_3", "namespace": "", "size": 12, "logicalType": "vector",
    "dimension": 3, "elementType": "FLOAT", "storageBacking": "FIXED_BYTES",
}  # fmt: skip
PARTS = [{"name": name, "type": "bytes"} for name in ("metadata", "value")]
VARIANT = {
    "type": "record",
    "name": "variant",
    "namespace": "",
    "fields": PARTS,
    "logicalType": "variant",
}


@pytest.mark.parametrize(("kind", "name"), [(VECTOR, "VECTOR"), (VARIANT, "VARIANT")])
def test_type_is_refused_by_name(kind: dict[str, Any], name: str) -> None:
    field = {"name": "v", "type": ["null", kind], "default": None}
    record = {"type": "record", "name": "t_record", "namespace": "hoodie.t", "fields": [field]}
    with pytest.raises(SchemaError, match=f"column 'v' is a {name} of Apache Hudi.*copy it there with"):
        avro_to_arrow(record)
