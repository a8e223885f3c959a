"""Runs the workload on dbt-hudi and its peers in turn and prints times, Spark jobs and ratios, with a bar chart.

python3 dev.py bench                     everything (about half an hour on two cores)
python3 dev.py bench --rows 500000 --systems dbt-hudi,delta
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks import dbt_models, log_codec
from benchmarks.aims import Results
from benchmarks.jars import fetch
from benchmarks.report import report, save
from benchmarks.systems import SYSTEMS

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="comma separated: " + ", ".join(SYSTEMS))
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--repeats", type=int, default=2, help="batches of each size; the median counts")
    parser.add_argument(
        "--folder", type=Path, default=None, help="where data and tables go (default: a temp folder)"
    )
    parser.add_argument(
        "--chart",
        type=Path,
        default=ROOT / "benchmarks" / "results.png",
        help="where the chart goes; the tables go beside it as .md",
    )
    parser.add_argument("--no-dbt", action="store_true", help="leave the dbt models out")
    wanted = parser.parse_args()
    names = [name.strip() for name in wanted.systems.split(",") if name.strip()]
    unknown = [name for name in names if name not in SYSTEMS]
    if unknown:
        parser.error(f"unknown system(s) {unknown}; legal: {', '.join(SYSTEMS)}")
    with tempfile.TemporaryDirectory(prefix="hudi-bench-") as temporary:
        folder = wanted.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        results: Results = {}
        for number, name in enumerate(names, 1):
            results[name] = _measure(name, number, len(names), folder, wanted)
            save(results, wanted.chart)
        if not wanted.no_dbt:
            print("[dbt] ten models, second run of the whole process", flush=True)
            for name, steps in dbt_models.measure(folder).items():
                results.setdefault(name, {}).update(steps)
    save(results, wanted.chart)
    print("[log blocks] rows a second", flush=True)
    report(results, wanted.chart, log_codec.table(log_codec.measure()))
    return 0


def _measure(
    name: str, number: int, total: int, folder: Path, wanted: argparse.Namespace
) -> dict[str, dict[str, float]]:
    print(f"[{number} of {total}] {name}", flush=True)
    jars = fetch(SYSTEMS[name].jars)
    if jars is None:
        print(f"  LEFT OUT: the jars of {name} could not be fetched: {', '.join(SYSTEMS[name].jars)}")
        return {}
    command = [
        sys.executable,
        "-m",
        "benchmarks.one_system",
        "--system",
        name,
        "--folder",
        str(folder),
        "--rows",
        str(wanted.rows),
        "--repeats",
        str(wanted.repeats),
        "--jars",
        ",".join(map(str, jars)),
    ]
    steps: dict[str, list[dict[str, float]]] = {}
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        for line in process.stdout:
            if line.startswith("{"):
                step = json.loads(line)
                steps.setdefault(step["step"], []).append(step)
                print(
                    f"  {step['step']:<24}{step['seconds']:>8.2f} s {step['cpu']:>8.2f} s cpu {step['jobs']:>4} jobs",
                    flush=True,
                )
        errors = process.stderr.read()
    if process.returncode:
        print(f"  FAILED after {len(steps)} step(s):\n" + "\n".join(errors.strip().splitlines()[-5:]))
    return {
        name: {
            "seconds": median(one["seconds"] for one in found),
            "jobs": median(one["jobs"] for one in found),
        }
        for name, found in steps.items()
    }


if __name__ == "__main__":
    sys.exit(main())
