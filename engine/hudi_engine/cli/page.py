"""The command that writes a page about a table, to a file of this machine."""

from __future__ import annotations

from argparse import ArgumentParser

from hudi_engine.cli.command import Answer, Call
from hudi_engine.cli.look import stats_arguments


def report_arguments(parser: ArgumentParser) -> None:
    """Declare ``--output`` and ``--count``."""
    parser.add_argument(
        "--output", metavar="FILE", help="the page (default TABLE-report.html in this folder)"
    )
    stats_arguments(parser)


def report(call: Call) -> Answer:
    """Write a page about the table, and tell where it is."""
    # What plans services loads more than the commands that only look.
    from hudi_engine.report import write_report

    written = write_report(call.state, call.options, call.given.output, count_rows=call.given.count)
    return Answer(facts={"report": str(written.path), "bytes": written.bytes})
