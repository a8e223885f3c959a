"""What `dbt-hudi` runs in its own process, and what a server runs in the process of a command."""

from __future__ import annotations

import sys

from dbt.cli.main import cli
from hudi_engine.cli.program import escape_what_is_lacking

from dbt.adapters.hudi.serve.command import main as serve
from dbt.adapters.hudi.shell.commands import COMMANDS, run_command
from dbt.adapters.hudi.shell.planning import plan


def main(words: list[str]) -> int:
    """Run a command line in this process; returns 1 when a server cannot start, else the command's exit code."""
    return serve(words[1:], run) if words[0] == "serve" else run(words)


def run(words: list[str]) -> int:
    """Run one command, of dbt or of dbt-hudi, as the program of this process; dbt's end with SystemExit."""
    if words[0] == "plan":
        escape_what_is_lacking(sys.stdout)
        return plan(words[1:])
    if words[0] in COMMANDS:
        escape_what_is_lacking(sys.stdout)
        return run_command(words[0], words[1:])
    cli(args=words, prog_name="dbt")
    return 0
