"""One action on copies of its prepared table, and what must hold of a copy whatever happened to the action."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hudi_engine import HudiTable
from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.spark.front import rebuild

from tests.faults.mini_table import leftovers
from tests.helpers.fault import FaultInjectingStorage
from tests.reliability import real_table
from tests.reliability.actions import Action, Rows, make
from tests.reliability.real_table import Content, content, published, told

NEXT = (("z", "next", 1, "next writer"),)
NEXT_ROW, NEXT_VALUE = ("z", "next"), (1, "next writer")


class Violation(AssertionError):
    """A promise that was not kept; says at which point."""


class Bench:
    """Runs one action on copies of its prepared table.

    Args:
        spark: The session.
        rows: Frames of the batches.
        action: What to run.
        root: Folder for the copies.
    """

    def __init__(self, spark: Any, rows: Rows, action: Action, root: Path) -> None:
        self.spark, self.rows, self.action = spark, rows, action
        self._root, self._numbers = root, itertools.count()
        root.mkdir(parents=True, exist_ok=True)
        self._template = root / "template"
        if action.creates:
            self.old: Content | None = None
            self.states: list[Content] = [{}]
        else:
            table = make(spark, self._template, action)
            self.old = content(str(self._template))
            self.states = [self.old, *self._earlier(table)] if action.goes_on else [self.old]
        storage = FaultInjectingStorage(LocalStorage(self.copy()))
        self.run(storage)
        self.new = content(storage.base)
        self.states.append(self.new)
        self.calls = list(storage.calls)
        self.drop(storage.base)

    def copy(self) -> str:
        """Return a fresh copy of the prepared table, with its modification times."""
        target = self._root / f"copy{next(self._numbers)}"
        if self._template.exists():
            shutil.copytree(self._template, target)
            self._move_manifest(target)
        return str(target)

    def drop(self, path: str) -> None:
        """Remove a copy."""
        shutil.rmtree(path, ignore_errors=True)

    def run(self, storage: Storage) -> object:
        """Run the action on a copy through the public front, all storage calls of it by ``storage``."""
        table = self._table(storage)
        with _opened(storage):
            if self.action.creates:
                return real_table.create(self.spark, storage.base, self.action.kind)
            return self.action.act(table)

    def write_next(self, storage: Storage) -> None:
        """Write a row elsewhere, as the next writer does."""
        self._table(storage).upsert(self.rows(NEXT))

    def check_readers(self, path: str, where: str, allowed: list[Content] | None = None) -> Content | None:
        """Both readers see a state that was committed; returns what the reader by timeline sees, None for no table."""
        if not Path(path, PROPERTIES_PATH).exists():
            self._hold(self.action.creates, f"{where}: the table is gone")
            return None
        seen = self._read(lambda: content(path), f"{where}: reader by timeline")
        allowed = self.states if allowed is None else allowed
        self._hold(seen in allowed, f"{where}: the timeline shows {told(seen)}")
        listed = self._read(lambda: published(path), f"{where}: reader by manifest")
        if listed is not None:
            self._hold(listed in allowed, f"{where}: the manifest lists {told(listed)}")
        return seen

    def check_settled(self, path: str, seen: Content | None, where: str) -> None:
        """The next writer cleans up; readers agree, nothing is lost, nothing is left behind."""
        if seen is None:
            self.run(LocalStorage(path))
            seen = content(path)
        storage = LocalStorage(path)
        self._read(lambda: self.write_next(storage), f"{where}: next writer")
        found = self._read(lambda: content(path), f"{where}: after the next writer")
        self._hold(found.pop(NEXT_ROW, None) == NEXT_VALUE, f"{where}: its row is missing")
        allowed = [seen, self.new] if self.action.goes_on else [seen]
        self._hold(found in allowed, f"{where}: {told(seen)} became {told(found)}")
        listed = self._read(lambda: published(path), f"{where}: manifest after the next writer")
        self._hold(listed is not None, f"{where}: nothing is published")
        assert listed is not None
        listed.pop(NEXT_ROW, None)
        self._hold(listed == found, f"{where}: lists {told(listed)}, the timeline {told(found)}")
        for each in self._table(storage).timeline():
            if each.action == "compaction" and not each.is_completed:
                # what a killed compaction has written goes when its plan is carried out
                self._finish(storage, "compact", each.requested_time, {**found, NEXT_ROW: NEXT_VALUE}, where)
        for plan in self._table(storage).clusterings():
            if plan.state != "COMPLETED":
                self._finish(storage, "cluster", plan.instant, {**found, NEXT_ROW: NEXT_VALUE}, where)
        left = without_plans(leftovers(storage))
        self._hold(not left, f"{where}: left behind {left}")

    def _table(self, storage: Storage) -> HudiTable:
        return HudiTable(self.spark, storage.base, storage, {**real_table.CALM, **self.action.kind.options})

    def _finish(self, storage: Storage, service: str, instant: str, rows: Content, where: str) -> None:
        """Run a plan that is pending; rows stay as they are."""
        table = self._table(storage)
        try:
            self._read(lambda: getattr(table, service)(instant=instant), f"{where}: {service}")
        except Violation as error:
            # logs of a killed write, taken back by blocks behind them: the plan is refused by name, and taken back as it says
            if service != "cluster" or "as it was then, and it has changed since" not in str(error):
                raise
            self._read(lambda: table.rollback(instant), f"{where}: rollback of the plan")
        found = self._read(lambda: content(storage.base), f"{where}: after {service}")
        self._hold(found == rows, f"{where}: {service} makes {told(found)}")

    def _earlier(self, table: HudiTable) -> list[Content]:
        return [content(table.path, each.requested_time) for each in real_table.commits(table)]

    def _move_manifest(self, target: Path) -> None:
        """Make the published list of a copy name the copy's files."""
        folder = target / ".hoodie" / "spark_catalog"
        for file in folder.rglob("*.compact"):
            status = file.stat()
            file.write_text(file.read_text().replace(str(self._template), str(target)))
            os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))

    def _read(self, reader: Callable[[], Any], where: str) -> Any:
        try:
            return reader()
        except Exception as error:
            raise Violation(f"{self.action.name}, {where}: {type(error).__name__}: {error}") from error

    def _hold(self, fact: object, where: str) -> None:
        if not fact:
            raise Violation(f"{self.action.name}, {where}")


def without_plans(left: list[str]) -> list[str]:
    """Return leftovers without services that their next run finishes, and savepoints that another program may be making."""
    plans = (
        ".compaction.requested",
        ".compaction.inflight",
        ".clean.requested",
        ".clean.inflight",
        ".savepoint.inflight",
    )
    kept = {each.partition(".")[0] for each in left if each.endswith(plans)}
    beats = {f".hoodie/.heartbeat/{time}" for time in kept}
    return [each for each in left if not each.endswith(plans) and each not in beats]


@contextmanager
def _opened(storage: Storage) -> Iterator[None]:
    """Make functions that take a path work through ``storage``."""
    from hudi_engine.spark.front import table as tables

    homes = (rebuild, tables)
    before = [home.open_storage for home in homes]  # type: ignore[attr-defined]
    for home in homes:
        home.open_storage = lambda path: storage  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for home, function in zip(homes, before, strict=True):
            home.open_storage = function  # type: ignore[attr-defined]
