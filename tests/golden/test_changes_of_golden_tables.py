"""The changes of tables that Apache Hudi wrote lead from each state, as Apache Hudi read it, to every later one."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.table.changes.plan import plan_changes, steps_since
from hudi_engine.table.state import TableState

from tests.golden.golden import NAMES, description, unpack
from tests.golden.stories import STORIES
from tests.judge.arrow_rows import rows_of_arrow

DISPUTED = {story.name: story.disputed for story in STORIES}
Row = dict[str, Any]


def text_of(row: Row, names: list[str]) -> str:
    # a column that came later is null before
    return json.dumps([row.get(name) for name in names], default=str)


def keys_of(rows: list[Row]) -> dict[tuple[str, str], Row]:
    return {(row["_hoodie_partition_path"], row["_hoodie_record_key"]): row for row in rows}


def changes(state: TableState, start: str, end: str, mode: str) -> pa.Table:
    schema = state.data_schema(end)
    assert schema is not None
    steps, cleaned = steps_since(state, start, end, mode=mode)
    return plan_changes(state, state.read_context(schema, resolve_options({})), steps, cleaned, mode).rows()


@pytest.mark.parametrize("name", NAMES)
def test_changes_lead_from_each_state_to_every_later_one(name: str, tmp_path: Path) -> None:
    state = TableState.load(open_storage(str(unpack(name, tmp_path))))
    states = description(name)["as_of"]
    instants = sorted(states)
    for number, start in enumerate(instants):
        for end in instants[number:]:
            before, after = keys_of(states[start]), keys_of(states[end])
            net = changes(state, start, end, "net").drop_columns(DISPUTED[name])
            names = net.column_names[:-2]
            told = Counter((row["_change_type"], text_of(row, names)) for row in rows_of_arrow(net))
            expected = Counter(
                ("delete", text_of(row, names)) for key, row in before.items() if key not in after
            )
            for key, row in after.items():
                if key not in before:
                    expected["insert", text_of(row, names)] += 1
                elif text_of(row, names) != text_of(before[key], names):
                    expected["update_after", text_of(row, names)] += 1
            assert told == expected, f"{start} to {end}"

            rows = Counter(text_of(row, names) for row in states[start])
            for row in rows_of_arrow(changes(state, start, end, "all").drop_columns(DISPUTED[name])):
                rows[text_of(row, names)] += 1 if row["_change_type"] in ("insert", "update_after") else -1
            assert +rows == Counter(text_of(row, names) for row in states[end]), f"{start} to {end}, all"
            assert not -rows
