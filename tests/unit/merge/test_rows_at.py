"""Rows by their numbers, whether they follow each other or not."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import hudi_engine
import numpy as np
import pyarrow as pa
import pytest
from hudi_engine.format.filegroup.base_file import BaseFile
from hudi_engine.format.merge import row_equality, slice_reader
from hudi_engine.format.merge import rows_at as module
from hudi_engine.format.merge.entries import plain_entries
from hudi_engine.format.merge.modes.rule import pick
from hudi_engine.format.merge.row_equality import equal_rows, unchanged_columns
from hudi_engine.format.merge.rows_at import rows_at, taken, values_at
from hudi_engine.format.merge.slice_reader import ReadContext, resolve_delta
from hudi_engine.table.handles.carried import with_rows_at
from hypothesis import given
from hypothesis import strategies as st
from slices import DEFAULT, PARTIAL, SliceBuilder, config, data_rows, row, upserts

ROWS = pa.table({"id": pa.chunked_array([[0, 1, 2], [3, 4]]), "word": ["a", "b", None, "d", "e"]})


@pytest.mark.parametrize(
    "numbers", [[], [2], [0, 1, 2, 3, 4], [1, 2, 3], [0, 2, 4], [3, 1, 2], [1, 1, 3], [4, 3]]
)
def test_rows_come_in_the_order_of_their_numbers(numbers: list[int]) -> None:
    found = rows_at(ROWS, np.array(numbers, np.int64))
    assert found.to_pylist() == [ROWS.to_pylist()[number] for number in numbers]
    assert found.schema == ROWS.schema


@given(st.data())
def test_rows_in_many_pieces_come_in_any_order(data: st.DataObject) -> None:
    pieces = data.draw(
        st.lists(st.lists(st.none() | st.text(max_size=3), max_size=9), min_size=1, max_size=9)
    )
    texts = [text for piece in pieces for text in piece]
    words = pa.chunked_array([pa.array(piece, pa.string()) for piece in pieces])
    rows = pa.table({"id": pa.array(range(len(texts)), pa.int64()), "word": words})
    number = st.integers(0, max(0, len(texts) - 1))
    numbers = data.draw(st.lists(number, max_size=12 if texts else 0))
    found = taken(rows, np.array(numbers, np.int64))
    assert found.to_pydict() == {"id": numbers, "word": [texts[each] for each in numbers]}
    assert found.schema == rows.schema


KINDS = {
    "text": pa.string(),
    "list": pa.list_(pa.string()),
    "struct": pa.struct([("a", pa.string()), ("b", pa.int32())]),
    "map": pa.map_(pa.string(), pa.string()),
    "coded": pa.dictionary(pa.int32(), pa.string()),
}


def column(kind: pa.DataType, texts: list[str | None], pieces: int) -> pa.ChunkedArray:
    """Return texts in another type, in pieces."""
    words = pa.array(texts, pa.string())
    if pa.types.is_dictionary(kind):
        made: pa.Array = words.dictionary_encode()
    elif pa.types.is_struct(kind):
        made = pa.array([None if each is None else {"a": each, "b": 1} for each in texts], kind)
    elif pa.types.is_map(kind):
        made = pa.array([None if each is None else [("k", each)] for each in texts], kind)
    else:
        made = words if kind == pa.string() else pa.array([[each, "x"] for each in texts], kind)
    size = max(1, len(made) // pieces)
    return pa.chunked_array([made.slice(start, size) for start in range(0, len(made), size)], kind)


@contextmanager
def arrays_of(size: int) -> Iterator[pytest.MonkeyPatch]:
    """Let one array hold so many bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_ONE_ARRAY", size)
        yield patch


@given(st.data())
def test_no_array_of_taken_rows_is_larger_than_one_can_be(data: st.DataObject) -> None:
    kind = KINDS[data.draw(st.sampled_from(sorted(KINDS)))]
    texts = data.draw(st.lists(st.none() | st.text("ab", max_size=40), min_size=1, max_size=30))
    rows = pa.table({"v": column(kind, texts, data.draw(st.integers(1, 5))), "n": range(len(texts))})
    numbers = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=60))
    limit = 400
    with arrays_of(limit):
        for asked in (np.array(numbers, np.int64), pa.array(numbers, pa.uint64())):
            found = taken(rows, asked)
            assert found.to_pylist() == [rows.slice(number, 1).to_pylist()[0] for number in numbers]
            assert found.schema == rows.schema
            if kind == pa.string():
                assert all(chunk.nbytes <= limit for chunk in found.column("v").chunks)
        assert values_at(rows.column("v"), np.array(numbers, np.int64)) == found.column("v")


@given(st.data())
def test_rows_are_compared_a_part_at_a_time_where_they_are_large(data: st.DataObject) -> None:
    kind = KINDS[data.draw(st.sampled_from(sorted({*KINDS} - {"coded"})))]
    texts = data.draw(st.lists(st.none() | st.text("ab", max_size=9), min_size=1, max_size=20))
    others = [text if data.draw(st.booleans()) else "another" for text in texts]
    left, right = (pa.table({"v": column(kind, each, 3), "n": range(len(texts))}) for each in (texts, others))
    whole = equal_rows(left, right, ["v", "n"]), unchanged_columns(left, right)
    limit = 60

    def flat(column: pa.ChunkedArray) -> pa.Array:
        assert column.nbytes <= limit or len(column) == 1
        return flat_of_one(column)

    flat_of_one = row_equality.one_array
    with arrays_of(limit) as patch:
        patch.setattr(row_equality, "one_array", flat)
        assert equal_rows(left, right, ["v", "n"]).tolist() == whole[0].tolist()
        assert unchanged_columns(left, right) == whole[1]


@pytest.fixture(scope="module")
def large() -> pa.Table:
    """More text than one array holds: every other of 16 rows has 300 MB, in pieces that share memory which nobody touches."""
    size = 300_000_000
    text = np.zeros(size + 5, np.uint8)
    text[size:] = list(b"small")
    ends = pa.py_buffer(np.array([0, size, size + 5], np.int32))
    piece = pa.StringArray.from_buffers(2, ends, pa.py_buffer(text))
    return pa.table({"word": pa.chunked_array([piece] * 8), "id": pa.array(range(16), pa.int64())})


SMALL = np.arange(1, 16, 2)


def test_of_more_text_than_one_array_holds_rows_are_taken(large: pa.Table) -> None:
    wanted = [{"word": "small", "id": number} for number in SMALL]
    with pytest.raises(pa.ArrowInvalid, match="overflow"):
        large.take(pa.array(SMALL))
    for found in (taken(large, SMALL), rows_at(large, SMALL)):
        assert found.to_pylist() == wanted
    keys = pa.chunked_array([[str(number) for number in range(16)]])
    assert plain_entries(large, keys, None, None).take(SMALL).rows.to_pylist() == wanted


def test_of_more_text_than_one_array_holds_values_are_picked(large: pa.Table) -> None:
    words = large.column("word")
    small = pa.chunked_array([["new"] * len(words)])
    takes_new = np.arange(16) % 2 == 0
    assert pick(words, small, takes_new).to_pylist() == ["new", "small"] * 8


def test_of_more_text_than_one_array_holds_rows_become_others(large: pa.Table) -> None:
    places = np.arange(0, 16, 2)
    others = pa.table({"word": ["new"] * 8, "id": places}, schema=large.schema)
    found = with_rows_at(large, places, rows_at(large.slice(0, 2), np.zeros(1, np.int64)), others, SMALL[:1])
    assert found.rows.column("word").to_pylist() == (["new", "small"] * 8)[:1] + (["new", "small"] * 8)[2:]


@pytest.mark.parametrize("payload", [PARTIAL, DEFAULT])
def test_logs_are_merged_into_more_text_than_one_array_holds(
    builder: SliceBuilder, large: pa.Table, monkeypatch: pytest.MonkeyPatch, payload: str
) -> None:
    builder.add_base([row(str(number), ts=1, a=number) for number in range(16)])
    builder.add_log(upserts([row("3", ts=2, a=30), row("5", ts=2, b="new")], 2))
    read = slice_reader.read_base_file

    def with_words(context: ReadContext, file: BaseFile, columns: Sequence[str]) -> pa.Table:
        found = read(context, file, columns)
        place = found.schema.get_field_index("b")
        return (
            found if place < 0 else found.set_column(place, found.schema.field(place), large.column("word"))
        )

    monkeypatch.setattr(slice_reader, "read_base_file", with_words)
    delta = resolve_delta(builder.context(config(payload)), builder.build())
    fills = payload == PARTIAL
    assert delta.masked_positions.to_pylist() == [3, 5]
    assert data_rows(delta.live) == [
        row("3", ts=2, a=30, b="small" if fills else None),
        row("5", ts=2, a=5 if fills else None, b="new"),
    ]


def test_a_large_row_that_is_taken_often_fills_several_arrays() -> None:
    rows = pa.table({"word": ["x" * 100, "y"]})
    with arrays_of(250):
        found = taken(rows, np.zeros(9, np.int64))
    assert found.column("word").to_pylist() == ["x" * 100] * 9
    assert found.column("word").num_chunks > 3


NAMES_OF_ROWS = {"rows", "batch", "block", "table", "stored", "before", "after", "both", "old", "base"}
OF_ENTRIES = {"stored.take(inside)", "stored.take(np.flatnonzero(known & (turns == turn)))"}
"""Records on their way through a merge, which take their rows so."""


def test_whole_rows_are_taken_in_one_way() -> None:
    engine = Path(hudi_engine.__file__).parent
    found = []
    for path in {*engine.rglob("*.py")} - {
        *engine.glob("format/logformat/**/*.py"),
        engine / "format" / "merge" / "rows_at.py",
    }:
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "take"
            ):
                owner = ast.unparse(node.func.value).partition(".select(")[0].rpartition(".")[2]
                text = ast.unparse(node)
                # with names of columns it is a file that is asked
                if owner in NAMES_OF_ROWS and len(node.args) == 1 and text not in OF_ENTRIES:
                    found.append(f"{path.name}:{node.lineno}: {text}")
    assert not found, "use taken(): Arrow's take fails on more than 2 GiB of a column's text"
