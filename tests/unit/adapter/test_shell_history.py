"""What the shell keeps of the lines that somebody types."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest


def test_values_that_were_set_are_not_kept(tmp_path: Path) -> None:
    pytest.importorskip("readline")
    history = tmp_path / "state" / "dbt-hudi" / "shell_history"
    history.parent.mkdir(parents=True)
    history.write_text("help\nset OLD=older-secret\nls -s orders\n")
    ours, theirs = pty.openpty()
    typed = "set TOKEN=secret\n  dbt set 'A=1' B=secret\nunset TOKEN\nexit\n"
    try:
        os.write(ours, typed.encode())
        done = subprocess.run(
            [sys.executable, "-m", "dbt.adapters.hudi.shell", "shell"],
            cwd=tmp_path,
            stdin=theirs,
            stdout=theirs,
            env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "TERM": "dumb"},
            stderr=subprocess.PIPE,
            timeout=120,
            check=False,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert (done.returncode, done.stderr) == (0, b"")
    kept = [line for line in history.read_text().splitlines() if not line.startswith("_HiStOrY")]
    assert kept == ["help", "ls -s orders", "unset TOKEN", "exit"]
