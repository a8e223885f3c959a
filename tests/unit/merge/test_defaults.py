"""Rows are neither written nor merged that Hudi fills by defaults and this engine by nulls."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hudi_engine.errors import UnsupportedTableError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.merge.missing_columns import defaults_that_fill
from hudi_engine.format.merge.slice_reader import read_slice
from hudi_engine.format.merge.table_reader import read_context
from hudi_engine.format.storage import open_storage
from hudi_engine.table.state import TableState
from slices import DATA, DEFAULT, NON_DEFAULTS, PARTIAL, SliceBuilder, config, row, upserts


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


def test_a_default_that_is_not_null_is_refused_where_rows_are_filled_by_it(tmp_path: Path) -> None:
    with pytest.raises(
        UnsupportedTableError, match="defaults a=0, which Apache Hudi takes for no value given"
    ):
        _begin(tmp_path, NON_DEFAULTS, 0)


@pytest.mark.parametrize(
    ("payload", "default"), [(DEFAULT, 0), (PARTIAL, 0), (PARTIAL, None), (NON_DEFAULTS, None)]
)
def test_other_defaults_are_written_with(tmp_path: Path, payload: str, default: int | None) -> None:
    _begin(tmp_path, payload, default)


OF_VERSION_9 = {"hoodie.table.version": "9", "hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}


@pytest.mark.parametrize(
    ("payload", "properties", "is_refused"),
    [
        (NON_DEFAULTS, {}, True),
        ("", {**OF_VERSION_9, "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}, True),
        ("", {**OF_VERSION_9, "hoodie.record.merge.mode": "EVENT_TIME_ORDERING"}, True),
        (PARTIAL, {}, False),
        (DEFAULT, {}, False),
    ],
)
def test_logs_are_not_merged_into_a_column_that_is_filled_by_its_default(
    tmp_path: Path, payload: str, properties: dict[str, str], is_refused: bool
) -> None:
    fields = [{"name": "id", "type": "string"}, {"name": "a", "type": "long", "default": 0}]
    known = config(payload, **properties)
    found = defaults_that_fill(known, json.dumps({"type": "record", "name": "t", "fields": fields}))
    builder = (
        SliceBuilder(tmp_path).add_base([row("k", 1, 5, "old")]).add_log(upserts([row("k", 2, 0, None)], 2))
    )
    context = builder.context(known, defaults=found)

    assert found == ({"a": 0} if is_refused else {})
    assert read_slice(context, builder.build(), columns=["id", "ts"]).num_rows == 1
    assert read_slice(context, builder.build(), merge_type="base_only")["a"].to_pylist() == [5]
    if is_refused:
        with pytest.raises(
            UnsupportedTableError, match="a=0.* and would give other rows. Read base files only"
        ):
            read_slice(context, builder.build())
    else:
        assert read_slice(context, builder.build())["a"].to_pylist() == [0]


def test_a_read_knows_the_defaults_of_its_table(tmp_path: Path) -> None:
    _begin(tmp_path, NON_DEFAULTS, 0, anew=True)
    state = TableState.load(open_storage(str(tmp_path)))

    read = read_context(state.storage, state.config, state.timeline)

    assert read.defaults == {"a": 0}
    assert state.read_context(DATA, resolve_options({})).defaults == {"a": 0}


def test_a_table_that_is_written_anew_has_no_defaults_of_before(tmp_path: Path) -> None:
    _begin(tmp_path, NON_DEFAULTS, 0, anew=True)
