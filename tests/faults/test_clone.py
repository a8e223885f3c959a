"""A clone shares base files with its original, is whole or no table, and from then on neither knows of the other."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hudi_engine
import pytest
from hudi_engine.cli.program import main
from hudi_engine.errors import (
    ConfigError,
    CorruptTableError,
    StorageError,
    TableExistsError,
    TimelineError,
    UnsupportedTableError,
)
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.logformat.format import BlockType, HeaderKey
from hudi_engine.format.logformat.writer import encode_block
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.archived import ArchivedTimeline
from hudi_engine.table import clone as make
from hudi_engine.table.clone import CloneResult, Sharing, clone_table
from hudi_engine.table.inspect import validate
from hudi_engine.table.services import archive, change_version, clean
from hudi_engine.table.snapshot.publication import publication_of
from hudi_engine.table.state import TableState
from hudi_engine.table.table_services import TableServices
from hudi_engine.table.txn import swap

import tests.faults.mini_table as mini
from tests.faults.scenarios import COW, MOR, die_before_commit, upsert_both, upsert_second
from tests.golden.golden import NAMES, unpack
from tests.helpers.forms import forms
from tests.helpers.hudi_rs import rows_by_hudi_rs
from tests.helpers.read_table import read_table
from tests.helpers.s3_server import S3Server
from tests.unit.services import tables

THIRD = {"a": {"k1": 100}, "d": {"k9": 9}}
GOLDEN = forms(
    [each for each in NAMES if each.startswith("v6")],
    ("v6_cow_simple_clustering_h0150", "v6_mor_simple_compaction_h0150", "v6_mor_bucket_logs_only_h0150"),
)
MUTATIONS = (
    "create",
    "replace",
    "rename",
    "share",
    "delete",
    "remove",
    "delete_tree",
    "make_dirs",
    "open_output",
)


class Killed(BaseException):
    """The process is gone."""


def data_files(storage: Storage) -> dict[str, int]:
    """Inode of every base file."""
    found = [each.path for each in storage.list("", recursive=True) if each.path.endswith(".parquet")]
    return {path: os.stat(f"{storage.base}/{path}").st_ino for path in found}


@pytest.fixture(params=[COW, MOR])
def original(request: pytest.FixtureRequest, tmp_path: Path) -> LocalStorage:
    storage = mini.create_table(str(tmp_path / "orders"), request.param)
    upsert_both(storage)
    return storage


def cloned(original: Storage, **more: Any) -> tuple[Storage, CloneResult]:
    result = clone_table(original, f"{original.base}_clone", **more)
    return open_storage(result.path), result


def test_a_clone_has_the_rows_and_the_very_files_of_its_original(original: LocalStorage) -> None:
    clone, result = cloned(original)
    assert mini.content(clone) == mini.content(original)
    assert data_files(clone) == data_files(original)
    state = TableState.load(clone)
    assert state.config.name == "orders_clone"
    assert result.files_shared == len(data_files(original))
    assert result.instant == state.timeline.completed_writes[-1].requested_time
    assert mini.leftovers(clone) == []
    assert not clone.exists(".hoodie/.rebuild-owner")


CHANGES: dict[str, Callable[[Storage], object]] = {
    "write": lambda storage: mini.write(storage, THIRD),
    "overwrite": lambda storage: mini.write(storage, THIRD, "INSERT_OVERWRITE_TABLE"),
    "rollback": mini.rollback,
    "restore": lambda storage: mini.restore(storage, TableState.load(storage).timeline.completed_writes[0].requested_time),
    "clean": lambda storage: (mini.write(storage, THIRD), services(storage).clean(1)),
}  # fmt: skip


def services(storage: Storage) -> TableServices:
    return TableServices(storage, resolve_options({}))


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("which", ["original", "clone"])
def test_what_happens_to_one_of_them_never_shows_in_the_other(
    original: LocalStorage, change: str, which: str
) -> None:
    clone, _ = cloned(original)
    changed, other = (original, clone) if which == "original" else (clone, original)
    rows, files = mini.content(other), data_files(other)
    CHANGES[change](changed)
    assert mini.content(changed) != rows
    assert mini.content(other) == rows and data_files(other) == files
    mini.write(other, THIRD)
    assert mini.leftovers(other) == [] == mini.leftovers(changed)


def test_a_clone_of_an_earlier_instant_has_its_rows_and_none_of_the_later_writes(
    original: LocalStorage,
) -> None:
    first = TableState.load(original).timeline.completed_writes[0].requested_time
    mini.write(original, THIRD)
    clone, result = cloned(original, at=first)
    assert mini.content(clone) == mini.content(original, as_of=first)
    assert result.instant == first
    assert [each.requested_time for each in TableState.load(clone).timeline.completed] == [first]
    upsert_second(clone)
    assert mini.leftovers(clone) == []


@pytest.mark.parametrize("earlier", [True, False])
def test_a_table_that_has_lost_a_file_of_the_state_asked_for_is_not_cloned(
    tmp_path: Path, earlier: bool
) -> None:
    original = mini.create_table(str(tmp_path / "orders"), COW)
    upsert_both(original)
    newest = TableState.load(original).timeline.completed_writes[-1].requested_time
    lost = next(path for path in data_files(original) if newest in path)
    if earlier:
        mini.write(original, THIRD)
        mini.write(original, {lost.partition("/")[0]: {"k1": 101, "k2": 102}})
    original.delete(lost)
    with pytest.raises(CorruptTableError, match=f"{re.escape(lost)}.* is not there"):
        cloned(original, at=newest if earlier else None)
    assert [each.name for each in tmp_path.iterdir()] == ["orders"]


def test_what_a_write_under_way_has_left_is_not_in_a_clone(original: LocalStorage) -> None:
    rows = mini.content(original)
    die_before_commit(original)
    clone, _ = cloned(original)
    assert mini.content(clone) == rows and mini.leftovers(clone) == []
    uncommitted = {each.requested_time for each in TableState.load(original).timeline.pending}
    names = [each.path for each in clone.list("", recursive=True)]
    assert uncommitted and not [path for path in names for time in uncommitted if time in path]
    for each in clone.list("", recursive=True):
        if ".log." in each.path:
            assert not [time for time in uncommitted if time.encode() in clone.read(each.path)]


def test_blocks_that_a_write_under_way_appends_to_a_log_stay_out_between_others_too(
    tmp_path: Path,
) -> None:
    storage = mini.create_table(str(tmp_path / "orders"), MOR)
    upsert_both(storage)
    rows = mini.content(storage)
    log = next(each.path for each in storage.list("", recursive=True) if ".log." in each.path)
    whole = storage.read(log)
    storage.create(".hoodie/20991231235959000.deltacommit.requested", b"")
    late = encode_block(BlockType.AVRO_DATA, [(HeaderKey.INSTANT_TIME, "20991231235959000")], b'{"k1": 7}')
    storage.replace(log, whole + late)
    clone, _ = cloned(storage)
    assert clone.read(log) == whole and mini.content(clone) == rows
    storage.replace(log, whole + late + whole)
    other = open_storage(clone_table(storage, str(tmp_path / "other")).path)
    assert other.read(log) == whole + whole and mini.content(other) == rows


def test_a_clean_that_goes_by_meanwhile_makes_the_clone_look_again(
    original: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    share, cleaned = Sharing.share, []

    def clean_first(self: Sharing, path: str) -> bool:
        if not cleaned:
            cleaned.append(path)
            CHANGES["clean"](original)
        return share(self, path)

    monkeypatch.setattr(Sharing, "share", clean_first)
    before = mini.content(original)
    clone, _ = cloned(original)
    assert mini.content(clone) in (before, mini.content(original))


@pytest.mark.parametrize("replace", [False, True])
def test_killed_at_any_call_there_is_the_old_table_or_the_whole_clone_and_the_next_try_finishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replace: bool
) -> None:
    original = mini.create_table(str(tmp_path / "orders"), MOR)
    upsert_both(original)
    new = mini.content(original)
    done = False
    for call in range(1, 200):
        folder = tmp_path / f"try{call}"
        path, old = str(folder / "clone"), {}
        if replace:
            mini.write(mini.create_table(path), THIRD)
            old = mini.content(open_storage(path))
        with monkeypatch.context() as patch:
            die_at(patch, call)
            try:
                clone_table(original, path, replace=replace)
                done = True
            except Killed:
                pass
        storage = swap.table_storage(path)
        if storage.exists(".hoodie/hoodie.properties"):
            assert mini.content(storage) in (old, new), call
        else:
            assert not replace, call
        if not done:
            bury_builders(folder)
            clone_table(original, path, replace=storage.exists(".hoodie/hoodie.properties"))
        assert mini.content(open_storage(path)) == new
        assert os.listdir(folder) == ["clone"], call
        if done:
            return
    raise AssertionError("the clone has more calls than expected")


def die_at(patch: pytest.MonkeyPatch, call: int) -> None:
    """Let this process's storage stop at its n-th change, and at all after that."""
    count = [0]

    def counting(change: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any, **named: Any) -> Any:
            count[0] += 1
            if count[0] >= call:
                raise Killed
            return change(*given, **named)

        return run

    for name in MUTATIONS:
        patch.setattr(LocalStorage, name, counting(getattr(LocalStorage, name)))


def bury_builders(folder: Path) -> None:
    """Say of what builds there that it was a process of this machine that is gone."""
    for mark in folder.glob(".clone.rebuild-*/.hoodie/.rebuild-owner"):
        mark.write_text(mark.read_text().replace(f'"pid":{os.getpid()}', '"pid":999999999').replace(f'"pid": {os.getpid()}', '"pid": 999999999'))  # fmt: skip


def test_what_cannot_be_cloned_is_refused_by_name_and_leaves_nothing(
    original: LocalStorage, tmp_path: Path, s3_server: S3Server
) -> None:
    cloned(original)
    for path, error, message in (
        (f"{original.base}_clone", TableExistsError, "already at"),
        (original.base, ConfigError, "outside it"),
        (f"{original.base}/inside", ConfigError, "outside it"),
        (f"{s3_server.new_bucket()}/wh/t", StorageError, "different stores.*clone_copy: true"),
    ):
        with pytest.raises(error, match=message):
            clone_table(original, path)
    with pytest.raises(ConfigError, match="table name is 'a/b'; legal: letters"):
        clone_table(original, str(tmp_path / "old"), name="a/b")
    assert main([original.base, "clone", str(tmp_path / "old"), "--name", "no spaces"]) == 2
    with pytest.raises(ConfigError, match="give the clone a name"):
        clone_table(original, str(tmp_path / "no name"))
    with pytest.raises(TimelineError, match="oldest write"):
        clone_table(original, str(tmp_path / "old"), at="20010101000000000")
    with pytest.raises(UnsupportedTableError, match="version 4"):
        older = unpack("v4_cow_simple_archived_h0122", tmp_path)
        clone_table(open_storage(str(older)), str(tmp_path / "new"))
    assert {each.name for each in tmp_path.iterdir()} == {"orders", "orders_clone", older.name}


@pytest.mark.parametrize("name", ["v9_cow_nonpartitioned_upsert_h120", "v9_mor_simple_deletes_h120"])
def test_clone_of_a_table_of_version_9_has_its_states(name: str, tmp_path: Path) -> None:
    storage = open_storage(str(unpack(name, tmp_path)))
    writes = Timeline.load(storage, TableConfig.load(storage)).completed_writes
    for number, at in enumerate([None, writes[0].requested_time]):
        place = open_storage(str(tmp_path / f"clone{number}"))
        clone_table(storage, place.base, at=at, name="clone")
        assert sorted(read_table(place).to_pylist(), key=str) == sorted(
            read_table(storage, as_of=at).to_pylist(), key=str
        )
        assert TableConfig.load(place).version == 9
        assert validate(TableState.load(place)) == []


def test_clone_of_a_table_of_version_9_has_its_archive(tmp_path: Path) -> None:
    storage = tables.copy_on_write(tmp_path / "t", 9).storage
    few = tables.options(keep__min__commits=4, keep__max__commits=6, clean__commits__retained=2)
    clean(storage, few, retain_commits=2)
    change_version(storage, few, publication_of(storage), 9)
    archive(storage, few)
    place = open_storage(str(tmp_path / "clone"))

    clone_table(storage, place.base)

    archived = [
        ArchivedTimeline.load(each, TableConfig.load(each)).completed_writes for each in (storage, place)
    ]
    assert archived[0] and archived[0] == archived[1]
    assert tables.rows(place) == {"a": 9}


def test_what_has_the_folder_makes_room_when_the_clone_is_built_beside_it(
    original: LocalStorage, tmp_path: Path
) -> None:
    place = tmp_path / "clone"
    place.mkdir()
    (place / "rows.csv").write_text("7,mine")
    with pytest.raises(TimelineError, match="oldest write"):
        clone_table(original, str(place), lambda: shutil.rmtree(place), at="20010101000000000")
    assert (place / "rows.csv").read_text() == "7,mine"

    clone_table(original, str(place), lambda: shutil.rmtree(place))
    assert mini.content(open_storage(str(place))) == mini.content(original)
    assert {each.name for each in tmp_path.iterdir()} == {"orders", "clone"}


@pytest.mark.parametrize("place", ["disk", "S3"])
@pytest.mark.parametrize("replace", [False, True])
def test_a_table_that_was_made_meanwhile_is_not_replaced(
    tmp_path: Path, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, place: str, replace: bool
) -> None:
    folder = str(tmp_path) if place == "disk" else f"{s3_server.new_bucket()}/wh"
    original = _copied(mini.create_table(str(tmp_path / "model")), f"{folder}/orders")
    path, fill = f"{folder}/clone", make._fill

    def late(*given: Any) -> CloneResult:
        mini.write(_copied(mini.create_table(str(tmp_path / "other")), path), THIRD)
        return fill(*given)

    monkeypatch.setattr(make, "_fill", late)
    with pytest.raises(TableExistsError, match="already at"):
        clone_table(original, path, replace=replace)
    assert mini.content(open_storage(path)) == {("a", "k1"): 100, ("d", "k9"): 9}
    assert not [each.path for each in open_storage(folder).list("") if each.name.startswith(".")]


def _copied(model: Storage, path: str) -> Storage:
    """A table of the same properties at another place."""
    storage = open_storage(path)
    storage.create(".hoodie/hoodie.properties", model.read(".hoodie/hoodie.properties"))
    return storage


def test_another_file_system_is_refused_or_copied_to_when_that_is_asked_for(
    original: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other_device(*given: Any, **named: Any) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    link = os.link

    def linked(old: str, new: str, **named: Any) -> None:
        # the engine gives its own temporary files their names by links
        (link if ".tmp-" in old else other_device)(old, new, **named)

    monkeypatch.setattr(os, "link", linked)
    with pytest.raises(StorageError, match="cross-device link.*copy=True"):
        cloned(original)
    clone, result = cloned(original, copy=True)
    assert mini.content(clone) == mini.content(original)
    assert result.files_shared == 0 and result.bytes_copied > 0
    assert not set(data_files(clone).values()) & set(data_files(original).values())


def test_an_object_store_copies_by_itself(tmp_path: Path, s3_server: S3Server) -> None:
    bucket = s3_server.new_bucket()
    model = mini.create_table(str(tmp_path / "model"), MOR)
    original = open_storage(f"{bucket}/prod/orders")
    original.create(".hoodie/hoodie.properties", model.read(".hoodie/hoodie.properties"))
    upsert_both(original)
    with s3_server.counted() as requests:
        clone_table(original, f"{bucket}/dev/orders")
    clone = open_storage(f"{bucket}/dev/orders")
    assert mini.content(clone) == mini.content(original)
    assert not [each for each in requests if each.startswith("GET") and each.endswith(".parquet")]
    assert {each.path.split("/")[0] for each in open_storage(f"{bucket}/dev").list("", recursive=True)} == {
        "orders"
    }
    mini.write(original, THIRD)
    services(original).clean(1)
    upsert_second(clone)
    assert mini.leftovers(clone) == []


@pytest.mark.parametrize("name", GOLDEN)
def test_clones_of_tables_of_apache_hudi_read_the_same_and_compact_by_themselves(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, path = unpack(name, tmp_path), str(tmp_path / "clones" / name)
    assert main([str(base), "clone", path, "--name", "copied"]) == 0
    assert "files shared" in capsys.readouterr().out
    columns = ["_hoodie_record_key", "_hoodie_partition_path", "_hoodie_commit_time"]
    expected = rows_by_hudi_rs(str(base), columns)
    assert rows_by_hudi_rs(path, columns) == expected
    rows = sorted(map(str, hudi_engine.read(str(base)).to_arrow().to_pylist()))
    assert sorted(map(str, hudi_engine.read(path).to_arrow().to_pylist())) == rows
    if "_mor_" in name:
        services(open_storage(path)).compact()
        services(open_storage(path)).clean(1)
        assert rows_by_hudi_rs(path, columns) == expected == rows_by_hudi_rs(str(base), columns)


def test_a_planned_compaction_runs_in_the_clone_and_in_the_original(tmp_path: Path) -> None:
    base = unpack("v6_mor_simple_deletes_h0150", tmp_path)
    services(open_storage(str(base))).schedule_compaction()
    rows = rows_by_hudi_rs(str(base), ["_hoodie_record_key"])
    path = services(open_storage(str(base))).clone(str(tmp_path / "clone")).path
    assert services(open_storage(path)).compact().state == "completed"
    assert services(open_storage(str(base))).compact().state == "completed"
    assert (
        rows_by_hudi_rs(path, ["_hoodie_record_key"])
        == rows
        == rows_by_hudi_rs(str(base), ["_hoodie_record_key"])
    )


def test_the_clone_of_a_clone_and_of_an_archived_table_is_whole(tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path / "orders"), COW)
    for number in range(8):
        mini.write(storage, {"a": {f"k{number}": number}})
    TableServices(storage, mini.options(hoodie__clean__commits__retained=1)).archive(2, 3)
    again, _ = cloned(cloned(storage)[0])
    assert mini.content(again) == mini.content(storage)
    archived = TableState.load(again).timeline.archived.completed_writes
    assert archived == TableState.load(storage).timeline.archived.completed_writes != ()


@pytest.mark.parametrize("gone", [True, False])
def test_a_clone_that_cannot_take_a_place_stays_where_what_was_there_has_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: bool
) -> None:
    original = mini.create_table(str(tmp_path / "t"))
    mini.write(original, THIRD)
    place = tmp_path / "other" / "place"
    place.mkdir(parents=True)
    (place / "rows.csv").write_text("1")

    def make_room() -> None:
        if gone:
            shutil.rmtree(place)
        raise PermissionError(errno.EACCES, "denied")

    with pytest.raises((StorageError, PermissionError), match="is built at" if gone else "denied"):
        clone_table(original, str(place), make_room)
    (left,) = place.parent.iterdir()
    assert left == place or mini.content(open_storage(str(left))) == mini.content(original)
    assert (left == place) is not gone
