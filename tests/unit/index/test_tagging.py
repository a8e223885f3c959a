"""Which files and rows a batch of keys touches."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pyarrow.parquet as pq
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


def file_with(folder, keys, **more):
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
    options = dataclasses.replace(BaseFileOptions.from_options(resolve_options({})), **more)
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


def unread(read, base_file):
    raise AssertionError(f"the keys of {base_file.path} were read")


def keys(*texts):
    return pa.array(texts, pa.string())


@pytest.mark.parametrize("batch", [keys("a", "e"), keys("c"), keys("a", "c", None)])
def test_keys_of_a_pruned_file_are_not_read(tmp_path, batch):
    read, file_slice = file_with(tmp_path, ["b", "d"])
    assert tag_slice(read, file_slice, batch, KeyPruning(by_footer=True), keys_of=unread) is None
    with pytest.raises(AssertionError, match="were read"):
        tag_slice(read, file_slice, batch, KeyPruning(), keys_of=unread)


def test_the_key_range_prunes_a_file_without_bloom_filter_unless_switched_off(tmp_path):
    read, file_slice = file_with(tmp_path, ["b", "d"], bloom_enabled=False)
    outside = keys("a", "e")
    assert tag_slice(read, file_slice, outside, KeyPruning(by_footer=True), keys_of=unread) is None
    with pytest.raises(AssertionError, match="were read"):
        tag_slice(read, file_slice, outside, KeyPruning(by_footer=True, by_range=False), keys_of=unread)
    with pytest.raises(AssertionError, match="were read"):
        tag_slice(read, file_slice, keys("c"), KeyPruning(by_footer=True), keys_of=unread)


def test_a_file_without_key_range_and_filter_is_looked_up_whole_with_one_warning(tmp_path, caplog):
    read, file_slice = file_with(tmp_path, ["b", "d"])
    path = tmp_path / file_slice.base_file.path
    tag_slice(read, file_slice, keys("a", "d"), KeyPruning(by_footer=True))
    assert not caplog.records
    pq.write_table(pq.read_table(path).replace_schema_metadata(None), path, write_statistics=False)
    for _ in range(2):
        tag = tag_slice(read, file_slice, keys("a", "d"), KeyPruning(by_footer=True))
        assert tag is not None and (tag.batch_rows.to_pylist(), tag.matched.to_pylist()) == ([None, 1], [1])
    (warning,) = (each for each in caplog.records if each.name.startswith("hudi_engine"))
    path = file_slice.base_file.path
    assert f"base file {path!r} of table 't' has neither key range nor Bloom filter" in warning.getMessage()
