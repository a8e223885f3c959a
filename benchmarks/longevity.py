"""LST-Bench's workload WP1, longevity: what queries cost before and after five rounds of TPC-DS data maintenance.

python3 dev.py bench longevity --scale 1
python3 dev.py bench longevity --scale 0.1 --systems dbt-hudi,delta
python3 dev.py bench longevity --scale 0.1 --trickle 1000        tiny upserts into store_sales instead

Each system in a process of its own loads all 24 tables, runs 25 of the 99 queries, and then five times the data maintenance and
the queries again. One pass of the queries before the first counted one warms Java up. The results of every query after every round
are compared with those of plain Spark over the rows as DuckDB has them after the same changes: number of rows, sum of each column;
and so is each fact table, outside the time that counts.

What is measured:

* *build* and *maintenance*: seconds of all statements of the load or the round, commits and inline services included;
* *queries*: opening the seven fact tables anew and all queries, one after the other, rows collected;
* *decay*: queries after the last round by those before the first, and the last round by the first;
* *written*: bytes of files that are new or have changed after a step; *stored* and *files*: all of the tables' folders in the end,
  checksums of Hadoop left out;
* *memory*: the most that Java, the driver and one Python worker had resident.

Data, rounds and queries: `benchmarks.tpcds`. Tables and statements in each system: `benchmarks.longevity_tables`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.jars import fetch
from benchmarks.longevity_tables import LAKES, Lake
from benchmarks.processes import peaks
from benchmarks.session import large_session
from benchmarks.tpcds import FACTS, QUERIES, RETURNS, ROOT, TRICKLE_CHECK, TRICKLED, deletion, prepare

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from benchmarks.systems import System

Steps = dict[str, dict[str, Any]]
_EXPECTED = "expected"
_READS = 5
_SOME = 20
"""Tiny batches whose median counts as the first and the last ones."""


def main() -> int:
    """Command line; 1 when a system failed or returned something else."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--queries", type=int, default=len(QUERIES), help="so many of the queries, for trying"
    )
    parser.add_argument(
        "--trickle", type=int, default=0, metavar="N", help="N tiny upserts in place of rounds"
    )
    parser.add_argument("--systems", default=",".join(LAKES), help="comma separated: " + ", ".join(LAKES))
    parser.add_argument("--out", type=Path, help="results, .json and .md (default: below .cache/longevity)")
    parser.add_argument("--side", choices=[*LAKES, _EXPECTED], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--jars", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    data = prepare(given.scale, given.rounds, given.trickle)
    if given.side:
        _run_side(given, data)
        return 0
    unknown = set(given.systems.split(",")) - set(LAKES)
    if unknown:
        parser.error(f"no such system: {', '.join(sorted(unknown))}")
    kind = "trickle" if given.trickle else "longevity"
    out = given.out or data.parent / f"{kind}-sf{given.scale:g}.json"
    truth = _truth(given, data)
    results: dict[str, Steps] = {}
    for name in given.systems.split(","):
        if not (given.trickle and name == "parquet"):
            results[name] = _measured(name, given)
            _judge(name, results[name], truth)
            out.write_text(json.dumps(_figures(results), indent=1) + "\n", "utf-8")
    text = trickle_table(results) if given.trickle else longevity_table(results, given.rounds)
    print(f"\n{text}")
    out.with_suffix(".md").write_text(text + "\n", "utf-8")
    return int(any("memory" not in steps or steps["wrong"]["of"] for steps in results.values()))


def _truth(given: argparse.Namespace, data: Path) -> dict[str, Any]:
    """Return what the queries of each step have to return."""
    if given.trickle:
        return {"reads after": {"check": json.loads((data / "trickle.json").read_text("utf-8"))}}
    known = data / f"{_EXPECTED}.json"
    truth: dict[str, Any] = json.loads(known.read_text("utf-8")) if known.exists() else {}
    numbers, steps = (
        [*_chosen(given.queries), *FACTS],
        [f"queries {each}" for each in range(given.rounds + 1)],
    )
    if any(number not in truth.get(step, {}) for step in steps for number in numbers):
        measured = _measured(_EXPECTED, given)
        truth = {step: found["digests"] for step, found in measured.items() if "digests" in found}
        known.write_text(json.dumps(truth), "utf-8")
    return {step: {number: truth[step][number] for number in numbers} for step in steps}


def _chosen(count: int) -> list[str]:
    return [str(number) for number in QUERIES[:count]]


def _measured(name: str, given: argparse.Namespace) -> Steps:
    """Run one side in a process of its own and return its steps."""
    jars = fetch(LAKES[name].jars) if name in LAKES else []
    if jars is None:
        print(f"{name}: a jar cannot be fetched: {', '.join(LAKES[name].jars)}")
        return {}
    steps: Steps = {}
    folder = Path(tempfile.mkdtemp(prefix="longevity-"))
    command = [sys.executable, "-m", "benchmarks.longevity", "--side", name, "--folder", str(folder)]
    command += [f"--scale={given.scale}", f"--rounds={given.rounds}", f"--trickle={given.trickle}"]
    command += [f"--queries={given.queries}", "--jars", ",".join(map(str, jars))]
    log = ROOT / ".cache" / "longevity" / f"{name.replace(' ', '-')}.log"
    try:
        with (
            log.open("w") as errors,
            subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
        ):
            assert process.stdout is not None
            for line in (line for line in process.stdout if line.startswith("{")):
                found = json.loads(line)
                steps[found.pop("step")] = found
                if "seconds" in found:
                    print(f"{name:<13} {list(steps)[-1]:<14} {found['seconds']:>9.2f} s", flush=True)
        if process.returncode:
            print(f"{name} FAILED with {process.returncode}: {log}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return steps


def _judge(name: str, steps: Steps, truth: dict[str, Any]) -> None:
    """Note and print which results are not those expected."""
    wrong = [
        f"{step}: {number}"
        for step, digests in truth.items()
        for number, digest in digests.items()
        if "digests" in steps.get(step, {}) and not _same(steps[step]["digests"][number], digest)
    ]
    steps["wrong"] = {"of": wrong}
    if wrong:
        print(f"{name}: WRONG RESULTS: {', '.join(wrong)}")


def _figures(results: dict[str, Steps]) -> dict[str, Steps]:
    """Return what is kept of results: all but what the queries returned, which has been judged."""
    return {
        name: {
            step: {key: each for key, each in facts.items() if key != "digests"}
            for step, facts in steps.items()
        }
        for name, steps in results.items()
    }


def _same(one: list[float], other: list[float]) -> bool:
    """Whether two digests agree; doubles are added up in any order."""
    return len(one) == len(other) and all(
        math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-3) for a, b in zip(one, other, strict=True)
    )


def digest(rows: list[Any]) -> list[float]:
    """Return the number of rows and a sum of each column."""
    sums: list[float] = [len(rows)]
    for column in zip(*rows, strict=True):
        values = [value for value in column if value is not None]
        is_text = any(not hasattr(value, "__float__") for value in values)
        sums.append(sum(zlib.crc32(str(value).encode()) if is_text else float(value) for value in values))
    return sums


def _run_side(given: argparse.Namespace, data: Path) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    conf = LAKES[given.side].conf if given.side in LAKES else {}
    spark = large_session(conf, given.jars, given.folder)
    with peaks() as memory:
        if given.side == _EXPECTED:
            _expect(spark, data, given.rounds, _chosen(given.queries))
        else:
            tables = given.folder / "tables"
            tables.mkdir()
            side = _Side(
                LAKES[given.side](spark, tables), tables, data, _chosen(0 if given.trickle else given.queries)
            )
            if given.trickle:
                side.trickle(given.trickle)
            else:
                side.longevity(given.rounds)
    _say("memory", **{kind: round(each) for kind, each in memory.items()})
    spark.stop()


def _say(step: str, **facts: Any) -> None:
    print(json.dumps({"step": step, **facts}), flush=True)


def _queries(
    spark: SparkSession, texts: dict[str, str], step: str | None, opened: Callable[[], None]
) -> None:
    """Run the queries and say what they took and returned; nothing is said of a step without a name."""
    begun, each, digests = time.perf_counter(), {}, {}
    opened()
    last = time.perf_counter()
    for number, text in texts.items():
        digests[number] = digest(spark.sql(text).collect())
        each[number], last = round(time.perf_counter() - last, 3), time.perf_counter()
    if step:
        digests.update((name, _sums(spark, name)) for name in FACTS)
        _say(step, seconds=round(last - begun, 3), each=each, digests=digests)


def _own(columns: list[str]) -> list[str]:
    return [each for each in columns if not each.startswith("_hoodie")]


def _sums(spark: SparkSession, name: str) -> list[float]:
    """Return the number of rows of a fact table and the sum of each of its columns, which are all numbers."""
    columns = ", ".join(f"sum({each}) {each}" for each in _own(spark.table(name).columns))
    return digest(spark.sql(f"select count(*) rows, {columns} from {name}").collect())


def _texts(data: Path, numbers: list[str]) -> dict[str, str]:
    texts = json.loads((data / "queries.json").read_text("utf-8")) if numbers else {}
    return {number: texts[number] for number in numbers}


def _expect(spark: SparkSession, data: Path, rounds: int, numbers: list[str]) -> None:
    """Run the queries on plain files of the rows that there have to be after each round."""
    for number in range(rounds + 1):
        places = [data / "load", data / "expected" / str(number)]

        def view(places: list[Path] = places) -> None:
            for place in (each for folder in places for each in folder.iterdir()):
                spark.read.parquet(str(place)).createOrReplaceTempView(place.name)

        _queries(spark, _texts(data, numbers), f"queries {number}", view)


class _Side:
    """One system in its own process."""

    def __init__(self, lake: System, tables: Path, data: Path, numbers: list[str]) -> None:
        self.lake, self.tables, self.data = lake, tables, data
        self.texts = _texts(data, numbers)
        self.known: dict[Path, tuple[int, int]] = {}

    def longevity(self, rounds: int) -> None:
        """WP1: load, queries, rounds."""
        names = sorted(each.name for each in (self.data / "load").iterdir())
        self._step("build", lambda: [self.lake.load(name, self._read("load", name)) for name in names])
        self._view(names)
        spark = self.lake.spark
        _queries(spark, self.texts, None, lambda: self._view(FACTS))
        _queries(spark, self.texts, "queries 0", lambda: self._view(FACTS))
        if isinstance(self.lake, Lake):
            lake = self.lake
            for number in range(1, rounds + 1):
                self._step(f"round {number}", lambda: self._maintain(lake, number))  # noqa: B023
                _queries(spark, self.texts, f"queries {number}", lambda: self._view(FACTS))
        self._stored()

    def trickle(self, batches: int) -> None:
        """Tiny upserts into one table."""
        self._step("build", lambda: self.lake.load(TRICKLED, self._read("load", TRICKLED)))
        self._reads("reads before")
        seconds: list[float] = []

        def upserts() -> None:
            for number in range(batches):
                begun = time.perf_counter()
                self.lake.upsert(TRICKLED, self._read("trickle", f"b={number}"))
                seconds.append(round(time.perf_counter() - begun, 3))

        self._step("upserts", upserts)
        some = max(1, min(_SOME, batches // 4))
        _say("first upsert", seconds=median(seconds[1 : some + 1] or seconds))
        _say("last upsert", seconds=median(seconds[-some:]))
        _say("each", all=seconds)
        self._reads("reads after")
        self._stored()

    def _reads(self, step: str) -> None:
        taken = []
        for _ in range(_READS):
            begun = time.perf_counter()
            self._view([TRICKLED])
            rows = self.lake.spark.sql(TRICKLE_CHECK).collect()
            taken.append(time.perf_counter() - begun)
        values = [float(value) for value in rows[0]]
        _say(step, seconds=round(median(taken), 3), digests={"check": values})

    def _read(self, *parts: str) -> DataFrame:
        return self.lake.spark.read.parquet(str(self.data.joinpath(*parts)))

    def _view(self, names: Any) -> None:
        for name in names:
            self.lake.read(name).createOrReplaceTempView(name)

    def _maintain(self, lake: Lake, number: int) -> None:
        """DF_SS, DF_CS, DF_WS and DF_I, then LF_SS, LF_SR, LF_CS, LF_CR, LF_WS, LF_WR and LF_I."""
        folder = f"rounds/{number}"
        for name in FACTS:
            if name in RETURNS:
                lake.delete_keys(name, self._read(folder, "deleted", name))
            else:
                lake.delete_where(name, deletion(name, number))
        for name in FACTS:
            lake.insert(name, self._read(folder, "inserted", name))

    def _step(self, name: str, act: Callable[[], object]) -> None:
        begun = time.perf_counter()
        act()
        seconds = time.perf_counter() - begun
        before, self.known = self.known, self._files()
        written = sum(fact[0] for path, fact in self.known.items() if before.get(path) != fact)
        _say(name, seconds=round(seconds, 3), written=written)

    def _files(self) -> dict[Path, tuple[int, int]]:
        """Size and time of all files of the tables."""
        files = (path for path in self.tables.rglob("*") if path.is_file() and path.suffix != ".crc")
        return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in files}

    def _stored(self) -> None:
        files = self._files()
        data = [path for path in files if not {".hoodie", "_delta_log", "metadata"} & set(path.parts)]
        stored = sum(size for size, _ in files.values())
        _say("stored", bytes=stored, files=len(files), data_files=len(data))


def longevity_table(results: dict[str, Steps], rounds: int, words: Mapping[str, str] | None = None) -> str:
    """Return the figures of WP1 as Markdown.

    Args:
        words: Systems in the table, each with its words; None for all by name.
    """
    head = [
        "system",
        "build, s",
        "rounds: first, median, last, s",
        "queries: first, median, last, s",
        "decay",
    ]
    head += ["written by the rounds, MB", *_STORED]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for name, steps in results.items():
        called = (words or {}).get(name, name)
        maintained = [_seconds(steps, f"round {each + 1}") for each in range(rounds)]
        queries = [_seconds(steps, f"queries {each}") for each in range(rounds + 1)]
        written = sum(steps.get(f"round {each + 1}", {}).get("written", 0) for each in range(rounds))
        row = [_shown(_seconds(steps, "build")), _course(maintained), _course(queries), _ratio(queries)]
        row += [f"{written / 1e6:.0f}" if any(maintained) else "", *_ends(steps)]
        lines.append(f"| {called} | {' | '.join(row)} |")
    return "\n".join(lines)


def _course(seconds: list[float | None]) -> str:
    """Return the first, the median and the last of some seconds."""
    known = [each for each in seconds if each is not None]
    return (
        ", ".join(map(_shown, (known[0], median(known), known[-1]))) if len(known) > 1 else _shown(seconds[0])
    )


def trickle_table(results: dict[str, Steps]) -> str:
    """Return the figures of the tiny upserts as Markdown."""
    names = ("build", "upserts", "first upsert", "last upsert", "reads before", "reads after")
    head = ["system", *(f"{name}, s" for name in names), "written by upserts, MB", *_STORED]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for name, steps in results.items():
        row = [_shown(_seconds(steps, each)) for each in names]
        row += [f"{steps.get('upserts', {}).get('written', 0) / 1e6:.1f}", *_ends(steps)]
        lines.append(f"| {name} | {' | '.join(row)} |")
    return "\n".join(lines)


_STORED = ("stored, MB", "files of data", "memory of Java, driver, worker, MiB", "wrong results")


def _ends(steps: Steps) -> list[str]:
    stored, memory = steps.get("stored", {}), steps.get("memory", {})
    return [
        f"{stored.get('bytes', 0) / 1e6:.0f}",
        f"{stored.get('data_files', 0):,}",
        ", ".join(f"{memory.get(kind, 0):.0f}" for kind in ("java", "driver", "worker")),
        f"{len(steps['wrong']['of'])}" if memory else "failed",
    ]


def _seconds(steps: Steps, step: str) -> float | None:
    return steps.get(step, {}).get("seconds")


def _shown(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.2f}" if seconds < 10 else f"{seconds:.1f}"


def _ratio(seconds: list[float | None]) -> str:
    return f"{seconds[-1] / seconds[0]:.2f}" if len(seconds) > 1 and seconds[0] and seconds[-1] else ""


if __name__ == "__main__":
    raise SystemExit(main())
