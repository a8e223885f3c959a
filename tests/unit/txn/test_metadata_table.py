"""A damaged metadata table goes with a write, or before files go, and not earlier."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.format.metadata.table import METADATA_FOLDER
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.table.services.clean.execute import clean
from hudi_engine.table.txn.owner import LOCK_PATH

import tests.faults.mini_table as mini
from tests.faults.scenarios import die_before_commit
from tests.helpers.fault import Interrupted, SimulatedCrash

PROPERTIES = {"hoodie.table.metadata.partitions": "files,record_index"}


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    created = mini.create_table(str(tmp_path))
    mini.write(created, {"a": {"k1": 1}})
    mini.TableConfig.load(created).with_properties(PROPERTIES).save(created)
    created.create(f"{METADATA_FOLDER}/.hoodie/hoodie.properties", b"x=y")
    created.create(f"{METADATA_FOLDER}/files/f_0-0-0_1.hfile", b"x")
    return created


def switched_on(storage: LocalStorage) -> bool:
    return bool(mini.TableConfig.load(storage).metadata_partitions)


def test_a_write_that_is_given_up_takes_it_away(storage: LocalStorage) -> None:
    with pytest.raises(ValueError, match="bad row"), mini.begin(storage):
        raise ValueError("bad row")
    assert not switched_on(storage) and not storage.exists(METADATA_FOLDER)


def test_it_goes_under_the_lock_before_the_write_completes(storage: LocalStorage) -> None:
    locked: list[bool] = []

    class Watched(LocalStorage):
        def delete_tree(self, path: str) -> None:
            if path == METADATA_FOLDER:
                locked.append(self.exists(LOCK_PATH))
                assert not self.exists(f".hoodie/{transaction.instant}.commit")
            super().delete_tree(path)

    watched = Watched(storage.base)
    with mini.begin(watched) as transaction:
        task = mini.work(watched, transaction, {"a": {"k1": 2}})
        assert switched_on(storage)
        transaction.inflight(task.profile())
        task.write_files()
        assert switched_on(storage)
        transaction.commit(task.metadata)
    assert not switched_on(storage) and not storage.exists(METADATA_FOLDER)
    assert locked == [True]
    assert mini.content(storage) == {("a", "k1"): 2}


@pytest.mark.parametrize("when", ["before", "torn"])
def test_what_a_kill_leaves_of_it_goes_with_the_next_write(storage: LocalStorage, when: str) -> None:
    """The properties that name it went first; what is left of the folder must not stay for ever."""

    class Dying(LocalStorage):
        def delete_tree(self, path: str) -> None:
            if path != METADATA_FOLDER:
                super().delete_tree(path)
                return
            if when == "torn":
                self.delete(f"{METADATA_FOLDER}/.hoodie/hoodie.properties")
            raise SimulatedCrash

    with pytest.raises(SimulatedCrash):
        mini.write(Dying(storage.base), {"a": {"k1": 2}})
    assert not switched_on(storage) and storage.exists(METADATA_FOLDER)
    mini.write(storage, {"a": {"k1": 3}})
    assert not storage.exists(METADATA_FOLDER)
    assert mini.content(storage) == {("a", "k1"): 3}


class Watching(LocalStorage):
    """Notes whether the metadata table was switched on when a data file went."""

    def __init__(self, base: str) -> None:
        super().__init__(base)
        self.seen: list[bool] = []

    def delete(self, path: str) -> bool:
        if path.endswith(".parquet"):
            self.seen.append(switched_on(self))
        return super().delete(path)


def built_again(storage: LocalStorage) -> Watching:
    """The table after Apache Hudi has built its metadata table again."""
    mini.TableConfig.load(storage).with_properties(PROPERTIES).save(storage)
    storage.replace(f"{METADATA_FOLDER}/.hoodie/hoodie.properties", b"x=y")
    return Watching(storage.base)


@pytest.mark.parametrize("undoing", ["rollback", "restore"])
def test_it_goes_before_the_files_that_a_rollback_or_restore_takes(
    storage: LocalStorage, undoing: str
) -> None:
    first = mini.Timeline.load(storage, mini.TableConfig.load(storage)).completed_writes[0].requested_time
    mini.write(storage, {"a": {"k1": 2}})
    watched = built_again(storage)
    mini.rollback(watched) if undoing == "rollback" else mini.restore(watched, first)
    assert watched.seen == [False] and not watched.exists(METADATA_FOLDER)
    assert mini.content(watched) == {("a", "k1"): 1}


def test_it_goes_with_what_a_dead_writer_left_though_the_next_write_is_given_up(
    storage: LocalStorage,
) -> None:
    die_before_commit(storage)
    watched = built_again(storage)
    with pytest.raises(ValueError, match="bad row"), mini.begin(watched):
        raise ValueError("bad row")
    assert True not in watched.seen and watched.seen and not watched.exists(METADATA_FOLDER)


def test_it_goes_before_a_clean_that_was_cut_off_goes_on(storage: LocalStorage) -> None:
    mini.write(storage, {"a": {"k1": 2}})
    options = mini.options(
        hoodie__clean__policy="KEEP_LATEST_FILE_VERSIONS", hoodie__clean__fileversions__retained=1
    )
    with pytest.raises(SimulatedCrash):
        clean(Interrupted(storage.base, "delete", ".parquet"), options)
    watched = built_again(storage)
    clean(watched, options)
    assert watched.seen == [False] and not watched.exists(METADATA_FOLDER)
