"""The process of a server that takes commands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, sys, time
from pathlib import Path
from dbt.adapters.hudi.channel import COMMANDS, connect
from dbt.adapters.hudi.serve.front import Front
from dbt.adapters.hudi.shell.client import run_in

folder = Path(sys.argv[1])

class Late(Front):
    def _is_idle(self):
        if os.fork() == 0:
            print("code", run_in(connect(folder / COMMANDS), ["ls"]), flush=True)
            os._exit(0)
        time.sleep(1)
        return True

Late(folder, lambda words: 7, os.pipe()[0], 0.0, 5.0).serve()
"""


def test_a_command_that_connects_as_the_server_ends_for_being_idle_still_runs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, timeout=120
    )
    assert "code 7" in done.stdout, done.stderr
    assert not any(tmp_path.iterdir())
