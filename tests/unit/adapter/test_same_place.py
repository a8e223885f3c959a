"""Two spellings of a folder: a model whose table lies elsewhere is refused, so one place must be known in all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.hudi.spark.folders import same_place


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
