"""Keys that a slice holds tell in which form its table has them, wherever they lie."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.base_file import base_file_name
from hudi_engine.format.filegroup.partition_metadata import ensure_partition_metadata
from hudi_engine.format.index.filters.footer import MAX_KEY, MIN_KEY
from hudi_engine.format.logformat.writer import encode_data_blocks
from hudi_engine.format.schema.avro import arrow_to_avro
from hudi_engine.format.schema.meta_fields import RECORD_KEY, with_meta_columns
from hudi_engine.format.storage import open_storage
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.read_only import ForwardingStorage
from hudi_engine.table.state import TableState
from slices import DATA, FILE_ID, TOKEN, SliceBuilder, config, deletes, instant, row, with_meta

from tests.unit.merge.test_table_reader import _commit

COMPLEX = {"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator"}


class CountingStorage(ForwardingStorage):
    """A storage that knows what was opened."""

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage)
        self.opened: list[str] = []

    def open_input(self, path: str) -> pa.NativeFile:
        self.opened.append(path)
        return super().open_input(path)


@pytest.fixture
def builder(tmp_path: Path) -> SliceBuilder:
    settings = {"hoodie.timeline.layout.version": "1", "hoodie.table.partition.fields": "dt", **COMPLEX}
    storage = open_storage(str(tmp_path))
    TableConfig.from_properties({**config().properties, **settings}).save(storage)
    ensure_partition_metadata(storage, "p", instant(1))
    return SliceBuilder(tmp_path, partition="p")


def _rows(value: str, prefix: str) -> pa.Table:
    """One row of commit 2 whose record key is its value after a prefix."""
    rows = with_meta([row(value, 1, 1)], 2)
    keys = pc.binary_join_element_wise(prefix, rows.column(RECORD_KEY), "")
    return rows.set_column(rows.column_names.index(RECORD_KEY), RECORD_KEY, keys)


def _log(rows: pa.Table) -> bytes:
    return b"".join(encode_data_blocks(rows, arrow_to_avro(with_meta_columns(DATA), "t"), instant(2)))


@pytest.mark.parametrize(("prefix", "named"), [("id:", True), ("", False)])
@pytest.mark.parametrize("value", ["1", "id:1"])
def test_the_form_of_a_lone_complex_key_is_told_by_logs_where_there_is_no_base_file(
    builder: SliceBuilder, value: str, prefix: str, named: bool
) -> None:
    builder.add_log(deletes(["id:0"], 1)).add_log(_log(_rows(value, prefix)))
    _commit(builder, 1, DATA)
    _commit(builder, 2, DATA)
    assert TableState.load(open_storage(str(builder.folder))).keys_carry_field_name() is named


@pytest.mark.parametrize(("prefix", "named"), [("id:", True), ("", False)])
@pytest.mark.parametrize("value", ["1", "id:1"])
@pytest.mark.parametrize("statistics", [True, False, ["_hoodie_record_key"]])
def test_the_form_of_a_lone_complex_key_is_told_by_its_value_and_not_by_how_that_begins(
    builder: SliceBuilder,
    value: str,
    prefix: str,
    named: bool,
    statistics: bool | list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = _rows(value, prefix)
    key = rows.column(RECORD_KEY)[0].as_py()
    (builder.folder / "p").mkdir(exist_ok=True)
    path = builder.folder / "p" / base_file_name(FILE_ID, TOKEN, instant(2))
    rows = pa.concat_tables([rows] * 3).replace_schema_metadata({MIN_KEY: key, MAX_KEY: key})
    pq.write_table(rows, path, write_statistics=statistics)
    _commit(builder, 2, DATA)
    sizes, read = [], pq.ParquetFile.iter_batches

    def iter_batches(file: pq.ParquetFile, size: int, **named: object) -> Iterator[pa.RecordBatch]:
        sizes.append(size)
        return read(file, size, **named)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", iter_batches)
    storage = CountingStorage(open_storage(str(builder.folder)))
    assert TableState.load(storage).keys_carry_field_name() is named
    assert sizes == ([] if statistics is True or not key.startswith("id:") else [1])
    assert storage.opened.count(f"p/{path.name}") == 1


def test_where_the_key_column_has_gone_a_key_tells_alone(builder: SliceBuilder) -> None:
    builder.add_log(_log(_rows("1", "id:")))
    _commit(builder, 2, pa.schema([field for field in DATA if field.name != "id"]))
    assert TableState.load(open_storage(str(builder.folder))).keys_carry_field_name() is True
