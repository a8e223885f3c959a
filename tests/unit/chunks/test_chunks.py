"""Column chunks in another file: every value, null and bound is read there as from the files they come from."""

from __future__ import annotations

import datetime as dt
import decimal
import io
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_engine.errors import CorruptTableError
from hudi_engine.format.parquet.chunk import Chunk
from hudi_engine.format.parquet.file import ChunkFile
from hudi_engine.format.parquet.writer import ChunkWriter
from hypothesis import given
from hypothesis import strategies as st

TIMES = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2200, 1, 1))
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "text": (pa.string(), st.text(st.characters(exclude_categories=["Cs"]), max_size=8)),
    "few": (pa.string(), st.sampled_from(["a", "b", "æ", "\U0001f600"])),
    "bytes": (pa.binary(), st.binary(max_size=5)),
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "long": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "float": (pa.float32(), st.floats(width=32)),
    "double": (pa.float64(), st.floats()),
    "flag": (pa.bool_(), st.booleans()),
    "day": (pa.date32(), st.dates(dt.date(1900, 1, 1), dt.date(2200, 1, 1))),
    "time": (pa.timestamp("us", "UTC"), TIMES),
    "price": (pa.decimal128(20, 3), st.decimals(-(10**15), 10**15, places=3)),
    "wide": (pa.decimal128(38, 0), st.decimals(-(10**37), 10**37, places=0)),
    "many": (pa.list_(pa.int32()), st.lists(st.none() | st.integers(-9, 9), max_size=3)),
    "deep": (
        pa.struct([("a", pa.string()), ("b", pa.list_(pa.float64()))]),
        st.fixed_dictionaries(
            {"a": st.none() | st.text("xyz", max_size=2), "b": st.lists(st.floats(), max_size=2)}
        ),
    ),
    "pairs": (
        pa.map_(pa.string(), pa.int64()),
        st.dictionaries(st.text("xyz", max_size=2), st.integers(-9, 9), max_size=2),
    ),
}
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in KINDS.items()])
ROWS = st.fixed_dictionaries({name: st.none() | values for name, (_, values) in KINDS.items()})
CODECS = ["none", "snappy", "gzip", "zstd", "lz4"]


def a_table(rows: list[dict[str, Any]]) -> pa.Table:
    columns = [
        pa.array(
            [
                None if row[name] is None else list(row[name].items()) if name == "pairs" else row[name]
                for row in rows
            ],
            kind,
        )
        for name, (kind, _) in KINDS.items()
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def stored(rows: pa.Table, **settings: Any) -> ChunkFile:
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, store_schema=False, **settings)
    return ChunkFile(pa.BufferReader(sink.getvalue()))


def joined(groups: list[tuple[int, list[Chunk]]]) -> bytes:
    sink = io.BytesIO()
    writer = ChunkWriter(sink, SCHEMA)
    for rows, chunks in groups:
        writer.add(rows, chunks)
    writer.close({"told": "yes"})
    return sink.getvalue()


def all_chunks(file: ChunkFile, number: int = 0) -> list[Chunk]:
    return [chunk for name in SCHEMA.names for chunk in file.groups[number].chunks[name]]


def all_followed(old: ChunkFile, new: ChunkFile) -> list[Chunk]:
    """Chunks of the first row group of a file, each with the pages of another file's behind it."""
    return [
        chunk.followed_by(pages, element)
        for name in SCHEMA.names
        for chunk, pages, element in zip(
            old.groups[0].chunks[name], new.groups[0].chunks[name], old.leaves(name), strict=True
        )
    ]


def same(left: pa.Table, right: pa.Table) -> bool:
    return left.cast(SCHEMA).equals(right.cast(SCHEMA)) or str(left.to_pylist()) == str(right.to_pylist())


@given(st.lists(ROWS, min_size=1, max_size=12), st.sampled_from(CODECS), st.booleans())
def test_row_groups_of_two_files_become_one_file(rows: list[dict[str, Any]], codec: str, few: bool) -> None:
    table = a_table(rows)
    one = stored(table, row_group_size=5, compression=codec, use_dictionary=few)
    two = stored(table.slice(0, 3), compression="snappy")
    groups = [(group.rows, all_chunks(one, number)) for number, group in enumerate(one.groups)]
    data = joined([*groups, (two.groups[0].rows, all_chunks(two))])
    file = pq.ParquetFile(io.BytesIO(data))
    assert same(file.read(), pa.concat_tables([table, table.slice(0, 3)]))
    assert file.metadata.metadata == {b"told": b"yes"}
    assert file.metadata.num_row_groups == len(groups) + 1


@given(
    st.lists(ROWS, min_size=1, max_size=8),
    st.lists(ROWS, min_size=1, max_size=8),
    st.sampled_from(CODECS),
    st.booleans(),
)
def test_pages_behind_a_chunk_are_its_last_rows(
    first: list[dict[str, Any]], more: list[dict[str, Any]], codec: str, few: bool
) -> None:
    tables = a_table(first), a_table(more)
    old = stored(tables[0], compression=codec, use_dictionary=few)
    new = stored(tables[1], compression=codec, use_dictionary=False)
    chunks = all_followed(old, new)
    data = joined([(len(first) + len(more), chunks)])
    file = pq.ParquetFile(io.BytesIO(data))
    whole = pa.concat_tables(tables).combine_chunks()
    assert same(file.read(), whole)
    assert_bounds_hold(file, whole)


def assert_bounds_hold(file: pq.ParquetFile, whole: pa.Table) -> None:
    """Bounds are those that pyarrow tells of the same rows in one piece, or are not told; counts are."""
    sink = io.BytesIO()
    pq.write_table(whole, sink, store_schema=False)
    expected = pq.ParquetFile(sink).metadata.row_group(0)
    found = file.metadata.row_group(0)
    for number in range(found.num_columns):
        told, right = found.column(number).statistics, expected.column(number).statistics
        assert found.column(number).num_values == expected.column(number).num_values
        if told is None or right is None:
            continue
        assert told.null_count == right.null_count, found.column(number).path_in_schema
        if told.has_min_max:
            assert (repr(told.min_raw), repr(told.max_raw)) == (repr(right.min_raw), repr(right.max_raw))


SIMPLE = ["text", "few", "int", "long", "double", "flag", "day"]


def rows_of(count: int, start: int = 0) -> pa.Table:
    rows = [
        {
            **dict.fromkeys(KINDS),
            "text": f"text {number}",
            "few": "abc"[number % 3],
            "int": number,
            "long": -number,
            "double": number / 7,
            "flag": number % 2 == 0,
            "day": dt.date(2026, 1, 1) + dt.timedelta(number % 400),
            "price": decimal.Decimal(number) / 8,
        }
        for number in range(start, start + count)
    ]
    return a_table(rows)


@pytest.mark.parametrize("codec", CODECS)
def test_other_readers_find_the_rows_and_prune_by_their_bounds(tmp_path: Any, codec: str) -> None:
    tables = rows_of(30_000), rows_of(50, 30_000)
    old = stored(tables[0], compression=codec, use_dictionary=["few", "day"])
    new = stored(tables[1], compression=codec, use_dictionary=False)
    chunks = all_followed(old, new)
    path = tmp_path / "joined.parquet"
    path.write_bytes(joined([(30_050, chunks), (50, all_chunks(stored(tables[1])))]))
    bounds = {
        name: pq.ParquetFile(path).metadata.row_group(0).column(SCHEMA.names.index(name)).statistics
        for name in SIMPLE
    }
    assert (bounds["int"].min, bounds["int"].max, bounds["long"].min, bounds["long"].max) == (
        0,
        30_049,
        -30_049,
        0,
    )
    assert (bounds["few"].min, bounds["few"].max) == ("a", "c")
    assert all(each.has_min_max for each in bounds.values())
    whole = pa.concat_tables([*tables, tables[1]]).select(SIMPLE)
    assert polars.read_parquet(path, columns=SIMPLE).to_arrow().cast(whole.schema).equals(whole)
    assert (
        duckdb.sql(f"select {', '.join(map(repr_name, SIMPLE))} from '{path}'")
        .to_arrow_table()
        .cast(whole.schema)
        .equals(whole)
    )
    for condition, count in (
        ("int >= 30000", 100),
        ("few = 'b'", 10_034),
        ("text = 'text 30049'", 2),
        ("day is null", 0),
    ):
        named = condition.replace("int", '"int"').replace("text =", '"text" =')
        assert duckdb.sql(f"select count(*) from '{path}' where {named}").fetchall() == [(count,)], condition


def repr_name(name: str) -> str:
    return f'"{name}"'


def test_pages_with_a_dictionary_of_their_own_do_not_follow_others() -> None:
    one = all_chunks(stored(rows_of(10), compression="zstd"))
    element = stored(rows_of(10)).leaves("text")[0]
    with pytest.raises(ValueError, match="no dictionary"):
        one[0].followed_by(one[0], element)
    plain = all_chunks(stored(rows_of(10), compression="gzip", use_dictionary=False))
    with pytest.raises(ValueError, match="codec"):
        one[0].followed_by(plain[0], element)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"x" * 100, b"PAR1\xff\xff\xff\x7fPAR1"], ids=repr)
def test_what_is_no_parquet_file_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptTableError, match="without a footer"):
        ChunkFile(pa.BufferReader(data))
