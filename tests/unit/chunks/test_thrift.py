"""Thrift's compact protocol: a footer of pyarrow comes back byte for byte, and damaged ones are refused."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_engine.errors import CorruptTableError
from hudi_engine.format.parquet.thrift import (
    BINARY,
    BYTE,
    DOUBLE,
    I16,
    I32,
    I64,
    LIST,
    STRUCT,
    TRUE,
    Struct,
    read_struct,
    write_struct,
)
from hypothesis import given
from hypothesis import strategies as st

NUMBERS = {I16: 15, I32: 31, I64: 63}
SIMPLE: dict[int, st.SearchStrategy[Any]] = {
    TRUE: st.booleans(),
    BYTE: st.integers(0, 255),
    DOUBLE: st.floats(allow_nan=False),
    BINARY: st.binary(max_size=200),
    **{kind: st.integers(-(2**bits), 2**bits - 1) for kind, bits in NUMBERS.items()},
}


def lists_of(kind: int, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.tuples(st.just(LIST), st.tuples(st.just(kind), st.lists(values, max_size=40)))


def structs(fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Struct]:
    return st.dictionaries(st.integers(1, 32_767), fields, max_size=8)


values = st.one_of(*(st.tuples(st.just(kind), each) for kind, each in SIMPLE.items()))
lists = st.one_of(*(lists_of(kind, each) for kind, each in SIMPLE.items()))
fields = st.recursive(
    values | lists,
    lambda inner: st.tuples(st.just(STRUCT), structs(inner)) | lists_of(STRUCT, structs(inner)),
    max_leaves=20,
)


@given(structs(fields))
def test_a_structure_comes_back_as_it_was(value: Struct) -> None:
    assert read_struct(write_struct(value)) == value


def a_footer() -> bytes:
    rows = pa.table(
        {
            "id": [f"k{number}" for number in range(1000)],
            "deep": [{"a": [number], "b": {"c": 1.5}} for number in range(1000)],
            "few": pa.array(["x", None] * 500).dictionary_encode(),
        }
    )
    sink = io.BytesIO()
    pq.write_table(rows, sink, row_group_size=300, write_page_index=True)
    data = sink.getvalue()
    length = int.from_bytes(data[-8:-4], "little")
    return data[-8 - length : -8]


def test_a_footer_of_pyarrow_is_written_as_it_was_read() -> None:
    footer = a_footer()
    assert write_struct(read_struct(footer)) == footer


@given(st.integers(0, 10**6))
def test_a_footer_that_ends_early_is_refused(cut: int) -> None:
    footer = a_footer()
    with pytest.raises(CorruptTableError):
        read_struct(footer[: cut % len(footer)])


@given(st.binary(max_size=300))
def test_any_bytes_are_a_structure_or_refused(data: bytes) -> None:
    try:
        read_struct(data)
    except CorruptTableError as error:
        assert "footer" in str(error)  # noqa: PT017 - both ends are legal


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"\x1b\x00", "the type 11"),
        (b"\x1c" * 40, "nests more than 32"),
        (b"\x18\xff\xff\xff\xff\x0f", "within a value"),
    ],
    ids=["a map", "too deep", "too long a text"],
)
def test_what_no_footer_holds_is_named(data: bytes, told: str) -> None:
    with pytest.raises(CorruptTableError, match=told):
        read_struct(data)
