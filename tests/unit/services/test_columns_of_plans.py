"""Columns that change between the plan of a compaction or clustering and its run: no state loses a value by the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hudi_engine
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_engine.table.table_services import TableServices
from hudi_engine.table.write.schema_change import alter_schema

from tests.helpers.handmade import HandmadeTable
from tests.unit.services.tables import GROUP_1, GROUP_2, options

KEY, NUMBER, TEXT = pa.field("id", pa.string()), pa.field("n", pa.int32()), pa.field("x", pa.string())
SCHEMA = pa.schema([KEY, NUMBER, TEXT])
WITHOUT_TEXT = pa.schema([KEY, NUMBER])
ROWS = [{"id": "a", "n": 10, "x": "new"}, {"id": "b", "n": 2, "x": "old"}]
SERVICES = pytest.mark.parametrize("service", ["compaction", "clustering"])


class Planned:
    """A table of two rows, and a service that can be planned and run."""

    def __init__(self, path: Path, service: str, **more: object) -> None:
        self.table = HandmadeTable(path / "t", SCHEMA, merge_on_read=service == "compaction")
        self._service = service
        self._options = options(engine__publish__manifest="false", **more)
        self.services = TableServices(self.table.storage, self._options)
        first, second = (pa.Table.from_pylist([row], SCHEMA) for row in ROWS)
        if service == "clustering":
            self.table.commit({"": {GROUP_1: second}})
            self.table.commit({"": {GROUP_2: first}})
            return
        old = pa.Table.from_pylist([{"id": "a", "n": 1, "x": "first"}, ROWS[1]], SCHEMA)
        base, instant = self.table.commit({"": {GROUP_1: old}}), self.table.next_instant()
        blocks = self.table.data_blocks("", GROUP_1, first, instant)
        self.table.complete(instant, [self.table.append_log("", GROUP_1, base, blocks, instant)])

    def plan(self) -> str:
        services = self.services
        planned = services.schedule_compaction() if self._is_compaction else services.schedule_clustering()
        assert planned.state == "scheduled" and planned.instant is not None
        return planned.instant

    def run(self) -> pa.Schema:
        """Run the plan; gives the columns of the file that it writes."""
        done = self.services.compact() if self._is_compaction else self.services.cluster()
        assert done.state == "completed"
        (path,) = self.table.path.glob(f"*_{done.instant}.parquet")
        return pq.read_schema(path)

    def alter(self, *fields: pa.Field) -> str:
        return alter_schema(self.table.storage, pa.schema(fields), self._options).instant

    def rows(self, as_of: str | None = None) -> list[dict[str, Any]]:
        found = hudi_engine.read(str(self.table.path), as_of=as_of).to_arrow().to_pylist()
        return sorted(found, key=lambda row: row["id"])

    @property
    def _is_compaction(self) -> bool:
        return self._service == "compaction"


@SERVICES
def test_a_column_dropped_since_is_there_in_states_before_and_after_the_drop_is_taken_back(tmp_path, service):
    table = Planned(tmp_path, service)
    planned = table.plan()
    dropped = table.alter(*WITHOUT_TEXT)
    table.run()
    assert table.rows() == [{"id": "a", "n": 10}, {"id": "b", "n": 2}]
    assert table.rows(planned) == ROWS
    table.services.rollback(dropped)
    assert table.rows() == ROWS


@SERVICES
def test_a_savepoint_of_before_a_drop_is_restored_with_the_column(tmp_path, service):
    table = Planned(tmp_path, service)
    table.plan()
    saved = table.alter(*SCHEMA, pa.field("y", pa.string()))
    table.services.savepoint(saved, comments="before the drop")
    table.alter(*WITHOUT_TEXT, pa.field("y", pa.string()))
    table.run()
    table.services.restore("before the drop")
    assert table.rows() == [{**row, "y": None} for row in ROWS]


@SERVICES
@pytest.mark.parametrize(("wide", "numbers"), [(pa.int64(), [10, 2]), (pa.string(), ["10", "2"])], ids=str)
def test_a_column_widened_since_is_stored_as_the_commit_says(tmp_path, service, wide, numbers):
    table = Planned(tmp_path, service)
    planned = table.plan()
    table.alter(KEY, NUMBER.with_type(wide), TEXT)
    assert table.run().field("n").type == pa.int32()
    assert [row["n"] for row in table.rows()] == numbers
    assert table.rows(planned) == ROWS


@SERVICES
def test_a_column_dropped_before_the_plan_that_came_back_since_keeps_its_old_values(tmp_path, service):
    table = Planned(tmp_path, service)
    table.alter(*WITHOUT_TEXT)
    planned = table.plan()
    back = table.alter(*SCHEMA, pa.field("y", pa.int64()))
    assert table.rows() == [{**row, "y": None} for row in ROWS]
    table.alter(*WITHOUT_TEXT, pa.field("y", pa.int64()))
    stored = table.run()
    assert stored.names[5:] == ["id", "n", "x", "y"]
    assert table.rows(back) == [{**row, "y": None} for row in ROWS]
    assert table.rows(planned) == [{"id": "a", "n": 10}, {"id": "b", "n": 2}]


@SERVICES
def test_columns_since_the_whole_table_was_overwritten_are_no_columns_of_the_plan(tmp_path, service):
    table = Planned(tmp_path, service)
    table.alter(*WITHOUT_TEXT)
    planned = table.plan()
    other = pa.schema([KEY, NUMBER, TEXT.with_type(pa.date32())])
    table.table.schema = other
    whole, replaced = pa.Table.from_pylist([{"id": "c", "n": 1}], other), {"": [GROUP_1, GROUP_2]}
    instant = str(int(planned) + 1)
    stat = table.table.write_file("", "c" + GROUP_1[1:], whole, instant)
    table.table.complete(instant, [stat], replaced, "INSERT_OVERWRITE_TABLE")
    if service == "compaction":
        assert "x" not in table.run().names
    assert table.rows() == [{"id": "c", "n": 1, "x": None}]


def test_rows_are_ordered_by_a_column_that_was_dropped_since(tmp_path):
    table = Planned(tmp_path, "clustering", clustering__plan__strategy__sort__columns="x")
    planned = table.plan()
    table.alter(*WITHOUT_TEXT)
    table.run()
    (path,) = table.table.path.glob(f"*_{planned}.parquet")
    assert pq.read_table(path)["x"].to_pylist() == ["new", "old"]
