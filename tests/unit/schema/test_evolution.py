"""What a batch may do to a table's schema."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hudi_engine.errors import SchemaError
from hudi_engine.format.schema.evolution import can_promote, evolve
from hudi_engine.format.schema.meta_fields import META_FIELDS, with_meta_columns

TABLE = pa.schema([("id", pa.string()), ("n", pa.int32()), ("price", pa.decimal128(10, 2))])


def test_new_columns_come_last_and_missing_ones_stay() -> None:
    batch = pa.schema([("note", pa.string()), ("id", pa.string())])

    assert evolve(TABLE, batch).names == ["id", "n", "price", "note"]


def test_a_wider_batch_widens_the_column_and_a_narrower_one_does_not_narrow_it() -> None:
    wide = pa.schema([("n", pa.int64())])

    assert evolve(TABLE, wide).field("n").type == pa.int64()
    assert evolve(wide, TABLE).field("n").type == pa.int64()


def test_structs_lists_and_maps_evolve_inside() -> None:
    before = pa.struct([("a", pa.int32())])
    after = pa.struct([("b", pa.bool_()), ("a", pa.int64())])
    merged = pa.struct([("a", pa.int64()), ("b", pa.bool_())])

    for wrap in (lambda t: t, pa.list_, lambda t: pa.map_(pa.string(), t)):
        evolved = evolve(pa.schema([("c", wrap(before))]), pa.schema([("c", wrap(after))]))
        assert evolved.field("c").type == wrap(merged)


def test_meta_columns_of_the_table_stay_in_front() -> None:
    evolved = evolve(with_meta_columns(TABLE), with_meta_columns(pa.schema([("x", pa.bool_())])))

    assert evolved.names == [*META_FIELDS, "id", "n", "price", "x"]


def test_every_problem_is_named_in_one_message() -> None:
    batch = pa.schema([("id", pa.bool_()), ("n", pa.date32())])

    with pytest.raises(SchemaError, match="'id' is string.*bool.*'n' is int32.*date32.*'price'.*missing"):
        evolve(TABLE, batch, allow_missing=False)


def test_a_column_that_differs_only_by_case_is_refused() -> None:
    with pytest.raises(SchemaError, match="'ID' appears twice"):
        evolve(TABLE, pa.schema([("ID", pa.string())]))


@pytest.mark.parametrize(
    ("stored", "wanted", "legal"),
    [
        (pa.int32(), pa.int64(), True),
        (pa.int32(), pa.string(), True),
        (pa.int64(), pa.int32(), False),
        (pa.float32(), pa.float64(), True),
        (pa.float64(), pa.float32(), False),
        (pa.bool_(), pa.string(), False),
        (pa.binary(), pa.string(), True),
        (pa.date32(), pa.timestamp("us", "UTC"), False),
        (pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC"), True),
        (pa.timestamp("us", "UTC"), pa.timestamp("ms", "UTC"), False),
        (pa.timestamp("ms"), pa.timestamp("us", "UTC"), False),
        (pa.decimal128(10, 2), pa.decimal128(12, 4), True),
        (pa.decimal128(10, 2), pa.decimal128(10, 4), False),
    ],
)
def test_promotions(stored: pa.DataType, wanted: pa.DataType, legal: bool) -> None:
    assert can_promote(stored, wanted) is legal
