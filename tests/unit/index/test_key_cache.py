"""Keys of base files that are kept between writes."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hudi_engine.format.config.declared.engine_options import EngineOptions
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.merge.table_reader import read_context
from hudi_engine.table.lookup.tagging import KeyCache, keys_of_file
from hudi_engine.table.state import TableState

from tests.helpers.handmade import HandmadeTable

SCHEMA = pa.schema([("id", pa.string())])


@pytest.fixture
def table(tmp_path):
    table = HandmadeTable(tmp_path / "t", SCHEMA)
    table.commit({"": {name: pa.table({"id": [name, f"{name}2"]}) for name in ("a-0", "b-0", "c-0")}})
    return table


def opened(table):
    """The base files by file id, and a read that counts what it opens."""
    state = TableState.load(table.storage)
    read = read_context(table.storage, state.config, state.timeline)
    opens = []
    open_input = table.storage.open_input

    def counted(path, *args, **options):
        opens.append(path)
        return open_input(path, *args, **options)

    object.__setattr__(read.storage, "open_input", counted)
    return {each.file_id: each.base_file for each in state.view(None).latest_slices()}, read, opens


def test_a_file_is_read_once_and_its_keys_are_those_of_the_file(table):
    files, read, opens = opened(table)
    keys_of = KeyCache().keys_of(1000)
    assert (
        keys_of(read, files["a-0"]).to_pylist() == keys_of(read, files["a-0"]).to_pylist() == ["a-0", "a-02"]
    )
    assert len(opens) == 1
    assert keys_of_file(read, files["b-0"]).to_pylist() == ["b-0", "b-02"]


def test_keys_that_were_not_asked_for_longest_go_first(table):
    files, read, opens = opened(table)
    size = keys_of_file(read, files["a-0"]).nbytes
    keys_of = KeyCache().keys_of(2 * size)
    for name in ("a-0", "b-0", "a-0", "c-0"):
        keys_of(read, files[name])
    before = len(opens)
    keys_of(read, files["a-0"])
    assert len(opens) == before
    keys_of(read, files["b-0"])
    assert len(opens) == before + 1


def test_nothing_is_kept_where_the_option_says_so(table):
    files, read, opens = opened(table)
    options = resolve_options({"hoodie.engine.key.cache.bytes": "0"})
    keys_of = KeyCache().keys_of(options[EngineOptions.KEY_CACHE_BYTES])
    keys_of(read, files["a-0"])
    keys_of(read, files["a-0"])
    assert len(opens) == 2
