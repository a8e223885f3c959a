"""Copy-on-write: a base file with a batch merged in, however many blocks it is read in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_engine.errors import CorruptTableError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.base_file import BaseFile, base_file_name
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.index.filters.footer import read_key_footer
from hudi_engine.format.merge.base_reader import BaseFileRows
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.schema.avro import arrow_to_avro
from hudi_engine.format.schema.meta_fields import RECORD_KEY, with_meta_columns
from hudi_engine.format.storage import open_storage
from hudi_engine.table.handles.base_file_options import BaseFileOptions
from hudi_engine.table.handles.base_file_writer import attach_meta_columns
from hudi_engine.table.handles.merge import merge_file
from hudi_engine.table.handles.updates import FileChanges
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.handles.write_task import WriteTask

pytestmark = pytest.mark.usefixtures("coded_texts", "carried_columns")
OLD, NEW = "20260101000000000", "20260102000000000"
ITEM = pa.struct([("n", pa.int32()), ("words", pa.list_(pa.string()))])
STORED = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("n", pa.int32()), ("item", ITEM)])
# The table has grown: a wider number and a column that the file lacks.
TABLE = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.int64()),
        ("n", pa.int64()),
        ("item", ITEM),
        ("late", pa.map_(pa.string(), pa.int64())),
    ]
)
ROWS = [
    {"id": f"k{i}", "ts": 10, "n": i, "item": None if i % 3 == 0 else {"n": i, "words": ["w"] * (i % 4)}}
    for i in range(10)
]


def committed(time: str) -> bool:
    return True


def a_task(folder, **options_given):
    storage = open_storage(str(folder))
    storage.create(f".hoodie/{NEW}.inflight", b"")
    config = TableConfig(
        {
            "hoodie.table.name": "t",
            "hoodie.table.version": "6",
            "hoodie.table.type": "COPY_ON_WRITE",
            "hoodie.table.recordkey.fields": "id",
            "hoodie.table.precombine.field": "ts",
        }
    )
    options = resolve_options(options_given)
    schema = with_meta_columns(TABLE)
    read = ReadContext(storage=storage, config=config, schema=schema, is_committed=committed)
    return WriteTask(
        WriteContext(
            storage=storage,
            config=config,
            options=options,
            instant=NEW,
            action="commit",
            operation="UPSERT",
            schema=schema,
            avro_schema=arrow_to_avro(schema, "t"),
            read=read,
            base_files=BaseFileOptions.from_options(options),
            average_row_bytes=100,
        )
    )


def a_file(folder, rows=ROWS, schema=STORED, group_rows=4, codec="zstd"):
    """A base file of three row groups."""
    name = base_file_name("f-0", "0-0-0", OLD)
    table = attach_meta_columns(
        pa.Table.from_pylist(rows, schema),
        commit_time=OLD,
        seqno_prefix_task=0,
        keys=pa.array([row["id"] for row in rows], pa.string()),
        partition="",
        file_name=name,
    )
    pq.write_table(table, folder / name, row_group_size=group_rows, compression=codec, store_schema=False)
    size = (folder / name).stat().st_size
    return FileSlice("", "f-0", OLD, BaseFile("", "f-0", "0-0-0", OLD, size=size), ())


def batch(*rows):
    table = pa.Table.from_pylist(list(rows), TABLE)
    return table.append_column(RECORD_KEY, table.column("id"))


def changed(key: str, ts: int = 20) -> dict[str, Any]:
    return {"id": key, "ts": ts, "n": 2**40, "item": {"n": None, "words": None}, "late": [("a", 1)]}


def read_back(folder, stat):
    return pq.read_table(folder / stat.path)


@pytest.fixture(params=[1, 3, 4, 100])
def block_rows(request, monkeypatch):
    """How many rows are merged at a time."""
    monkeypatch.setattr("hudi_engine.format.merge.base_reader.BLOCK_ROWS", request.param)


@pytest.mark.usefixtures("block_rows")
def test_updates_deletes_and_new_rows_meet_the_right_rows_in_every_block_size(tmp_path):
    file_slice = a_file(tmp_path)
    # k7 is late, k1 and k8 go; two rows of the file may belong to one row of the batch.
    updates = batch(changed("k8"), changed("k0"), changed("k7", ts=5), changed("k1"), changed("k9"))
    picks = [1, 3, None, None, None, None, None, 2, 0, 4]
    changes = FileChanges(
        pa.array(picks, pa.int32()),
        updates,
        pa.array([True, False, False, True, False]),
        inserts=batch(changed("new")),
    )
    stat = merge_file(a_task(tmp_path), file_slice, changes)
    found = read_back(tmp_path, stat)
    late = {**changed("x")}
    expected = {row["id"]: {**row, "late": None} for row in ROWS if row["id"] not in ("k1", "k8")}
    expected |= {key: {**late, "id": key} for key in ("k0", "k9", "new")}
    assert {row["id"]: row for row in found.select(TABLE.names).to_pylist()} == expected
    assert found.column("id").to_pylist() == ["k0", "k2", "k3", "k4", "k5", "k6", "k7", "k9", "new"]
    times = dict(
        zip(found.column("id").to_pylist(), found.column("_hoodie_commit_time").to_pylist(), strict=True)
    )
    assert {key for key, time in times.items() if time == NEW} == {"k0", "k9", "new"}
    assert set(found.column("_hoodie_file_name").to_pylist()) == {stat.path}
    assert found.schema.field("_hoodie_file_name").type == pa.string()
    assert (stat.num_writes, stat.num_update_writes, stat.num_deletes, stat.num_inserts) == (9, 2, 2, 1)
    footer = read_key_footer(open_storage(str(tmp_path)), stat.path)
    assert (footer.min_key, footer.max_key) == ("k0", "new")


@pytest.mark.usefixtures("block_rows")
def test_a_file_whose_rows_all_go_is_left_empty(tmp_path):
    file_slice = a_file(tmp_path)
    changes = FileChanges(
        pa.array(range(10), pa.int32()), batch(*[changed(f"k{i}") for i in range(10)]), delete_always=True
    )
    stat = merge_file(a_task(tmp_path), file_slice, changes)
    assert (stat.num_writes, stat.num_deletes) == (0, 10)
    found = read_back(tmp_path, stat)
    assert (found.num_rows, found.column_names) == (0, with_meta_columns(TABLE).names)


@pytest.mark.parametrize("keys", [["b", "a"], ["a", "b", "c"], ["a"]])
def test_rows_of_a_slice_that_are_not_those_looked_up_are_not_written_over(keys):
    changes = FileChanges(pa.array([None, 0], pa.int32()), pa.table({RECORD_KEY: ["b"]}))
    file_slice = FileSlice("", "f-0", OLD, None, ())
    changes.check_places(file_slice, pa.table({RECORD_KEY: ["a", "b"]}))
    with pytest.raises(CorruptTableError, match="'f-0' of partition '' was not read twice in one order"):
        changes.check_places(file_slice, pa.table({RECORD_KEY: keys}))


@pytest.mark.usefixtures("block_rows")
def test_an_empty_file_takes_new_rows(tmp_path):
    stat = merge_file(
        a_task(tmp_path), a_file(tmp_path, []), FileChanges(None, None, inserts=batch(changed("new")))
    )
    assert read_back(tmp_path, stat).select(TABLE.names).to_pylist() == [changed("new")]


@pytest.mark.usefixtures("block_rows")
def test_some_columns_are_replaced_and_nothing_is_written_for_late_rows(tmp_path):
    file_slice = a_file(tmp_path)
    picks = pa.array([0] + [None] * 8 + [1], pa.int32())
    updates = batch(changed("k0"), changed("k9"))
    stat = merge_file(a_task(tmp_path), file_slice, FileChanges(picks, updates, update_columns=("N",)))
    found = {row["id"]: row for row in read_back(tmp_path, stat).select(TABLE.names).to_pylist()}
    assert found == {
        row["id"]: {**row, "late": None, **({"n": 2**40} if row["id"] in ("k0", "k9") else {})}
        for row in ROWS
    }
    late = FileChanges(picks, batch(changed("k0", ts=5), changed("k9", ts=5)))
    (tmp_path / "again").mkdir()
    assert merge_file(a_task(tmp_path / "again"), a_file(tmp_path / "again"), late) is None


def test_a_large_file_in_which_nothing_changes_leaves_no_file_behind(tmp_path):
    file_slice = a_file(tmp_path)
    before = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    late = FileChanges(pa.array([None] * 9 + [0], pa.int32()), batch(changed("k9", ts=5)))
    task = a_task(tmp_path, **{"hoodie.parquet.block.size": 1})
    assert merge_file(task, file_slice, late) is None
    after = {path.name for path in tmp_path.rglob("*") if path.is_file() and ".temp" not in path.parts}
    assert after == {*before, f"{NEW}.inflight"}


@pytest.mark.parametrize("last_only", [False, True], ids=["every row", "the last row"])
def test_a_merge_holds_some_row_groups_and_not_the_file(tmp_path, monkeypatch, last_only):
    count, group = 400_000, 2 * 1024 * 1024
    rows = pa.table(
        {
            "id": [f"k{i:07}" for i in range(count)],
            "ts": pa.array([10] * count),
            "n": pa.array(range(count), pa.int32()),
        }
    )
    rows = rows.append_column("item", pa.nulls(count, ITEM)).cast(STORED)
    name = base_file_name("f-0", "0-0-0", OLD)
    stored = attach_meta_columns(
        rows, commit_time=OLD, seqno_prefix_task=0, keys=rows.column("id"), partition="", file_name=name
    )
    pq.write_table(stored, tmp_path / name, row_group_size=20_000, compression="zstd", store_schema=False)
    whole = stored.nbytes
    del stored
    seen: list[int] = []

    read = BaseFileRows.blocks

    def blocks(*given, **named):
        for block in read(*given, **named):
            seen.append(pa.total_allocated_bytes())
            yield block

    monkeypatch.setattr(BaseFileRows, "blocks", blocks)
    monkeypatch.setattr("hudi_engine.format.merge.base_reader.BLOCK_ROWS", 10_000)
    # What comes in is held whole, so it is little.
    touched = [count - 1] if last_only else range(0, count, 100)
    picks = np.full(count, -1)
    picks[touched] = 0
    changes = FileChanges(pa.array(picks, pa.int32(), mask=picks < 0), batch(changed("k")))
    task = a_task(tmp_path, **{"hoodie.parquet.block.size": group})
    file_slice = FileSlice("", "f-0", OLD, BaseFile("", "f-0", "0-0-0", OLD, size=1), ())
    stat = merge_file(task, file_slice, changes)
    assert (stat.num_writes, stat.num_update_writes) == (count, len(touched))
    assert max(seen) - seen[0] < whole / 3, (max(seen) - seen[0], whole)
    assert pq.ParquetFile(tmp_path / stat.path).metadata.num_row_groups > 10
