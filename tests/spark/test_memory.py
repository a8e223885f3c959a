"""The memory of a load and of an upsert is bounded by what workers may take, in a Spark of its own with such a limit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.long,
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit is Linux's"),
]

LIMIT_MIB = 1024
PROGRAM = """
import sys, tempfile
from pathlib import Path
from benchmarks.sizes import Form, _run
form = Form(rows=2_000_000, partitions=1, driver="1g", python=sys.argv[1], times=1)
with tempfile.TemporaryDirectory() as folder:
    _run(form, Path(folder), 1.0)
"""


def run(limit: str) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).parents[2]
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, limit], cwd=root, capture_output=True, text=True, timeout=300
    )


def test_a_load_and_an_upsert_end_within_the_limit():
    done = run(f"{LIMIT_MIB}m")
    assert done.returncode == 0, done.stderr[-4000:]
    steps = {
        step["step"]: step
        for step in map(json.loads, filter(lambda line: line.startswith("{"), done.stdout.splitlines()))
    }
    assert set(steps) == {"load", "upsert 10 %"}
    for step in steps.values():
        assert step["worker"] < LIMIT_MIB, step
