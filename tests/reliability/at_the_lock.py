"""Two operations on one table, the second run whole while the first waits: for the table's lock, or to go in flight."""

from __future__ import annotations

import itertools
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hudi_engine import HudiTable, read, rebuild_table
from hudi_engine.errors import HudiError
from hudi_engine.table.txn.lock import TableLock
from hudi_engine.table.txn.open_instant import OpenInstant

from tests.reliability import real_table
from tests.reliability.actions import FIRST, SECOND, Rows
from tests.reliability.benches import NEXT, Violation
from tests.reliability.real_table import Kind

NEW_ONLY = {"hoodie.datasource.write.insert.drop.duplicates": "true"}
UNCHANGED = {"hoodie.engine.skip.unchanged": "true"}
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
MORE = "key string, ts long, v string, part string, extra{} int"

Found = tuple[tuple[tuple[object, ...], ...], tuple[str, ...]]
"""Rows and columns of a table."""


@dataclass(frozen=True)
class Prepared:
    """What operations know of the table before them.

    Args:
        saved: Instant of its savepoint.
        newest: Its newest commit.
    """

    saved: str
    newest: str


Operation = Callable[[HudiTable, Prepared], object]


def operations(rows: Rows, side: int, kind: Kind) -> dict[str, Operation]:
    """Return the operations of one of two writers by name; beside what both write, each writes a row of its own."""
    stored, new = ("a", "k1", 100 + side, f"by {side}"), ("a", "new", 100 + side, f"by {side}")
    own = ("a", "own1" if side == 1 else "k4", 100, f"by {side}")
    only, kept = ("a", "only", 100 + side, f"by {side}"), ("a", "k1", 20, "ONE")

    def rebuilt(table: HudiTable, **options: str) -> None:
        rebuild_table(
            table.spark,
            table.path,
            rows((only,)),
            name="t",
            record_key=["key"],
            precombine_field="ts",
            partition_by=["part"],
            table_type=kind.table_type,
            options={**real_table.CALM, **kind.options, **options},
        )

    return {
        "upsert": lambda table, _: table.upsert(rows((stored, own))),
        "upsert of new keys": lambda table, _: table.upsert(rows((new, own))),
        "upsert of what changed": lambda table, _: table.upsert(rows((kept, new)), options=UNCHANGED),
        "insert": lambda table, _: table.insert(rows((new,))),
        "insert of new keys": lambda table, _: table.insert(rows((stored, new)), options=NEW_ONLY),
        "bulk insert": lambda table, _: table.bulk_insert(rows((new, own))),
        "delete": lambda table, _: table.delete(rows((stored, new))),
        "delete by condition": lambda table, _: table.delete_where("v in ('ONE', 'by 1', 'by 2')"),
        "update by condition": lambda table, _: table.update_where(
            "part = 'a'", {"v": f"concat(v, '+{side}')"}
        ),
        "delete and insert": lambda table, _: table.replace(rows((stored, new)), keys="key"),
        "overwrite": lambda table, _: table.insert_overwrite(rows((only,))),
        "overwrite of the table": lambda table, _: table.insert_overwrite_table(rows((only,))),
        "drop of a partition": lambda table, _: table.delete_partitions(["a"]),
        "other columns": lambda table, _: table.alter_schema(MORE.format(side)),
        "compaction": lambda table, _: table.compact(),
        "plan of a compaction": lambda table, _: table.schedule_compaction(),
        "clustering": lambda table, _: table.cluster("v"),
        "plan of a clustering": lambda table, _: table.schedule_clustering("v"),
        "clean": lambda table, _: table.clean(1),
        "rollback": lambda table, known: table.rollback(known.newest),
        "savepoint": lambda table, _: table.savepoint(),
        "restore": lambda table, known: table.restore(known.saved),
        "rebuild": lambda table, _: rebuilt(table),
        "rebuild with other folders": lambda table, _: rebuilt(table, **HIVE),
    }


@contextmanager
def _stopped(at: int, act: Callable[[], object] | None) -> Iterator[list[int]]:
    """Run something at the n-th stop of what runs in this block; yields a list that gets a number for each stop."""
    stops: list[int] = []
    enter, start = TableLock.__enter__, OpenInstant.start
    inside = [False]

    def stop(storage_lock: Any) -> None:
        if inside[0] or storage_lock.holder == threading.get_ident():
            return
        stops.append(len(stops))
        if act is not None and len(stops) - 1 == at:
            inside[0] = True
            act()
            inside[0] = False

    def entered(lock: TableLock) -> TableLock:
        stop(lock._local)
        return enter(lock)

    def started(opened: OpenInstant, *given: Any) -> None:
        stop(TableLock(opened._storage)._local)
        start(opened, *given)

    TableLock.__enter__, OpenInstant.start = entered, started  # type: ignore[method-assign]
    try:
        yield stops
    finally:
        TableLock.__enter__, OpenInstant.start = enter, start  # type: ignore[method-assign]


class Bench:
    """Runs pairs of operations on copies of one table.

    Args:
        spark: The session.
        kind: The table's kind.
        root: Folder for the copies.
    """

    def __init__(self, spark: Any, kind: Kind, root: Path) -> None:
        self._spark, self._root, self._numbers = spark, root, itertools.count()
        self._options = {**real_table.CALM, **kind.options}
        rows = Rows(spark)
        self.sides = (operations(rows, 1, kind), operations(rows, 2, kind))
        self._next = rows(NEXT)
        table = real_table.create(spark, root / "template", kind)
        table.upsert(rows(FIRST))
        table.savepoint()
        table.upsert(rows(SECOND))
        self._known = Prepared(table.savepoints()[0].instant, real_table.commits(table)[-1].requested_time)
        self._serial: dict[tuple[tuple[str, int], ...], tuple[Found, frozenset[int]]] = {}

    def check(self, first: str, second: str) -> int:
        """Stop the first at each of its stops for the second; return how many stops that were.

        Raises:
            Violation: What is there then is what no order of the two gives.
        """
        path = self._copy()
        with _stopped(0, None) as stops:
            self._run(path, (first, 1))
        self._drop(path)
        for at in range(len(stops)):
            self._check_stop(first, second, at)
        return len(stops)

    def _check_stop(self, first: str, second: str, at: int) -> None:
        path, done = self._copy(), set()
        with _stopped(at, lambda: self._run(path, (second, 2)) and done.add(2)):
            if self._run(path, (first, 1)):
                done.add(1)
        orders = [((first, 1), (second, 2)), ((second, 2), (first, 1))]
        serial = [self._in_order(tuple(each for each in order if each[1] in done)) for order in orders]
        # Who is refused in such an order for having nothing left to do may have done nothing here.
        allowed = [found for found, succeeded in serial if succeeded <= done]
        found = self._content(path)
        where = f"{first} stopped at {at} for {second}, of which {sorted(done)} are done"
        if found not in allowed:
            raise Violation(f"{where}: found {found}, allowed {allowed}")
        self._table(path).upsert(self._next)
        rows, columns = self._content(path)
        settled = (tuple(row for row in rows if "next" not in row), columns)
        if settled != found:
            raise Violation(f"{where}: {found} became {settled} with the next write")
        self._drop(path)

    def _in_order(self, order: tuple[tuple[str, int], ...]) -> tuple[Found, frozenset[int]]:
        if order not in self._serial:
            path = self._copy()
            done = frozenset(each[1] for each in order if self._run(path, each))
            self._serial[order] = self._content(path), done
            self._drop(path)
        return self._serial[order]

    def _run(self, path: str, which: tuple[str, int]) -> bool:
        """Run an operation; tell whether it was not refused."""
        name, side = which
        try:
            self.sides[side - 1][name](self._table(path), self._known)
        except HudiError:
            return False
        return True

    def _table(self, path: str) -> HudiTable:
        return HudiTable.open(self._spark, path, options=self._options)

    def _content(self, path: str) -> Found:
        rows = read(path).to_arrow()
        columns = [name for name in rows.column_names if not name.startswith("_hoodie_")]
        found = sorted((tuple(row.values()) for row in rows.select(sorted(columns)).to_pylist()), key=repr)
        return tuple(found), tuple(sorted(columns))

    def _copy(self) -> str:
        target = self._root / f"copy{next(self._numbers)}" / "t"
        shutil.copytree(self._root / "template", target)
        return str(target)

    def _drop(self, path: str) -> None:
        shutil.rmtree(Path(path).parent, ignore_errors=True)
