"""The packages as a user gets them: installed with their dependencies into an environment that holds nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.golden.golden import description, unpack

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = "v6_mor_simple_deletes_h0150"


def installed(source: Path, work: Path) -> Path:
    """Install a copy of ``source`` into a new environment; returns its programs' folder."""
    copy, home = work / "tree", work / "venv"
    shutil.copytree(
        source, copy, ignore=shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "tests", "build")
    )
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    pip = [str(home / "bin/python"), "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints-spark4.txt")]
    subprocess.run([*pip, str(copy)], check=True, timeout=1800)
    return home / "bin"


def clean_environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "SPARK"))}


def test_the_engine_alone_reads_a_table_from_its_command_line(tmp_path: Path) -> None:
    programs = installed(ROOT / "engine", tmp_path)
    table = unpack(GOLDEN, tmp_path)

    code = f"import hudi_engine; print(hudi_engine.read({str(table)!r}).to_arrow().num_rows)"
    read = subprocess.run(
        [str(programs / "python"), "-c", code],
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    shown = subprocess.run(
        [str(programs / "hudi-engine"), str(table), "validate", "--keys"],
        env=clean_environment(),
        capture_output=True,
        text=True,
    )

    assert int(read.stdout) == len(description(GOLDEN)["snapshot"])
    assert (shown.returncode, shown.stdout.strip(), shown.stderr) == (0, "timeline and files agree", "")


def test_dbt_finds_the_adapter_and_its_version(tmp_path: Path) -> None:
    programs = installed(ROOT, tmp_path)

    shown = subprocess.run(
        [str(programs / "dbt"), "--version"],
        env=clean_environment(),
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )

    assert "hudi" in shown.stdout
