"""What a sync refuses before it speaks to a metastore, and what is said of the commit before it."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pyarrow as pa
import pytest
from hudi_engine.errors import ConfigError, ServiceError, TableExistsError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage import open_storage
from hudi_engine.spark.hive_sync.sync import _check_own, check_sync, sync_after_commit, sync_hive
from py4j.protocol import Py4JError, Py4JNetworkError

from tests.helpers.handmade import HandmadeTable

DAY = {
    "hoodie.datasource.hive_sync.partition_extractor_class": "org.apache.hudi.hive.SlashEncodedDayPartitionValueExtractor"
}
INPUT_FORMAT = "org.apache.hudi.hadoop.HoodieParquetInputFormat"
# a sync that ends before the metastore asks a session for its version alone
SESSION = SimpleNamespace(version="4.0.0")


def table_of(folder, *partitions):
    schema = pa.schema([("id", pa.int64()), ("dt", pa.string())])
    table = HandmadeTable(folder / "t", schema, ("dt",))
    rows = {path: {f"f-{at}": pa.table({"id": [at], "dt": [path]})} for at, path in enumerate(partitions)}
    table.commit(rows)
    return open_storage(str(folder / "t"))


def test_an_error_after_a_commit_says_that_it_stands_and_what_to_do(tmp_path):
    storage = table_of(tmp_path, "2026-01-02")
    with pytest.raises(ServiceError) as refused:
        sync_after_commit(SESSION, storage, resolve_options(DAY), "20260102000000000")
    said = str(refused.value)
    assert said.startswith(
        "the commit 20260102000000000 is complete, but the entries in the Hive metastore are not up to date: "
    )
    assert "cannot read the partition path '2026-01-02'" in said
    assert said.endswith("; correct that and call sync_hive, do not write again")


def test_two_partitions_of_the_same_values_are_refused_by_name(tmp_path):
    storage = table_of(tmp_path, "2026/1/2", "2026/01/02")
    with pytest.raises(ValueError, match="'2026/01/02' and '2026/1/2' have the same values '2026-01-02'"):
        sync_hive(SESSION, storage, resolve_options(DAY))


@pytest.mark.parametrize(
    "error",
    [
        OSError("no route"),
        Py4JError("the gateway is gone"),
        Py4JNetworkError("no answer from the JVM"),
        TypeError("'JavaPackage' object is not callable"),
    ],
)
def test_whatever_fails_after_a_commit_says_that_it_stands(tmp_path, monkeypatch, error):
    storage = table_of(tmp_path, "2026/01/02")

    def fails(_):
        raise error

    monkeypatch.setattr("hudi_engine.spark.hive_sync.sync.Metastore", fails)
    with pytest.raises(ServiceError, match=f"commit 20260102000000000 is complete.*{re.escape(str(error))}"):
        sync_after_commit(SESSION, storage, resolve_options(DAY), "20260102000000000")
    quiet = {**DAY, "hoodie.datasource.hive_sync.ignore_exceptions": "true"}
    assert sync_hive(SESSION, storage, resolve_options(quiet)) == []


def test_a_session_without_the_classes_of_the_metastore_is_told_before_anything_is_written(
    tmp_path, monkeypatch
):
    storage = table_of(tmp_path, "2026/01/02")

    def fails(_):
        raise TypeError("'JavaPackage' object is not callable")

    monkeypatch.setattr("hudi_engine.spark.hive_sync.sync.Metastore", fails)
    monkeypatch.setattr("hudi_engine.spark.hive_sync.sync.check_hive", lambda _: None)
    with pytest.raises(ConfigError, match="has not got the classes of Hive's metastore"):
        check_sync(SESSION, storage, TableConfig.load(storage), resolve_options(DAY))


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ("/data/t", "file:///data/t/"),
        ("file:/data/t", "/data/t"),
        ("s3a://lake/wh/t", "s3://lake/wh/t/"),
        ("s3a://lake/wh/t", "S3N://lake/wh/t"),
        ("gs://lake/wh/t", "gcs://lake/wh/t"),
        ("abfss://lake@acme.dfs.core.windows.net/t", "abfs://lake@acme.dfs.core.windows.net/t"),
        ("hdfs://names/wh/t", "hdfs://names/wh/t/"),
    ],
)
def test_an_entry_is_the_tables_own_however_its_place_is_spelt(own, said):
    _check_own("db.t", own, INPUT_FORMAT, said)


@pytest.mark.parametrize("said", ["s3://lake/wh/u", "gs://lake/wh/t", "s3://other/wh/t", "/lake/wh/t"])
def test_an_entry_of_another_place_is_not_the_tables_own(said):
    with pytest.raises(TableExistsError, match=f"db.t is the Hudi table at '{said}'"):
        _check_own("db.t", "s3a://lake/wh/t", INPUT_FORMAT, said)
