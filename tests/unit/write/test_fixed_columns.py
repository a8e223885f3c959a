"""Which types key, partition and ordering columns may change to: those in which stored values count as they did."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest
from hudi_engine.errors import SchemaError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.keygen.text import key_text
from hudi_engine.format.schema.evolution import can_change, cast_array
from hudi_engine.table.write.operation import WHOLE_TABLE
from hudi_engine.table.write.stored_rows import check_fixed_columns

VALUES: dict[pa.DataType, list[object]] = {
    pa.int32(): [0, 7, -2_000_000_000],
    pa.int64(): [0, -7, 2**62 + 1],
    pa.float32(): [0.1, 1.0, 1e10],
    pa.float64(): [0.1, -0.0, 1e-9],
    pa.decimal128(10, 2): [Decimal("1.50"), Decimal("0.00"), Decimal("-0.01")],
    pa.decimal128(12, 2): [Decimal("1.50")],
    pa.decimal128(12, 4): [Decimal("1.5000")],
    pa.decimal128(20, 6): [Decimal("0.000001")],
    pa.decimal128(20, 9): [Decimal("0.000000001")],
    pa.date32(): [date(2026, 1, 2), date(1, 1, 1)],
    pa.string(): ["a", "ü"],
    pa.binary(): [b"a"],
}
CHANGES = [(old, new) for old in VALUES for new in VALUES if old != new and can_change(old, new)]


def config(role: str) -> TableConfig:
    properties = {
        "hoodie.table.name": "t",
        "hoodie.table.type": "COPY_ON_WRITE",
        "hoodie.table.version": "6",
        "hoodie.timeline.layout.version": "1",
        "hoodie.table.recordkey.fields": "S.C" if role == "key" else "id",
        "hoodie.table.partition.fields": "S.C" if role == "partition" else "",
        "hoodie.table.precombine.field": "C" if role == "ordering" else "",
    }
    return TableConfig.from_properties(properties)


def may_change(role: str, old: pa.DataType, new: pa.DataType, replaces: str = "") -> bool:
    before, after = (
        pa.schema([("id", pa.int32()), ("c", kind), ("s", pa.struct([("c", kind)]))]) for kind in (old, new)
    )
    try:
        check_fixed_columns(config(role), before, after, replaces)
    except SchemaError:
        return False
    return True


@pytest.mark.parametrize("role", ["key", "partition"])
def test_a_key_or_partition_column_changes_only_to_types_in_which_values_have_their_text(role: str) -> None:
    allowed = {(old, new) for old, new in CHANGES if may_change(role, old, new)}

    assert {(pa.int32(), pa.int64()), (pa.int64(), pa.string()), (pa.date32(), pa.string())} <= allowed
    assert (pa.decimal128(10, 2), pa.decimal128(12, 2)) in allowed
    assert (pa.decimal128(10, 2), pa.decimal128(12, 4)) not in allowed
    for old, new in allowed:
        values = pa.array(VALUES[old], old)
        assert key_text(cast_array(values, new, "c")).equals(key_text(values)), (old, new)


def test_an_ordering_column_changes_only_to_types_that_tell_its_values_apart_in_their_order() -> None:
    refused = {(old, new) for old, new in CHANGES if not may_change("ordering", old, new)}

    assert {new for _, new in refused} == {pa.float32(), pa.float64(), pa.string()}
    assert {old for old, new in refused if new == pa.float64()} == {pa.int64()}
    assert {old for old, new in refused if new == pa.float32()} == {pa.int32(), pa.int64()}


def test_other_columns_and_tables_of_which_nothing_stays_change_freely() -> None:
    assert may_change("none", pa.int32(), pa.float64())
    assert may_change("key", pa.int32(), pa.float64(), WHOLE_TABLE)
