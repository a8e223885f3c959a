"""The repairs, under the table's lock.

* ``partition_metadata``: folders that hold base files of commits get their partition metadata.
* ``orphan_files``: base files that no commit names, of instants that are not under way, are deleted.
* ``damaged_plans``: plans of cleans and compactions that were cut short are dropped; not one that logs of later writes are
  named after.
* ``duplicate_keys``: of rows with one key in a partition the newest stays, in a commit of its own. All keys are read, so
  it is done only when it is named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from hudi_engine.errors import ConfigError, CorruptTableError
from hudi_engine.format.config.options import Options
from hudi_engine.format.filegroup.base_file import parse_base_file
from hudi_engine.format.filegroup.partition_metadata import ensure_partition_metadata
from hudi_engine.format.filegroup.view import list_partition_files
from hudi_engine.format.storage.base import Storage, storage_errors
from hudi_engine.format.timeline.instant import Instant, State
from hudi_engine.format.timeline.writer import TimelineWriter
from hudi_engine.table.inspect import Finding, validate
from hudi_engine.table.repair.duplicates import delete_duplicates, look_for_duplicates
from hudi_engine.table.services.compaction.plan import check_droppable
from hudi_engine.table.services.planned import open_locked
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.publication import Publication
from hudi_engine.table.txn.recovery import table_lock

_DROPPED: Mapping[str, tuple[State, ...]] = MappingProxyType(
    {
        "clean": (State.REQUESTED, State.INFLIGHT),
        "compaction": (State.REQUESTED,),
        "logcompaction": (State.REQUESTED,),
    }
)
"""Actions whose damaged plans can go, by the states in which nothing is lost with them. A clean that was begun
is planned again; a compaction that was begun may have written files and is rolled back instead."""


@dataclass(frozen=True)
class Repair:
    """One thing that was repaired, or would be."""

    kind: str
    path: str
    done: str


def repair(
    storage: Storage,
    options: Options,
    publication: Publication,
    *,
    kinds: tuple[str, ...] | None = None,
    dry_run: bool = True,
    partitions: Sequence[str] | None = None,
) -> list[Repair]:
    """Repair a table, or say what would be repaired: some kinds, or for None all but ``duplicate_keys``."""
    unknown = [kind for kind in kinds or () if kind not in KINDS]
    if unknown:
        raise ConfigError(f"repair {unknown[0]!r} is unknown; legal values: {', '.join(KINDS)}")
    chosen = [kind for kind in (kinds or KINDS[:-1]) if kind != DUPLICATE_KEYS]
    if partitions is not None and chosen:
        raise ConfigError(
            f"repair {chosen[0]!r} looks at the whole table, and partitions are named; leave them out, or repair "
            f"{DUPLICATE_KEYS!r} alone, which looks at partitions"
        )
    found = _of_files(storage, options, publication, chosen, dry_run) if chosen else []
    if DUPLICATE_KEYS in (kinds or ()):
        found += _duplicate_keys(storage, options, None if dry_run else publication, partitions)
    return found


def _of_files(
    storage: Storage, options: Options, publication: Publication, chosen: Sequence[str], dry_run: bool
) -> list[Repair]:
    """Repair what is wrong with files and plans; damaged plans before everything else."""
    if dry_run:
        state = TableState.load(storage)
        found = _damaged_plans(state, True) if DAMAGED_PLANS in chosen else []
        return found + _of_findings(state, chosen, True)
    with storage_errors(storage, "repair"), table_lock(storage, options):
        # Damaged plans go first: opening the table for writing fails on them.
        state = TableState.load(storage)
        state.config.check_writable()
        done = _damaged_plans(state, False) if DAMAGED_PLANS in chosen else []
        state = open_locked(storage, options, publication)
        return done + _of_findings(state, chosen, False)


def _of_findings(state: TableState, chosen: Sequence[str], dry_run: bool) -> list[Repair]:
    """Repair what one look at the table's files has found."""
    repairs = [_OF_FINDINGS[kind] for kind in chosen if kind in _OF_FINDINGS]
    findings = validate(state) if repairs else []
    return [done for each in repairs for done in each(state, findings, dry_run)]


def _duplicate_keys(
    storage: Storage, options: Options, publication: Publication | None, partitions: Sequence[str] | None
) -> list[Repair]:
    """Take rows out, or without a publication say which would go; one line a partition."""
    if publication is None:
        instant, found = None, look_for_duplicates(storage, options, partitions)[1]
    else:
        instant, found = delete_duplicates(storage, options, publication, partitions)
    rows: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for each in found:
        rows[each.piece.partition] += len(each.rows)
        examples.setdefault(each.piece.partition, each.keys[0].as_py())
    commit = "" if instant is None else f", in commit {instant}"
    return [
        Repair(
            DUPLICATE_KEYS,
            partition,
            f"{count} rows taken out whose key another row has, such as {examples[partition]!r}{commit}",
        )
        for partition, count in rows.items()
    ]


def _partition_metadata(state: TableState, findings: Sequence[Finding], dry_run: bool) -> list[Repair]:
    found = []
    for each in findings:
        if each.problem != "no_partition_metadata":
            continue
        instant = _first_commit(state, each.path)
        if instant is None:
            continue
        if not dry_run:
            ensure_partition_metadata(state.storage, each.path, instant)
        found.append(Repair("partition_metadata", each.path, f"partition metadata of commit {instant}"))
    return found


def _first_commit(state: TableState, partition: str) -> str | None:
    """Return the oldest committed instant that has a base file in a folder."""
    files = [
        parse_base_file(status.name, partition) for status in list_partition_files(state.storage, partition)
    ]
    instants = [
        file.instant for file in files if file is not None and state.timeline.is_committed(file.instant)
    ]
    return min(instants, default=None)


def _orphan_files(state: TableState, findings: Sequence[Finding], dry_run: bool) -> list[Repair]:
    orphans = [each for each in findings if each.problem == "orphan_file"]
    for each in orphans if not dry_run else ():
        state.storage.remove(each.path)
    return [Repair("orphan_files", each.path, f"deleted: {each.message}") for each in orphans]


def _damaged_plans(state: TableState, dry_run: bool) -> list[Repair]:
    found = []
    writer = TimelineWriter(state.storage, state.config)
    for instant in state.timeline.pending:
        if instant.state not in _DROPPED.get(instant.action, ()):
            continue
        try:
            whole = state.timeline.plan(instant) is not None
        except CorruptTableError:
            whole = False
        if whole:
            continue
        done = _kept(state, instant)
        if done is None:
            done = f"dropped {instant.action} {instant.requested_time}, whose plan was cut short"
            if not dry_run:
                writer.delete(instant.requested_time, instant.action, State.INFLIGHT, State.REQUESTED)
        found.append(Repair(DAMAGED_PLANS, f"{state.config.timeline_path}/{instant.file_name}", done))
    return found


def _kept(state: TableState, instant: Instant) -> str | None:
    """Say why a damaged plan must stay; None for one that may go."""
    if instant.action != "compaction":
        return None
    try:
        check_droppable(state, instant)
    except CorruptTableError as error:
        return f"kept: {error}"
    return None


_OF_FINDINGS: Mapping[str, Callable[[TableState, Sequence[Finding], bool], list[Repair]]] = MappingProxyType(
    {"partition_metadata": _partition_metadata, "orphan_files": _orphan_files}
)
DAMAGED_PLANS = "damaged_plans"
DUPLICATE_KEYS = "duplicate_keys"
KINDS = (*_OF_FINDINGS, DAMAGED_PLANS, DUPLICATE_KEYS)
