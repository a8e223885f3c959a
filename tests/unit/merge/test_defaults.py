"""Rows are not written that Hudi fills by defaults and this engine by nulls."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hudi_engine.config.options import resolve_options
from hudi_engine.config.table_config import TableConfig
from hudi_engine.errors import UnsupportedTableError
from hudi_engine.storage import open_storage
from hudi_engine.table_state import TableState
from slices import DATA, DEFAULT, NON_DEFAULTS, PARTIAL, config


def _begin(folder: Path, payload: str, default: int | None, *, anew: bool = False) -> None:
    kind = ["null", "long"] if default is None else ["long", "null"]
    fields = [
        {"name": "id", "type": ["null", "string"], "default": None},
        {"name": "a", "type": kind, "default": default},
        {"name": "_hoodie_is_deleted", "type": "boolean", "default": False},
    ]
    schema = {"type": "record", "name": "t", "fields": fields}
    known = {"hoodie.timeline.layout.version": "1", "hoodie.table.create.schema": json.dumps(schema)}
    storage = open_storage(str(folder))
    TableConfig.from_properties({**config(payload).properties, **known}).save(storage)
    state, options = replace(TableState.load(storage), is_written_anew=anew), resolve_options({})
    data = state.data_schema()
    assert data is not None and data.field("a").type == DATA.field("a").type
    read = state.read_context(data, options)
    state.write_context(options, data, read, instant="1", action="deltacommit", operation="UPSERT")


@pytest.mark.parametrize("payload", [PARTIAL, NON_DEFAULTS])
def test_a_default_that_is_not_null_is_refused_where_rows_are_filled_by_it(
    tmp_path: Path, payload: str
) -> None:
    with pytest.raises(
        UnsupportedTableError, match="defaults a=0, which Apache Hudi takes for no value given"
    ):
        _begin(tmp_path, payload, 0)


@pytest.mark.parametrize(("payload", "default"), [(DEFAULT, 0), (PARTIAL, None), (NON_DEFAULTS, None)])
def test_other_defaults_are_written_with(tmp_path: Path, payload: str, default: int | None) -> None:
    _begin(tmp_path, payload, default)


def test_a_table_that_is_written_anew_has_no_defaults_of_before(tmp_path: Path) -> None:
    _begin(tmp_path, NON_DEFAULTS, 0, anew=True)
