"""The program ``dbt-hudi``: words of the command line in, a shell out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from hudi_engine.cli.output import escape_what_is_lacking

from dbt.adapters.hudi.shell.session import Shell

_ABOUT = """\
shell keeps dbt and Spark up between commands, so that the second one answers in a second or two. Commands are typed
without `dbt` (run -s orders+, test, show --inline 'select 1'), or read from standard input, one a line. The profile,
the project and the environment are read again by each command. Further options, such as --target prod or
--project-dir DIR, go to every command.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; returns 1 when a command read from standard input failed."""
    parser = argparse.ArgumentParser(
        prog="dbt-hudi", epilog=_ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["shell"], help="what to do")
    _, options = parser.parse_known_args(arguments)
    escape_what_is_lacking(sys.stdout)
    return Shell(options).run(sys.stdin)
