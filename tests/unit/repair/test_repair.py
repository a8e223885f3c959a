"""Repairs: what is told first is what is done, and no row of a commit goes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.errors import ConfigError
from hudi_engine.format.filegroup.base_file import base_file_name
from hudi_engine.format.filegroup.partition_metadata import PARTITION_METADATA
from hudi_engine.format.storage.base import Listing
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.table.inspect import Finding, validate
from hudi_engine.table.repair import KINDS
from hudi_engine.table.services import archive
from hudi_engine.table.state import TableState
from hudi_engine.table.table_services import TableServices

from tests.faults import mini_table as mini

DAY = "part=1"


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    storage = mini.create_table(str(tmp_path / "t"))
    mini.write(storage, {DAY: {"a": 1}})
    mini.write(storage, {DAY: {"a": 2}, "part=2": {"b": 1}})
    return storage


def services(storage: LocalStorage) -> TableServices:
    return TableServices(storage, mini.options(hoodie__engine__publish__manifest="false"))


def test_a_sound_table_needs_no_repair(storage: LocalStorage) -> None:
    assert services(storage).repair() == []
    assert services(storage).repair(dry_run=False) == []


def test_a_partition_without_metadata_is_seen_again(storage: LocalStorage) -> None:
    storage.delete(f"{DAY}/{PARTITION_METADATA}")
    assert mini.content(storage) == {("part=2", "b"): 1}

    told = services(storage).repair()
    assert [(each.kind, each.path) for each in told] == [("partition_metadata", DAY)]
    assert mini.content(storage) == {("part=2", "b"): 1}, "a dry run changes nothing"

    assert services(storage).repair(dry_run=False) == told
    assert mini.content(storage) == {(DAY, "a"): 2, ("part=2", "b"): 1}


def test_files_that_no_commit_names_go_and_the_others_stay(storage: LocalStorage) -> None:
    orphan = f"{DAY}/{base_file_name('stray-0', '0-0-0', '29990101000000000')}"
    storage.create(orphan, b"{}")
    before = mini.content(storage)

    assert [each.path for each in services(storage).repair(("orphan_files",))] == [orphan]
    assert storage.exists(orphan)
    services(storage).repair(("orphan_files",), dry_run=False)
    assert not storage.exists(orphan)
    assert mini.content(storage) == before


def test_a_table_is_looked_at_once_for_all_repairs(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[TableState] = []

    def look(state: TableState) -> list[Finding]:
        looks.append(state)
        return validate(state)

    monkeypatch.setattr("hudi_engine.table.repair.repairs.validate", look)
    services(storage).repair(dry_run=False)
    assert len(looks) == 1
    services(storage).repair(("damaged_plans",))
    assert len(looks) == 1


@pytest.mark.parametrize("saved", [False, True])
def test_files_of_archived_commits_stay_where_the_commit_that_they_count_by_is_damaged(
    tmp_path: Path, saved: bool
) -> None:
    storage = mini.create_table(str(tmp_path / "t"))
    for number in range(5):
        last = mini.write(storage, {f"part={number}": {"a": number}})
        if saved and number == 1:
            mini.savepoint(storage)
    limits = {"hoodie__keep__min__commits": 1, "hoodie__keep__max__commits": 2}
    policy = {"hoodie__clean__policy": "KEEP_LATEST_FILE_VERSIONS"}
    archive(storage, mini.options(**limits, **policy, hoodie__archive__beyond__savepoint="true"))
    rows, commit = mini.content(storage), f".hoodie/{last}.commit"
    whole = storage.read(commit)
    orphan = f"part=2/{base_file_name('stray-0', '0-0-0', '29990101000000000')}"
    storage.create(orphan, b"{}")
    storage.replace(commit, whole[: len(whole) // 2])

    found = [each.path for each in validate(TableState.load(storage)) if each.problem == "orphan_file"]
    assert found == [orphan]
    repaired = services(storage).repair(dry_run=False)
    assert [each.path for each in repaired] == [orphan]

    storage.replace(commit, whole)
    assert mini.content(storage) == rows and len(rows) == 5


class Beside(LocalStorage):
    """Another program, which asks for no lock, begins a write right before the data files are listed."""

    file = f"{DAY}/{base_file_name('theirs-0', '0-0-0', '29990101000000000')}"

    def list(self, path: str, recursive: bool = False, skip: frozenset[str] = frozenset()) -> Listing:
        if not path.startswith(".hoodie") and not self.exists(self.file):
            other = LocalStorage(self.base)
            other.create(".hoodie/29990101000000000.commit.requested", b"")
            other.create(".hoodie/29990101000000000.commit.inflight", b"")
            other.create(".hoodie/.temp/29990101000000000/MARKERS.type", b"DIRECT")
            other.create(self.file, b"{}")
        return super().list(path, recursive, skip)


def test_files_and_markers_of_a_writer_that_begins_meanwhile_are_no_finding(storage: LocalStorage) -> None:
    assert validate(TableState.load(Beside(storage.base))) == []
    assert storage.exists(Beside.file)


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_file_of_a_writer_that_begins_meanwhile_is_no_orphan(storage: LocalStorage, dry_run: bool) -> None:
    beside = Beside(storage.base)
    assert services(beside).repair(("orphan_files",), dry_run=dry_run) == []
    assert storage.exists(Beside.file)


def test_a_clean_whose_plan_was_cut_short_is_dropped(storage: LocalStorage) -> None:
    storage.create(".hoodie/29990101000000000.clean.requested", b"Obj\x01 torn")
    storage.create(".hoodie/29990101000000000.clean.inflight", b"")
    (done,) = services(storage).repair(("damaged_plans",), dry_run=False)
    assert "clean 29990101000000000" in done.done
    assert mini.leftovers(storage) == []
    mini.write(storage, {DAY: {"a": 3}})


def test_an_unknown_repair_is_refused(storage: LocalStorage) -> None:
    with pytest.raises(ConfigError, match=f"legal values: {', '.join(KINDS)}"):
        services(storage).repair(("everything",))


@pytest.mark.parametrize("kinds", [None, ("orphan_files",), ("duplicate_keys", "damaged_plans")])
def test_partitions_are_for_keys_alone(storage: LocalStorage, kinds: tuple[str, ...] | None) -> None:
    with pytest.raises(ConfigError, match="looks at the whole table, and partitions are named"):
        services(storage).repair(kinds, partitions=[DAY])
