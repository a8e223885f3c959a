"""What a rollback writes and removes, when it refuses, and what it does not believe."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hudi_engine.errors import CorruptTableError, PathEscapeError, StorageError, TimelineError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.filegroup.markers import marker_folder, write_marker
from hudi_engine.format.logformat.format import BlockType, HeaderKey
from hudi_engine.format.logformat.reader import read_blocks
from hudi_engine.format.logformat.writer import encode_block
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.avro_file import encode_avro_file
from hudi_engine.format.timeline.instant import State
from hudi_engine.format.timeline.schemas import CLEAN_METADATA, REQUESTED_REPLACE_METADATA, ROLLBACK_PLAN
from hudi_engine.table.txn.publication import UNPUBLISHED
from hudi_engine.table.txn.recovery import rollback_write
from hudi_engine.table.txn.restore import restore

import tests.faults.mini_table as mini
from tests.faults.scenarios import COW, MOR, die_before_commit, overwrite_partition, recover_now, upsert_first
from tests.unit.txn.rollback_records import (
    LATER,
    damage,
    files,
    plan_for,
    refusal,
    resume,
    rollback_records,
    store_plan,
    timeline,
)


@pytest.fixture
def cow(tmp_path: Path) -> LocalStorage:
    return mini.create_table(str(tmp_path / "table"), COW)


@pytest.fixture
def mor(tmp_path: Path) -> LocalStorage:
    return mini.create_table(str(tmp_path / "table"), MOR)


def test_the_rollback_of_a_copy_on_write_commit_names_its_files(cow: LocalStorage) -> None:
    upsert_first(cow)
    written = mini.write(cow, {"a": {"k1": 10}})
    gone = [path for path in files(cow) if path.endswith(f"_{written}.parquet")]
    result = mini.rollback(cow)
    plan, metadata = rollback_records(cow)
    absolute = [f"{cow.base}/{path}" for path in gone]
    assert plan["instantToRollback"] == {"commitTime": written, "action": "commit"}
    assert [request["filesToBeDeleted"] for request in plan["RollbackRequests"]] == [absolute]
    assert plan["RollbackRequests"][0]["logBlocksToBeDeleted"] == {}
    assert metadata["startRollbackTime"] == result.rollback_time
    assert metadata["commitsRollback"] == [written]
    assert metadata["instantsRollback"] == [{"commitTime": written, "action": "commit"}]
    assert metadata["totalFilesDeleted"] == 1
    assert metadata["partitionMetadata"]["a"]["successDeleteFiles"] == absolute
    assert result.deleted == tuple(gone)


def test_the_rollback_of_log_blocks_is_a_command_block_in_the_next_version(mor: LocalStorage) -> None:
    upsert_first(mor)
    base_instant = timeline(mor).completed_writes[0].requested_time
    failed = mini.write(mor, {"a": {"k1": 10}})
    result = mini.rollback(mor)
    plan, metadata = rollback_records(mor)
    group = f"group-{base_instant}-a-0"
    log, command = (f"a/.{group}_{base_instant}.log.{end}" for end in ("1_0-0-0", "2_1-0-1"))
    assert result.command_blocks == (command,)
    (block,) = read_blocks(mor.read(command))
    assert block.is_rollback
    assert block.header[HeaderKey.INSTANT_TIME] == result.rollback_time
    assert block.target_instant_time == failed
    (request,) = plan["RollbackRequests"]
    assert (request["fileId"], request["latestBaseInstant"]) == (group, base_instant)
    assert request["logBlocksToBeDeleted"] == {f"file:{mor.base}/{log}": len(mor.read(log))}
    entry = metadata["partitionMetadata"]["a"]
    assert entry["rollbackLogFiles"] == {f"file:{mor.base}/{command}": 105}
    assert entry["logFilesFromFailedCommit"] == {f"file:{mor.base}/{log}": len(mor.read(log))}
    assert mini.content(mor)[("a", "k1")] == 1


@pytest.mark.parametrize("kind", [COW, MOR])
def test_a_commit_whose_file_is_damaged_can_be_rolled_back(kind: str, tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path / "table"), kind)
    upsert_first(storage)
    before, there = mini.content(storage), files(storage)
    written = mini.write(storage, {"a": {"k1": 10}})
    damage(storage, written)
    assert mini.rollback(storage).instant == written
    assert mini.content(storage) == before
    left = {path for path in files(storage) - there if not path.startswith(".hoodie")}
    assert all(".log." in path for path in left)


@pytest.mark.parametrize("kind", [COW, MOR])
def test_a_restore_takes_a_damaged_commit_back(kind: str, tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path / "table"), kind)
    upsert_first(storage)
    before, target = mini.content(storage), timeline(storage).completed_writes[-1].requested_time
    damage(storage, mini.write(storage, {"a": {"k1": 10}}))
    restore(storage, resolve_options(None), UNPUBLISHED, target)
    assert mini.content(storage) == before


def test_a_damaged_commit_before_a_clean_is_not_rolled_back(cow: LocalStorage) -> None:
    upsert_first(cow)
    written = mini.write(cow, {"a": {"k1": 10}})
    damage(cow, written)
    cow.create(f".hoodie/{LATER}.clean.inflight", b"")
    before = files(cow)
    with pytest.raises(TimelineError, match=f"cannot be taken back.*Clean {LATER} came after it"):
        mini.rollback(cow)
    assert {path for path in before - files(cow) if path.endswith(".parquet")} == set()


def test_an_unknown_instant_is_told_with_the_newest_ones_each_once(cow: LocalStorage) -> None:
    upsert_first(cow)
    time = timeline(cow).completed_writes[-1].requested_time
    twice = replace(timeline(cow).instants[-1], action="savepoint")
    known = mini.Timeline(cow, mini.TableConfig.load(cow), [*timeline(cow).instants, twice])
    with pytest.raises(TimelineError, match=f"the newest instants are: {time}$"):
        known.find("19990101000000000")


def test_log_files_of_a_slice_that_never_was_are_deleted(mor: LocalStorage) -> None:
    """A group without a base file: its first log carries the failed instant as base instant."""
    transaction = mini.begin(mor)
    transaction.inflight(mini.CommitMetadata())
    name = f".bucket-0_{transaction.instant}.log.1_0-0-0"
    write_marker(mor, transaction.instant, "a", name, "APPEND")
    header = [(HeaderKey.INSTANT_TIME, transaction.instant)]
    mor.create(f"a/{name}", encode_block(BlockType.AVRO_DATA, header, b"{}"))
    transaction.abort()
    assert mor.list("a") == []


@pytest.mark.parametrize("kind", ["direct", "server", "lost"])
@pytest.mark.parametrize("table_type", [COW, MOR])
def test_the_files_of_a_dead_writer_are_found_by_both_kinds_of_markers_and_without_any(
    table_type: str, kind: str, tmp_path: Path
) -> None:
    storage = mini.create_table(str(tmp_path), table_type)
    upsert_first(storage)
    old = mini.content(storage)
    die_before_commit(storage)
    dead = timeline(storage).pending[0].requested_time
    folder = marker_folder(dead)
    if kind != "direct":
        lines = [
            status.path[len(folder) + 1 :]
            for status in storage.list(folder, recursive=True)
            if not status.is_dir
        ]
        storage.delete_tree(folder)
        if kind == "server":
            storage.create(f"{folder}/MARKERS.type", b"TIMELINE_SERVER_BASED")
            storage.create(f"{folder}/MARKERS0", "\n".join(lines[::2]).encode())
            storage.create(f"{folder}/MARKERS7", "\n".join(lines[1::2]).encode())
    recover_now(storage)
    assert mini.content(storage) == old
    assert mini.leftovers(storage) == []
    if table_type == MOR:
        assert rollback_records(storage)[1]["partitionMetadata"]["a"]["rollbackLogFiles"]


def test_an_old_marker_named_after_the_base_file_finds_the_log(mor: LocalStorage) -> None:
    upsert_first(mor)
    die_before_commit(mor)
    dead = timeline(mor).pending[0].requested_time
    base = timeline(mor).completed_writes[0].requested_time
    folder = marker_folder(dead)
    log_marker = next(s.path for s in mor.list(folder, recursive=True) if s.name.endswith(".APPEND"))
    mor.delete(log_marker)
    write_marker(mor, dead, "a", f"group-{base}-a-0_0-0-0_{base}.parquet", "APPEND")
    recover_now(mor)
    assert rollback_records(mor)[1]["partitionMetadata"]["a"]["rollbackLogFiles"]


def test_checksum_files_of_hadoop_go_with_the_files_they_belong_to(cow: LocalStorage) -> None:
    upsert_first(cow)
    die_before_commit(cow)
    dead = timeline(cow).pending[0].requested_time
    for path in [path for path in files(cow) if dead in path]:
        folder, _, name = path.rpartition("/")
        cow.create(f"{folder}/.{name}.crc", b"crc")
    recover_now(cow)
    assert [path for path in files(cow) if dead in path] == []


def test_a_table_that_was_moved_is_rolled_back_where_it_is(cow: LocalStorage, tmp_path: Path) -> None:
    upsert_first(cow)
    die_before_commit(cow)
    store_plan(cow, plan_for(cow))
    moved = LocalStorage(str(tmp_path / "moved"))
    shutil.copytree(cow.base, moved.base)
    recover_now(moved)
    assert mini.leftovers(moved) == []
    assert mini.leftovers(cow) != []


@pytest.mark.parametrize(
    ("partition", "path", "error"),
    [
        ("c", "/etc/passwd", PathEscapeError),
        ("c", "/base/d/x_0-0-0_{dead}.parquet", PathEscapeError),
        ("../c", "/base/../c/x_0-0-0_{dead}.parquet", PathEscapeError),
        ("/etc", "/etc/x_0-0-0_{dead}.parquet", PathEscapeError),
        ("..", "/base/../x_0-0-0_{dead}.parquet", PathEscapeError),
        ("c", "/base/c/", PathEscapeError),
        ("a", "/base/a/{committed}", CorruptTableError),
        ("c", "/base/c/notes.txt", CorruptTableError),
        (".hoodie", "/base/.hoodie/hoodie.properties", CorruptTableError),
        ("c", "/base/c/.x_20200101000000000.log.1_0-0-0", CorruptTableError),
    ],
)
def test_a_forged_plan_deletes_nothing(
    cow: LocalStorage, partition: str, path: str, error: type[Exception]
) -> None:
    upsert_first(cow)
    die_before_commit(cow)
    plan = plan_for(cow)
    committed = next(s.name for s in cow.list("a") if s.name.endswith(".parquet"))
    dead = plan["instantToRollback"]["commitTime"]
    plan["RollbackRequests"][-1].update(
        partitionPath=partition, filesToBeDeleted=[path.format(dead=dead, committed=committed)]
    )
    store_plan(cow, plan)
    before = files(cow)
    with pytest.raises(error):
        resume(cow)
    assert files(cow) == before


def test_a_forged_plan_writes_no_command_block_into_another_slice(mor: LocalStorage) -> None:
    upsert_first(mor)
    die_before_commit(mor)
    plan = plan_for(mor)
    plan["RollbackRequests"][0].update(
        partitionPath="c",
        filesToBeDeleted=[],
        fileId="../../escape",
        latestBaseInstant="20200101000000000",
        logBlocksToBeDeleted={"file:/base/c/.x_20200101000000000.log.1_0-0-0": 1},
    )
    store_plan(mor, plan)
    before = files(mor)
    with pytest.raises(CorruptTableError, match="no log file of slice"):
        resume(mor)
    assert files(mor) == before


@pytest.mark.parametrize("length", [0, 3, 100, -1])
def test_a_plan_that_was_cut_short_before_the_rollback_began_is_dropped(
    cow: LocalStorage, length: int
) -> None:
    upsert_first(cow)
    die_before_commit(cow)
    body = encode_avro_file(ROLLBACK_PLAN, plan_for(cow))
    cow.create(mini.timeline_path(LATER, "rollback", State.REQUESTED), body[:length])
    recover_now(cow)
    assert mini.leftovers(cow) == []


def test_a_plan_that_was_damaged_after_the_rollback_began_is_an_error(cow: LocalStorage) -> None:
    upsert_first(cow)
    die_before_commit(cow)
    cow.create(mini.timeline_path(LATER, "rollback", State.REQUESTED), b"Obj")
    cow.create(mini.timeline_path(LATER, "rollback", State.INFLIGHT), b"")
    with pytest.raises(CorruptTableError, match=f"{LATER}.rollback.requested"):
        mini.begin(cow)


def test_a_begun_rollback_of_a_commit_that_others_have_built_upon_is_dropped(cow: LocalStorage) -> None:
    upsert_first(cow)
    written = mini.write(cow, {"a": {"k1": 10}})
    plan = {"instantToRollback": {"commitTime": written, "action": "commit"}, "RollbackRequests": []}
    mini.write(cow, {"b": {"k3": 30}})
    expected = mini.content(cow)
    store_plan(cow, plan, inflight=False)
    recover_now(cow)
    assert mini.content(cow) == expected
    assert mini.leftovers(cow) == []


def test_the_file_list_is_made_anew_between_unpublishing_and_deleting(cow: LocalStorage) -> None:
    upsert_first(cow)
    written = mini.write(cow, {"a": {"k1": 10}})
    seen: list[tuple[int, bool]] = []

    def renew(_: object) -> None:
        there = any(path.endswith(f"_{written}.parquet") for path in files(cow))
        seen.append((mini.content(cow)[("a", "k1")], there))

    rollback_write(cow, mini.options(), replace(UNPUBLISHED, renew=renew), written)
    assert seen == [(1, True)]


def test_a_rollback_whose_file_list_cannot_be_made_anew_deletes_nothing(cow: LocalStorage) -> None:
    upsert_first(cow)
    written = mini.write(cow, {"a": {"k1": 10}})
    data = {path for path in files(cow) if path.endswith(".parquet")}

    def renew(_: object) -> None:
        raise StorageError("no room")

    with pytest.raises(StorageError, match="no room"):
        rollback_write(cow, mini.options(), replace(UNPUBLISHED, renew=renew), written)
    assert data <= files(cow)
    recover_now(cow)
    assert mini.content(cow)[("a", "k1")] == 1


def test_a_commit_that_comes_while_its_files_go_is_hidden_too(cow: LocalStorage) -> None:
    """Its writer lost the lock in the middle of the create, and died."""

    class Late(LocalStorage):
        def delete(self, path: str) -> bool:
            if path == f".hoodie/{late}.inflight":
                self.create(f".hoodie/{late}.commit", body)
            return super().delete(path)

    upsert_first(cow)
    late = mini.write(cow, {"a": {"k1": 10}})
    body = cow.read(f".hoodie/{late}.commit")
    cow.delete(f".hoodie/{late}.commit")
    seen: list[bool] = []

    def renew(_: object) -> None:
        seen.append(cow.exists(f".hoodie/{late}.commit"))

    rollback_write(Late(cow.base), mini.options(), replace(UNPUBLISHED, renew=renew), late)
    assert seen == [False]
    assert mini.content(cow)[("a", "k1")] == 1
    assert mini.leftovers(cow) == []


def test_only_the_newest_write_can_be_rolled_back(cow: LocalStorage) -> None:
    first = mini.write(cow, {"a": {"k1": 1}})
    second = mini.write(cow, {"a": {"k1": 2}})
    message = refusal(cow, first)
    assert first in message and second in message


def test_an_instant_that_is_not_there_cannot_be_rolled_back(cow: LocalStorage) -> None:
    assert "no committed write" in refusal(cow)
    mini.write(cow, {"a": {"k1": 1}})
    assert "20200101000000000" in refusal(cow, "20200101000000000")


def test_a_rollback_cannot_be_rolled_back(cow: LocalStorage) -> None:
    mini.write(cow, {"a": {"k1": 1}})
    done = mini.rollback(cow)
    assert "only commit, deltacommit and replacecommit can" in refusal(cow, done.rollback_time)


def test_a_saved_commit_cannot_be_rolled_back(cow: LocalStorage) -> None:
    mini.write(cow, {"a": {"k1": 1}})
    mini.savepoint(cow)
    assert "Delete the savepoint first" in refusal(cow)


def test_a_commit_on_which_a_compaction_is_planned_cannot_be_rolled_back(mor: LocalStorage) -> None:
    mini.write(mor, {"a": {"k1": 1}})
    mor.create(mini.timeline_path(LATER, "compaction", State.REQUESTED), b"")
    assert f"compaction {LATER} is planned" in refusal(mor)


def test_a_commit_on_which_a_clustering_is_planned_is_rolled_back_after_the_plan(cow: LocalStorage) -> None:
    mini.write(cow, {"a": {"k1": 1}})
    plan = encode_avro_file(
        REQUESTED_REPLACE_METADATA, {"operationType": "CLUSTER", "clusteringPlan": {"inputGroups": []}}
    )
    cow.create(mini.timeline_path(LATER, "replacecommit", State.REQUESTED), plan)
    assert f"clustering {LATER} is planned on top of it" in refusal(cow)
    mini.rollback(cow, LATER)
    mini.rollback(cow)
    assert mini.content(cow) == {}


@pytest.mark.parametrize("change", ["update", "overwrite"])
def test_a_commit_whose_older_files_were_cleaned_cannot_be_rolled_back(
    cow: LocalStorage, change: str
) -> None:
    upsert_first(cow)
    old = [path for path in files(cow) if path.startswith("a/group")]
    if change == "update":
        mini.write(cow, {"a": {"k1": 10}})
    else:
        overwrite_partition(cow)
    for path in old:
        cow.delete(path)
    assert "were cleaned" in refusal(cow)


def test_a_write_that_is_under_way_is_not_the_newest_to_roll_back(cow: LocalStorage) -> None:
    upsert_first(cow)
    open_write = mini.begin(cow)
    mini.rollback(cow)
    assert mini.content(cow) == {}
    assert [instant.requested_time for instant in timeline(cow).pending] == [open_write.instant]
    open_write.abort()


def test_a_planned_compaction_is_not_rolled_back(mor: LocalStorage) -> None:
    upsert_first(mor)
    mor.create(mini.timeline_path(LATER, "compaction", State.REQUESTED), b"")
    assert "carried out by its service" in refusal(mor, LATER)


def test_a_log_file_that_several_commits_share_keeps_their_blocks(mor: LocalStorage) -> None:
    """Where a file system can append, Apache Hudi puts the blocks of several commits into one file."""
    upsert_first(mor)
    good = mini.write(mor, {"a": {"k1": 10}})
    die_before_commit(mor, until="inflight")
    dead = timeline(mor).pending[0].requested_time
    (log,) = [path for path in files(mor) if ".log." in path]
    header = [(HeaderKey.INSTANT_TIME, dead)]
    block = encode_block(BlockType.AVRO_DATA, header, json.dumps({"k1": 99}).encode())
    with open(os.path.join(mor.base, log), "ab") as file:
        file.write(block)
    folder, _, name = log.rpartition("/")
    write_marker(mor, dead, folder, name, "APPEND")
    recover_now(mor)
    assert [block.instant_time for block in read_blocks(mor.read(log))] == [good, dead]
    assert mini.content(mor)[("a", "k1")] == 10


def test_clean_metadata_is_not_needed_to_see_that_files_are_missing(cow: LocalStorage) -> None:
    """A clean that took nothing this commit needs does not stand in the way."""
    upsert_first(cow)
    written = mini.write(cow, {"a": {"k1": 10}})
    record = {
        "startCleanTime": LATER, "timeTakenInMillis": 1, "totalFilesDeleted": 0,
        "earliestCommitToRetain": written, "partitionMetadata": {},
    }  # fmt: skip
    cow.create(mini.timeline_path(LATER, "clean", State.COMPLETED), encode_avro_file(CLEAN_METADATA, record))
    mini.rollback(cow, written)
    assert mini.content(cow)[("a", "k1")] == 1
