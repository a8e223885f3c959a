"""From a base path to its storage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hudi_engine.errors import ConfigError, StorageError
from hudi_engine.storage import open_storage
from hudi_engine.storage.arrow import ArrowStorage
from hudi_engine.storage.local import LocalStorage

S3_OPTIONS = "?region=us-east-1&endpoint_override=localhost:1"


@pytest.mark.parametrize("base", ["/data/t", "file:/data/t", "file:///data/t/", "file://localhost/data/t"])
def test_local_spellings_mean_the_same_folder(base: str) -> None:
    storage = open_storage(base)

    assert isinstance(storage, LocalStorage)
    assert storage.base == "/data/t"
    assert storage.uri("dt=a b/%2F") == "file:/data/t/dt=a b/%2F"


def test_a_relative_path_counts_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert open_storage("warehouse/t").base == str(tmp_path / "warehouse" / "t")


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_s3_is_one_storage_under_two_names_and_spark_gets_s3a(scheme: str) -> None:
    storage = open_storage(f"{scheme}://bucket/lake/t/{S3_OPTIONS}")

    assert isinstance(storage, ArrowStorage)
    assert storage.uri("dt=1/f") == "s3a://bucket/lake/t/dt=1/f"


def test_percent_signs_and_blanks_in_a_base_path_are_literal() -> None:
    storage = open_storage(f"s3://bucket/a b/50%25{S3_OPTIONS}")

    assert storage.uri() == "s3a://bucket/a b/50%25"


def test_credentials_in_a_base_path_go_no_further_than_the_client() -> None:
    storage = open_storage(f"s3://user:secret@bucket/t{S3_OPTIONS}")

    assert (storage.base, storage.uri("f")) == ("s3://bucket/t", "s3a://bucket/t/f")
    with pytest.raises(StorageError) as refused:
        open_storage("s3://user:secret@bucket/t?region=us-east-1&nonsense=1")
    assert "secret" not in str(refused.value)


def test_an_object_store_refuses_work_that_needs_exclusive_creates() -> None:
    storage = open_storage(f"s3://bucket/t{S3_OPTIONS}")

    with pytest.raises(StorageError, match="optimistic concurrency control needs a storage that creates"):
        storage.require_exclusive_create("optimistic concurrency control")
    open_storage("/data/t").require_exclusive_create("optimistic concurrency control")


@pytest.mark.parametrize(
    ("base", "error", "message"),
    [
        ("", ConfigError, "base path of a table is ''"),
        (" ", ConfigError, "base path of a table is ' '"),
        (5, ConfigError, "base path of a table is 5"),
        ("ftp://host/t", StorageError, "ftp://host/t.*Legal are"),
        ("file://server/share/t", ConfigError, "names the host 'server'"),
    ],
)
def test_a_base_path_that_cannot_be_opened_is_refused(
    base: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        open_storage(base)


def endpoint(base: str) -> object:
    """The host that a storage asks."""
    storage = open_storage(base)
    assert isinstance(storage, ArrowStorage)
    return storage._filesystem.__reduce__()[1][0].get("endpoint_override")


def test_settings_of_a_uri_hold_for_the_table_its_folder_and_its_neighbours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)  # set by a server of other tests of this process
    settings = "?region=us-east-1&endpoint_override=localhost:7"
    table = open_storage(f"s3://key:secret@one-bucket/wh/orders{settings}")
    for place in (table.base, "s3a://one-bucket/wh", "s3://one-bucket/wh/.orders.rebuild-1", table.uri()):
        assert endpoint(place) == "localhost:7"
    assert endpoint("s3://another-bucket/wh/orders?region=us-east-1") == ""


def test_the_nearest_place_with_settings_counts() -> None:
    for folder, port in (("a", 1), ("b", 2)):
        open_storage(f"s3://two-bucket/{folder}/t?region=us-east-1&endpoint_override=localhost:{port}")
    assert [endpoint(f"s3://two-bucket/{folder}/u") for folder in "ab"] == ["localhost:1", "localhost:2"]
