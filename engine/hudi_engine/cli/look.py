"""Commands that only look; none of them writes or takes the table's lock."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections import Counter
from dataclasses import asdict
from datetime import datetime, timezone

from hudi_engine.cli.command import Answer, Call
from hudi_engine.table.inspect import (
    Finding,
    commit_facts,
    damaged_files,
    duplicate_keys,
    file_facts,
    instant_facts,
    partition_facts,
    table_stats,
    validate,
)
from hudi_engine.table.inspect.as_of import instant_as_of
from hudi_engine.table.inspect.files import check_partition
from hudi_engine.table.txn.savepoint import list_savepoints

DEFAULT_LIMIT = 30


def limited(parser: ArgumentParser) -> None:
    """Declare ``--limit``."""
    parser.add_argument(
        "-n",
        "--limit",
        type=_count,
        default=DEFAULT_LIMIT,
        help=f"the newest so many (default {DEFAULT_LIMIT}; 0: all)",
    )


def timeline(call: Call) -> Answer:
    """Show the instants of the active timeline, newest first."""
    found = instant_facts(call.state)
    rows = [
        {
            "instant": each.instant,
            "action": each.action,
            "state": each.state.lower(),
            "requested": each.requested_at,
            "completed": each.completed_at,
            "seconds": each.seconds,
        }
        for each in list(reversed(found))[: call.given.limit or None]
    ]
    return Answer(rows)


def commits(call: Call) -> Answer:
    """Show what the writes did, newest first."""
    rows = [
        {
            "instant": each.instant,
            "committed": each.committed_at,
            "operation": each.operation.lower(),
            "inserted": each.rows_inserted,
            "updated": each.rows_updated,
            "deleted": each.rows_deleted,
            "partitions": len(each.partitions),
            "new_files": each.files_added,
            "changed_files": each.files_updated,
            "replaced": each.groups_replaced,
            "bytes": each.bytes_written,
            "seconds": each.seconds,
        }
        for each in commit_facts(call.state, call.given.limit or None)
    ]
    return Answer(rows)


def files_arguments(parser: ArgumentParser) -> None:
    """Declare ``--as-of`` and ``--partition``."""
    parser.add_argument(
        "--as-of", metavar="INSTANT", help="the files of the table at that instant, moment or savepoint"
    )
    parser.add_argument("--partition", metavar="PATH", help="of this partition only")


def files(call: Call) -> Answer:
    """Show the base and log files that a snapshot reads."""
    as_of = None if call.given.as_of is None else instant_as_of(call.state, call.given.as_of)
    wanted = None if call.given.partition is None else call.given.partition.strip("/")
    found = file_facts(call.state, as_of=as_of)
    if wanted is not None:
        check_partition(wanted, {each.partition for each in found})
    rows = [
        {
            "path": each.path,
            "kind": each.kind,
            "instant": each.instant,
            "bytes": each.size_bytes,
            "modified": datetime.fromtimestamp(each.modified_ms / 1000, timezone.utc),
        }
        for each in found
        if wanted is None or each.partition == wanted
    ]
    return Answer(rows)


def partitions(call: Call) -> Answer:
    """Show what lies in each partition."""
    return Answer([asdict(each) for each in partition_facts(call.state.view().latest_slices())])


def stats_arguments(parser: ArgumentParser) -> None:
    """Declare ``--count``."""
    parser.add_argument(
        "--count", action="store_true", help="merge logs, so that rows are known for merge-on-read tables"
    )


def stats(call: Call) -> Answer:
    """Show the table in numbers."""
    found = table_stats(call.state, call.options, count_rows=call.given.count)
    facts = {
        "table": found.name,
        "type": found.table_type.lower().replace("_", " "),
        "version": found.version,
        "newest_commit": found.instant,
        "commits": found.commits,
        "pending": found.pending,
        "partitions": len(found.partitions),
        "file_groups": found.file_groups,
        "base_files": found.base_files,
        "small_files": found.small_files,
        "log_files": found.log_files,
        "base_bytes": found.base_bytes,
        "log_bytes": found.log_bytes,
        "log_share": round(found.log_share, 4),
        "rows": found.rows,
        "rows_in_base_files": found.base_rows,
    }
    due = [{"service": each.service, "due": each.due, "because": each.reason} for each in found.services]
    notes = (
        [] if found.rows is not None else ["rows are not known without merging the logs: ask with --count"]
    ) + (
        [] if found.commits else ["the table has no commit yet: its files and rows come with the first write"]
    )
    return Answer(due, facts, notes, rows_name="services")


def validate_arguments(parser: ArgumentParser) -> None:
    """Declare ``--keys`` and ``--deep``."""
    parser.add_argument(
        "--keys", action="store_true", help="read all keys too, and tell those that are there twice"
    )
    parser.add_argument(
        "--deep",
        action="store_true",
        help="read every data file too, and compare its pages with their checksums",
    )


def validation(call: Call) -> Answer:
    """Compare timeline and files; the answer is no when a reader sees wrong or missing rows."""
    findings: list[Finding] = validate(call.state)
    if call.given.deep:
        findings += damaged_files(call.state, call.options)
    if call.given.keys:
        findings += duplicate_keys(call.state, call.options)
    rows = [
        {"problem": each.problem, "harm": each.harms, "path": each.path, "what": each.message}
        for each in findings
    ]
    harms = Counter(each.harms for each in findings)
    notes = [f"{harms[True]} with harm, {harms[False]} without" if findings else "timeline and files agree"]
    return Answer(rows, notes=notes, ok=not harms[True], rows_name="findings")


def savepoints(call: Call) -> Answer:
    """Show the saved commits, oldest first."""
    rows = [
        {
            "instant": each.instant,
            "saved": datetime.fromtimestamp(each.saved_at_ms / 1000, timezone.utc),
            "files": sum(map(len, each.files.values())),
            "user": each.user,
            "comments": each.comments,
        }
        for each in list_savepoints(call.storage)
    ]
    return Answer(rows)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ArgumentTypeError(f"{text!r} is no whole number of at least 0")
    return int(text)
