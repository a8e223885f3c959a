"""Tables in an object store: the whole life of a table over the S3 protocol."""

from __future__ import annotations

import pytest
from hudi_engine import HudiTable
from hudi_engine.errors import StorageError, TableNotFoundError
from hudi_engine.format.storage.factory import open_storage

from tests.helpers.forms import forms
from tests.helpers.read_table import read_table

ALONE = {"hoodie.write.concurrency.mode": "SINGLE_WRITER"}
COLUMNS = "id int, ts bigint, dt string, name string"


def rows(uri):
    columns = ["id", "ts", "dt", "name"]
    return sorted(tuple(row.values()) for row in read_table(open_storage(uri)).select(columns).to_pylist())


@pytest.mark.parametrize("table_type", forms(("cow", "mor"), ("mor",)))
def test_a_table_lives_in_a_bucket(spark, s3_server, table_type):
    uri = f"{s3_server.new_bucket()}/lake/orders"
    with pytest.raises(TableNotFoundError):
        HudiTable.open(spark, uri)
    table = HudiTable.create(
        spark,
        uri,
        name="orders",
        record_key=["id"],
        precombine_field="ts",
        partition_by=["dt"],
        table_type=table_type,
    )
    table.upsert(spark.createDataFrame([(1, 1, "a", "x"), (2, 1, "b", "y"), (3, 1, "a", "z")], COLUMNS))
    result = table.upsert(spark.createDataFrame([(1, 2, "a", "new"), (2, 0, "b", "late")], COLUMNS))
    assert result.rows_updated >= 1
    table.delete(spark.createDataFrame([(3, "a")], "id int, dt string"))
    expected = [(1, 2, "a", "new"), (2, 1, "b", "y")]
    assert rows(uri) == expected
    if table_type == "mor":
        assert table.compact().instant is not None
    else:
        assert table.clean(retain_commits=1).files_deleted > 0
    assert rows(uri) == expected
    table.rollback(table.upsert(spark.createDataFrame([(4, 1, "a", "gone")], COLUMNS)).instant)
    assert rows(uri) == expected


def test_where_a_server_ignores_conditions_a_writer_must_say_that_it_is_alone(spark, s3_server):
    uri = f"{s3_server.new_bucket()}/orders"
    s3_server.wire.unconditional.add(uri.split("/")[2])
    HudiTable.create(spark, uri, name="orders", record_key=["id"], options=ALONE)
    frame = spark.createDataFrame([(1, 1, "a", "x")], COLUMNS)
    with pytest.raises(StorageError, match="hoodie.write.concurrency.mode=SINGLE_WRITER"):
        HudiTable.open(spark, uri).upsert(frame)
    assert HudiTable.open(spark, uri).upsert(frame, options=ALONE).rows_inserted == 1


def test_tasks_of_executors_write_to_a_bucket_by_the_settings_of_its_uri(spark, s3_server, monkeypatch):
    # Spark runs since before there was a server, so its tasks know only what the table's URI says.
    place = f"{s3_server.new_bucket()}/orders"
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    login = place.replace("s3://", "s3://tester:not-a-secret@")
    uri = f"{login}?region=us-east-1&endpoint={s3_server.endpoint}"
    distributed = {"hoodie.engine.small.batch.rows": 0, "hoodie.engine.driver.merge.bytes": 0}
    table = HudiTable.create(
        spark, uri, name="orders", record_key=["id"], partition_by=["dt"], options=distributed
    )
    table.upsert(spark.range(20).selectExpr("cast(id as int) id", "id ts", "'a' dt", "'x' name"))
    table.upsert(spark.range(10).selectExpr("cast(id as int) id", "id ts", "'a' dt", "'new' name"))
    found = rows(place)
    assert [row[3] for row in found] == ["new"] * 10 + ["x"] * 10
    assert table.path == place and not open_storage(place).list(".hoodie/.temp", recursive=True)
