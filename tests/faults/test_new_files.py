"""Files land, are replaced and removed, and writers of their rows die: each row of a version of a file is taken once."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hudi_engine.errors import ConsumedMeanwhileError
from hudi_engine.format.config.own_keys import CHECKPOINT
from hudi_engine.format.storage.base import FileStatus, Storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.table.changes import new_files
from hudi_engine.table.changes.checkpoint import format_checkpoint, read_checkpoint
from hudi_engine.table.changes.new_files import FileLimits, TakenFiles, choose_files, list_files
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.metadata_conflicts import check_checkpoint_parent

import tests.faults.mini_table as mini
from tests.faults.scenarios import COW, MOR, recover_now
from tests.helpers.fault import FaultInjectingStorage, FaultPlan, SimulatedCrash, raise_crash
from tests.helpers.forms import in_turn

SOURCE = "shop.orders"
LANDINGS = 100
"""Of each test; there are two."""


def taken_of(storage: Storage) -> TakenFiles:
    noted = read_checkpoint(TableState.load(storage)).get(SOURCE)
    return TakenFiles() if noted is None else TakenFiles.parse(noted)


def take(
    storage: Storage, landing: Storage, limits: FileLimits, meanwhile: Callable[[], None] = lambda: None
) -> None:
    """One run: the rows of the new files and the note of them, in one commit; a row that comes twice is two rows."""
    before = taken_of(storage)
    choice = choose_files(list_files(landing), before, limits)
    if not choice.files:
        return
    noted = format_checkpoint({SOURCE: before.with_files(choice.files, choice.waiting).text()})
    follows = format_checkpoint({SOURCE: before.text()} if before.count else {})
    rows: dict[str, dict[str, int]] = {}
    meanwhile()
    with mini.begin(storage) as transaction:
        for file in choice.files:
            for row in json.loads(landing.read(file.path)):
                rows.setdefault("p", {})[f"{row}@{transaction.instant}"] = 1
        task = mini.work(storage, transaction, rows)
        task.metadata.extra_metadata[CHECKPOINT] = noted
        transaction.inflight(task.profile())
        task.write_files()
        current = TableState.load(storage).timeline
        check_checkpoint_parent(task.metadata, follows, instant=transaction.instant, current=current)
        transaction.commit(task.metadata)


@dataclass
class Landing:
    """A folder of files, and which versions of them the table has taken."""

    folder: Path
    storage: Storage
    random: random.Random
    time: int = 1_700_000_000
    rows: dict[tuple[str, int, int], list[str]] = field(default_factory=dict)

    def land(self) -> None:
        """Add, replace or remove some files; some come with an earlier time."""
        names = sorted(each.name for each in self.folder.iterdir())
        for _ in range(self.random.randint(1, 3)):
            self.time += self.random.randint(0, 2)
            kind = self.random.random()
            if kind < 0.15 and names:
                (self.folder / self.random.choice(names)).unlink(missing_ok=True)
                continue
            new = f"f{self.random.randrange(10**6)}"
            name = self.random.choice(names) if kind < 0.4 and names else new
            late = self.random.randint(1, 20) if kind > 0.85 else 0
            self.put(name, self.time - late)

    def put(self, name: str, time: int) -> None:
        path = self.folder / name
        lines = [f"{name}/{self.random.randrange(10**8, 10**9)}" for _ in range(self.random.randint(1, 3))]
        content = json.dumps(lines)
        before = path.stat() if path.exists() else None
        if before is not None and (before.st_size, int(before.st_mtime)) == (len(content), time):
            return  # a version that cannot be told from the one before
        path.write_text(content)
        os.utime(path, (time, time))
        self.rows[name, len(content), time * 1000] = lines

    def versions(self, files: list[FileStatus]) -> list[str]:
        return [row for each in files for row in self.rows[each.path, each.size, each.modified_ms]]

    def all_rows(self) -> list[str]:
        return self.versions(list_files(LocalStorage(str(self.folder))))


def table_rows(storage: Storage) -> list[str]:
    """The rows without the instant of their commit, so that one taken twice is there twice."""
    return sorted(key.partition("@")[0] for _, key in mini.content(storage))


@pytest.mark.parametrize(("table_type", "seed"), in_turn((COW, MOR), (1, 2)))
def test_random_landings_are_taken_once_under_kills_and_restores(
    table_type: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(new_files, "MAX_KNOWN", 25)
    monkeypatch.setattr(new_files, "LATE_MS", 21_000)
    (tmp_path / "landing").mkdir()
    choose = random.Random(seed)
    storage = mini.create_table(str(tmp_path / "table"), table_type)
    landing = Landing(tmp_path / "landing", storage, choose)
    folder = LocalStorage(str(landing.folder))
    expected: list[str] = []
    saved: tuple[str, list[str]] | None = None
    kills, restores, killed_at = 0, 0, set()
    for number in range(LANDINGS):
        landing.land()
        limits = FileLimits(max_files=choose.choice([None, None, 1, 2]))
        call, when = choose.randint(1, 22), choose.choice(["before", "after", "torn"])
        choice = choose_files(list_files(folder), taken_of(storage), limits)
        then = sorted([*expected, *landing.versions([*choice.files])])
        dying = FaultInjectingStorage(storage, FaultPlan(call, when, crash=raise_crash))
        try:
            take(dying, folder, limits)
        except SimulatedCrash:
            kills += 1
            killed_at.add(call)
            recover_now(storage)
        found = table_rows(storage)
        assert found in (expected, then), f"landing {number}, killed {when} call {call}"
        expected = found
        if number % 10 == 4 and expected:
            newest = TableState.load(storage).timeline.completed_writes[-1].requested_time
            mini.savepoint(storage, newest)
            saved = newest, expected
        if number % 10 == 8 and saved is not None:
            mini.restore(storage, saved[0])
            restores += 1
            expected = saved[1]
            assert table_rows(storage) == expected
    take(storage, folder, FileLimits())
    take(storage, folder, FileLimits())
    found = table_rows(storage)
    assert len(found) == len(set(found)), "no row is there twice"
    assert set(landing.all_rows()) <= set(found), "every row of the files that are there is there"
    assert kills > 40 and restores >= 8 and len(killed_at) > 12
    assert taken_of(storage).older > 0, "the watermark rose meanwhile"


def test_a_run_killed_at_each_step_takes_its_files_or_none(tmp_path: Path) -> None:
    (tmp_path / "landing").mkdir()
    landing = Landing(tmp_path / "landing", LocalStorage(""), random.Random(3))
    folder = LocalStorage(str(landing.folder))
    for number in range(3):
        landing.put(f"f{number}", landing.time)
    for call in range(1, 60):
        storage = mini.create_table(str(tmp_path / f"table{call}"))
        dying = FaultInjectingStorage(storage, FaultPlan(call, "after", crash=raise_crash))
        try:
            take(dying, folder, FileLimits(max_files=2))
        except SimulatedCrash:
            recover_now(storage)
        else:
            break
        assert len(taken_of(storage).known) == (2 if mini.content(storage) else 0)
        take(storage, folder, FileLimits())
        take(storage, folder, FileLimits())
        assert table_rows(storage) == sorted(landing.all_rows())
    assert 10 < call < 59


def test_a_run_whose_files_another_one_took_takes_nothing(tmp_path: Path) -> None:
    (tmp_path / "landing").mkdir()
    landing = Landing(tmp_path / "landing", LocalStorage(""), random.Random(4))
    folder, storage = LocalStorage(str(landing.folder)), mini.create_table(str(tmp_path / "table"))
    for number in range(2):
        landing.put(f"f{number}", landing.time + number)
    first = landing.versions(list_files(folder)[:1])
    with pytest.raises(
        ConsumedMeanwhileError, match="its rows were read from the inputs after the checkpoint"
    ):
        take(storage, folder, FileLimits(), lambda: take(storage, folder, FileLimits(max_files=1)))
    assert table_rows(storage) == sorted(first)
    take(storage, folder, FileLimits())
    assert table_rows(storage) == sorted(landing.all_rows())
