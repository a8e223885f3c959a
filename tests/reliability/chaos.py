"""Many processes write to one table and serve it while half of them are killed and a quarter stand still for a while.

Every process notes what it begins and what was acknowledged (`chaos_worker`). Readers in a loop, and the end, are held
against the notes: what was acknowledged is there, what was refused is not, and what was cut off is there whole or not.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hudi_engine import HudiTable
from hudi_engine.format.storage.local import LocalStorage

from tests.faults.mini_table import leftovers
from tests.reliability import real_table
from tests.reliability.benches import NEXT, without_plans
from tests.reliability.figures import Figures
from tests.reliability.kill import Size
from tests.reliability.real_table import KINDS, Content, batch, by_hudi_rs, content, published

PROCESSES, OPERATIONS = 16, 200
ROOT = Path(__file__).resolve().parents[2]
Place = tuple[str, str]


def run(spark: Any, root: Path, size: Size, seed: int = 7) -> Figures:
    """Run the row on a copy-on-write and a merge-on-read table."""
    figures = Figures()
    for number, name in enumerate(("cow", "mor")):
        if size.only in name:
            game = Game(spark, root / name, name, size, seed, number)
            figures.try_point(game.play, figures)
    return figures


class Ledger:
    """What the processes have noted.

    Args:
        folder: Where their files lie.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def entries(self) -> dict[str, list[dict[str, Any]]]:
        """Return the notes of each process, in order; a note that was cut off is left out."""
        found = {}
        for file in sorted(self._folder.glob("*.jsonl")):
            lines = file.read_text().split("\n")
            # a process that was just begun has noted nothing yet
            if len(lines) > 1:
                found[file.stem] = [json.loads(line) for line in lines[:-1]]
        return found

    def allowed(self) -> dict[Place, set[tuple[int, str] | None]]:
        """Return what each key may be: None for no row."""
        found: dict[Place, set[tuple[int, str] | None]] = {}
        for notes in self.entries().values():
            for note, after in zip(notes, [*notes[1:], None], strict=True):
                if note["what"] != "begin":
                    continue
                answered = after is not None and after["what"] == "done" and after["number"] == note["number"]
                for part, key, ts, text in note["rows"]:
                    states = found.setdefault((part, key), {None})
                    new = None if note["kind"] == "delete" else (ts, text)
                    if not answered:
                        states.add(new)
                    elif after is not None and after["ok"]:
                        found[(part, key)] = {new}
        return found


@dataclass
class Player:
    """A process and how far it is."""

    name: str
    seed: int
    process: subprocess.Popen[bytes]
    first: int = 0


class Game:
    """One table in chaos."""

    def __init__(self, spark: Any, root: Path, name: str, size: Size, seed: int, number: int) -> None:
        self._spark, self._name, self._chance = spark, name, random.Random(seed + number)
        self._count = PROCESSES if size.share >= 0.1 else 3
        self._operations = max(4, round(OPERATIONS * size.share))
        self._ends = time.monotonic() + min(size.seconds, 36_000)
        self._ledgers = root / "ledgers"
        self._ledgers.mkdir(parents=True)
        self._ledger = Ledger(self._ledgers)
        self._path = str(root / "t")
        self._kind = real_table.in_version(KINDS[name], size.version_of(number))
        self._table = real_table.create(spark, self._path, self._kind)
        self._table.upsert(batch(NEXT))

    def play(self, figures: Figures) -> None:
        """Let them play, disturb them, read, and look at the end."""
        players = [self._start(f"w{number}", number) for number in range(self._count)]
        doomed = set(self._chance.sample(range(self._count), max(1, self._count // 2)))
        frozen = set(self._chance.sample(range(self._count), max(1, self._count // 4)))
        try:
            while any(player.process.poll() is None for player in players):
                self._disturb(players, doomed, frozen, figures)
                self._look(figures)
                if time.monotonic() > self._ends:
                    figures.cut_short = True
                    break
        finally:
            for player in players:
                if player.process.poll() is None:
                    player.process.kill()
                player.process.wait()
        self._settle(figures)

    def _start(self, name: str, seed: int, first: int = 0) -> Player:
        gateway = self._spark.sparkContext._gateway
        parameters = getattr(gateway, "java_parameters", None) or gateway.gateway_parameters
        environment = {
            **os.environ,
            "PYSPARK_GATEWAY_PORT": str(parameters.port),
            "PYSPARK_GATEWAY_SECRET": str(parameters.auth_token),
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "engine")]),
        }
        given = [
            self._path,
            str(self._ledgers / f"{name}-{first}.jsonl"),
            name,
            str(self._operations),
            str(first),
        ]
        command = [sys.executable, "-m", "tests.reliability.chaos_worker", *given, str(seed)]
        output = self._ledgers / f"{name}-{first}.err"
        with output.open("wb") as errors:
            process = subprocess.Popen(command, env=environment, stdout=errors, stderr=errors)
        return Player(name, seed, process, first)

    def _disturb(self, players: list[Player], doomed: set[int], frozen: set[int], figures: Figures) -> None:
        """Kill or stop a process that has begun to write; a killed one is started again behind what it did."""
        for number, player in enumerate(players):
            done = sum(note["what"] == "done" for note in self._notes(player))
            if player.process.poll() is not None or done == 0 or self._chance.random() > 0.15:
                continue
            if number in doomed:
                player.process.kill()
                player.process.wait()
                figures.count("kills")
                first = player.first + done + 1
                if first < self._operations:
                    players[number] = self._start(player.name, player.seed, first)
                if self._chance.random() < 0.3:
                    doomed.discard(number)
            elif number in frozen:
                frozen.discard(number)
                player.process.send_signal(signal.SIGSTOP)
                time.sleep(3.0)
                player.process.send_signal(signal.SIGCONT)
                figures.count("stops")

    def _notes(self, player: Player) -> list[dict[str, Any]]:
        return self._ledger.entries().get(f"{player.name}-{player.first}", [])

    def _look(self, figures: Figures) -> None:
        """Read in every way: what was settled before and not touched since is as it was."""
        readers: dict[str, Callable[[], Content | None]] = {
            "timeline": lambda: content(self._path),
            "manifest": lambda: published(self._path),
            "hudi-rs": lambda: by_hudi_rs(self._path),
        }
        for name, reader in readers.items():
            plans, before = self._compactions(), self._ledger.allowed()
            try:
                found = reader()
            except AssertionError:
                raise
            except Exception:  # files of an older state may go under a reader; what is read must be right
                figures.count(f"{name} reads that began anew")
                continue
            after = self._ledger.allowed()
            if name == "hudi-rs" and (plans is None or plans != self._compactions()):
                # it does not read logs that are written beside a planned compaction (docs/limits.md)
                figures.count("hudi-rs reads with a planned compaction")
                continue
            figures.points += 1
            for place, states in before.items():
                row = None if found is None else found.get(place)
                if found is not None and row not in states | after[place]:
                    raise AssertionError(
                        f"{self._name}, reader by {name}: {place} is {row}, not one of {states | after[place]}"
                    )

    def _compactions(self) -> list[str] | None:
        """Return the instants of completed compactions, None while one is planned."""
        timeline = self._table.timeline()
        if any(each.action == "compaction" for each in timeline):
            return None
        return [each.requested_time for each in timeline if each.action == "commit"]

    def _settle(self, figures: Figures) -> None:
        for notes in self._ledger.entries().values():
            for note in notes:
                if note["what"] == "done" and note["kind"] != "service":
                    figures.count("acknowledged" if note["ok"] else "refused")
        HudiTable(self._spark, self._path, LocalStorage(self._path), real_table.CALM).upsert(
            batch((("z", "last", 1, "last"),))
        )
        allowed = self._ledger.allowed()
        readers: tuple[Callable[[str], Content | None], ...] = (content, published, by_hudi_rs)
        seen = [reader(self._path) for reader in readers]
        figures.points += len(seen)
        assert seen[0] == seen[1] == seen[2], f"{self._name}: readers disagree"
        found = seen[0] or {}
        wrong = {
            place: found.get(place) for place, states in allowed.items() if found.get(place) not in states
        }
        assert not wrong, f"{self._name}: {wrong}, allowed {[allowed[place] for place in wrong]}"
        unknown = set(found) - set(allowed) - {("z", "next"), ("z", "last")}
        assert not unknown, f"{self._name}: rows that nobody wrote: {unknown}"
        left = without_plans(leftovers(LocalStorage(self._path)))
        assert not left, f"{self._name}: left behind {left}"
