"""Random rows of every column type, for round trips."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

UTC = datetime.timezone.utc
SCALARS = [
    pa.bool_(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.date32(),
    pa.timestamp("us", "UTC"),
    pa.decimal128(5, 0),
    pa.decimal128(18, 4),
    pa.decimal128(38, 10),
]


def kinds(depth: int = 2) -> st.SearchStrategy[pa.DataType]:
    """Column types, nested up to ``depth`` levels."""
    scalars = st.sampled_from(SCALARS)
    if depth == 0:
        return scalars
    inner = kinds(depth - 1)
    structs = st.lists(inner, min_size=1, max_size=3).map(
        lambda types: pa.struct([(f"f{index}", kind) for index, kind in enumerate(types)])
    )
    lists = inner.map(lambda kind: pa.list_(pa.field("element", kind)))
    return st.one_of(scalars, structs, lists, inner.map(lambda kind: pa.map_(pa.string(), kind)))


def values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Values of a type, null among them."""
    return st.one_of(st.none(), _present(kind))


def _present(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_struct(kind):
        return st.fixed_dictionaries({field.name: values(field.type) for field in kind})
    if pa.types.is_list(kind):
        return st.lists(values(kind.value_type), max_size=4)
    if pa.types.is_map(kind):
        return st.dictionaries(st.text(max_size=3), values(kind.item_type), max_size=3).map(
            lambda d: list(d.items())
        )
    if pa.types.is_decimal(kind):
        limit = 10**kind.precision - 1
        return st.integers(-limit, limit).map(
            lambda number: Decimal((number < 0, _digits(number), -kind.scale))
        )
    if pa.types.is_timestamp(kind):
        return st.datetimes(timezones=st.just(UTC))
    return {
        pa.bool_(): st.booleans(),
        pa.int32(): st.integers(-(2**31), 2**31 - 1),
        pa.int64(): st.integers(-(2**63), 2**63 - 1),
        pa.float32(): st.floats(width=32, allow_nan=False),
        pa.float64(): st.floats(allow_nan=False),
        pa.string(): st.text(max_size=300),
        pa.binary(): st.binary(max_size=300),
        pa.date32(): st.dates(),
    }[kind]


def _digits(number: int) -> tuple[int, ...]:
    return tuple(int(digit) for digit in str(abs(number)))


@st.composite
def tables(draw: st.DrawFn, max_rows: int = 12) -> pa.Table:
    """Tables of one to four columns, cut into chunks."""
    types = draw(st.lists(kinds(), min_size=1, max_size=4))
    count = draw(st.integers(0, max_rows))
    schema = pa.schema([(f"c{index}", kind) for index, kind in enumerate(types)])
    columns = [pa.array(draw(st.lists(values(kind), min_size=count, max_size=count)), kind) for kind in types]
    table = pa.Table.from_arrays(columns, schema=schema)
    cut = draw(st.integers(0, count))
    return pa.concat_tables([table.slice(0, cut), table.slice(cut)])
