"""The generator of rows that arrive late, which demos and tests use."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

from tests.helpers.late_rows import BEGIN, late_rows

ROOT = Path(__file__).parents[2]


def test_one_of_ten_rows_is_late_by_up_to_a_minute() -> None:
    rows = list(late_rows(10_000, seed=1))
    late = [row for row in rows if row.is_late]
    assert 900 < len(late) < 1100
    for row in rows:
        delay = BEGIN + row.id * timedelta(milliseconds=1) - row.at
        assert timedelta(0) < delay <= timedelta(minutes=1) if row.is_late else not delay
    assert {row.dt for row in rows} == {"2025-12-31", "2026-01-01"}


def test_the_same_seed_gives_the_same_rows() -> None:
    assert list(late_rows(500, seed=3)) == list(late_rows(500, seed=3)) != list(late_rows(500, seed=4))


def test_the_command_prints_lines_of_json() -> None:
    command = [sys.executable, "-m", "tests.helpers.late_rows", "--rows", "5", "--seed", "3"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603 - ours
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(line["id"], line["name"]) for line in lines] == [
        (row.id, row.name) for row in late_rows(5, seed=3)
    ]
