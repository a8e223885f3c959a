"""The commands that show a page about a table: as a file of this machine, or to its browsers."""

from __future__ import annotations

import sys
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
    from hudi_engine.table.report import write_report

    written = write_report(call.state, call.options, call.given.output, count_rows=call.given.count)
    return Answer(facts={"report": str(written.path), "bytes": written.bytes})


def serve_arguments(parser: ArgumentParser) -> None:
    """Declare ``--host``, ``--port`` and ``--count``."""
    parser.add_argument(
        "--host",
        metavar="ADDRESS",
        help="listen at this address of the machine; whoever reaches it sees the page (default: this machine alone)",
    )
    parser.add_argument("--port", type=int, default=0, help="listen at this port (default: one that is free)")
    stats_arguments(parser)


def serve(call: Call) -> Answer:
    """Show the page to browsers, made anew for each look, until the process is interrupted."""
    from hudi_engine.table.report.serve import LOOPBACK, serve_report

    given = call.given
    server = serve_report(
        call.storage,
        call.options,
        host=given.host or LOOPBACK,
        port=given.port,
        count_rows=given.count,
    )
    # On the error stream, so that the answer at the end is the only text on the other one.
    sys.stderr.write(f"report at {server.url} until Ctrl+C\n")
    sys.stderr.flush()
    server.run()
    return Answer(facts={"served": server.url})
