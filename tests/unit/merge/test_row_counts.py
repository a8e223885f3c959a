"""Base files of which a column ends early: their other rows are not taken for all there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hudi_engine.errors import ConfigError, CorruptTableError
from hudi_engine.format.config.declared.write_options import FileOptions
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.base_file import BaseFile, parse_base_file
from hudi_engine.format.merge.base_reader import (
    BaseFileRows,
    opened_base_file,
    read_base_file,
    scan_base_file,
)
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.schema.meta_fields import with_meta_columns
from hudi_engine.format.storage import open_storage
from slices import config

DATA = pa.schema([("id", pa.int64()), ("tags", pa.list_(pa.string()))])
NAME = "f-0_0-0-0_20260101000000000.parquet"
READS: dict[str, Callable[[BaseFileRows], object]] = {
    "whole": lambda rows: rows.read(["tags"]),
    "blocks": lambda rows: list(rows.blocks(["id", "tags"])),
    "blocks of a row group": lambda rows: list(rows.blocks(["id", "tags"], group=0)),
    "codes": lambda rows: rows.codes("tags"),
    "places": lambda rows: rows.take(np.array([0]), ["id", "tags"]),
}


@pytest.fixture
def written(tmp_path: Path) -> Callable[[int], tuple[ReadContext, BaseFile]]:
    """A function that writes a file of one row, its pages of about so many bytes; pyarrow begins lists with an empty one up to 6."""

    def write(page_bytes: int) -> tuple[ReadContext, BaseFile]:
        schema = with_meta_columns(DATA)
        columns = {"id": pa.array([7]), "tags": pa.array([["a", "b"]])}
        texts = {name: pa.array(["20260101000000000"]) for name in schema.names if name not in columns}
        rows = pa.table({name: {**texts, **columns}[name] for name in schema.names}, schema)
        pq.write_table(rows, tmp_path / NAME, data_page_size=page_bytes)
        found = parse_base_file(NAME, "")
        assert found is not None
        settings = TableConfig.from_properties(config().properties)
        return ReadContext(open_storage(str(tmp_path)), settings, schema, lambda _: True), found

    return write


@pytest.mark.parametrize("reading", READS.values(), ids=READS.keys())
def test_a_column_that_ends_early_is_an_error_with_its_name(written, reading) -> None:
    context, base = written(1)
    with pytest.raises(CorruptTableError, match=rf"{NAME}.*has 1 rows.*but 0 came; column 'tags' ends"):
        with opened_base_file(context, base) as rows:
            reading(rows)


def test_a_file_read_at_once_is_counted_too(written) -> None:
    context, base = written(1)
    with pytest.raises(CorruptTableError, match="column 'tags' ends"):
        read_base_file(context, base, ["tags"])


def test_a_filter_on_such_a_column_alone_is_no_way_around(written) -> None:
    context, base = written(1)
    with pytest.raises(CorruptTableError, match="column 'tags' ends"):
        scan_base_file(context, base, ["tags"], pc.field("tags").is_valid())
    context, base = written(1)
    context = replace(context, schema=context.schema.append(pa.field("later", pa.int64())))
    with pytest.raises(CorruptTableError, match="column 'tags' ends"):
        scan_base_file(context, base, ["tags", "later"], pc.field("later").is_null())
    context, base = written(1024)
    assert scan_base_file(context, base, ["tags"], pc.field("tags").is_valid()).num_rows == 1


def test_files_of_the_least_page_size_are_read(written) -> None:
    context, base = written(int(FileOptions.PAGE_SIZE.minimum or 0))
    assert read_base_file(context, base, ["tags"]).to_pylist() == [{"tags": ["a", "b"]}]


def test_page_sizes_that_files_cannot_be_read_again_with_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"hoodie.parquet.page.size.*at least 1024"):
        resolve_options({"hoodie.parquet.page.size": "6"})
