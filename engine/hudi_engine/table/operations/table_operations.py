"""Operations that look at a table or change it, as the command line and dbt have them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Annotated

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.declared.service_options import CleanOptions
from hudi_engine.format.config.enums import CleanPolicy, LayoutStrategy, TableType
from hudi_engine.format.config.options import canonical_key
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.layout.layout import split_names
from hudi_engine.format.merge.filters import parse_filter
from hudi_engine.format.metadata.expressions import Expression
from hudi_engine.format.schema.meta_fields import RECORD_KEY
from hudi_engine.format.storage.given import public_location
from hudi_engine.table.inspect import (
    cells_of,
    commit_cells,
    commit_facts,
    damaged_files,
    duplicate_keys,
    file_facts,
    instant_facts,
    partition_facts,
)
from hudi_engine.table.inspect import validate as findings_of
from hudi_engine.table.inspect.as_of import instant_as_of
from hudi_engine.table.inspect.files import check_partition
from hudi_engine.table.operations.contents import Side, difference, verified
from hudi_engine.table.operations.operation import Answer, Arg, Call, Operation, operation
from hudi_engine.table.reader import filtered, looked_up
from hudi_engine.table.repair import DUPLICATE_KEYS, KINDS
from hudi_engine.table.report import write_report
from hudi_engine.table.services import VersionChange
from hudi_engine.table.services.due import table_stats
from hudi_engine.table.services.indexing import INDEXES, index_facts
from hudi_engine.table.state import TableState
from hudi_engine.table.table_services import TableServices
from hudi_engine.table.txn.receipts import newest_write
from hudi_engine.table.txn.recovery import left_by_ended
from hudi_engine.table.txn.swap import table_storage

_INSTANT = ("instant", "action", "state", "requested_at", "completed_at", "seconds")
_STATS = (
    *("name", "table_type", "version", "instant", "commits", "pending", "file_groups", "base_files"),
    *("small_files", "log_files", "base_bytes", "log_bytes", "log_share", "rows", "base_rows"),
)
_SERVICE = ("instant", "state", "file_groups", "rows", "bytes_written")
Text = str | None
Limit = Annotated[int, Arg("the newest so many (0: all)", minimum=0)]
Count = Annotated[bool, Arg("merge logs, so that the rows of a merge-on-read table are known")]
DryRun = Annotated[bool, Arg("say what would be done, and change nothing")]
Instant = Annotated[str, Arg("as `timeline` shows it", is_word=True)]
Version = Annotated[int, Arg("table version", is_word=True, legal=("6", "8", "9"))]
Index = Annotated[str, Arg(f"index of the metadata table: {', '.join(INDEXES)}", is_word=True)]
Commit = Annotated[str, Arg("as `timeline` shows it, or the comment of its savepoint", is_word=True)]
Plan = Annotated[Text, Arg("a plan that is pending; else the next one, or a new one", is_word=True)]
COMPACTION_OPS, CLUSTERING_OPS = ("run", "schedule", "show"), ("run", "schedule", "execute", "show")
_OP = "run, only schedule a new plan, or show the plans"
CompactionOp = Annotated[str, Arg(_OP, legal=COMPACTION_OPS, switches=("schedule",))]
ClusteringOp = Annotated[
    str, Arg(f"{_OP}; execute runs what is planned", legal=CLUSTERING_OPS, switches=("schedule", "execute"))
]


@Operation
def timeline(
    call: Call, action: Annotated[Text, Arg("only instants of this action")] = None, limit: Limit = 20
) -> Answer:
    """List the instants of the active timeline, newest first."""
    found = instant_facts(call.state)[::-1]
    shown = [each for each in found if action in (None, each.action)]
    rows = [cells_of(each, *_INSTANT) for each in shown[: limit or None]]
    actions = ", ".join(sorted({each.action for each in found})) or "none"
    return Answer(rows, notes=[] if rows or not action else [f"no {action}; actions there: {actions}"])


@Operation
def commits(call: Call, limit: Limit = 20) -> Answer:
    """List what each write did: rows, files, bytes, seconds."""
    return Answer(list(map(commit_cells, commit_facts(call.state, limit or None))))


@Operation
def files(
    call: Call,
    partition: Annotated[Text, Arg("only of this partition")] = None,
    as_of: Annotated[Text, Arg("of the table at an instant, moment or savepoint")] = None,
) -> Answer:
    """List the base and log files that a snapshot reads."""
    found = file_facts(call.state, as_of=None if as_of is None else instant_as_of(call.state, as_of))
    wanted = None if partition is None else partition.strip("/")
    if wanted is not None:
        check_partition(wanted, {each.partition for each in found})
    names = ("path", "kind", "instant", "size_bytes", "modified_at")
    return Answer([cells_of(each, *names) for each in found if wanted in (None, each.partition)])


@Operation
def partitions(call: Call) -> Answer:
    """List the partitions with their file groups, files and bytes."""
    return Answer([asdict(each) for each in partition_facts(call.state.view().latest_slices())])


@Operation
def lookup(
    call: Call,
    keys: Annotated[tuple[str, ...], Arg("record keys, as in _hoodie_record_key", is_word=True)],
    columns: Annotated[tuple[str, ...] | None, Arg("only these columns")] = None,
) -> Answer:
    """Show the rows of some record keys, and what of the table was read for them."""
    options = call.services.options.raw
    wanted = looked_up(call.state, keys, columns or None, options=options).schema.names
    found = looked_up(call.state, keys, [*dict.fromkeys([*wanted, RECORD_KEY])], options=options)
    table = found.to_arrow()
    there = set(table.column(RECORD_KEY).to_pylist())
    notes = [str(each) for each in found.plan.steps if each.skipped]
    lacking = [each for each in dict.fromkeys(keys) if each not in there]
    if lacking:
        notes.append(f"the table has no row with {', '.join(lacking)}")
    return Answer(table.select(wanted).to_pylist(), notes=notes, of_table=True)


@Operation
def explain(
    call: Call,
    filters: Annotated[
        tuple[str, ...], Arg("conditions that all hold, such as 'amount >= 3' or 'id in k1,k2'", is_word=True)
    ],
) -> Answer:
    """Show which files a read with filters opens and what each index skips, without reading rows."""
    schema, options = filtered(call.state).full_schema, call.services.options.raw
    tuples = [parse_filter(each, schema) for each in filters]
    plan = filtered(call.state, filters=tuples, options=options).plan
    facts = {"file_slices": plan.seen, "read": len(plan.slices), "bytes_read": plan.bytes_read}
    rows = [
        {"index": each.by, "of": each.of, "seen": each.seen, "skipped": each.skipped} for each in plan.steps
    ]
    return Answer(rows, {**facts, "listed": plan.is_listed}, rows_name="indexes")


@Operation
def stats(call: Call, count: Count = False) -> Answer:
    """Show rows, bytes, small files, the share of logs, and the services that are due."""
    found = table_stats(call.state, call.services.options, count_rows=count)
    facts = {**cells_of(found, *_STATS), "partitions": len(found.partitions)}
    facts["indexes"] = ", ".join(found.indexes) or None
    due = [{"service": each.service, "due": each.due, "because": each.reason} for each in found.services]
    notes = [] if found.rows is not None else ["rows are not known without merging the logs: set count"]
    if not found.commits:
        notes.append("the table has no commit yet: its files and rows come with the first write")
    return Answer(due, facts, notes, rows_name="services")


@Operation
def validate(
    call: Call,
    keys: Annotated[bool, Arg("read all keys too, to find duplicates")] = False,
    deep: Annotated[
        bool, Arg("read every data file too, and compare its pages with their checksums")
    ] = False,
) -> Answer:
    """Compare timeline and files, and on request look for duplicate keys; fails when readers see wrong rows."""
    findings = findings_of(call.state)
    if deep:
        findings += damaged_files(call.state, call.services.options)
    if keys:
        findings += duplicate_keys(call.state, call.services.options)
    rows = [
        {"problem": each.problem, "harm": each.harms, "path": each.path, "what": each.message}
        for each in findings
    ]
    harms = Counter(each.harms for each in findings)
    notes = [f"{harms[True]} with harm, {harms[False]} without" if findings else "timeline and files agree"]
    ended = left_by_ended(call.state.storage, call.state.timeline)
    if ended:
        notes.append(
            f"unfinished writes whose process has ended: {', '.join(ended)}; the next write rolls them back"
        )
    return Answer(rows, notes=notes, ok=not harms[True], rows_name="findings")


@Operation
def verify(
    call: Call,
    as_of: Annotated[Text, Arg("the table at an instant, moment or savepoint")] = None,
    note: Annotated[
        bool, Arg("note what is counted in a commit, where there is no receipt: later commits keep it up")
    ] = False,
    strict: Annotated[bool, Arg("fail where there is no receipt")] = False,
) -> Answer:
    """Count the rows and their content hash in one pass, and compare them with the receipt of the commits."""
    side = Side(call.state, call.services.options.raw, as_of)
    found = verified(side)
    counted, receipt = found.counted, found.noted
    facts = {"instant": found.instant, "rows": counted.rows, "hash": counted.text}
    if found.has_logs:
        facts |= {"base_file_rows": found.in_base_files.rows, "base_file_hash": found.in_base_files.text}
    if receipt.since is None:
        facts["receipt"] = "matches" if found.ok else f"{receipt.rows} rows, hash {receipt.text}"
        where = "base files have" if found.has_logs else "table has"
        notes = [] if found.ok else [f"the {where} other rows than the commits have written"]
        if found.ok and found.has_logs:
            notes = ["the receipt is of the base files; rows in logs count once they are compacted"]
        return Answer(facts=facts, notes=notes, ok=found.ok)
    facts["receipt"] = f"none at {receipt.since}"
    if not note or as_of is not None:
        notes = [
            "nothing is proved: a write did not note what it changed. With note the newest state gets a receipt"
        ]
        return Answer(facts=facts, notes=notes, ok=not strict)
    # Writes load more than the operations that only look.
    from hudi_engine.table.write import metadata_only

    def count(state: TableState) -> tuple[int, int]:
        same = newest_write(state.timeline) == newest_write(call.state.timeline)
        now = found if same else verified(Side(state, call.services.options.raw))
        return now.in_base_files.rows, now.in_base_files.hash

    done = metadata_only.note_receipt(call.services.storage, count, call.services.options)
    call.services.after_commit()
    return Answer(facts=facts, notes=[f"receipt noted by commit {done.instant}"])


@Operation
def diff(
    call: Call,
    other: Annotated[Text, Arg("folder of the other table; else this table", is_word=True)] = None,
    as_of: Annotated[Text, Arg("this table at an instant, moment or savepoint")] = None,
    other_as_of: Annotated[Text, Arg("the other one at an instant, moment or savepoint")] = None,
    limit: Annotated[int, Arg("keys of each kind that are shown", minimum=0)] = 5,
) -> Answer:
    """Compare two tables, or two states of one: by receipts at once where both have the same, else by key."""
    if other is None and as_of == other_as_of:
        raise ConfigError(
            "diff has nothing to compare; give another table, or as_of for an earlier state of this one"
        )
    state = call.state if other is None else TableState.load(table_storage(other))
    options = call.services.options.raw
    here, there = Side(call.state, options, as_of), Side(state, options, other_as_of)
    found = difference(here, there, limit)
    counts = ("here", "there", "only_here", "only_there", "changed")
    how = "the receipts of both" if found.by_receipts else "key and hash"
    notes = [f"the same rows, by {how}"] if found.is_none else []
    return Answer(found.examples, cells_of(found, *counts), notes, ok=found.is_none, rows_name="examples")


@Operation
def report(
    call: Call,
    output: Annotated[Text, Arg("file of the page; else TABLE-report.html in this folder")] = None,
    count: Count = False,
) -> Answer:
    """Write an HTML page about the table: commits, rows and bytes over time, files, partitions, services due."""
    written = write_report(call.state, call.services.options, output, count_rows=count)
    return Answer(facts={"report": str(written.path), "bytes": written.bytes})


@Operation
def manifest(
    call: Call, names: Annotated[bool, Arg("the names of the files instead of their URIs")] = False
) -> Answer:
    """Write the base files of the newest state into a text file, a line each, as Hudi's BigQuery sync does.

    Source: Hudi's ManifestFileWriter. Readers of Parquet that take a list of files read the table by it, without its logs.
    """
    storage, files = call.services.storage, call.state.whole_view().latest_base_files()
    folder = "manifest" if names else "absolute-path-manifest"
    path = f".hoodie/{folder}/latest-snapshot.csv"
    lines = sorted(each.name if names else public_location(storage.uri(each.path)) for each in files)
    storage.replace(path, "".join(f"{each}\n" for each in lines).encode())
    logged = call.state.config.table_type is TableType.MERGE_ON_READ
    notes = ["rows in logs come into it with the next compaction"] if logged else []
    return Answer(
        facts={"manifest": public_location(storage.uri(path)), "base_files": len(lines)}, notes=notes
    )


@Operation
def compactions(call: Call) -> Answer:
    """List the compactions on the active timeline, pending and completed, newest first."""
    found = call.services.compactions()[::-1]
    return Answer([asdict(each) for each in found], rows_name="compactions")


@Operation
def clusterings(call: Call) -> Answer:
    """List the clusterings on the active timeline, pending and completed, newest first."""
    found = call.services.clusterings()[::-1]
    rows = [{**asdict(each), "partitions": ",".join(each.partitions)} for each in found]
    return Answer(rows, rows_name="clusterings")


@Operation
def savepoints(call: Call) -> Answer:
    """List the saved commits, oldest first."""
    rows = [
        {
            "instant": each.instant,
            "saved_at": datetime.fromtimestamp(each.saved_at_ms / 1000, timezone.utc),
            "files": sum(map(len, each.files.values())),
            "user": each.user,
            "comments": each.comments,
        }
        for each in call.services.savepoints()
    ]
    return Answer(rows)


@Operation
def savepoint(
    call: Call,
    instant: Annotated[Text, Arg("a completed write; else the newest", is_word=True)] = None,
    user: Annotated[str, Arg("who saves it")] = "",
    comments: Annotated[str, Arg("why; names the commit in `restore`, `files` and time travel")] = "",
    delete: Annotated[bool, Arg("release the savepoint")] = False,
) -> Answer:
    """Save a commit: clean keeps its files, and the table can be restored to it."""
    if delete:
        if instant is None:
            raise ConfigError("delete needs the instant or comment of a savepoint; `savepoints` lists them")
        return delete_savepoint(call, instant)
    saved = call.services.savepoint(instant, user=user, comments=comments)
    return Answer(facts={"instant": saved.instant, "files": sum(map(len, saved.files.values()))})


@Operation
def delete_savepoint(call: Call, instant: Commit) -> Answer:
    """Release a savepoint: the next clean may delete the files of its commit."""
    return Answer(facts={"deleted": call.services.delete_savepoint(instant)})


@operation(changes=True, is_service=True)
def compact(call: Call, op: CompactionOp = "run", instant: Plan = None) -> Answer:
    """Merge logs into base files."""
    if op == "show":
        return compactions(call)
    _check_plan(op, instant)
    services = call.services
    done = services.schedule_compaction() if op == "schedule" else services.compact(instant)
    return Answer(facts=cells_of(done, *_SERVICE, "files_compacted", "files_written"), reason=done.reason)


@dataclass(frozen=True)
class ClusteringLayout:
    """Which rows a clustering takes, and their order."""

    columns: Annotated[
        tuple[str, ...] | str | None,
        Arg("columns by which rows are ordered, with commas between", flag="--by"),
    ] = None
    strategy: Annotated[Text, Arg(f"order of rows: {', '.join(LayoutStrategy)}")] = None
    partitions: Annotated[tuple[str, ...] | None, Arg("partition paths to look at, with commas between")] = (
        None
    )
    where: Annotated[Text, Arg("or a condition on the partition columns; needs Spark")] = None


@operation(changes=True, is_service=True)
def cluster(
    call: Call,
    layout: ClusteringLayout,
    op: ClusteringOp = "run",
    dry_run: DryRun = False,
    instant: Plan = None,
) -> Answer:
    """Rewrite files in a good size and order."""
    if op == "show":
        return clusterings(call)
    _check_plan(op, instant)
    if dry_run and (instant or op == "execute"):
        raise ConfigError("dry_run shows what a new plan would take; leave instant and op out")
    services = call.services.for_clustering(**asdict(layout))
    if op == "schedule" or dry_run:
        done = services.schedule_clustering(dry_run=dry_run)
    else:
        done = services.cluster(instant, plans=op != "execute")
    facts = cells_of(done, *_SERVICE, "groups", "files_read", "files_written")
    would = dry_run and not done.reason
    notes = [f"file groups that would be rewritten: {done.file_groups}"] if would else []
    is_plan = done.state != "completed"
    rows = [{"partition": each} for each in done.partitions] if is_plan else []
    return Answer(rows, facts, notes, done.reason, rows_name="partitions")


@operation(changes=True, is_service=True)
def clean(
    call: Call,
    retain_commits: Annotated[int | None, Arg("commits whose files stay", flag="--retain")] = None,
    dry_run: DryRun = False,
) -> Answer:
    """Delete files that no retained commit needs."""
    _check_policy(call, retain_commits)
    if dry_run:
        going = call.services.would_be_cleaned(retain_commits)
        return Answer([{"path": path} for path in going], notes=[f"{len(going)} files would be deleted"])
    done = call.services.clean(retain_commits)
    facts = cells_of(done, "instant", "files_deleted", "files_kept", "partitions", "earliest_retained")
    return Answer(facts=facts, reason=done.reason)


@operation(changes=True, is_service=True)
def archive(
    call: Call,
    min_commits: Annotated[int | None, Arg("completed commits that stay (default 20)", flag="--min")] = None,
    max_commits: Annotated[
        int | None, Arg("completed commits above which older ones go (default 30)", flag="--max")
    ] = None,
    dry_run: DryRun = False,
) -> Answer:
    """Move the oldest instants to the archive."""
    done = call.services.archive(min_commits, max_commits, dry_run=dry_run)
    if done.reason:
        return Answer(reason=done.reason)
    if dry_run:
        named = [name.partition(".") for name in done.instants]
        rows = [{"instant": time, "action": action} for time, _, action in named]
        return Answer(rows, notes=[f"{len(rows)} instants would leave the active timeline"])
    facts = {"archived": len(done.instants), "file": done.file, "merged_files": done.merged_files}
    return Answer(facts=facts)


@operation(changes=True)
def repair(
    call: Call,
    kinds: Annotated[
        tuple[str, ...] | None,
        Arg(f"without one all but {DUPLICATE_KEYS}, which reads all keys", legal=KINDS, is_word=True),
    ] = None,
    dry_run: DryRun = True,
    partitions: Annotated[
        tuple[str, ...] | None, Arg(f"{DUPLICATE_KEYS}: only in these partitions", flag="--partition")
    ] = None,
) -> Answer:
    """Repair what `validate` finds."""
    found = call.services.repair(kinds or None, dry_run=dry_run, partitions=partitions)
    rows = [{"kind": each.kind, "path": each.path, "what": each.done} for each in found]
    return Answer(rows, notes=[f"{len(rows)} repairs {'would be made' if dry_run else 'made'}"])


@operation(changes=True)
def rollback(call: Call, instant: Instant, dry_run: DryRun = False) -> Answer:
    """Undo the newest write, or a pending one."""
    if dry_run:
        going = call.services.would_be_rolled_back(instant)
        rows = [{"path": path, "what": "deleted"} for path in going.deleted_paths]
        rows += [{"path": path, "what": "its blocks voided"} for path in going.voided_paths]
        return Answer(rows, notes=[f"{going.action} {going.instant} would be undone, in {len(rows)} files"])
    done = call.services.rollback(instant)
    facts = {"rolled_back": done.instant, "by": done.rollback_time, "files_deleted": len(done.deleted)}
    return Answer(facts={**facts, "rollback_blocks": len(done.command_blocks)})


@operation(changes=True)
def restore(call: Call, instant: Commit, dry_run: DryRun = False) -> Answer:
    """Restore the table to a commit; later writes are removed for good."""
    if dry_run:
        going = call.services.would_be_undone(instant)
        rows = [{"instant": time, "action": action} for time, action in going]
        return Answer(rows, notes=[f"{len(rows)} later instants would be removed, with the files they wrote"])
    done = call.services.restore(instant)
    facts = {"restored_to": done.target, "by": done.restore_time, "taken_back": len(done.taken_back)}
    facts |= {"files_deleted": len(done.deleted), "rollback_blocks": len(done.command_blocks)}
    return Answer(facts=facts, reason="" if done.restore_time else "the table is at that commit already")


@operation(changes=True)
def upgrade(call: Call, version: Version) -> Answer:
    """Upgrade the table to version 8 or 9 of its format; rows and history stay."""
    return _changed_version(call, lambda services: services.upgrade(version))


@operation(changes=True)
def downgrade(call: Call, version: Version) -> Answer:
    """Downgrade the table to version 8 or 6 of its format; rows and history stay."""
    return _changed_version(call, lambda services: services.downgrade(version))


def _changed_version(call: Call, change: Callable[[TableServices], VersionChange]) -> Answer:
    """Change the version, and name the indexes that have to be built again."""
    before = call.state.config.metadata_partitions
    done = change(call.services)
    after = TableConfig.load(call.services.storage).metadata_partitions
    lost = [each for each in before if each not in (*after, "files", "partition_stats")]
    notes = [f"indexes that went, and are to be built again: {', '.join(lost)}"] if lost else []
    facts = {"version": done.after, "before": done.before, "instants": done.instants}
    return Answer(facts={**facts, "compactions": len(done.compactions)}, notes=notes, reason=done.reason)


@operation(changes=True)
def create_index(
    call: Call,
    index: Index,
    columns: Annotated[
        tuple[str, ...] | None, Arg("columns of column_stats, else the first 32; column of a secondary index")
    ] = None,
    expression: Annotated[
        str | None, Arg("expression of an expr_index_NAME, such as to_date(ordered_at)")
    ] = None,
) -> Answer:
    """Build an index of the metadata table over the table as it is; writes keep it up to date from then on."""
    parsed = None if expression is None else Expression.parse(expression)
    built = call.services.create_index(index, columns or (), parsed)
    return Answer(
        facts={"built": ", ".join(built)} if built else {},
        reason="" if built else f"{index} is there already",
    )


@Operation
def indexes(call: Call) -> Answer:
    """List the indexes of the metadata table, as SHOW INDEXES does."""
    found = index_facts(call.state.storage, call.state.config)
    rows = [{"index_name": name, "index_type": kind, "col_name": columns} for name, kind, columns in found]
    return Answer(rows, rows_name="indexes")


@operation(changes=True)
def drop_index(call: Call, index: Index) -> Answer:
    """Drop an index of the metadata table; files drops the whole metadata table, record_index the secondary indexes too."""
    dropped = call.services.drop_index(index)
    return Answer(
        facts={"dropped": ", ".join(dropped)} if dropped else {},
        reason="" if dropped else f"there is no {index}",
    )


@operation(changes=True)
def delete_partitions(
    call: Call,
    partitions: Annotated[
        tuple[str, ...] | str, Arg("partition paths, a list or a text with commas between", is_word=True)
    ],
    dry_run: DryRun = False,
) -> Answer:
    """Delete whole partitions, as one commit."""
    # Writes load more than the operations that only look.
    from hudi_engine.table.write import metadata_only

    slices = call.state.view().latest_slices()
    paths = named_partitions(partitions, {each.partition for each in slices})
    if not paths:
        raise ConfigError(
            f"partitions is {partitions!r}; give a list of partition paths such as ['day=2026-01-01']"
        )
    if dry_run:
        going = metadata_only.partitions_there(call.state, paths)
        rows = [asdict(each) for each in partition_facts(call.state.view(going).latest_slices())]
        return Answer(rows, notes=[f"{len(rows)} partitions would be deleted"])
    done = metadata_only.delete_partitions(call.services.storage, paths, call.services.options)
    call.services.after_commit()
    return Answer(facts={"instant": done.instant, "partitions": len(paths)})


@operation(changes=True)
def clone(
    call: Call,
    path: Annotated[
        str, Arg("folder of the clone, on the same file system or in the same bucket", is_word=True)
    ],
    name: Annotated[Text, Arg("name of the clone; else the last part of the path")] = None,
    at: Annotated[Text, Arg("instant, moment or savepoint; else the newest commit")] = None,
    replace: Annotated[bool, Arg("replace a table that is there")] = False,
    copy: Annotated[bool, Arg("copy files that cannot be shared")] = False,
) -> Answer:
    """Make a table that shares the base files of this one."""
    return Answer(facts=asdict(call.services.clone(path, name=name, at=at, replace=replace, copy=copy)))


def named_partitions(given: str | Sequence[str], known: Collection[str]) -> Sequence[str]:
    """Return partition paths; in a text they have commas between, and where paths have commas too those that are there."""
    if not isinstance(given, str):
        return given
    pieces = given.split(",")
    longest = max((each.count(",") + 1 for each in known), default=1)
    readings: list[list[tuple[str, ...]]] = [[()]]
    for end in range(1, len(pieces) + 1):
        found = []
        for start in range(max(0, end - longest), end):
            path = ",".join(pieces[start:end]).strip().strip("/")
            if path in known or not path:
                found += [(*before, path) if path else before for before in readings[start]]
        readings.append(found[:2])
    if len(readings[-1]) > 1:
        ways = " or ".join(str(list(each)) for each in readings[-1])
        raise ConfigError(
            f"{given!r} can be the partitions {ways}; DELETE FROM ... WHERE takes the rows of one out, and "
            "HudiTable.delete_partitions takes a list"
        )
    return readings[-1][0] if readings[-1] else split_names(given)


def _check_plan(op: str, instant: str | None) -> None:
    if op == "schedule" and instant is not None:
        raise ConfigError("op schedule makes a new plan; leave the instant out, or leave op out")


def _check_policy(call: Call, retain_commits: int | None) -> None:
    """Refuse a number of commits next to a policy of the same call that does not look at it."""
    for key, value in call.given.items():
        of_policy = canonical_key(key) == CleanOptions.POLICY.key
        if retain_commits and of_policy and str(value).strip().upper() != CleanPolicy.KEEP_LATEST_COMMITS:
            raise ConfigError(
                f"retain_commits is {retain_commits}, which counts only with {CleanPolicy.KEEP_LATEST_COMMITS}, and options "
                f"has {key}: {value}; leave one of the two out"
            )
