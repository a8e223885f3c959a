"""Savepoints and what a restore needs of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.errors import CorruptTableError, TimelineError
from hudi_engine.format.filegroup.markers import write_marker
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.archive_files import encode_archive_block
from hudi_engine.format.timeline.avro_file import decode_avro_file, encode_avro_file
from hudi_engine.format.timeline.instant import State
from hudi_engine.format.timeline.schemas import CLEAN_METADATA, COMPACTION_PLAN, RESTORE_PLAN
from hudi_engine.table.services.clean.execute import clean
from hudi_engine.table.txn.savepoint import delete_savepoint, list_savepoints

import tests.faults.mini_table as mini
from tests.faults.scenarios import MOR, recover_now
from tests.helpers.read_table import read_table

LATER = "20991231235959000"


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return mini.create_table(str(tmp_path), MOR)


def test_a_savepoint_names_the_files_of_the_table_as_of_its_commit(storage: LocalStorage) -> None:
    first = mini.write(storage, {"a": {"k1": 1}, "b": {"k2": 2}})
    second = mini.write(storage, {"a": {"k1": 10}})
    mini.write(storage, {"c": {"k3": 3}})
    saved = mini.savepoint(storage, second, user="me", comments="before the change")
    base = f"group-{first}-{{0}}-0_0-0-0_{first}.parquet"
    assert saved.files == {
        "a": (base.format("a"), f".group-{first}-a-0_{first}.log.1_0-0-0"),
        "b": (base.format("b"),),
    }
    assert list_savepoints(storage) == (saved,)
    record = decode_avro_file(storage.read(mini.timeline_path(second, "savepoint", State.COMPLETED)))
    assert (record["savepointedBy"], record["comments"], record["version"]) == ("me", "before the change", 1)
    assert record["savepointedAt"] == saved.saved_at_ms
    assert storage.read(mini.timeline_path(second, "savepoint", State.INFLIGHT)) == b""


def test_without_an_instant_the_newest_commit_is_saved_once(storage: LocalStorage) -> None:
    newest = mini.write(storage, {"a": {"k1": 1}})
    saved = mini.savepoint(storage)
    assert saved.instant == newest
    assert mini.savepoint(storage, comments="again") == saved


def test_a_deleted_savepoint_leaves_no_file(storage: LocalStorage) -> None:
    saved = create_savepoint_after_write(storage)
    before = mini.content(storage)
    delete_savepoint(storage, mini.options(), saved)
    assert list_savepoints(storage) == ()
    assert [s.name for s in storage.list(".hoodie") if "savepoint" in s.name] == []
    assert mini.content(storage) == before


def create_savepoint_after_write(storage: LocalStorage) -> str:
    mini.write(storage, {"a": {"k1": 1}})
    return mini.savepoint(storage).instant


def test_an_instant_that_is_no_commit_cannot_be_saved(storage: LocalStorage) -> None:
    newest = mini.write(storage, {"a": {"k1": 1}})
    with pytest.raises(TimelineError, match=f"no completed write '{LATER}'.*the newest are: {newest}"):
        mini.savepoint(storage, LATER)


def test_a_savepoint_that_is_not_there_cannot_be_deleted(storage: LocalStorage) -> None:
    saved = create_savepoint_after_write(storage)
    with pytest.raises(TimelineError, match=f"no savepoint '{LATER}'.*the savepoints are: {saved}"):
        delete_savepoint(storage, mini.options(), LATER)


def clean_up_to(storage: LocalStorage, earliest: str) -> None:
    record = {
        "startCleanTime": LATER, "timeTakenInMillis": 1, "totalFilesDeleted": 0,
        "earliestCommitToRetain": earliest, "partitionMetadata": {},
    }  # fmt: skip
    body = encode_avro_file(CLEAN_METADATA, record)
    storage.create(mini.timeline_path(LATER, "clean", State.COMPLETED), body)


def test_a_commit_that_a_clean_has_gone_past_cannot_be_saved_or_restored_to(storage: LocalStorage) -> None:
    first = mini.write(storage, {"a": {"k1": 1}})
    second = mini.write(storage, {"a": {"k1": 2}})
    clean_up_to(storage, second)
    with pytest.raises(TimelineError, match=f"clean {LATER} keeps only what {second}"):
        mini.savepoint(storage, first)
    with pytest.raises(TimelineError, match="not whole any more"):
        mini.restore(storage, first)
    assert mini.savepoint(storage, second).instant == second


def test_a_saved_commit_can_be_restored_to_after_a_clean(storage: LocalStorage) -> None:
    saved = create_savepoint_after_write(storage)
    clean_up_to(storage, mini.write(storage, {"a": {"k1": 2}}))
    mini.restore(storage, saved)
    assert mini.content(storage) == {("a", "k1"): 1}


def test_a_restore_lists_what_it_took_back_newest_first(storage: LocalStorage) -> None:
    first = mini.write(storage, {"a": {"k1": 1}})
    second = mini.write(storage, {"a": {"k1": 2}})
    third = mini.write(storage, {"a": {"k9": 9}}, "INSERT_OVERWRITE")
    result = mini.restore(storage, first)
    assert result.restore_time is not None
    plan, metadata = (
        decode_avro_file(storage.read(mini.timeline_path(result.restore_time, "restore", state)))
        for state in (State.REQUESTED, State.COMPLETED)
    )
    infos = [
        {"commitTime": third, "action": "replacecommit"},
        {"commitTime": second, "action": "deltacommit"},
    ]
    assert plan == {"instantsToRollback": infos, "version": 2, "savepointToRestoreTimestamp": first}
    assert metadata["instantsToRollback"] == [third, second]
    assert metadata["restoreInstantInfo"] == infos
    assert set(metadata["hoodieRestoreMetadata"]) == {third, second}
    assert metadata["hoodieRestoreMetadata"][third][0]["totalFilesDeleted"] == 1
    assert [i.action for i in mini.Timeline.load(storage, mini.TableConfig.load(storage)).instants] == [
        "deltacommit",
        "restore",
    ]


def test_a_restore_to_the_newest_commit_does_nothing(storage: LocalStorage) -> None:
    newest = mini.write(storage, {"a": {"k1": 1}})
    before = storage.list("", recursive=True)
    assert mini.restore(storage, newest).restore_time is None
    names = [status.path for status in storage.list("", recursive=True)]
    assert names == [status.path for status in before]


def test_a_later_savepoint_stands_in_the_way_of_a_restore(storage: LocalStorage) -> None:
    first = mini.write(storage, {"a": {"k1": 1}})
    second = mini.write(storage, {"a": {"k1": 2}})
    mini.savepoint(storage, second)
    with pytest.raises(TimelineError, match=f"the later commit {second} has a savepoint"):
        mini.restore(storage, first)


@pytest.mark.parametrize("begun", [False, True])
def test_a_planned_compaction_and_what_was_written_on_top_of_it_go_with_a_restore(
    begun: bool, storage: LocalStorage
) -> None:
    """Also where a run of it has not come yet: its markers are in one of two partitions."""
    first = mini.write(storage, {"a": {"k1": 1}, "b": {"k2": 2}})
    planned = "20991231235958000"
    operations = [
        {"fileId": f"group-{first}-{each}-0", "partitionPath": each, "baseInstantTime": first}
        for each in "ab"
    ]
    body = encode_avro_file(COMPACTION_PLAN, {"operations": operations})
    storage.create(mini.timeline_path(planned, "compaction", State.REQUESTED), body)
    if begun:
        storage.create(mini.timeline_path(planned, "compaction", State.INFLIGHT), b"")
        write_marker(storage, planned, "a", f"group-{first}-a-0_0-1-0_{planned}.parquet", "MERGE")
    on_top = [f"{each}/.group-{first}-{each}-0_{planned}.log.1_0-0-0" for each in "ab"]
    for path in on_top:
        storage.create(path, b"")
    for state in State:
        storage.create(mini.timeline_path(LATER, "deltacommit", state), mini.CommitMetadata().to_json())
    mini.restore(storage, first)
    assert [path for path in on_top if storage.exists(path)] == []
    assert mini.content(storage) == {("a", "k1"): 1, ("b", "k2"): 2}
    assert mini.leftovers(storage) == []


@pytest.mark.parametrize(
    ("time", "action"),
    [("20200101000000000", "deltacommit"), ("../../x", "commit"), (LATER, "savepoint"), (LATER, "clean")],
)
def test_a_forged_restore_plan_takes_nothing_back(storage: LocalStorage, time: str, action: str) -> None:
    target = mini.write(storage, {"a": {"k1": 1}})
    record = {
        "instantsToRollback": [{"commitTime": time, "action": action}],
        "savepointToRestoreTimestamp": target,
    }
    storage.create(
        mini.timeline_path(LATER, "restore", State.REQUESTED), encode_avro_file(RESTORE_PLAN, record)
    )
    with pytest.raises(CorruptTableError, match="wants to take back"):
        recover_now(storage)
    assert mini.content(storage) == {("a", "k1"): 1}


def clean_by_versions(storage: LocalStorage) -> str | None:
    """Clean all but the newest version of every file."""
    return clean(
        storage,
        mini.options(
            hoodie__clean__policy="KEEP_LATEST_FILE_VERSIONS", hoodie__clean__fileversions__retained=1
        ),
    ).instant


@pytest.fixture
def versions(tmp_path: Path) -> tuple[LocalStorage, list[str]]:
    """A copy-on-write table of one file group, and the instants of its five versions."""
    storage = mini.create_table(str(tmp_path / "versions"))
    return storage, [mini.write(storage, {"a": {"k1": n}}) for n in range(1, 6)]


def test_after_a_clean_by_file_versions_only_the_newest_state_can_be_saved_restored_or_read(
    versions: tuple[LocalStorage, list[str]],
) -> None:
    storage, instants = versions
    cleaned = clean_by_versions(storage)
    for refused in (mini.savepoint, mini.restore):
        with pytest.raises(TimelineError, match=f"clean {cleaned} keeps only what {instants[4]}"):
            refused(storage, instants[2])
    with pytest.raises(TimelineError, match=f"cleaned up to {instants[4]}"):
        read_table(storage, as_of=instants[2])
    assert mini.content(storage) == {("a", "k1"): 5}
    assert mini.savepoint(storage, instants[4]).files["a"] != ()


def test_a_later_clean_of_another_policy_does_not_lift_the_bar_of_one_before(
    versions: tuple[LocalStorage, list[str]],
) -> None:
    storage, instants = versions
    clean_by_versions(storage)
    instants += [mini.write(storage, {"a": {"k1": n}}) for n in (6, 7)]
    clean_up_to(storage, instants[1])
    with pytest.raises(TimelineError, match=f"cleaned up to {instants[4]}"):
        read_table(storage, as_of=instants[3])
    with pytest.raises(TimelineError, match=f"keeps only what {instants[4]}"):
        mini.restore(storage, instants[3])


def test_a_restore_is_refused_when_the_clean_that_took_the_slices_is_archived(
    versions: tuple[LocalStorage, list[str]],
) -> None:
    storage, instants = versions
    cleaned = clean_by_versions(storage)
    for state in State:
        storage.delete(mini.timeline_path(str(cleaned), "clean", state))
    before = sorted(status.path for status in storage.list("", recursive=True))
    with pytest.raises(TimelineError, match="has lost the slice it had then to a clean. Nothing was changed"):
        mini.restore(storage, instants[2])
    assert sorted(status.path for status in storage.list("", recursive=True)) == before


def test_a_restore_is_refused_when_a_replaced_file_group_is_gone(tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path / "replaced"))
    first = mini.write(storage, {"a": {"k1": 1}})
    mini.write(storage, {"a": {"k2": 2}}, "INSERT_OVERWRITE")
    (old,) = [each.path for each in storage.list("a") if each.name.endswith(f"{first}.parquet")]
    storage.delete(old)
    with pytest.raises(TimelineError, match="has lost the slice"):
        mini.restore(storage, first)
    assert mini.content(storage) == {("a", "k2"): 2}


def test_a_savepoint_does_without_the_logs_of_a_write_under_way_which_may_go(storage: LocalStorage) -> None:
    mini.write(storage, {"a": {"k1": 1}})
    first_log = mini.write(storage, {"a": {"k1": 2}})
    with mini.begin(storage) as transaction:
        task = mini.work(storage, transaction, {"a": {"k1": 3}})
        transaction.inflight(task.profile())
        task.write_files()
        # one more that is announced and never comes, so the next writers look for what has come
        write_marker(storage, transaction.instant, "a", ".late_20260101000000000.log.1_0-0-0", "APPEND")
        saved = mini.savepoint(storage, first_log)
    assert len([each for each in storage.list("a") if ".log." in each.name]) == 3  # one takes the second back
    assert [name.partition(".log.")[2] for name in saved.files["a"]] == ["", "1_0-0-0"]
    mini.write(storage, {"b": {"k2": 2}})
    assert len([each for each in storage.list("a") if ".log." in each.name]) == 2
    mini.restore(storage, first_log)
    assert mini.content(storage) == {("a", "k1"): 2}


def test_a_savepoint_with_a_missing_file_is_not_restored_to(storage: LocalStorage) -> None:
    saved = create_savepoint_after_write(storage)
    mini.write(storage, {"b": {"k2": 2}})
    (name,) = list_savepoints(storage)[0].files["a"]
    storage.delete(f"a/{name}")
    with pytest.raises(TimelineError, match=f"its file '{name}' in partition 'a' is missing"):
        mini.restore(storage, saved)
    assert mini.content(storage) == {("b", "k2"): 2}


def test_writes_after_a_savepoint_that_were_archived_cannot_be_taken_back(storage: LocalStorage) -> None:
    saved = create_savepoint_after_write(storage)
    gone = mini.write(storage, {"b": {"k2": 2}})
    mini.write(storage, {"c": {"k3": 3}})
    entry = {"commitTime": gone, "actionType": "deltacommit", "actionState": "COMPLETED"}
    storage.create(".hoodie/archived/.commits_.archive.1_1-0-1", encode_archive_block([entry]))
    for state in State:
        storage.delete(mini.timeline_path(gone, "deltacommit", state))
    with pytest.raises(TimelineError, match=f"write {gone} after it has been archived"):
        mini.restore(storage, saved)
