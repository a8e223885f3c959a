"""How long a person waits in the first hour: small dbt runs, by themselves and in a warm process, and a look at a table.

python3 dev.py run python -m benchmarks.first_hour [--repeats 3]

Prints a line a figure: median and best seconds on the clock, CPU seconds of dbt, Spark and their children, and the aim, which
is for two cores that do nothing else. A first run, which is not counted, leaves Java's class archive and dbt's parse file.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MODELS = 15
_DBT = [sys.executable, "-c", "from dbt.cli.main import cli; cli()", "--no-use-colors"]
_WARM = [sys.executable, "-m", "dbt.adapters.hudi.shell"]
_LOOK = [sys.executable, "-c", "import sys; from hudi_engine.cli import main; sys.exit(main())"]
_TICK = os.sysconf("SC_CLK_TCK")
_ORDERS = "{{ config(materialized='incremental', unique_key='id') }} select id, id % 7 as d from range(100)"
_FILES = {
    "dbt_project.yml": "name: shop\nprofile: shop\nflags: {send_anonymous_usage_stats: false}\n",
    "profiles.yml": "shop: {target: dev, outputs: {dev: {type: hudi, schema: analytics, threads: 4}}}\n",
    "models/m0.sql": _ORDERS,
}


@dataclass(frozen=True)
class Spent:
    """What a command took.

    Args:
        seconds: On the clock.
        cpu: CPU seconds of all its processes, as far as they were seen.
    """

    seconds: float
    cpu: float


def main() -> int:
    """Command line; returns 1 when an aim was missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory(prefix="first-hour-") as folder:
        project = make_project(Path(folder))
        run(_DBT, project, "run")
        run(_DBT, project, "run")
        table = str(project / "warehouse" / "analytics" / "m0")
        figures = [
            (f"dbt run, {_MODELS} small models", 12.0, [run(_DBT, project, "run") for _ in range(repeats)]),
            (
                "dbt run, one small model",
                8.0,
                [run(_DBT, project, "run", "-s", "m0") for _ in range(repeats)],
            ),
            (
                "hudi-engine TABLE timeline",
                1.0,
                [run(_LOOK, project, table, "timeline") for _ in range(repeats)],
            ),
            (f"dbt-hudi run, {_MODELS} small models", 4.0, list(warm_runs(project, repeats, "run"))),
            ("dbt-hudi run, one small model", 2.0, list(warm_runs(project, repeats, "run", "-s", "m0"))),
        ]
    print(f"{'':32}{'median':>9}{'best':>9}{'CPU':>9}{'aim':>9}")
    missed = False
    for what, aim, spent in figures:
        median = statistics.median(each.seconds for each in spent)
        best, cpu = min(each.seconds for each in spent), statistics.median(each.cpu for each in spent)
        missed = missed or median > aim
        verdict = "met" if median <= aim else "missed"
        print(f"{what:32}{median:7.1f} s{best:7.1f} s{cpu:7.1f} s{aim:7.1f} s  {verdict}")
    return int(missed)


def make_project(folder: Path) -> Path:
    """Write a project of small models: an incremental one, tables and views that read it and each other."""
    models = {}
    for number in range(1, _MODELS):
        kind = ("table", "view", "incremental")[number % 3]
        key = "unique_key='id'" if kind == "incremental" else ""
        models[f"models/m{number}.sql"] = (
            f"{{{{ config(materialized={kind!r}, {key}) }}}} select id, d from {{{{ ref('m{(number - 1) // 2}') }}}} where id < 50"
        )
    for name, text in {**_FILES, **models}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def run(program: list[str], folder: Path, *arguments: str) -> Spent:
    """Run a command to its end, and until the processes that it started are gone too."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [*program, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    seen = _Watch(process.pid)
    output, _ = process.communicate()
    seconds = time.perf_counter() - start
    cpu = seen.end()
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed:\n{output}")
    return Spent(seconds, cpu)


def warm_runs(folder: Path, repeats: int, *words: str) -> Iterator[Spent]:
    """Yield what each command after the first three takes in a server that stays up."""
    with tempfile.TemporaryDirectory(prefix="warm-") as runtime:
        environment = {**os.environ, "XDG_RUNTIME_DIR": runtime}
        with subprocess.Popen(
            [*_WARM, "serve", "--only-commands"], cwd=folder, env=environment, stdout=subprocess.DEVNULL
        ) as server:
            while not list(Path(runtime).rglob("commands")):
                time.sleep(0.1)
            for number in range(repeats + 3):
                start, before = time.perf_counter(), _cpu_of_all(server.pid)
                done = subprocess.run(
                    [*_WARM, "--no-use-colors", *words],
                    cwd=folder,
                    env=environment,
                    capture_output=True,
                    text=True,
                )
                seconds = time.perf_counter() - start
                if done.returncode:
                    raise SystemExit(f"{words} failed:\n{done.stdout}")
                time.sleep(0.5)
                if number >= 3:
                    yield Spent(seconds, _cpu_of_all(server.pid) - before)
            server.terminate()


class _Watch:
    """CPU seconds of a process and all that it starts, looked at every now and then until they are gone."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._cpu: dict[int, float] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._done.wait(0.1):
            self._cpu.update(_cpu_of(self._pid))

    def end(self) -> float:
        """Stop looking, wait for what was started and still runs, and return the CPU seconds up to now."""
        self._done.set()
        self._thread.join()
        spent = sum(self._cpu.values())
        while any(Path(f"/proc/{pid}").exists() for pid in self._cpu):
            time.sleep(0.2)
        return spent


def _cpu_of_all(root: int) -> float:
    """CPU seconds of a process and its descendants, those that have ended too."""
    return sum(_cpu_of(root, ended=True).values())


def _cpu_of(root: int, *, ended: bool = False) -> dict[int, float]:
    """CPU seconds of a process and its descendants, by process; empty where there is no /proc.

    Args:
        ended: Whether a process's seconds have those of its children that have ended.
    """
    parents, spent = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(folder.name)
        parents[pid] = int(fields[1])
        spent[pid] = sum(map(int, fields[11 : 15 if ended else 13])) / _TICK
    wanted, grown = {root}, True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in wanted} - wanted
        wanted, grown = wanted | more, bool(more)
    return {pid: spent[pid] for pid in wanted if pid in spent}


if __name__ == "__main__":
    sys.exit(main())
