"""A session that lets Spark leave out files it cannot read (`spark.sql.files.ignoreCorruptFiles`) loses no row of a Hudi table."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hudi_engine import HudiTable
from hudi_engine.errors import CorruptTableError, ServiceError
from hudi_engine.format.config.enums import TableType
from hudi_engine.spark.catalog import TableName, register_table
from hudi_engine.spark.read.reason import spark_errors
from hudi_engine.spark.services import clustering as spread

QUIET = {"hoodie.parquet.small.file.limit": "0", "hoodie.clean.automatic": "false"}
BY_SHUFFLE = {**QUIET, "hoodie.engine.clustering.task.bytes": "0"}
SETTINGS = ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles")


@pytest.fixture
def lenient(spark):
    """The session that leaves out what it cannot read."""
    for name in SETTINGS:
        spark.conf.set(name, "true")
    yield spark
    for name in SETTINGS:
        spark.conf.unset(name)


@pytest.fixture
def table(spark, tmp_path, table_type):
    """Two base files of 300 rows."""
    made = HudiTable.create(
        spark,
        str(tmp_path / "t"),
        name="t",
        record_key=["id"],
        partition_by=["p"],
        table_type=table_type,
        options=QUIET,
    )
    made.upsert(spark.sql("select id, 'x' p, uuid() v from range(300)").coalesce(1), options=QUIET)
    made.upsert(spark.sql("select id + 300 id, 'y' p, uuid() v from range(300)").coalesce(1), options=QUIET)
    return made


def base_file(table):
    (path,) = Path(table.path, "x").glob("*.parquet")
    return path


def damage(path):
    """Spoil the pages of a file; its footer stays readable."""
    first = pq.ParquetFile(path).metadata.row_group(0)
    start = min(
        first.column(each).dictionary_page_offset or first.column(each).data_page_offset
        for each in range(first.num_columns)
    )
    length = sum(first.column(each).total_compressed_size for each in range(first.num_columns))
    data = bytearray(path.read_bytes())
    data[start : start + length] = b"\xff" * length
    path.write_bytes(bytes(data))


def lose(path):
    path.unlink()


@pytest.mark.parametrize("spoil", [damage, lose])
def test_every_native_read_misses_a_file_that_cannot_be_read(lenient, table, database, spoil):
    name = TableName(database, "t")
    register_table(lenient, name, table.storage)
    frame = table.snapshot()
    assert frame.count() == 600 == lenient.table(name.sql).count()
    spoil(base_file(table))
    lenient.catalog.refreshTable(name.sql)
    for asked in (lambda: frame, lambda: lenient.table(name.sql)):
        with pytest.raises(spark_errors()):
            asked().select("v").distinct().count()


def test_merged_rows_miss_a_damaged_base_file(lenient, table):
    table.upsert(lenient.sql("select 1L id, 'x' p, 'new' v"), options=QUIET)
    for path in Path(table.path, "x").glob("*.parquet"):
        damage(path)
    with pytest.raises(spark_errors()):
        table.snapshot().collect()


def test_clustering_commits_nothing_where_a_base_file_is_damaged(lenient, table):
    done = [each for each in table.timeline() if each.is_completed]
    damage(base_file(table))
    with pytest.raises(ServiceError):
        table.cluster(["id"], options=BY_SHUFFLE)
    assert [each for each in table.timeline() if each.is_completed] == done


def test_clustering_commits_nothing_where_spark_gives_fewer_rows_than_the_files_have(table, monkeypatch):
    everything = spread.slices_frame
    monkeypatch.setattr(spread, "slices_frame", lambda *given: everything(*given).where("id % 2 = 0"))
    with pytest.raises(ServiceError, match="partition 'x' hold 300 rows, but 150 of them were written"):
        table.cluster(["id"], options=BY_SHUFFLE)
    assert table.snapshot().count() == 600


@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE"])
def test_a_write_by_key_names_the_base_file_that_is_damaged(spark, table, index):
    table.upsert(spark.sql("select 1L id, 'x' p, 'new' v"), options=QUIET)
    newest = max(Path(table.path, "x").glob("*.parquet"), key=lambda each: each.name.rpartition("_")[2])
    damage(newest)
    spread_out = {"hoodie.engine.small.batch.rows": "0", "hoodie.engine.wide.partition.bytes": "1"}
    before = [each for each in table.timeline() if each.is_completed]
    by_spark = index == "GLOBAL_SIMPLE" and table.config.table_type is TableType.COPY_ON_WRITE
    with pytest.raises(spark_errors() if by_spark else CorruptTableError, match=newest.name):
        table.upsert(
            spark.sql("select id, 'x' p, 'newer' v from range(5)"),
            options={**QUIET, **spread_out, "hoodie.index.type": index},
        )
    after = [each for each in table.timeline() if each.is_completed and each.action != "rollback"]
    assert after == before


def test_a_write_to_a_file_of_which_a_column_ends_early_leaves_it_as_it_is(spark, tmp_path):
    made = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"])
    made.upsert(spark.sql("select 1 id, array(1, 2) tags"))
    (path,) = Path(made.path).glob("*.parquet")
    found = pq.ParquetFile(path)
    told = {key: text for key, text in found.metadata.metadata.items() if key != b"ARROW:schema"}
    # Of pages of so few bytes pyarrow makes the first one of a list empty, and ends there when it reads.
    pq.write_table(found.read().replace_schema_metadata(told), path, data_page_size=1, store_schema=False)

    with pytest.raises(CorruptTableError, match="column 'tags' ends before the file does"):
        made.upsert(spark.sql("select 2 id, array(3) tags"))
    assert list(Path(made.path).glob("*.parquet")) == [path]
    assert [(row.id, row.tags) for row in made.snapshot().collect()] == [(1, [1, 2])]


def test_a_flipped_bit_of_a_page_fails_spark(lenient, table, database):
    name = TableName(database, "t")
    register_table(lenient, name, table.storage)
    path = base_file(table)
    group = pq.ParquetFile(path).metadata.row_group(0)
    column = next(
        group.column(each) for each in range(group.num_columns) if group.column(each).path_in_schema == "v"
    )
    data = bytearray(path.read_bytes())
    start = column.dictionary_page_offset or column.data_page_offset
    data[start + column.total_compressed_size // 2] ^= 4
    path.write_bytes(bytes(data))
    lenient.catalog.refreshTable(name.sql)
    for frame in (table.snapshot(), lenient.table(name.sql)):
        with pytest.raises(spark_errors()):
            frame.select("v").collect()
