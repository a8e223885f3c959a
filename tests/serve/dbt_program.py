"""dbt as a process of its own with dbt-spark over Thrift, which takes one command after the other."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

PROGRAM = Path(__file__).with_name("commands_program.py")


@contextmanager
def dbt_over_thrift(project: Path, profile: str, port: int, schema: str) -> Iterator[Callable[..., None]]:
    """Return a function that runs a dbt command in a project's folder; a command that fails raises AssertionError."""
    output = {
        "type": "spark", "method": "thrift", "host": "127.0.0.1", "port": port, "auth": "NOSASL",
        "schema": schema, "threads": 2,
    }  # fmt: skip
    (project / "profiles.yml").write_text(
        yaml.safe_dump({profile: {"target": "dev", "outputs": {"dev": output}}})
    )
    program = subprocess.Popen(
        [sys.executable, str(PROGRAM)], cwd=project, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert program.stdin is not None and program.stdout is not None
    given, told = program.stdin, program.stdout

    def dbt(*words: str) -> None:
        given.write(json.dumps([*words]) + "\n")
        given.flush()
        shown = []
        for line in told:
            shown.append(line)
            if line.startswith("RESULT "):
                assert json.loads(line.removeprefix("RESULT "))["success"], "".join(shown)
                return
        raise AssertionError("".join(shown))

    with program:
        try:
            yield dbt
        finally:
            given.close()
