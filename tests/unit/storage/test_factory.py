"""From a base path to its storage."""

from __future__ import annotations

import os
import re
import time
import traceback
from pathlib import Path
from typing import Any

import pytest
from hudi_engine.errors import ConfigError, StorageError
from hudi_engine.format.storage import open_storage
from hudi_engine.format.storage.given import use_profile, use_settings
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.storage.object_client import ObjectClient, profile_settings
from hudi_engine.format.storage.objects import ObjectStorage
from hudi_engine.format.storage.uris import RemoteUri

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

    assert isinstance(storage, ObjectStorage)
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


@pytest.mark.parametrize(
    "base",
    [
        "s3://AKIA:hu/sh@bucket/t",
        "s3a://AKIA:hu?sh@bucket/t",
        "s3://AKIA:hu@sh@bucket/t",
        "gs://me:hu/sh@bucket/t",
        "abfss://lake:hu/sh@acme.dfs.core.windows.net/wh",
        "abfss://lake:hu@sh@acme.dfs.core.windows.net/wh",
    ],
)
def test_credentials_that_are_cut_by_their_own_characters_are_refused_and_shown_nowhere(base: str) -> None:
    with pytest.raises(ConfigError, match="Percent-encode") as refused:
        open_storage(base)
    assert not re.search("AKIA|hu|sh@", str(refused.value))


def test_percent_encoded_credentials_are_read() -> None:
    uri = RemoteUri.parse("s3://AKIA:a%2Fb%40c%3Fd@bucket/t")

    assert dict(uri.login) == {"access_key_id": "AKIA", "secret_access_key": "a/b@c?d"}
    assert uri.public == "s3://bucket/t"


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


def endpoint(base: str) -> str:
    """The host that a storage asks."""
    storage = open_storage(base)
    assert isinstance(storage, ObjectStorage)
    return storage._client.address


def test_settings_of_a_uri_hold_for_the_table_its_folder_and_its_neighbours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)  # set by a server of other tests of this process
    settings = "?region=us-east-1&endpoint_override=localhost:7"
    table = open_storage(f"s3://key:secret@one-bucket/wh/orders{settings}")
    for place in (table.base, "s3a://one-bucket/wh", "s3://one-bucket/wh/.orders.rebuild-1", table.uri()):
        assert endpoint(place) == "https://localhost:7"
    assert endpoint("s3://another-bucket/wh/orders?region=us-east-1") == ""


def test_the_nearest_place_with_settings_counts() -> None:
    for folder, port in (("a", 1), ("b", 2)):
        open_storage(f"s3://two-bucket/{folder}/t?region=us-east-1&endpoint_override=localhost:{port}")
    assert [endpoint(f"s3://two-bucket/{folder}/u") for folder in "ab"] == [
        "https://localhost:1",
        "https://localhost:2",
    ]


def test_settings_of_a_warehouse_hold_below_it_and_what_a_uri_says_wins() -> None:
    use_settings(
        "s3a://three-bucket/wh",
        {"region": "eu-west-1", "endpoint": "https://one:1", "conditional_put": "etag"},
    )
    assert endpoint("s3://three-bucket/wh/shop/orders") == "https://one:1"
    assert (
        endpoint("s3://three-bucket/wh/shop/orders?region=us-east-1&endpoint=https://two:2")
        == "https://two:2"
    )


def test_settings_of_a_profile_hold_until_the_next_one() -> None:
    use_settings("s3a://six-bucket/others", {"endpoint": "https://mine:1"})
    use_profile("s3a://six-bucket/wh", {"endpoint": "https://dev:1"})
    assert endpoint("s3a://six-bucket/wh/orders?region=x") == "https://dev:1"
    use_profile("s3a://six-bucket/other", {"endpoint": "https://prod:1"})
    assert endpoint("s3a://six-bucket/wh/orders?region=x") == "https://prod:1"
    use_profile("s3a://six-bucket/wh", {})
    assert endpoint("s3a://six-bucket/wh/orders?region=x") == "https://mine:1"
    use_profile("/data/wh", {})


def test_what_a_caller_said_of_the_place_of_a_profile_holds_after_it() -> None:
    use_settings("s3a://nine-bucket/wh", {"endpoint": "https://mine:1"})
    use_profile("s3a://nine-bucket/wh", {"endpoint": "https://dev:1"})
    assert endpoint("s3a://nine-bucket/wh/t?region=x") == "https://dev:1"
    use_profile("/data/wh", {})
    assert endpoint("s3a://nine-bucket/wh/t?region=x") == "https://mine:1"
    use_profile("s3a://nine-bucket/wh", {"endpoint": "https://dev:1"})
    use_settings("s3a://nine-bucket/wh", {"endpoint": "https://newer:1"})
    use_profile("/data/wh", {})
    assert endpoint("s3a://nine-bucket/wh/t?region=x") == "https://newer:1"


def test_settings_for_a_local_folder_are_refused() -> None:
    use_settings("/data/wh", {})
    with pytest.raises(
        ConfigError, match=r"settings of a store \(endpoint\) for '/data/wh', which is a local folder"
    ):
        use_settings("/data/wh", {"endpoint": "https://one:1"})


@pytest.mark.parametrize(
    ("base", "bucket", "settings"),
    [
        ("abfss://lake@acme.dfs.core.windows.net/wh", "lake", {"account_name": "acme"}),
        (
            "abfss://lake:a2V5@acme.dfs.core.windows.net/wh",
            "lake",
            {"account_name": "acme", "account_key": "a2V5"},
        ),
        (
            "abfss://lake@acme.dfs.core.chinacloudapi.cn/wh",
            "lake",
            {"account_name": "acme", "endpoint": "https://acme.blob.core.chinacloudapi.cn"},
        ),
        ("az://lake/wh?account_name=acme", "lake", {"account_name": "acme"}),
        ("gs://lake/wh?anonymous=true", "lake", {"skip_signature": "true"}),
        (
            "s3://lake/wh?region=x&access_key=a&secret_key=b",
            "lake",
            {"region": "x", "access_key_id": "a", "secret_access_key": "b"},
        ),
    ],
)
def test_what_a_uri_says_becomes_settings_of_its_client(
    base: str, bucket: str, settings: dict[str, str]
) -> None:
    uri = RemoteUri.parse(base)
    client = ObjectClient.of(uri, uri.settings)

    assert (client.bucket, dict(client.settings)) == (bucket, settings)
    assert open_storage(base).base.endswith("/wh") and "a2V5" not in open_storage(base).uri("f")


def test_keys_of_the_aws_tools_files_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "credentials").write_text(
        "[team]\naws_access_key_id = AKIA\naws_secret_access_key = s\n[far]\nrole_arn = x\n"
    )
    (tmp_path / "config").write_text("[profile team]\nregion = eu-north-1\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_PROFILE", "team")
    found = profile_settings({}, "lake", at_vendor=False)
    assert found == {"access_key_id": "AKIA", "secret_access_key": "s", "region": "eu-north-1"}
    assert profile_settings({"access_key_id": "mine", "region": "x"}, "lake", at_vendor=False) == {}
    monkeypatch.setenv("AWS_PROFILE", "far")
    with pytest.raises(
        StorageError, match=r"'far' gets its keys by role_arn.*aws configure export-credentials"
    ):
        profile_settings({}, "lake", at_vendor=False)


@pytest.fixture
def credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The AWS tools' file of keys, which nothing else gives."""
    for name in [each for each in os.environ if each.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    return tmp_path / "credentials"


@pytest.mark.parametrize(
    "text",
    [
        b"aws_secret_access_key = hunter2\n",
        b"[default]\nhunter2\n",
        b"[default]\naws_access_key_id = a\naws_access_key_id = hunter2\n",
        b"[default]\naws_secret_access_key = \xffhunter2\n",
    ],
)
def test_a_file_of_keys_that_is_malformed_is_named_and_not_repeated(text: bytes, credentials: Path) -> None:
    credentials.write_bytes(text)
    with pytest.raises(StorageError, match="credentials is no file of profiles") as caught:
        ObjectClient.of(RemoteUri.parse("s3://lake/wh"), {})
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


def test_keys_that_are_renewed_in_the_file_are_used_by_storages_that_are_open(
    credentials: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hudi_engine.format.storage.object_client._OPEN", opened := {})
    uri = RemoteUri.parse("s3://lake/wh")
    client = ObjectClient.of(uri, uri.settings)
    for number in (1, 2):
        credentials.write_text(f"[default]\naws_access_key_id = K{number}\naws_secret_access_key = s\n")
        os.utime(credentials, ns=(number, number))
        assert client.store.config["access_key_id"] == f"K{number}"
        assert client.store is client.store
    assert len(opened) == 1
    given = ObjectClient.of(uri, {"access_key_id": "mine", "secret_access_key": "s"})
    before = given.store
    os.utime(credentials, ns=(3, 3))
    assert given.store is before


KEYS = "[default]\naws_access_key_id = K{}\naws_secret_access_key = s\naws_session_token = t\n"


@pytest.fixture
def client(credentials: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectClient:
    """A client with the first keys of the file, which are an hour old."""
    monkeypatch.setattr("hudi_engine.format.storage.object_client._OPEN", {})
    uri = RemoteUri.parse("s3://lake/wh")
    say(credentials, KEYS.format(1), seconds_ago=3600)
    return ObjectClient.of(uri, uri.settings)


def say(credentials: Path, text: str, seconds_ago: int) -> None:
    """Write the file of keys."""
    credentials.write_text(text)
    changed = time.time() - seconds_ago
    os.utime(credentials, (changed, changed))


@pytest.mark.parametrize("text", ["", KEYS.format(2)[:36], KEYS.format(2)[:20], KEYS.format(2)[:-22]])
def test_while_a_tool_writes_the_file_of_keys_anew_open_storages_keep_theirs(
    credentials: Path, client: ObjectClient, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    before = client.store
    say(credentials, text, seconds_ago=0)
    marks = credentials.stat()
    assert client.store is before
    # the finished file may have the time of the cut one
    credentials.write_text(KEYS.format(2))
    os.utime(credentials, ns=(marks.st_mtime_ns, marks.st_mtime_ns))
    assert client.store.config["access_key_id"] == "K2"
    monkeypatch.setenv("AWS_PROFILE", "none")
    assert "access_key_id" not in client.store.config


def test_keys_that_are_taken_out_of_the_file_for_good_are_not_used_on(
    credentials: Path, client: ObjectClient
) -> None:
    say(credentials, "", seconds_ago=60)
    assert "access_key_id" not in client.store.config
    assert client.store is client.store
    say(credentials, KEYS.format(2), seconds_ago=50)
    assert client.store.config["access_key_id"] == "K2"
    credentials.unlink()
    assert "access_key_id" not in client.store.config
    assert client.store is client.store


def test_a_file_of_keys_that_is_broken_for_good_is_told(credentials: Path, client: ObjectClient) -> None:
    say(credentials, "[default]\naws_acc", seconds_ago=60)
    with pytest.raises(StorageError, match="credentials is no file of profiles"):
        client.store  # noqa: B018 - the look
