"""``dbt run`` of ten small models, whole process: dbt-hudi against dbt-spark's session method with Parquet.

The first run of each makes the tables and is not counted; of those after it, the two adapters in turn, the median is.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

ROWS = 1000
_RUNS = 5
_PROJECT = "name: bench\nversion: '1.0'\nconfig-version: 2\nprofile: bench\n"
_PROFILES = {
    "hudi": "bench: {target: dev, outputs: {dev: {type: hudi, schema: bench}}}\n",
    "spark": "bench: {target: dev, outputs: {dev: {type: spark, method: session, schema: bench, host: localhost}}}\n",
}
_SELECT = f"select id, id % 7 as status, concat('note ', id) as note from range({ROWS})"
_INCREMENTAL = {
    "hudi": "{{ config(materialized='incremental', unique_key='id') }} ",
    "spark": "{{ config(materialized='incremental', file_format='parquet', incremental_strategy='append') }} ",
}
_TABLE = {
    "hudi": "{{ config(materialized='table', unique_key='id') }} ",
    "spark": "{{ config(materialized='table', file_format='parquet') }} ",
}


def prepare(kind: str, folder: Path) -> Path:
    """Write a project of five tables and five incremental models, without what an earlier one has made; returns its folder.

    Args:
        kind: Adapter type, ``hudi`` or ``spark``.
        folder: Where the project goes.
    """
    project = folder / f"dbt_{kind}"
    shutil.rmtree(project, ignore_errors=True)
    (project / "models").mkdir(parents=True, exist_ok=True)
    (project / "dbt_project.yml").write_text(_PROJECT)
    (project / "profiles.yml").write_text(_PROFILES[kind])
    for number in range(5):
        (project / "models" / f"t{number}.sql").write_text(_TABLE[kind] + _SELECT)
        (project / "models" / f"i{number}.sql").write_text(_INCREMENTAL[kind] + _SELECT)
    return project


def seconds_of_run(project: Path) -> float | None:
    """Seconds of a ``dbt run`` of a project; None when dbt fails."""
    command = [str(Path(sys.executable).with_name("dbt")), "run", "--profiles-dir", ".", "--no-use-colors"]
    start = time.monotonic()
    done = subprocess.run(command, cwd=project, capture_output=True, text=True)
    seconds = time.monotonic() - start
    if done.returncode:
        sys.stdout.write("  " + "\n  ".join(done.stdout.strip().splitlines()[-8:]) + "\n")
        return None
    return seconds


def measure(folder: Path) -> dict[str, dict[str, dict[str, float]]]:
    """Results of both adapters in the form of the other steps."""
    projects = {name: prepare(kind, folder) for name, kind in (("dbt-hudi", "hudi"), ("dbt-spark", "spark"))}
    runs: dict[str, list[float]] = {name: [] for name in projects}
    for number in range(1 + _RUNS):
        for name, project in projects.items():
            seconds = seconds_of_run(project)
            if seconds is not None and number:
                runs[name].append(seconds)
    found = {}
    for name, seconds in runs.items():
        if seconds:
            sys.stdout.write(f"  ten dbt models, {name:<12}{median(seconds):>8.2f} s\n")
            found[name] = {"ten dbt models": {"seconds": median(seconds), "jobs": 0}}
    return found
