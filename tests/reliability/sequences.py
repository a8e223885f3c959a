"""Random sequences of operations on all kinds of tables against a dictionary, read in every way there is.

Three readers of ours, hudi-rs and, where they are set up, Apache Hudi of each version in turn.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from hudi_engine import rebuild_table
from hudi_engine.format.timeline.instant import Instant

from tests.judge import apache_hudi
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
    commits,
    content,
    in_version,
    published,
    told,
)

STEPS = 12
MOST_TABLES = 1000
MOVES_KEYS = {
    "hoodie.simple.index.update.partition.path": "true",
    "hoodie.bloom.index.update.partition.path": "true",
}
PLAYED = {
    **KINDS,
    "cow global bloom": Kind("cow", {"hoodie.index.type": "GLOBAL_BLOOM", **MOVES_KEYS}),
    "mor global bloom": Kind("mor", {"hoodie.index.type": "GLOBAL_BLOOM", **MOVES_KEYS}),
    "mor bloom": Kind("mor", {"hoodie.index.type": "BLOOM"}),
    "mor parquet logs": Kind("mor", {"hoodie.logfile.data.block.format": "parquet"}),
    "cow commit time": Kind("cow", ordering=False),
}
Row = tuple[str, str, int, str]
Reader = Callable[[str], Content]


def run(spark: Any, root: Path, size: Size, seed: int = 6) -> Figures:
    """Run the row: ``share`` of a thousand tables, every kind in turn; a point for each comparison."""
    figures = Figures()
    names = [name for name in PLAYED if size.only in name]
    with ExitStack() as opened:
        judges = judges_of(opened, size)
        for number in range(size.begin, max(1, round(MOST_TABLES * size.share))):
            if size.is_over(figures):
                break
            name, path = names[number % len(names)], root / f"sequence{number}"
            # the number of kinds is even: each kind has each version
            version = size.version_of(number + number // len(names))
            able = judges if version == 6 else judges[-1:]
            judge = able[number % len(able)] if able else None
            kind, called = in_version(PLAYED[name], version), f"table {number} ({name}, version {version})"
            game = Game(spark, path, kind, called, seed + number, judge)
            if figures.try_point(game.play, figures):
                shutil.rmtree(path)
            figures.count("tables")
    return figures


def judges_of(opened: ExitStack, size: Size) -> list[Reader]:
    """Return Apache Hudi of each version as a reader: none where it is not set up, or in the gate, which has its own tier for it."""
    if size.share < 0.01 or not apache_hudi.available():
        return []
    running = [
        opened.enter_context(closing(apache_hudi.ApacheHudi(version))) for version in apache_hudi.VERSIONS
    ]
    return [_reader(each) for each in running]


def _reader(judge: apache_hudi.ApacheHudi) -> Reader:
    def rows(path: str) -> Content:
        found = judge.read(path, columns=SCHEMA.names)
        return {(row["part"], row["key"]): (row["ts"], row["v"]) for row in found}

    return rows


class Game:
    """One table and the dictionary that says what it holds.

    Args:
        spark: The session.
        path: Where the table is made.
        kind: Its kind.
        name: For messages.
        seed: Of its chance.
        judge: Reader that looks at the end, beside those that look on the way.
    """

    def __init__(
        self, spark: Any, path: Path, kind: Kind, name: str, seed: int, judge: Reader | None
    ) -> None:
        self._table = real_table.create(spark, path, kind)
        self._kind, self._name, self._judge = kind, name, judge
        self._chance = random.Random(seed)
        self._rows: Content = {}
        self._done: list[str] = []
        self._one_partition = "GLOBAL" in kind.options.get("hoodie.index.type", "")
        self._before: dict[str, Content] = {}
        """Rows before each commit that a move made alone, by its instant: what its rollback brings back."""
        self._saved: dict[str, Content] = {}
        """Rows of each savepoint."""

    def play(self, figures: Figures) -> None:
        """Do some operations, and compare after each."""
        moves = self._moves()
        for step in range(1, STEPS + 1):
            name = "upsert" if step == 1 else self._chance.choice(list(moves))
            self._done.append(name)
            rows, known = dict(self._rows), self._instants()
            try:
                moves[name](step)
            except Exception as error:  # one table's end is not that of the others
                raise AssertionError(f"{self._name}: refused after {self._done}: {error!r}") from error
            new = self._instants() - known
            if len(new) == 1:
                self._before[new.pop()] = rows
            self._compare(figures, all_ways=step % 4 == 0)
        self._look_back(figures)
        if self._judge is not None and self._newest() is not None:
            self._check(figures, "Apache Hudi", self._judge)
            figures.count("tables read by Apache Hudi")

    def _moves(self) -> dict[str, Callable[[int], None]]:
        table = self._table
        moves: dict[str, Callable[[int], None]] = {
            "upsert": self._upsert,
            "late upsert": lambda step: self._upsert(step, late=True),
            "insert": lambda step: self._insert(step, table.insert),
            "bulk insert": lambda step: self._insert(step, table.bulk_insert),
            "delete": self._delete,
            "delete by condition": self._delete_where,
            "update by condition": self._update_where,
            "replace by key": self._replace,
            "overwrite": self._overwrite,
            "overwrite of the table": self._overwrite_table,
            "drop": self._drop,
            "rebuild": self._rebuild,
            "clean": lambda step: table.clean(self._chance.randint(1, 3)) and None,
            "archive": lambda step: (
                table.archive(3, 5, options={"hoodie.clean.commits.retained": "2"}) and None
            ),
            "rollback": lambda step: self._rollback(),
            "savepoint": lambda step: self._save(),
            "restore": lambda step: self._restore(),
        }
        if self._kind.options.get("hoodie.index.type") == "BUCKET":
            del moves["bulk insert"]  # files of a bucket table are made by their bucket
        else:
            moves["clustering"] = lambda step: table.cluster(["ts", "v"]) and None
        if self._kind.table_type == "mor":
            moves["compaction"] = lambda step: table.compact() and None
            moves["upsert beside a planned compaction"] = self._beside_a_plan
        return moves

    def _upsert(self, step: int, late: bool = False) -> None:
        rows = self._some(step, late)
        self._table.upsert(batch(rows))
        for part, key, ts, text in rows:
            old = next((place for place in self._rows if self._is_key(place, part, key)), None)
            if old is not None and self._kind.ordering and ts < self._rows[old][0]:
                continue
            if old is not None:
                del self._rows[old]
            self._rows[(part, key)] = (ts, text)

    def _insert(self, step: int, write: Callable[[Any], object]) -> None:
        rows = [
            (part, f"i{step}.{number}", ts, text)
            for number, (part, _, ts, text) in enumerate(self._some(step))
        ]
        write(batch(rows))
        self._rows |= {(part, key): (ts, text) for part, key, ts, text in rows}

    def _delete(self, step: int) -> None:
        rows = self._some(step)
        self._table.delete(batch(rows))
        for part, key, *_ in rows:
            for place in [each for each in self._rows if self._is_key(each, part, key)]:
                del self._rows[place]

    def _delete_where(self, step: int) -> None:
        if not self._rows:
            return  # a table whose first commit was taken back has no columns
        bound = 10 * self._chance.randint(1, step)
        self._table.delete_where(f"ts = {bound}")
        self._rows = {place: row for place, row in self._rows.items() if row[0] != bound}

    def _update_where(self, step: int) -> None:
        if not self._rows:
            return  # a table whose first commit was taken back has no columns
        bound = 10 * self._chance.randint(1, step)
        self._table.update_where(f"ts < {bound}", {"v": f"concat(v, '+{step}')"})
        self._rows = {
            place: (ts, f"{text}+{step}") if ts < bound else (ts, text)
            for place, (ts, text) in self._rows.items()
        }

    def _replace(self, step: int) -> None:
        rows = self._some(step)
        self._table.replace(batch(rows), keys="key")
        keys = {key for _, key, *_ in rows}
        kept = {place: row for place, row in self._rows.items() if place[1] not in keys}
        self._rows = {**kept, **_content(rows)}

    def _overwrite(self, step: int) -> None:
        rows = self._fresh(step)
        self._table.insert_overwrite(batch(rows))
        touched = {row[0] for row in rows}
        kept = {place: row for place, row in self._rows.items() if place[0] not in touched}
        self._rows = {**kept, **_content(rows)}

    def _overwrite_table(self, step: int) -> None:
        rows = self._fresh(step)
        self._table.insert_overwrite_table(batch(rows))
        self._rows = _content(rows)

    def _drop(self, step: int) -> None:
        part = self._chance.choice("abc")
        if any(place[0] == part for place in self._rows):
            self._table.delete_partitions([part])
            self._rows = {place: row for place, row in self._rows.items() if place[0] != part}

    def _rebuild(self, step: int) -> None:
        """Make the table anew in its place: a table with a history of its own."""
        rows = self._some(step)
        rebuild_table(
            self._table.spark,
            self._table.path,
            batch(rows),
            name="t",
            record_key=["key"],
            precombine_field="ts" if self._kind.ordering else None,
            partition_by=["part"],
            table_type=self._kind.table_type,
            options={**real_table.CALM, **self._kind.options},
        )
        self._rows, self._saved, self._before = _content(rows), {}, {}

    def _rollback(self) -> None:
        """Take the newest commit back, where a move made it alone and it is the newest still."""
        newest = self._newest()
        is_compaction = newest is not None and newest.action == "commit" and self._kind.table_type == "mor"
        is_last = len(self._instants()) < 2  # archived ones count by it
        if newest is None or is_last or is_compaction or newest.requested_time in self._saved:
            return
        before = self._before.get(newest.requested_time)
        if before is not None:
            self._table.rollback(newest.requested_time)
            self._rows = dict(before)

    def _save(self) -> None:
        newest = self._newest()
        if newest is not None and newest.requested_time not in self._saved:
            self._saved[self._table.savepoint().instant] = dict(self._rows)

    def _restore(self) -> None:
        if not self._saved:
            return
        instant = self._chance.choice(sorted(self._saved))
        for later in [each for each in self._saved if each > instant]:
            self._table.delete_savepoint(later)  # which a restore would take away, and so is refused
        self._table.restore(instant)
        self._rows = dict(self._saved[instant])
        self._saved = {kept: rows for kept, rows in self._saved.items() if kept <= instant}

    def _beside_a_plan(self, step: int) -> None:
        self._table.schedule_compaction()
        self._upsert(step)
        self._table.compact()

    def _newest(self) -> Instant | None:
        done = commits(self._table)
        return done[-1] if done else None

    def _instants(self) -> set[str]:
        return {each.requested_time for each in commits(self._table)}

    def _is_key(self, place: tuple[str, str], part: str, key: str) -> bool:
        return place[1] == key and (self._one_partition or place[0] == part)

    def _compare(self, figures: Figures, all_ways: bool) -> None:
        self._check(figures, "read()", content)
        self._check(figures, "manifest", published)
        if all_ways:
            self._check(figures, "snapshot()", self._by_spark)
            self._check(figures, "hudi-rs", by_hudi_rs)

    def _by_spark(self, path: str) -> Content:
        return real_table.as_content(self._table.snapshot().toArrow())

    def _look_back(self, figures: Figures) -> None:
        """Compare what time travel gives for each savepoint with the rows of then."""
        for instant, rows in self._saved.items():
            self._check(
                figures, f"read() as of {instant}", lambda path, then=instant: content(path, then), rows
            )

    def _check(
        self, figures: Figures, way: str, reader: Callable[[str], Content | None], rows: Content | None = None
    ) -> None:
        wanted, found = self._rows if rows is None else rows, reader(self._table.path)
        figures.points += 1
        if found is not None and found != wanted:
            raise AssertionError(f"{self._name}, {way} after {self._done}: {told(found)}, not {told(wanted)}")

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


def _content(rows: list[Row]) -> Content:
    return {(part, key): (ts, text) for part, key, ts, text in rows}
