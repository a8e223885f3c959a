"""Which instants leave the active timeline (the rules of Apache Hudi 0.15's archiver, and some more care).

Writes go from the oldest on and without holes, as a reader takes every instant before the first active write
for committed. Each limit is a bound: the write at the bound and all later ones stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hudi_engine.format.config.declared.service_options import ArchiveOptions, CleanOptions, CompactionOptions
from hudi_engine.format.config.enums import CleanPolicy, TableType
from hudi_engine.format.config.options import Options
from hudi_engine.format.filegroup.base_file import parse_base_file
from hudi_engine.format.filegroup.log_file import parse_log_file
from hudi_engine.format.filegroup.view import list_partition_files
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.instant import WRITE_ACTIONS, Instant
from hudi_engine.table.services.clean.plan import LastClean, Policy
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.consumers import oldest_needed


@dataclass(frozen=True)
class Limits:
    """How many completed instants of a kind stay on the active timeline."""

    keep_min: int  # that many stay when instants are archived
    keep_max: int  # nothing is archived while there are no more than this

    @classmethod
    def of(cls, timeline: Timeline, options: Options, now: str) -> Limits | None:
        """Take ``hoodie.keep.*``, raised to what the cleaner retains; None when it retains everything."""
        keep_min, keep_max = options[ArchiveOptions.MIN_COMMITS], options[ArchiveOptions.MAX_COMMITS]
        needed = _kept_for_clean(timeline, options, now)
        if needed is None:
            return None
        more = max(0, needed - keep_min)
        return cls(keep_min + more, keep_max + more)

    def due(self, count: int) -> bool:
        """Return whether so many instants are too many."""
        return count > self.keep_max


@dataclass(frozen=True)
class Selection:
    """What goes to the archive."""

    instants: tuple[Instant, ...] = ()
    reason: str = ""


def _retaining(policy: CleanPolicy, options: Options) -> str:
    """Name the option for how much a policy retains."""
    if policy is not CleanPolicy.KEEP_LATEST_COMMITS:
        return ""
    option = CleanOptions.COMMITS_RETAINED
    return f": {option.key} is {options[option]}, and what it retains is not archived"


def archive_due(timeline: Timeline, options: Options, now: str) -> str:
    """Return why nothing is to be archived, going by numbers alone; ``""`` when something may be."""
    if not timeline.completed_writes:
        return "the table has no commit yet"
    limits = Limits.of(timeline, options, now)
    if limits is None:
        policy = options[CleanOptions.POLICY]
        return f"the cleaning policy {policy} retains every commit there is{_retaining(policy, options)}"
    counts = [len(timeline.completed_writes), *(len(done) for done in _by_action(timeline).values())]
    if any(limits.due(count) for count in counts):
        return ""
    above = f"{limits.keep_max} ({ArchiveOptions.MAX_COMMITS})"
    return f"the timeline has {counts[0]} completed commits; archiving begins above {above}"


def clean_lags(state: TableState, options: Options, now: str) -> bool:
    """Return whether the last clean has not looked as far as archiving would go."""
    limits = Limits.of(state.timeline, options, now)
    writes = state.timeline.completed_writes
    if limits is None or not limits.due(len(writes)):
        return False
    last = LastClean.of(state)
    return last is None or last.since < writes[len(writes) - limits.keep_min].requested_time


def select_instants(state: TableState, options: Options, now: str) -> Selection:
    """Choose what goes to the archive."""
    reason = archive_due(state.timeline, options, now)
    limits = Limits.of(state.timeline, options, now)
    if reason or limits is None:
        return Selection(reason=reason)
    writes = state.timeline.completed_writes
    going: list[Instant] = []
    if limits.due(len(writes)):
        for write in _free_writes(state, options):
            if len(going) == len(writes) - limits.keep_min:
                break
            going.append(write)
    left = {write.requested_time for write in writes} - {write.requested_time for write in going}
    saved = {each.requested_time for each in state.timeline.savepoints}
    first_left = min(left - saved, default="")
    for done in _by_action(state.timeline).values():
        if limits.due(len(done)):
            old = done[: len(done) - limits.keep_min]
            going += [each for each in old if each.requested_time < first_left]
    if state.config.table_version.keeps_history:
        going = _with_all_older(state.timeline, going)
    if not going:
        return Selection(
            reason="a savepoint, a pending instant, a due compaction or a file not yet cleaned holds the rest; compact and clean, "
            "or delete the savepoint"
        )
    return Selection(tuple(sorted(going)))


def _with_all_older(timeline: Timeline, going: list[Instant]) -> list[Instant]:
    """Return what goes, with all other instants but savepoints that are older than the newest write of it.

    Apache Hudi 1.x takes archived instants that are younger than the first active one for pending, of whatever action that is,
    and its compaction would leave their logs out.
    """
    newest = max((each.requested_time for each in going if each.action in WRITE_ACTIONS), default="")
    older = {
        each
        for each in timeline.completed
        if each.requested_time < newest and each.action not in (*WRITE_ACTIONS, "savepoint")
    }
    return [*going, *(older - set(going))]


def _kept_for_clean(timeline: Timeline, options: Options, now: str) -> int | None:
    """Return how many of the newest writes the cleaner needs to find on the timeline; None for all."""
    policy = Policy.from_options(options)
    if not policy.retains_instants:
        return 0
    retained = policy.earliest_retained(timeline, now)
    if retained is None:
        return None
    later = sum(write.requested_time > retained.time for write in timeline.completed_writes)
    return max(later, policy.amount if policy.name is CleanPolicy.KEEP_LATEST_COMMITS else 0) + 2


def _by_action(timeline: Timeline) -> dict[str, list[Instant]]:
    """Return the completed cleans and rollbacks; restores and savepoints stay, as with Apache Hudi."""
    return {
        action: [each for each in timeline.completed if each.action == action]
        for action in ("clean", "rollback")
    }


def _free_writes(state: TableState, options: Options) -> Iterator[Instant]:
    """Yield the writes that nothing holds back, oldest first."""
    timeline = state.timeline
    saved = {each.requested_time for each in timeline.savepoints}
    has_history = state.config.table_version.keeps_history
    beyond = options[ArchiveOptions.BEYOND_SAVEPOINT] and not has_history
    bounds = [_pending_bound(timeline), _compaction_bound(state, options)]
    bounds.append(_last_that_counts(timeline) if beyond else min(saved, default=None))
    bounds.append(oldest_needed(state.storage))
    bound = min((each for each in bounds if each is not None), default=None)
    replaced = ReplacedGroups(state)
    for write in timeline.completed_writes:
        if bound is not None and write.requested_time >= bound:
            return
        if write.requested_time in saved:
            continue
        if write.action == "replacecommit" and replaced.may_show_again(write):
            return
        yield write


def _last_that_counts(timeline: Timeline) -> str | None:
    """Return the newest write without a savepoint that is younger than a saved one: archived ones between them count by it."""
    saved = {each.requested_time for each in timeline.savepoints}
    free = [each.requested_time for each in timeline.completed_writes if each.requested_time not in saved]
    return free[-1] if free and saved and min(saved) < free[-1] else None


_HOLD_NOTHING = frozenset({"clean", "indexing"})


def _pending_bound(timeline: Timeline) -> str | None:
    """Return the newest write before whatever is under way, so that the pending instant is never the first.

    A clean has its own bound, and an index that another writer builds in the metadata table looks at no write of the archive;
    a builder that died would otherwise hold the timeline forever. In a history nothing active may be older than what it holds.
    """
    free = frozenset() if timeline.config.table_version.keeps_history else _HOLD_NOTHING
    pending = [each.requested_time for each in timeline.pending if each.action not in free]
    if not pending:
        return None
    before = [each.requested_time for each in timeline.completed_writes if each.requested_time < pending[0]]
    return before[-1] if before else pending[0]


def _compaction_bound(state: TableState, options: Options) -> str | None:
    """Return the instant from which on the delta commits are counted that make the next compaction due."""
    if state.config.table_type is not TableType.MERGE_ON_READ:
        return None
    compactions = [each.requested_time for each in state.timeline.completed if each.action == "commit"]
    last = max(compactions, default=None)
    deltas = [
        each.requested_time
        for each in state.timeline.completed
        if each.action == "deltacommit" and (last is None or each.requested_time > last)
    ]
    enough = options[CompactionOptions.DELTA_COMMITS]
    if len(deltas) >= enough:
        return deltas[len(deltas) - enough]
    return last if last is not None else min(deltas, default=None)


class ReplacedGroups:
    """Looks for files of replaced file groups; every partition is listed once at most."""

    def __init__(self, state: TableState) -> None:
        self._state = state
        self._file_ids: dict[str, frozenset[str]] = {}
        self._clean = LastClean.of(state)

    def may_show_again(self, write: Instant) -> bool:
        """Return whether a file of a group that the write replaced is still there.

        A clean that left nothing behind proves it for what was replaced before its oldest retained instant;
        otherwise the folders are looked at.
        """
        replaced = self._state.timeline.commit_metadata(write).replaced
        if not replaced:
            return False
        clean = self._clean
        if clean is not None and clean.left_nothing and write.requested_time < clean.since:
            return False
        return any(file_id in self._present(partition) for partition, file_id in replaced)

    def _present(self, partition: str) -> frozenset[str]:
        if partition not in self._file_ids:
            found = set()
            for status in list_partition_files(self._state.storage, partition):
                file = parse_base_file(status.name, partition) or parse_log_file(status.name, partition)
                if file is not None:
                    found.add(file.file_id)
            self._file_ids[partition] = frozenset(found)
        return self._file_ids[partition]
