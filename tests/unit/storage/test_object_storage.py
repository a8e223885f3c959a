"""What a store of objects has to hold that a disk gives for nothing: one winner, known outcomes, few requests."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator

import hudi_engine
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_engine.errors import StorageError, WriteConflictError
from hudi_engine.format.storage import open_storage
from hudi_engine.format.storage.object_client import ObjectClient
from hudi_engine.format.storage.objects import ObjectStorage
from hudi_engine.format.storage.uris import StoreKind
from hudi_engine.table.txn.lock import TableLock
from hudi_engine.table.txn.owner import LOCK_PATH, Beating, Owner
from obstore.exceptions import GenericError

from tests.helpers.s3_server import S3Server, Trouble

LARGE = 17 * 1024 * 1024


@pytest.fixture
def base(s3_server: S3Server) -> str:
    return f"{s3_server.new_bucket()}/wh/t"


@pytest.fixture
def storage(base: str) -> ObjectStorage:
    found = open_storage(base)
    assert isinstance(found, ObjectStorage) and found.exclusive_create
    return found


@pytest.fixture(autouse=True)
def quiet(s3_server: S3Server) -> Iterator[None]:
    """No trouble is left over for the next test."""
    yield
    s3_server.wire.troubles.clear()


@pytest.mark.parametrize("how", ["refused", "unanswered", "dropped"])
def test_a_create_whose_answer_is_lost_is_known_to_have_landed(
    how: str, storage: ObjectStorage, s3_server: S3Server
) -> None:
    with s3_server.trouble(Trouble("PUT", "lock", how, 2)):
        storage.create("lock", b"mine")

    assert storage.read("lock") == b"mine"
    with s3_server.trouble(Trouble("PUT", "lock", how)), pytest.raises(FileExistsError):
        storage.create("lock", b"mine")


def test_a_beat_whose_answer_is_lost_goes_on(storage: ObjectStorage, s3_server: S3Server) -> None:
    owner = Owner.current()
    storage.create("beat", owner.to_json())
    beating = Beating(storage, "beat", owner, owner.to_json())
    for how in ("unanswered", "dropped", "refused"):
        with s3_server.trouble(Trouble("PUT", "beat", how)):
            assert beating.beat()


def test_a_beat_never_overwrites_what_another_owner_has_put_there(storage: ObjectStorage) -> None:
    mine, other = Owner.current(), Owner.current()
    storage.create("beat", other.to_json())

    assert not Beating(storage, "beat", mine, mine.to_json()).beat()
    with pytest.raises(FileNotFoundError):
        storage.refresh("beat", mine.to_json())
    assert storage.read("beat") == other.to_json()
    storage.delete("beat")
    with pytest.raises(FileNotFoundError):
        storage.refresh("beat", mine.to_json())
    assert not storage.exists("beat")


def test_a_beat_is_refused_when_the_file_changes_between_its_look_and_its_put(
    storage: ObjectStorage, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    import obstore

    storage.create("beat", b"mine")
    real = obstore.put

    def put_late(*arguments: object, **more: object) -> object:
        if isinstance(more.get("mode"), dict):
            monkeypatch.setattr(obstore, "put", real)
            storage.replace("beat", b"other")
        return real(*arguments, **more)

    monkeypatch.setattr(obstore, "put", put_late)
    with pytest.raises(FileNotFoundError):
        storage.refresh("beat", b"mine")
    assert storage.read("beat") == b"other"


def test_writers_exclude_each_other_by_the_lock(storage: ObjectStorage, base: str) -> None:
    other = open_storage(base)
    with TableLock(storage):
        assert Owner.parse(other.read(LOCK_PATH)) is not None
        with pytest.raises(FileExistsError):
            other.create(LOCK_PATH, b"")
    assert not other.exists(LOCK_PATH)


def test_a_foreign_lock_is_waited_for_and_broken_by_the_servers_clock(
    storage: ObjectStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.create(LOCK_PATH, b"")
    with pytest.raises(WriteConflictError, match="another program holds"), TableLock(storage, 50):
        pass
    monkeypatch.setattr("time.time", lambda: 4e9)  # this machine's clock is of no weight
    with pytest.raises(WriteConflictError, match="another program holds"), TableLock(storage, 50, 3_600_000):
        pass


def test_a_server_that_ignores_conditions_is_found_out_and_refused_by_name(s3_server: S3Server) -> None:
    bucket = s3_server.new_bucket()
    s3_server.wire.unconditional.add(bucket.split("/")[2])
    storage = open_storage(f"{bucket}/t")

    assert not storage.exclusive_create
    with pytest.raises(StorageError, match=r"creates a file only if it is absent.*cannot.*SINGLE_WRITER"):
        storage.require_exclusive_create("the table's lock")
    assert storage.list("") == []
    storage.create("a", b"1")
    with pytest.raises(FileExistsError):
        storage.create("a", b"2")


def test_what_is_known_of_the_server_goes_with_the_storage_to_other_processes(
    storage: ObjectStorage, s3_server: S3Server
) -> None:
    with s3_server.counted() as requests:
        assert pickle.loads(pickle.dumps(storage)).exclusive_create  # noqa: S301
    assert requests == []


def test_a_large_file_is_uploaded_in_parts_and_read_by_ranges(
    storage: ObjectStorage, s3_server: S3Server
) -> None:
    table = pa.table({"bytes": [os.urandom(LARGE // 8) for _ in range(9)]})
    seen = []
    with s3_server.counted() as requests:
        with storage.open_output(
            "d/f.parquet", before_publish=lambda: seen.append(storage.exists("d/f.parquet"))
        ) as sink:
            pq.write_table(table, sink, compression="none")
    assert seen == [False]
    assert sum("partNumber" in each for each in requests) >= 2
    with s3_server.counted() as requests:
        file = pq.ParquetFile(storage.open_input("d/f.parquet"))
        assert file.metadata.num_rows == 9
        assert len(requests) <= 3
    assert file.read().equals(table)


@pytest.mark.parametrize(("size", "count"), [(0, 2), (100, 1), (5 * 1024 * 1024, 1)])
def test_a_file_is_opened_by_one_request_that_asks_for_a_part_of_a_large_one(
    size: int, count: int, storage: ObjectStorage, s3_server: S3Server
) -> None:
    data = os.urandom(size)
    storage.replace("f", data)
    with s3_server.counted() as requests, storage.open_input("f") as file:
        assert file.size() == size
    assert len(requests) == count and s3_server.wire.ranges[0] == f"bytes=0-{4 * 1024 * 1024 - 1}"
    with storage.open_input("f") as file:
        assert file.read() == data


def test_an_upload_that_is_cancelled_leaves_no_parts(
    storage: ObjectStorage, s3_server: S3Server, base: str
) -> None:
    def refuse() -> None:
        raise WriteConflictError("rolled back meanwhile")

    with pytest.raises(WriteConflictError), storage.open_output("d/f", before_publish=refuse) as sink:
        sink.write(os.urandom(LARGE))
    storage.create("d/g", b"there")
    with pytest.raises(FileExistsError), storage.open_output("d/g") as sink:
        sink.write(os.urandom(LARGE))
    assert storage.read("d/g") == b"there"
    assert not storage.exists("d/f")
    assert "Uploads" not in s3_server.client.list_multipart_uploads(Bucket=base.split("/")[2])


def test_a_listing_asks_once_a_page_and_shows_folders(storage: ObjectStorage, s3_server: S3Server) -> None:
    bucket = storage.base.split("/")[2]
    for number in range(1100):
        s3_server.put(bucket, f"wh/t/dt={number % 3}/f{number:04}")
    s3_server.put(bucket, "wh/t/dt=0/")  # a mark of a folder, as Hadoop makes them
    with s3_server.counted() as requests:
        found = storage.list("", recursive=True)
    assert len(requests) == 2
    assert [each.path for each in found if each.is_dir] == ["dt=0", "dt=1", "dt=2"]
    assert len(found) == 1103
    with s3_server.counted() as requests:
        assert [each.name for each in storage.list("")] == ["dt=0", "dt=1", "dt=2"]
    assert len(requests) == 1


def test_a_file_goes_by_one_request_where_nobody_asks_whether_it_was_there(
    storage: ObjectStorage, s3_server: S3Server
) -> None:
    storage.create("f", b"1")
    with s3_server.counted() as requests:
        storage.remove("f")
        storage.remove("f")
    assert len(requests) == 2
    assert not storage.exists("f")


def test_an_empty_folder_stays_without_a_file_that_anybody_sees(storage: ObjectStorage) -> None:
    storage.make_dirs("shop")

    assert [(each.path, each.is_dir) for each in storage.list("")] == [("shop", True)]
    assert storage.list("shop") == []
    assert [each.path for each in storage.list("", recursive=True)] == ["shop"]
    storage.delete_tree("shop")
    assert storage.list("") == []


@pytest.mark.parametrize("name", ["a b", "a%20b", "a%3Ab", "a#b?c", "ü", "a=b&c+d", "a'b\"c", "a*[b]{c}"])
def test_names_are_literal(name: str, storage: ObjectStorage, s3_server: S3Server) -> None:
    storage.create(f"{name}/f", b"1")

    assert storage.list(name)[0].path == f"{name}/f"
    assert storage.read(f"{name}/f") == b"1"
    keys = s3_server.client.list_objects_v2(Bucket=storage.base.split("/")[2])["Contents"]
    assert [each["Key"] for each in keys] == [f"wh/t/{name}/f"]


def test_an_error_of_the_service_is_an_os_error_that_names_the_place(s3_server: S3Server) -> None:
    host = s3_server.endpoint
    storage = open_storage(
        f"s3://AKIAKEY:verysecret@no-such-bucket/t?region=us-east-1&endpoint_override={host}"
    )

    with pytest.raises(OSError, match="no-such-bucket") as refused, storage._client.errors("t/f"):  # type: ignore[attr-defined]
        raise GenericError("the server broke down over AKIAKEY:verysecret")
    assert "verysecret" not in str(refused.value) and refused.value.__cause__ is None
    with pytest.raises(StorageError, match="no-such-bucket") as missing:
        storage.replace("f", b"1")
    assert "verysecret" not in str(missing.value)
    assert "verysecret" not in repr(storage) + repr(storage._client)  # type: ignore[attr-defined]


def test_a_bucket_that_is_not_there_is_said(storage: ObjectStorage, s3_server: S3Server) -> None:
    missing = s3_server.new_bucket()
    s3_server.client.delete_bucket(Bucket=missing.split("/")[2])
    name = missing.split("/")[2].split("?")[0]

    for ask in (
        lambda: hudi_engine.read(f"{missing}/wh/t"),
        lambda: list(open_storage(f"{missing}/wh/t").list("")),
    ):
        with pytest.raises(StorageError, match=f"there is no bucket or container '{name}'; create it"):
            ask()


def test_without_credentials_the_ways_to_give_them_are_named() -> None:
    """What obstore says when nobody gave any and the machine has no identity in a cloud."""
    said = "Generic S3 error: Error performing PUT http://169.254.169.254/latest/api/token in 2.1ms: 403 Forbidden"
    with (
        pytest.raises(
            StorageError, match="no credentials were found .* Set access_key_id and secret_access_key"
        ),
        ObjectClient(StoreKind.S3, "b", "s3://b/t", {}).errors("t"),
    ):
        raise GenericError(said)
