"""Which files and rows a batch of keys touches."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.base_file import BaseFile, base_file_name
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.schema.avro import arrow_to_avro
from hudi_engine.format.schema.meta_fields import with_meta_columns
from hudi_engine.format.storage import open_storage
from hudi_engine.table.handles.base_file_options import BaseFileOptions
from hudi_engine.table.handles.base_file_writer import attach_meta_columns, write_base_file
from hudi_engine.table.lookup.tagging import KeyPruning, tag_slice

INSTANT = "20260101000000000"
SCHEMA = with_meta_columns(pa.schema([("id", pa.string())]))


def committed(time: str) -> bool:
    return True


def file_with(folder, keys):
    """A slice whose base file holds the keys, and how to read it."""
    storage = open_storage(str(folder))
    name = base_file_name("f-0", "0-0-0", INSTANT)
    rows = attach_meta_columns(
        pa.table({"id": keys}),
        commit_time=INSTANT,
        seqno_prefix_task=0,
        keys=pa.array(keys),
        partition="",
        file_name=name,
    )
    options = BaseFileOptions.from_options(resolve_options({}))
    write_base_file(storage, name, rows, avro_schema_with_meta=arrow_to_avro(SCHEMA, "t"), options=options)
    config = TableConfig({"hoodie.table.name": "t", "hoodie.table.version": "6"})
    read = ReadContext(storage=storage, config=config, schema=SCHEMA, is_committed=committed)
    return read, FileSlice("", "f-0", INSTANT, BaseFile("", "f-0", "0-0-0", INSTANT), ())


# Java compares UTF-16 units: the emoji comes before the full-width letters, in UTF-8 it comes after them.
@pytest.mark.parametrize(
    "stored", [["\U0001f600", "\uff21"], ["a", "\U0001f600"], ["\uff21"], ["\U0001f600"]]
)
@pytest.mark.parametrize("by_range", [True, False])
def test_a_key_of_the_file_is_never_pruned(tmp_path, stored, by_range):
    read, file_slice = file_with(tmp_path, stored)
    keys = pa.array(["\uff21", None, "\U0001f600", "a"])
    tag = tag_slice(read, file_slice, keys, KeyPruning(by_footer=True, by_range=by_range))
    assert tag is not None
    assert [keys[row].as_py() for row in tag.batch_rows.to_pylist()] == stored


def test_a_file_without_any_of_the_keys_is_not_tagged(tmp_path):
    read, file_slice = file_with(tmp_path, ["b", "d"])
    for keys in (["a", "e"], ["c"], []):
        batch = pa.array(keys, pa.string())
        assert tag_slice(read, file_slice, batch, KeyPruning(by_footer=True)) is None


def test_every_row_of_a_key_that_a_file_holds_twice_is_tagged(tmp_path):
    read, file_slice = file_with(tmp_path, ["a", "b", "a"])
    tag = tag_slice(read, file_slice, pa.array(["c", "a"]), KeyPruning())
    assert tag is not None
    assert (tag.batch_rows.to_pylist(), tag.matched.to_pylist()) == ([1, None, 1], [1])
