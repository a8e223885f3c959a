"""Two spellings of a folder, and folders in folders: one place must be known in all spellings, and a table lies in no other."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import cast

import pytest
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.storage.uris import lies_within, same_place
from hudi_engine.spark.catalog import TableName
from hudi_engine.table.clone import CloneResult
from pyspark.sql import SparkSession

from dbt.adapters.hudi.rows.existing_target import NamedPlace, clone_under_name
from dbt.adapters.hudi.spark.folders import table_around
from dbt.adapters.hudi.spark.warehouse import Warehouse
from tests.helpers.s3_server import S3Server


@pytest.mark.parametrize(
    ("left", "right", "are_same"),
    [
        ("/tables/orders", "file:/tables/orders/", True),
        ("file:///tables/orders", "/tables/orders", True),
        ("s3a://lake/orders", "s3://lake/orders/", True),
        ("s3n://lake/orders", "s3a://lake/orders", True),
        ("gcs://lake/orders", "gs://lake/orders", True),
        ("s3://key:secret@lake/orders?endpoint=http://here", "s3a://lake/orders", True),
        (
            "abfss://lake@acme.dfs.core.windows.net/orders/",
            "abfss://lake@acme.dfs.core.windows.net/orders",
            True,
        ),
        ("hdfs://node:8020/orders/", "hdfs://node:8020/orders", True),
        ("/tables/orders", "/tables/orders2", False),
        ("s3://lake/orders", "s3://pond/orders", False),
        ("gs://lake/orders", "s3://lake/orders", False),
    ],
)
def test_spellings_of_one_folder(left: str, right: str, are_same: bool) -> None:
    assert same_place(left, right) is are_same
    assert same_place(right, left) is are_same


def test_a_link_to_a_folder_is_that_folder(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "lake")
    assert same_place(f"{tmp_path}/link/orders", f"file:{tmp_path}/lake/orders")
    assert not same_place(f"{tmp_path}/link/orders", f"{tmp_path}/other/orders")


@pytest.mark.parametrize(
    ("place", "folder", "is_within"),
    [
        ("/tables/orders/v2/orders", "file:/tables/orders/", True),
        ("s3a://lake/orders/v2", "s3://lake/orders", True),
        ("/tables/orders", "/tables/orders/", False),
        ("/tables/orders2/v2", "/tables/orders", False),
        ("s3://pond/orders/v2", "s3://lake/orders", False),
    ],
)
def test_a_folder_in_another(place: str, folder: str, is_within: bool) -> None:
    assert lies_within(place, folder) is is_within
    assert not lies_within(folder, place)


def test_links_do_not_hide_that_a_folder_is_in_another(tmp_path: Path) -> None:
    (tmp_path / "lake" / "orders" / "v2").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "lake" / "orders" / "v2")
    assert lies_within(f"{tmp_path}/link/orders", f"file:{tmp_path}/lake/orders")
    open_storage(f"{tmp_path}/lake/orders").create(PROPERTIES_PATH, b"")
    assert table_around(f"file:{tmp_path}/link/orders") == f"{tmp_path}/lake/orders"
    assert table_around(f"{tmp_path}/lake/orders") is None


def test_a_table_around_a_folder_in_a_store(s3_server: S3Server) -> None:
    bucket = s3_server.new_bucket()
    open_storage(f"{bucket}/wh/orders").create(PROPERTIES_PATH, b"")
    around = table_around(f"{bucket}/wh/orders/v2/orders")
    assert around is not None and same_place(around, f"{bucket}/wh/orders")
    assert table_around(f"{bucket}/wh/orders2/v2") is table_around(f"{bucket}/wh/orders") is None


def test_a_folder_that_may_not_be_looked_at_is_no_table_around(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_storage(f"{tmp_path}/orders").create(PROPERTIES_PATH, b"")
    exists = LocalStorage.exists

    def refused(storage: LocalStorage, path: str) -> bool:
        if storage.base in ("/", f"{tmp_path}/orders/v2"):
            raise PermissionError(errno.EACCES, "Permission denied", storage.base)
        return exists(storage, path)

    monkeypatch.setattr(LocalStorage, "exists", refused)
    assert table_around(f"{tmp_path}/orders/v2/orders") == f"{tmp_path}/orders"
    assert table_around(f"{tmp_path}/other") is None


def test_no_clone_is_made_in_the_folder_of_a_table(tmp_path: Path) -> None:
    class Empty:
        def entry(self, *_: object) -> None:
            return None

    def make(*_: object, **__: object) -> CloneResult:
        raise AssertionError("nothing is made")

    open_storage(f"{tmp_path}/orders").create(PROPERTIES_PATH, b"")
    warehouse, session = cast(Warehouse, Empty()), cast(SparkSession, None)
    with pytest.raises(DbtRuntimeError, match=f"in the folder of the Hudi table at {tmp_path}/orders, and"):
        place = NamedPlace(TableName("sales", "copy"), f"{tmp_path}/orders/copy")
        clone_under_name(warehouse, session, place, make, replace=False)
