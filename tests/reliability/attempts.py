"""A second attempt at every task of a write, let loose at every later storage call of the write and its commit."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from hudi_engine.errors import HudiError
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.table.handles.write_task import WriteTask
from hudi_engine.table.write import driver_path

from tests.helpers.fault import FaultInjectingStorage
from tests.reliability.actions import Action, Rows, actions, in_version
from tests.reliability.benches import Bench
from tests.reliability.figures import Figures
from tests.reliability.kill import Size


class LateStorage(FaultInjectingStorage):
    """Lets the other attempts loose before one of its mutating calls."""

    def __init__(self, storage: LocalStorage, call: int) -> None:
        super().__init__(storage)
        self._late_call = call
        self.attempts: list[tuple[Any, Any, Any]] = []
        self.loose = 0

    def _count(self, method: str, path: str) -> Any:
        if len(self.calls) + 1 == self._late_call and self.attempts:
            attempts, self.attempts = self.attempts, []
            for task, plan, tagged in attempts:
                self._write(task, plan, tagged)
        return super()._count(method, path)

    def _write(self, task: WriteTask, plan: Any, tagged: Any) -> None:
        context = replace(task.context, storage=self._storage)
        try:
            list(_WRITE_UNIT(WriteTask(context, task.partition_id, task.stage_id, 7), plan, tagged))
        except HudiError:
            return
        self.loose += 1


_WRITE_UNIT = driver_path.write_unit


@contextmanager
def remembered(storage: LateStorage) -> Iterator[None]:
    """Keep what every task of a write was given."""

    def write_unit(task: Any, plan: Any, tagged: Any) -> Any:
        storage.attempts.append((task, plan, tagged))
        return _WRITE_UNIT(task, plan, tagged)

    driver_path.write_unit = write_unit  # type: ignore[attr-defined]
    try:
        yield
    finally:
        driver_path.write_unit = _WRITE_UNIT  # type: ignore[attr-defined]


def run(spark: Any, root: Path, size: Size, seed: int = 4) -> Figures:
    """Run the row."""
    figures, chance = Figures(), random.Random(seed)
    points = []
    rows = Rows(spark)
    for number, action in enumerate(actions(rows)):
        if size.only in action.name and has_tasks(action) and size.takes(number, seed):
            version = size.version_of(number // size.every)
            bench = Bench(spark, rows, in_version(action, version), root / str(number))
            calls = range(1, len(bench.calls) + 1)
            points += [(bench, call) for call in calls if size.share >= 1 or chance.random() < size.share]
    chance.shuffle(points)
    for bench, call in points:
        if size.is_over(figures):
            break
        figures.try_point(attempt_once, bench, call, figures)
    return figures


def has_tasks(action: Action) -> bool:
    """Tell whether an operation writes data files by tasks of the driver, and nothing else."""
    if action.spark or action.goes_on or "services" in action.name:
        return False
    return any(word in action.name for word in ("upsert", "insert", "overwrite"))


def attempt_once(bench: Bench, call: int, figures: Figures) -> None:
    """Let the attempts loose before one call; nobody sees their rows, then or after the next writer."""
    where = f"other attempts before call {call}: {bench.calls[call - 1]}"
    path = bench.copy()
    storage = LateStorage(LocalStorage(path), call)
    with remembered(storage):
        bench.run(storage)
    if storage.loose:
        figures.points += 1
        seen = bench.check_readers(path, where, [bench.new])
        bench.check_settled(path, seen, where)
    bench.drop(path)
