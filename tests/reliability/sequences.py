"""Random sequences of operations on all kinds of tables against a dictionary, read in every way there is."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.reliability import real_table
from tests.reliability.figures import Figures
from tests.reliability.kill import Size
from tests.reliability.real_table import (
    KINDS,
    SCHEMA,
    Content,
    Kind,
    batch,
    by_hudi_rs,
    content,
    published,
    told,
)

STEPS = 12
MOST_TABLES = 1000
Row = tuple[str, str, int, str]


def run(spark: Any, root: Path, size: Size, seed: int = 6) -> Figures:
    """Run the row: ``share`` of a thousand tables, every kind in turn; a point for each comparison."""
    figures = Figures()
    names = [name for name in KINDS if size.only in name]
    for number in range(max(1, round(MOST_TABLES * size.share))):
        if size.is_over(figures):
            break
        name = names[number % len(names)]
        game = Game(spark, root / f"sequence{number}", KINDS[name], f"table {number} ({name})", seed + number)
        figures.try_point(game.play, figures)
        figures.count("tables")
    return figures


class Game:
    """One table and the dictionary that says what it holds.

    Args:
        spark: The session.
        path: Where the table is made.
        kind: Its kind.
        name: For messages.
        seed: Of its chance.
    """

    def __init__(self, spark: Any, path: Path, kind: Kind, name: str, seed: int) -> None:
        self._table = real_table.create(spark, path, kind)
        self._kind, self._name = kind, name
        self._chance = random.Random(seed)
        self._rows: Content = {}
        self._done: list[str] = []
        self._one_partition = "GLOBAL" in kind.options.get("hoodie.index.type", "")
        self._versions: dict[str, Content] = {}

    def play(self, figures: Figures) -> None:
        """Do some operations, and compare after each."""
        moves = self._moves()
        for step in range(1, STEPS + 1):
            name = "upsert" if step == 1 else self._chance.choice(list(moves))
            self._done.append(name)
            moves[name](step)
            self._compare(figures, all_ways=step % 4 == 0)

    def _moves(self) -> dict[str, Callable[[int], None]]:
        moves: dict[str, Callable[[int], None]] = {
            "upsert": self._upsert,
            "late upsert": lambda step: self._upsert(step, late=True),
            "delete": self._delete,
            "overwrite": self._overwrite,
            "overwrite of the table": self._overwrite_table,
            "drop": self._drop,
            "clean": lambda step: self._table.clean(self._chance.randint(1, 3)) and None,
            "archive": lambda step: (
                self._table.archive(3, 5, options={"hoodie.clean.commits.retained": "2"}) and None
            ),
            "rollback": self._rollback,
        }
        if self._kind.table_type == "mor":
            moves["compaction"] = lambda step: self._table.compact() and None
        return moves

    def _upsert(self, step: int, late: bool = False) -> None:
        rows = self._some(step, late)
        self._table.upsert(batch(rows))
        for part, key, ts, text in rows:
            old = next(
                (
                    place
                    for place in self._rows
                    if place[1] == key and (self._one_partition or place[0] == part)
                ),
                None,
            )
            if old is not None and self._kind.ordering and ts < self._rows[old][0]:
                continue
            if old is not None:
                del self._rows[old]
            self._rows[(part, key)] = (ts, text)

    def _delete(self, step: int) -> None:
        rows = self._some(step)
        self._table.delete(batch(rows))
        for part, key, *_ in rows:
            for place in [
                each for each in self._rows if each[1] == key and (self._one_partition or each[0] == part)
            ]:
                del self._rows[place]

    def _overwrite(self, step: int) -> None:
        rows = self._fresh(step)
        self._table.insert_overwrite(batch(rows))
        touched = {row[0] for row in rows}
        kept = {place: row for place, row in self._rows.items() if place[0] not in touched}
        self._rows = {**kept, **{(part, key): (ts, text) for part, key, ts, text in rows}}

    def _overwrite_table(self, step: int) -> None:
        rows = self._fresh(step)
        self._table.insert_overwrite_table(batch(rows))
        self._rows = {(part, key): (ts, text) for part, key, ts, text in rows}

    def _drop(self, step: int) -> None:
        part = self._chance.choice("abc")
        if any(place[0] == part for place in self._rows):
            self._table.delete_partitions([part])
            self._rows = {place: row for place, row in self._rows.items() if place[0] != part}

    def _rollback(self, step: int) -> None:
        newest = real_table.commits(self._table)[-1]
        if newest.action == "commit" and self._kind.table_type == "mor":
            return  # a compaction, whose rows stay
        if self._done[-2] in ("clean", "archive", "rollback", "drop", "compaction") or len(self._done) < 3:
            return
        self._table.rollback(newest.requested_time)
        self._rows = dict(self._before)

    def _compare(self, figures: Figures, all_ways: bool) -> None:
        path = self._table.path
        ways: dict[str, Callable[[], Content | None]] = {
            "read()": lambda: content(path),
            "manifest": lambda: published(path),
        }
        if all_ways:
            ways["snapshot()"] = lambda: real_table.as_content(
                self._table.snapshot().select(*SCHEMA.names).toArrow()
            )
            ways["hudi-rs"] = lambda: by_hudi_rs(path)
        for way, reader in ways.items():
            found = reader()
            figures.points += 1
            if found is not None and found != self._rows:
                raise AssertionError(
                    f"{self._name}, {way} after {self._done}: {told(found)}, not {told(self._rows)}"
                )
        self._before, self._now = getattr(self, "_now", {}), dict(self._rows)

    def _some(self, step: int, late: bool = False) -> list[Row]:
        keys = self._chance.sample(range(12), self._chance.randint(1, 5))
        ts = 10 * step - (35 if late else 0)
        parts = "abc"
        return [
            (
                self._chance.choice(parts) if self._one_partition else parts[key % 3],
                f"k{key}",
                ts,
                f"{step}.{key}",
            )
            for key in keys
        ]

    def _fresh(self, step: int) -> list[Row]:
        """Rows for an overwrite: under a global index without keys that live in partitions that stay."""
        rows = self._some(step)
        if not self._one_partition:
            return rows
        return [(part, f"o{step}.{number}", ts, text) for number, (part, _, ts, text) in enumerate(rows)]
