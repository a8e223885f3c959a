"""Eight clients of one server for some minutes, one of them killed every ten seconds, and the server killed twice.

``python -m tests.long.clients_of_a_server --minutes 3`` prints figures and what was wrong, and ends with 1 if anything was.
Writers set all rows of their own keys to one number by a merge, rising from write to write. A reader must find each writer's
rows complete, alike, and with a number from the last one acknowledged before it to the last one begun after it.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyhive import hive

from tests.helpers.hudi_rs import rows_by_hudi_rs

ROWS = 10
KILL_EVERY_S = 10.0
PAUSE_S = 1.0
SHARED = "load.shared"
TABLES = {SHARED: "mor", "load.own_a": "cow", "load.own_b": "mor"}
WRITERS = {"a": SHARED, "b": SHARED, "own_a": "load.own_a", "own_b": "load.own_b", "victim": SHARED}
SERVER_DIES_AT = (0.2, 0.4)
"""Shares of the time."""
MOST_GROWTH = 1.25


@dataclass
class Ledger:
    """What one writer has begun and what was acknowledged; those of the victim are in files, as it is a process."""

    begun: int = 0
    acknowledged: int = 0


@dataclass
class Run:
    """What the clients share."""

    port: int
    folder: Path
    until: float
    ledgers: dict[str, Ledger] = field(default_factory=lambda: {name: Ledger() for name in WRITERS})
    counts: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def ledger(self, writer: str) -> Ledger:
        """Return the numbers of a writer now."""
        if writer != "victim":
            return Ledger(self.ledgers[writer].begun, self.ledgers[writer].acknowledged)
        return Ledger(*(_number(self.folder / f"victim.{each}") for each in ("begun", "acknowledged")))

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() > self.until


def _number(path: Path) -> int:
    """Return the last number of a file of lines; a line that is not ended was not written."""
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return int(lines[-1]) if lines else 0


def connection(port: int) -> hive.Connection:
    """Connect."""
    return hive.connect("127.0.0.1", port, auth="NOSASL")


def rows_of(port: int, text: str) -> list[tuple[Any, ...]]:
    """Run a statement on a connection of its own; return its rows."""
    with closing(connection(port)) as client:
        cursor = client.cursor()
        cursor.execute(text)
        return [] if cursor.description is None else list(cursor.fetchall())


def merge(table: str, writer: str, number: int) -> str:
    """Return the statement that sets all rows of a writer."""
    source = f"select concat('{writer}', '-', id) k, '{writer}' w, {number}L n from range({ROWS})"
    return f"merge into {table} t using ({source}) s on t.k = s.k when matched then update set * when not matched then insert *"


def write_on(port: int, writer: str, begin: Callable[[], int], acknowledge: Callable[[int], None]) -> None:
    """Write once."""
    number = begin()
    rows_of(port, merge(WRITERS[writer], writer, number))
    acknowledge(number)


def victim(port: int, folder: Path) -> None:
    """Write for ever, as a process that is killed."""
    with open(folder / "victim.begun", "a") as begun, open(folder / "victim.acknowledged", "a") as done:

        def note(file: Any, number: int) -> None:
            file.write(f"{number}\n")
            file.flush()

        def begin() -> int:
            number = _number(folder / "victim.begun") + 1
            note(begun, number)
            return number

        while True:
            try:
                write_on(port, "victim", begin, lambda number: note(done, number))
            except Exception:
                time.sleep(0.5)


def _writer(run: Run, writer: str) -> None:
    ledger = run.ledgers[writer]

    def begin() -> int:
        ledger.begun += 1
        return ledger.begun

    def acknowledge(number: int) -> None:
        ledger.acknowledged = number
        run.counts["writes acknowledged"] += 1
        time.sleep(PAUSE_S)  # the lock of the shared table goes to others too

    def once() -> None:
        write_on(run.port, writer, begin, acknowledge)

    _again(run, once, "writes not acknowledged")


def _reader(run: Run, tables: tuple[str, ...]) -> None:
    def once() -> None:
        for table in tables:
            check(run, table, lambda table=table: rows_of(run.port, f"select w, k, n from {table}"))  # type: ignore[misc]
            run.counts["reads"] += 1

    _again(run, once, "reads that failed")


def check(run: Run, table: str, read: Callable[[], list[tuple[Any, ...]]]) -> None:
    """Compare what a read finds with what writers have begun and got acknowledged."""
    writers = [name for name, place in WRITERS.items() if place == table]
    before = {name: run.ledger(name) for name in writers}
    rows = read()
    after = {name: run.ledger(name) for name in writers}
    for name in writers:
        own = [row for row in rows if row[0] == name]
        numbers, keys = {row[2] for row in own}, {row[1] for row in own}
        lowest, highest = before[name].acknowledged, after[name].begun
        if not own and lowest == 0:
            continue
        if (
            len(own) != ROWS
            or len(keys) != ROWS
            or len(numbers) != 1
            or not lowest <= min(numbers) <= highest
        ):
            run.violations.append(
                f"{table}, {name}: {len(own)} rows, numbers {numbers}; legal {lowest} to {highest}"
            )


def _service(run: Run) -> None:
    def once() -> None:
        for table in TABLES:
            for call in ("run_compaction(op => 'run', ", "run_clean("):
                if "compaction" in call and TABLES[table] == "cow":
                    continue
                rows_of(run.port, f"call {call}table => '{table}')")
                run.counts["services"] += 1
        time.sleep(2)

    _again(run, once, "services that failed")


def _again(run: Run, once: Callable[[], None], failed: str) -> None:
    while not run.is_over:
        try:
            once()
        except Exception as error:
            run.counts[failed] += 1
            if "Connection refused" not in str(error) and "TSocket" not in str(error):
                run.counts[f"{failed}: {str(error)[-160:]}"] += 1
            time.sleep(0.5)


def _kill_victims(run: Run) -> None:
    words = [sys.executable, "-m", __spec__.name, "--victim", str(run.folder), "--port", str(run.port)]
    while not run.is_over:
        process = subprocess.Popen(words)
        time.sleep(max(0.0, min(KILL_EVERY_S, run.until - time.monotonic())))
        process.kill()
        process.wait()
        run.counts["clients killed"] += 1


class Server:
    """The server as a process."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self._folder = folder
        self._log = open(folder / "server.log", "ab")
        self.memory: list[tuple[int, int]] = []
        self.start()

    def start(self) -> None:
        """Start it, and wait until it takes statements."""
        words = [
            sys.executable,
            "-c",
            "import sys; from dbt.adapters.hudi.serve.command import main; sys.exit(main(sys.argv[1:], list))",
        ]
        words += ["--port", str(self.port), "--warehouse", str(self._folder / "warehouse"), "--grace", "5"]
        words += [
            "--conf",
            "spark.driver.memory=1g",
            "--conf",
            "spark.ui.enabled=false",
            "--conf",
            "spark.sql.shuffle.partitions=2",
        ]
        self.process = subprocess.Popen(words, stdout=self._log, stderr=self._log, cwd=self._folder)
        self.memory.clear()
        for _ in range(3000):
            with (
                suppress(OSError),
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=5),
            ):
                return
            time.sleep(0.2)
        raise RuntimeError("the server does not start")

    def die(self) -> None:
        """Kill it, as a machine that loses power does."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """End it in order; return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(120)

    def measure(self) -> None:
        """Note the memory of the process and of its Java, in MiB."""
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        self.memory.append((_resident(str(pid)), max(map(_resident, children), default=0)))


def _resident(pid: str) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


def run_clients(minutes: float, folder: Path) -> Run:
    """Let the clients go, and look at what is left at the end."""
    server = Server(folder)
    run = Run(server.port, folder, time.monotonic() + 60 * minutes)
    try:
        rows_of(server.port, "create schema if not exists load")
        for table, kind in TABLES.items():
            rows_of(
                server.port,
                f"create table {table} (k string, w string, n bigint) using hudi tblproperties (primaryKey = 'k', type = '{kind}')",
            )
        began = time.monotonic()
        run.until = began + 60 * minutes
        works: list[Callable[[], None]] = [
            *(lambda name=name: _writer(run, name) for name in WRITERS if name != "victim"),  # type: ignore[misc]
            lambda: _reader(run, (SHARED,)),
            lambda: _reader(run, tuple(TABLES)),
            lambda: _service(run),
            lambda: _kill_victims(run),
        ]
        threads = [threading.Thread(target=each) for each in works]
        for each in threads:
            each.start()
        dies = [began + share * 60 * minutes for share in SERVER_DIES_AT]
        while not run.is_over:
            time.sleep(1)
            server.measure()
            if dies and time.monotonic() > dies[0]:
                dies.pop(0)
                server.die()
                run.counts["servers killed"] += 1
                server.start()
        for each in threads:
            each.join()
        for table in TABLES:
            check(run, table, lambda table=table: rows_of(server.port, f"select w, k, n from {table}"))  # type: ignore[misc]
        _check_memory(run, server.memory)
        if server.stop() != 0:
            run.violations.append("the server ended with an error")
        for table in TABLES:
            place = folder / "warehouse" / table.replace(".", "/")
            check(run, table, lambda place=place: _by_hudi_rs(place))  # type: ignore[misc]
        return run
    finally:
        run.until = 0.0
        server.process.kill()


def _by_hudi_rs(place: Path) -> list[tuple[Any, ...]]:
    return list(rows_by_hudi_rs(str(place), ["w", "k", "n"]))


def _check_memory(run: Run, memory: list[tuple[int, int]]) -> None:
    """Compare the last quarter of the last server's life with its second."""
    quarter = max(1, len(memory) // 4)
    early, late = (
        max(each[0] for each in part) for part in (memory[quarter : 2 * quarter + 1], memory[-quarter:])
    )
    run.counts["MiB at the end"] = late
    run.counts["MiB of Java at the end"] = memory[-1][1]
    if late > MOST_GROWTH * early:
        run.violations.append(f"memory grows: {early} MiB, later {late} MiB")


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="clients_of_a_server")
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--victim", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)  # each client that finds no server would say so
    if given.victim:
        victim(given.port, given.victim)
    with tempfile.TemporaryDirectory(prefix="clients-") as name:
        run = run_clients(given.minutes, Path(name))
        run.counts["writes of the victim acknowledged"] = run.ledger("victim").acknowledged
    print(json.dumps(run.counts, indent=1))  # noqa: T201
    print(f"{len(run.violations)} violations", *run.violations[:20], sep="\n  ")  # noqa: T201
    return 1 if run.violations else 0


if __name__ == "__main__":
    sys.exit(main())
