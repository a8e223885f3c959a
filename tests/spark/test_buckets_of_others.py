"""Tables with buckets that Apache Hudi made, whose properties say nothing of them, are continued bucket by bucket."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_engine import ConfigError, HudiTable, UnsupportedTableError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage import open_storage

pytestmark = pytest.mark.sampled

BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "256"}
NOTED = ("hoodie.index.type", "hoodie.bucket.index.num.buckets", "hoodie.bucket.index.hash.field")
PACKAGE = "org.apache.hudi.keygen"
COMPLEX = {"hoodie.table.keygenerator.class": f"{PACKAGE}.ComplexKeyGenerator"}
OF_RELEASE_1 = {
    "hoodie.record.merge.strategy.id": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    "hoodie.timeline.path": "timeline",
    "hoodie.table.format": "native",
}
"""What Hudi 1.2 gives a table of version 6; there is no merge mode among it."""
TIME = "2024-01-01T10:00:00"


def rows(spark, *keys):
    return spark.createDataFrame([(*key, 1) for key in keys], "a string, b string, n int")


def made_by_hudi(spark, folder, key, bucket, *, fields="a", table_type="cow", properties=None):
    """A table with one row whose file group has the number of a bucket, and the properties that Apache Hudi would give it."""
    table = HudiTable.create(
        spark, str(folder), name="t", record_key=fields.split(","), table_type=table_type, options=BUCKET
    )
    table.upsert(rows(spark, key))
    [file] = folder.glob("*.parquet")
    wanted = f"{bucket:08d}{file.name[8:]}"
    for commit in [*folder.glob(".hoodie/*commit")]:
        commit.write_text(commit.read_text().replace(file.name[:36], wanted[:36]))
    file.rename(folder / wanted)
    shutil.rmtree(folder / ".hoodie" / "spark_catalog")
    storage = open_storage(str(folder))
    theirs = {"hoodie.partition.metafile.use.base.format": "false", **(properties or {})}
    TableConfig.load(storage).with_properties(theirs, NOTED).save(storage)
    return HudiTable.open(spark, str(folder))


def with_value(folder, value):
    """Give the one row of a table another value of its column, under the key that it has."""
    [path] = folder.glob("*.parquet")
    found = pq.ParquetFile(path).read()
    place = found.schema.get_field_index("a")
    pq.write_table(found.set_column(place, found.schema.field(place), pa.array([value])), path)


def groups(folder):
    return sorted({file.name[:36] for file in folder.glob("*.parquet")})


@pytest.mark.parametrize("small_rows", ["1000", "0"], ids=["driver", "executors"])
@pytest.mark.parametrize(
    ("key", "bucket", "fields", "hashed", "properties", "stored"),
    [
        ((TIME, "x"), 1, "a", "a", {}, None),
        ((TIME, "x"), 210, "a", "a", OF_RELEASE_1, None),
        (("1", "2"), 226, "a,b", "b,a", {}, None),
        (("x,y", "2"), 176, "a,b", "a,b", {}, None),
        (("1", "x"), 80, "a", "a", COMPLEX, "a:1"),
        (("1", "x"), 119, "a", "a", {**COMPLEX, **OF_RELEASE_1}, "a:1"),
    ],
    ids=["0.15", "1.2", "order", "comma", "lone-0.15", "lone-1.2"],
)
def test_a_stored_key_is_found_in_the_bucket_of_its_writer(
    spark, tmp_path, key, bucket, fields, hashed, properties, stored, small_rows
):
    folder = tmp_path / "t"
    first = key if stored is None else (stored, key[1])
    table = made_by_hudi(spark, folder, first, bucket, fields=fields, properties=properties)
    with_value(folder, key[0])
    before = groups(folder)
    options = {
        **BUCKET,
        "hoodie.bucket.index.hash.field": hashed,
        "hoodie.engine.small.batch.rows": small_rows,
    }
    result = table.upsert(rows(spark, key), options=options)
    assert (result.rows_inserted, result.rows_updated) == (0, 1)
    assert groups(folder) == before and table.snapshot().count() == 1


@pytest.mark.parametrize(("properties", "bucket"), [({}, 1), (OF_RELEASE_1, 210)], ids=["0.15", "1.2"])
def test_where_no_stored_key_tells_it_buckets_are_of_the_release_that_made_the_table(
    spark, tmp_path, properties, bucket
):
    table = made_by_hudi(spark, tmp_path / "t", ("k", "x"), 138, properties=properties)
    table.upsert(rows(spark, (TIME, "x")), options=BUCKET)
    assert [name[:8] for name in groups(tmp_path / "t")] == sorted(["00000138", f"{bucket:08d}"])


def test_a_key_in_a_bucket_where_nobody_puts_it_is_refused_by_name(spark, tmp_path):
    folder = tmp_path / "t"
    table = made_by_hudi(spark, folder, ("k", "x"), 5)
    with pytest.raises(ConfigError, match="no table of 256 buckets by a as .*: its key 'k' is in bucket 5"):
        table.upsert(rows(spark, ("other", "x")), options=BUCKET)
    assert table.snapshot().count() == 1
    result = table.insert_overwrite_table(rows(spark, ("k", "x"), ("other", "x")), options=BUCKET)
    assert result.rows_inserted == 2


def test_a_wrong_number_of_buckets_is_refused_before_a_row_is_there_twice(spark, tmp_path):
    table = made_by_hudi(spark, tmp_path / "t", ("key-1", "x"), 98)
    for count in ("300", "64"):
        with pytest.raises(ConfigError, match="hoodie.bucket.index.num.buckets"):
            table.upsert(
                rows(spark, ("key-1", "x")), options={**BUCKET, "hoodie.bucket.index.num.buckets": count}
            )
    assert Path(table.path).exists() and table.snapshot().count() == 1


@pytest.mark.parametrize("write", ["upsert", "insert", "bulk_insert", "insert_overwrite"])
def test_rows_are_put_beside_buckets_only_when_the_index_is_said(spark, tmp_path, write):
    table = made_by_hudi(spark, tmp_path / "t", ("key-1", "x"), 98)
    with pytest.raises(ConfigError, match="named as buckets are.*hoodie.index.type=BUCKET and .*num.buckets"):
        getattr(table, write)(rows(spark, ("key-2", "x")))
    assert groups(tmp_path / "t")[0].startswith("00000098-") and table.snapshot().count() == 1
    assert table.delete(rows(spark, ("key-1", "x"))).rows_deleted == 1
    assert (
        table.upsert(rows(spark, ("key-2", "x")), options={"hoodie.index.type": "SIMPLE"}).rows_inserted == 1
    )


def test_buckets_are_not_clustered_whether_or_not_the_index_is_said(spark, tmp_path):
    table = made_by_hudi(spark, tmp_path / "t", ("key-1", "x"), 98)
    table.upsert(rows(spark, ("key-2", "x"), ("key-3", "x")), options=BUCKET)
    with pytest.raises(ConfigError, match="named as buckets are"):
        table.cluster()


def test_buckets_of_consistent_hashing_are_not_written_to(spark, tmp_path):
    table = made_by_hudi(spark, tmp_path / "t", ("key-1", "x"), 98)
    (tmp_path / "t" / ".hoodie" / ".bucket_index" / "consistent_hashing_metadata").mkdir(parents=True)
    with pytest.raises(UnsupportedTableError, match="consistent hashing"):
        table.upsert(rows(spark, ("key-2", "x")), options=BUCKET)
    assert table.snapshot().count() == 1
