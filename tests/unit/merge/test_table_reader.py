"""Reading whole tables without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from hudi_engine.errors import ConfigError, CorruptTableError, TableNotFoundError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.partition_metadata import ensure_partition_metadata
from hudi_engine.format.merge.slice_reader import read_slice
from hudi_engine.format.merge.table_reader import table_schema
from hudi_engine.format.schema.avro import arrow_to_avro
from hudi_engine.format.schema.meta_fields import META_FIELDS
from hudi_engine.format.storage import open_storage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.format.timeline.schema_commits import load_schema_history
from hudi_engine.table.state import TableState
from slices import DATA, SliceBuilder, config, data_rows, deletes, instant, row, upserts

from tests.helpers.read_table import read_table
from tests.unit.services import tables


@pytest.fixture
def table(tmp_path: Path) -> SliceBuilder:
    """Partition ``p``: commit 1 writes ``a`` and ``b``, commit 2 updates ``a``, commit 3 deletes ``b`` and
    adds column ``c``."""
    settings = TableConfig.from_properties(
        {
            **config().properties,
            "hoodie.timeline.layout.version": "1",
            "hoodie.table.partition.fields": "dt",
            "hoodie.table.create.schema": json.dumps(arrow_to_avro(DATA, "t")),
        }
    )
    storage = open_storage(str(tmp_path))
    settings.save(storage)
    builder = SliceBuilder(tmp_path, partition="p")
    ensure_partition_metadata(storage, "p", instant(1))
    builder.add_base([row("a", 1, 1), row("b", 1, 1)])
    builder.add_log(upserts([row("a", 2, 2)], 2)).add_log(deletes(["b"], 3))
    _commit(builder, 1)
    _commit(builder, 2)
    _commit(builder, 3, pa.schema([*DATA, ("c", pa.bool_())]))
    return builder


def _commit(builder: SliceBuilder, number: int, schema: pa.Schema = DATA) -> None:
    body = CommitMetadata(extra_metadata={"schema": json.dumps(arrow_to_avro(schema, "t"))}).to_json()
    (builder.folder / ".hoodie" / f"{instant(number)}.deltacommit").write_bytes(body)


def _read(builder: SliceBuilder, **options: object) -> pa.Table:
    return read_table(open_storage(str(builder.folder)), **options)


def test_the_newest_commit_is_read_with_its_schema(table: SliceBuilder) -> None:
    rows = _read(table)

    assert rows.column_names == [*META_FIELDS, *DATA.names, "c"]
    assert data_rows(rows) == [row("a", 2, 2)]


def test_base_files_alone(table: SliceBuilder) -> None:
    assert data_rows(_read(table, read_optimized=True)) == [row("a", 1, 1), row("b", 1, 1)]


def test_an_earlier_moment_has_its_rows_and_its_schema(table: SliceBuilder) -> None:
    rows = _read(table, as_of=instant(2))

    assert "c" not in rows.column_names
    assert data_rows(rows) == [row("a", 2, 2), row("b", 1, 1)]


def test_columns_and_ranges_of_instants(table: SliceBuilder) -> None:
    rows = _read(table, columns=["a", "id"], instant_range=(instant(1), instant(2)))

    assert rows.to_pydict() == {"a": [2], "id": ["a"]}


def test_a_table_without_a_commit_is_empty_with_the_schema_it_was_created_with(table: SliceBuilder) -> None:
    for file in (table.folder / ".hoodie").glob("*.deltacommit"):
        file.unlink()

    rows = _read(table)

    assert (rows.num_rows, rows.column_names) == (0, [*META_FIELDS, *DATA.names])


def test_a_folder_that_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError):
        read_table(open_storage(str(tmp_path)))


def test_partition_columns_that_files_leave_out_come_last_and_are_text_whatever_they_were_created_with(
    table: SliceBuilder,
) -> None:
    storage = open_storage(str(table.folder))
    created = arrow_to_avro(pa.schema([("dt", pa.int32()), *DATA]), "t")
    settings = TableConfig.load(storage).with_properties(
        {
            "hoodie.datasource.write.drop.partition.columns": "true",
            "hoodie.table.create.schema": json.dumps(created),
        }
    )

    schema = table_schema(settings, Timeline.load(storage, settings), instant(1))

    assert schema.equals(pa.schema([*DATA, ("dt", pa.string())]))


def test_the_newest_committed_schema_history_counts(table: SliceBuilder) -> None:
    storage = open_storage(str(table.folder))
    settings = TableConfig.load(storage)
    timeline = Timeline.load(storage, settings)
    assert load_schema_history(storage, timeline) is None
    folder = table.folder / ".hoodie" / ".schema"
    folder.mkdir()
    for number, name in ((2, "committed"), (9, "failed")):
        version = {"version_id": 0, "type": "record", "fields": [{"id": 1, "name": name, "type": "int"}]}
        (folder / f"{instant(number)}.schemacommit").write_text(json.dumps({"schemas": [version]}))

    history = load_schema_history(storage, timeline)

    assert history is not None and [column.name for column in history.newest().children] == ["committed"]
    (folder / f"{instant(3)}.schemacommit").write_text("")
    with pytest.raises(CorruptTableError, match="empty"):
        load_schema_history(storage, timeline)


def test_log_records_beyond_the_memory_limit_go_to_the_folder_for_them(tmp_path: Path) -> None:
    table = tables.merge_on_read(tmp_path / "t")
    state = TableState.load(table.storage)
    taken = tmp_path / "taken"
    taken.write_text("a file where a folder is wanted")
    small = {"hoodie.memory.merge.max.size": 1, "hoodie.memory.spillable.map.path": str(taken / "below")}

    def merged(options: dict[str, object]) -> int:
        context = state.read_context(state.data_schema(), resolve_options(options))
        return sum(read_slice(context, each).num_rows for each in state.view().latest_slices())

    assert merged({**small, "hoodie.memory.merge.max.size": 10**9}) == len(tables.MERGED)
    with pytest.raises(ConfigError, match=f"made in '{taken}/below': .* in hoodie.memory.spillable.map.path"):
        merged(small)
    assert merged({**small, "hoodie.memory.spillable.map.path": str(tmp_path / "spill")}) == len(
        tables.MERGED
    )
    assert list((tmp_path / "spill").iterdir()) == []
