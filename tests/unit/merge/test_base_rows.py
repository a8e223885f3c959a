"""Rows of a base file by their places, against the file read whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.base_file import BaseFile, parse_base_file
from hudi_engine.format.merge import base_reader
from hudi_engine.format.merge.base_reader import opened_base_file
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.schema.meta_fields import with_meta_columns
from hudi_engine.format.storage import open_storage
from slices import config

BLOCK = 100
ROWS = 2 * BLOCK + 30
DATA = pa.schema([("id", pa.int64()), ("word", pa.string()), ("tags", pa.list_(pa.string()))])


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[ReadContext, BaseFile, Path]:
    """A file of two row groups, the first of two blocks; its texts are few, and written by number."""
    monkeypatch.setattr(base_reader, "BLOCK_ROWS", BLOCK)
    schema = with_meta_columns(DATA)
    numbers = pa.array(range(ROWS))
    columns = {
        "id": numbers,
        "word": pa.array([None if each % 7 == 3 else f"word {each % 50}" for each in range(ROWS)]),
        "tags": pa.array([[f"tag {each % 3}"] * (each % 2) for each in range(ROWS)]),
    }
    texts = {name: pa.repeat("20260101000000000", ROWS) for name in schema.names if name not in columns}
    rows = pa.table({name: {**texts, **columns}[name] for name in schema.names}, schema)
    name = "f-0_0-0-0_20260101000000000.parquet"
    pq.write_table(rows, tmp_path / name, row_group_size=BLOCK + 50)
    found = parse_base_file(name, "")
    assert found is not None
    settings = TableConfig.from_properties(config().properties)
    read = ReadContext(open_storage(str(tmp_path)), settings, schema, lambda _: True)
    return read, found, tmp_path / name


@pytest.mark.parametrize(
    "places",
    [
        [],
        [0],
        [ROWS - 1],
        [5, BLOCK - 1, BLOCK, BLOCK + 49, BLOCK + 50, ROWS - 1],
        list(range(0, ROWS, 7)),
    ],
    ids=["none", "first", "last", "at the borders", "everywhere"],
)
@pytest.mark.parametrize("columns", [["word", "id"], ["tags", "word"], ["_hoodie_commit_time"]])
def test_rows_are_those_at_their_places(
    base: tuple[ReadContext, BaseFile, Path], places: list[int], columns: list[str]
) -> None:
    read, file, path = base
    with opened_base_file(read, file) as rows:
        found = rows.take(np.array(places, np.int64), columns)
    assert (
        found.to_pydict()
        == pq.read_table(path, columns=columns).take(pa.array(places, pa.int64())).to_pydict()
    )
    assert found.schema.types == [read.schema.field(name).type for name in columns]


def test_nothing_behind_the_last_wanted_row_group_is_read(base: tuple[ReadContext, BaseFile, Path]) -> None:
    read, file, path = base
    second = pq.read_metadata(path).row_group(1).column(0)
    begin = second.dictionary_page_offset or second.data_page_offset
    whole = path.read_bytes()
    footer = int.from_bytes(whole[-8:-4], "little") + 8
    path.write_bytes(whole[:begin] + b"\0" * (len(whole) - begin - footer) + whole[-footer:])
    with opened_base_file(read, file) as rows:
        assert rows.take(np.array([3, BLOCK + 1]), ["id"]).column(0).to_pylist() == [3, BLOCK + 1]
