"""Commands that change a table, under its lock. What destroys says with ``--dry-run`` what would go."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import asdict

from hudi_engine.cli.command import Answer, Call
from hudi_engine.errors import ConfigError
from hudi_engine.table.repair import DUPLICATE_KEYS, KINDS
from hudi_engine.table.txn.restore_steps import RestoreResult
from hudi_engine.table.txn.rollback import RollbackResult


def compact_arguments(parser: ArgumentParser) -> None:
    """Declare the plan to run, and ``--schedule``."""
    parser.add_argument("instant", nargs="?", help="a pending compaction; else the next one, or a new one")
    parser.add_argument("--schedule", action="store_true", help="plan it only")


def compact(call: Call) -> Answer:
    """Run or schedule a compaction."""
    if call.given.schedule and call.given.instant:
        raise ConfigError("--schedule plans a new compaction; leave the instant out, or leave --schedule out")
    done = (
        call.services.schedule_compaction()
        if call.given.schedule
        else call.services.compact(call.given.instant)
    )
    facts = _named(done, "instant", "state", "file_groups", "files_compacted", "rows")
    return _told({**facts, "bytes": done.bytes_written}, done.reason)


def clean_arguments(parser: ArgumentParser) -> None:
    """Declare ``--retain`` and ``--dry-run``."""
    parser.add_argument("--retain", type=int, metavar="COMMITS", help="commits whose files stay")
    _dry_run(parser)


def clean(call: Call) -> Answer:
    """Delete the files of old slices, or list them."""
    if call.given.dry_run:
        going = call.services.would_be_cleaned(call.given.retain)
        return Answer([{"path": path} for path in going], notes=[f"{len(going)} files would be deleted"])
    done = call.services.clean(call.given.retain)
    facts = _named(done, "instant", "files_deleted", "files_kept", "partitions")
    return _told({**facts, "oldest_readable": done.earliest_retained}, done.reason)


def archive_arguments(parser: ArgumentParser) -> None:
    """Declare ``--min``, ``--max`` and ``--dry-run``."""
    parser.add_argument("--min", type=int, metavar="COMMITS", help="completed commits that stay (default 20)")
    parser.add_argument(
        "--max", type=int, metavar="COMMITS", help="above so many, older ones go (default 30)"
    )
    _dry_run(parser)


def archive(call: Call) -> Answer:
    """Move the oldest instants to the archive, or list them."""
    done = call.services.archive(call.given.min, call.given.max, dry_run=call.given.dry_run)
    if done.reason:
        return Answer(notes=[done.reason])
    if call.given.dry_run:
        named = [name.partition(".") for name in done.instants]
        rows = [{"instant": time, "action": action} for time, _, action in named]
        return Answer(rows, notes=[f"{len(rows)} instants would leave the active timeline"])
    return Answer(
        facts={"archived": len(done.instants), "file": done.file, "merged_files": done.merged_files}
    )


def savepoint_arguments(parser: ArgumentParser) -> None:
    """Declare the commit, who and why, and ``--delete``."""
    parser.add_argument("instant", nargs="?", help="a completed write; the newest when left out")
    parser.add_argument("--delete", action="store_true", help="give the saved commit free to clean")
    parser.add_argument("--user", default="", help="who saves it")
    parser.add_argument("--comments", default="", help="why; `restore` and --as-of take it as its name")


def savepoint(call: Call) -> Answer:
    """Save a commit, or give it free."""
    given = call.given
    if given.delete:
        if not given.instant:
            raise ConfigError(
                "--delete needs the instant or the comment of the savepoint; `savepoints` lists them"
            )
        return Answer(facts={"deleted": call.services.delete_savepoint(given.instant)})
    saved = call.services.savepoint(given.instant, user=given.user, comments=given.comments)
    return Answer(facts={"instant": saved.instant, "files": sum(map(len, saved.files.values()))})


def instant_and_dry_run(parser: ArgumentParser) -> None:
    """Declare an instant that must be given, and ``--dry-run``."""
    parser.add_argument("instant", help="as `timeline` shows it")
    _dry_run(parser)


def commit_and_dry_run(parser: ArgumentParser) -> None:
    """Declare a commit that must be given, by its instant or by its savepoint's comment, and ``--dry-run``."""
    parser.add_argument("instant", help="as `timeline` shows it, or the comment of its savepoint")
    _dry_run(parser)


def rollback(call: Call) -> Answer:
    """Undo the newest write, or a pending instant."""
    if call.given.dry_run:
        going = call.services.would_be_rolled_back(call.given.instant)
        rows = [{"path": path, "what": "deleted"} for path in going.deleted_paths]
        rows += [{"path": path, "what": "its blocks voided"} for path in going.voided_paths]
        return Answer(rows, notes=[f"{going.action} {going.instant} would be undone, in {len(rows)} files"])
    done = call.services.rollback(call.given.instant)
    return Answer(facts={"rolled_back": done.instant, "by": done.rollback_time, **_gone(done)})


def restore(call: Call) -> Answer:
    """Take the table back to a commit, or list what would go."""
    if call.given.dry_run:
        going = call.services.would_be_undone(call.given.instant)
        rows = [{"instant": instant, "action": action} for instant, action in going]
        return Answer(
            rows, notes=[f"later instants that would go for good, with the files they wrote: {len(going)}"]
        )
    done = call.services.restore(call.given.instant)
    facts = {"restored_to": done.target, "by": done.restore_time, "taken_back": len(done.taken_back)}
    return Answer(
        facts={**facts, **_gone(done)},
        notes=[] if done.restore_time else ["the table is at that commit already"],
    )


def repair_arguments(parser: ArgumentParser) -> None:
    """Declare the kinds, ``--partition`` and ``--dry-run``."""
    parser.add_argument(
        "kinds",
        nargs="*",
        metavar="KIND",
        help=f"one of {', '.join(KINDS)}; without one all but {DUPLICATE_KEYS}, which reads all keys",
    )
    parser.add_argument(
        "--partition",
        action="append",
        metavar="PATH",
        help=f"{DUPLICATE_KEYS}: in this partition only; may be repeated",
    )
    _dry_run(parser)


def repair(call: Call) -> Answer:
    """Mend what `validate` finds, or list what would be done."""
    given = call.given
    found = call.services.repair(
        tuple(given.kinds) or None, dry_run=given.dry_run, partitions=given.partition
    )
    rows = [{"kind": each.kind, "path": each.path, "what": each.done} for each in found]
    return Answer(rows, notes=[f"{len(rows)} repairs {'would be made' if given.dry_run else 'made'}"])


def clone_arguments(parser: ArgumentParser) -> None:
    """Declare the folder, its name, the instant, and what may happen to get there."""
    parser.add_argument("path", help="folder of the clone, on the same file system or in the same bucket")
    parser.add_argument("--name", help="name of the clone; else the last part of the path")
    parser.add_argument("--at", help="instant, moment or savepoint; else the newest commit")
    parser.add_argument("--replace", action="store_true", help="replace a table that is there")
    parser.add_argument("--copy", action="store_true", help="copy files that cannot be shared")


def clone(call: Call) -> Answer:
    """Make a table that shares the base files of this one."""
    given = call.given
    done = call.services.clone(
        given.path, name=given.name, at=given.at, replace=given.replace, copy=given.copy
    )
    return Answer(facts=asdict(done))


def _dry_run(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="say what would go, and change nothing")


def _gone(done: RollbackResult | RestoreResult) -> dict[str, object]:
    return {"files_deleted": len(done.deleted), "rollback_blocks": len(done.command_blocks)}


def _named(done: object, *names: str) -> dict[str, object]:
    """Return what a service says of itself, under its own names."""
    return {name: getattr(done, name) for name in names}


def _told(facts: Mapping[str, object], reason: str) -> Answer:
    """Answer with what a service did, and why it did nothing."""
    return Answer(facts=facts, notes=[reason] if reason else [])
