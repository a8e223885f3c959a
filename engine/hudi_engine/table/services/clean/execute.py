"""Running a clean: store the plan, delete, store the result.

A clean that was killed is finished by the next one from its stored plan; deleting what is deleted already is no
error. Readers come first: a published file list that names what is to go is renewed before anything goes, and
files that are needed by now are spared even if a stored plan names them.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from hudi_engine.errors import HudiError, ServiceError
from hudi_engine.format.config.declared.service_options import CleanOptions
from hudi_engine.format.config.enums import CleanPolicy
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.properties_file import HOODIE_FOLDER
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.view import FileSystemView
from hudi_engine.format.parallel import on_threads
from hudi_engine.format.storage.base import TEMP_PREFIX, Storage, storage_errors
from hudi_engine.format.storage.paths import join
from hudi_engine.format.telemetry.services import Done, measured
from hudi_engine.format.timeline.avro_file import decode_avro_file, encode_avro_file
from hudi_engine.format.timeline.instant import State
from hudi_engine.format.timeline.schemas import CLEAN_METADATA
from hudi_engine.table.metadata.writer import drop_unsupported_partitions
from hudi_engine.table.services.clean.plan import (
    COMPLETE,
    SAVEPOINTED,
    CleanPlan,
    Policy,
    RetainedInstant,
    partitions_to_clean,
)
from hudi_engine.table.services.planned import open_locked
from hudi_engine.table.services.result import CleanResult
from hudi_engine.table.snapshot.manifest import live_manifest_files
from hudi_engine.table.snapshot.publication import publication_of
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.consumers import oldest_needed
from hudi_engine.table.txn.open_instant import OpenInstant, stored_plan
from hudi_engine.table.txn.owner import Liveness
from hudi_engine.table.txn.publication import Publication
from hudi_engine.table.txn.recovery import TEMPORARY_KEPT_MS, next_instant, table_lock

logger = logging.getLogger(__name__)

_MANY_PARTITIONS = 200
_METADATA_VERSION = 2


def _done(result: CleanResult) -> Done | None:
    return None if result.instant is None else Done("clean", {"numFilesDeleted": result.files_deleted})


@measured(_done)
def clean(
    storage: Storage,
    options: Options,
    *,
    retain_commits: int | None = None,
    even_if_empty: bool = False,
    publish: Publication | None = None,
    state: TableState | None = None,
) -> CleanResult:
    """Delete the files of old slices; finish what a killed clean began first.

    Args:
        even_if_empty: Whether a clean that finds nothing is put on the timeline too, so that the next one and the
            archive know how far it looked.
    """
    options = retaining(options, retain_commits)
    idle = _nothing_to_do(state or TableState.load(storage), options)
    if idle is not None:
        return idle
    publication = publish if publish is not None else publication_of(storage)
    total = CleanResult()
    while True:
        with storage_errors(storage, "clean"), ExitStack() as stack:
            run = _begin(storage, options, publication, stack, even_if_empty)
            if isinstance(run, CleanResult):
                return run if total.instant is None else total
            total = _sum(total, run.carry_out(publication))
            if not run.resumed:
                return total


def retaining(options: Options, retain_commits: int | None) -> Options:
    """Return options by which the files of so many commits are kept; None leaves them as they are."""
    if retain_commits is None:
        return options
    policy = {CleanOptions.POLICY.key: CleanPolicy.KEEP_LATEST_COMMITS}
    return options.merged({**policy, CleanOptions.COMMITS_RETAINED.key: retain_commits})


def would_clean(state: TableState, options: Options) -> CleanPlan | CleanResult:
    """Return what a clean would delete now, or why nothing; nothing is written."""
    readers = Publication(publish=lambda _: None, live_files=lambda: live_manifest_files(state.storage))
    return make_plan(state, options, readers, now=next_instant(state.timeline))


def _nothing_to_do(state: TableState, options: Options) -> CleanResult | None:
    """Answer from the timeline alone, without lock and listing; that is what most commits need."""
    if any(each.action == "clean" for each in state.timeline.pending):
        return None
    policy = Policy.from_options(options)
    retained = policy.earliest_retained(state.timeline, next_instant(state.timeline))
    return _unmoved(state, options, policy, retained)


def _unmoved(
    state: TableState, options: Options, policy: Policy, retained: RetainedInstant | None
) -> CleanResult | None:
    if policy.retains_instants and retained is None:
        return CleanResult(reason=f"{policy.name} retains every commit there is")
    partitions = partitions_to_clean(state, options, retained)
    if partitions is not None and not partitions:
        return CleanResult(reason="no file has become obsolete since the last clean")
    return None


def _begin(
    storage: Storage, options: Options, publication: Publication, stack: ExitStack, even_if_empty: bool
) -> _Run | CleanResult:
    """Take a killed clean's plan, or make one, and go in flight; a result when there is nothing to carry out."""
    with table_lock(storage, options):
        state = open_locked(storage, options, publication)
        living = Liveness(storage, state.config, options)
        for pending in (each for each in state.timeline.pending if each.action == "clean"):
            if living.is_at_work(pending):
                return CleanResult(reason=f"clean {pending.requested_time} is being run by another process")
            stored = stored_plan(storage, state.config, pending, CleanPlan.from_bytes)
            if stored is None:
                OpenInstant(storage, state.config, pending.requested_time, "clean").drop()
                continue
            logger.info("finishing clean %s", pending.requested_time)
            _bring_past(state.config, stored.paths, publication, publication.live_files())
            opened = OpenInstant.claim(storage, state.config, options, pending)
            return _start(state, stack.enter_context(opened), stored, options, resumed=True)
        now = next_instant(state.timeline)
        plan = make_plan(state, options, publication, now=now, even_if_empty=even_if_empty, renew=True)
        if isinstance(plan, CleanResult):
            return plan
        opened = OpenInstant.announce(
            storage, state.config, state.timeline, "clean", plan.to_bytes(storage), owned_by=options
        )
        return _start(state, stack.enter_context(opened), plan, options, resumed=False)


def make_plan(
    state: TableState,
    options: Options,
    publication: Publication,
    *,
    now: str,
    even_if_empty: bool = False,
    renew: bool = False,
) -> CleanPlan | CleanResult:
    """Plan a clean of a table that was just read, or say why there is nothing to do.

    Args:
        renew: Bring the published list past what is obsolete, where it still names some of that.
    """
    policy = Policy.from_options(options)
    consumed = oldest_needed(state.storage)
    retained = policy.earliest_retained(state.timeline, now, consumed)
    unmoved = _unmoved(state, options, policy, retained)
    if unmoved is not None:
        return unmoved
    scope = partitions_to_clean(state, options, retained)
    view = state.view(scope)
    # A look at very many folders that found nothing is worth remembering: the next clean continues from it.
    even_if_empty = even_if_empty or (scope is None and len(view.partitions) > _MANY_PARTITIONS)
    saved = savepointed_paths(state, view)
    obsolete = {
        partition: [
            each for each in policy.obsolete(view, partition, retained, consumed) if not keeps(each, saved)
        ]
        for partition in view.partitions
    }
    live = publication.live_files()
    if renew:
        drop_temporaries(state, view, Liveness(state.storage, state.config, options).now_ms)
        going = (path for found in obsolete.values() for each in found for path in each.paths)
        live = _bring_past(state.config, going, publication, live)
    files, complete = _names_to_go(obsolete, needed_paths(state, live))
    complete = complete and (policy.retains_instants or consumed is None)
    writes = state.timeline.completed_writes
    keep_from = retained.time if retained is not None else writes[-1].requested_time if writes else ""
    _delete_sidecars(state.storage, publication, view, keep_from)
    if not files and not (even_if_empty and retained is not None):
        return CleanResult(reason="no file slice is obsolete")
    savepoints = ",".join(instant.requested_time for instant in state.timeline.savepoints)
    extra = {COMPLETE: "true" if complete else "false"}
    if savepoints:
        extra[SAVEPOINTED] = savepoints
    last = state.timeline.completed_writes[-1].requested_time
    return CleanPlan(policy.name.value, retained, last, files, extra, view)


def _names_to_go(
    obsolete: Mapping[str, Sequence[FileSlice]], needed: Needed
) -> tuple[dict[str, tuple[str, ...]], bool]:
    """Return the names of files by partition, and whether that is all of every slice."""
    going = {
        partition: [each for each in slices if not keeps(each, needed)]
        for partition, slices in obsolete.items()
    }
    names = {
        partition: tuple(path.rpartition("/")[2] for each in slices for path in each.paths)
        for partition, slices in going.items()
    }
    complete = all(len(going[partition]) == len(slices) for partition, slices in obsolete.items())
    return {partition: found for partition, found in names.items() if found}, complete


def _start(
    state: TableState, opened: OpenInstant, plan: CleanPlan, options: Options, *, resumed: bool
) -> _Run:
    """Go in flight with the plan as body, as Apache Hudi does; a metadata table that is not kept would name what is deleted."""
    state = replace(state, config=drop_unsupported_partitions(state.storage, state.config))
    opened.start(state.storage.read(opened.path(State.REQUESTED)))
    return _Run(state, opened, plan, resumed, options)


@dataclass(frozen=True)
class _Run:
    """A stored plan that this process carries out."""

    state: TableState
    opened: OpenInstant
    plan: CleanPlan
    resumed: bool
    options: Options

    @property
    def instant(self) -> str:
        return self.opened.time

    def carry_out(self, publication: Publication) -> CleanResult:
        """Delete the files and complete the instant."""
        started = time.monotonic()
        needed = self._needed(publication)
        failed = {path for path in self.plan.paths if path in needed}
        for path in failed:
            logger.warning("clean %s spares %s, which is needed by now", self.instant, path)
        failed |= _delete_all(self.state.storage, [path for path in self.plan.paths if path not in needed])
        took_ms = int((time.monotonic() - started) * 1000)
        metadata = self._metadata(failed, took_ms)
        # the metadata table has one writer at a time, which compacts it too
        with table_lock(self.state.storage, self.options):
            self.opened.complete(encode_avro_file(CLEAN_METADATA, metadata))
        self.opened.release()
        deleted = [len(each["successDeleteFiles"]) for each in metadata["partitionMetadata"].values()]
        logger.info("clean %s deleted %d files", self.instant, sum(deleted))
        retained = None if self.plan.retained is None else self.plan.retained.time
        return CleanResult(self.instant, sum(deleted), len(failed), sum(map(bool, deleted)), retained)

    def _needed(self, publication: Publication) -> Needed:
        state = TableState.load(self.state.storage)
        view = self._view_still(state) or state.view(self.plan.files)
        latest = {path for each in view.latest_slices() for path in each.paths}
        needed = needed_paths(state, publication.live_files())
        return replace(needed, planned=needed.planned | latest | savepointed_paths(state, view))

    def _view_still(self, state: TableState) -> FileSystemView | None:
        """Return the view that the plan was made from where nothing but this clean has begun or ended since."""
        known, now = (
            [each for each in found.timeline.instants if each.requested_time != self.instant]
            for found in (self.state, state)
        )
        return self.plan.view if known == now else None

    def _metadata(self, failed: Container[str], took_ms: int) -> dict[str, Any]:
        partitions: dict[str, dict[str, Any]] = {}
        for partition, names in self.plan.files.items():
            kept = {name for name in names if join(partition, name) in failed}
            partitions[partition] = {
                "partitionPath": partition,
                "policy": self.plan.policy,
                "deletePathPatterns": list(names),
                "successDeleteFiles": [name for name in names if name not in kept],
                "failedDeleteFiles": [name for name in names if name in kept],
                "isPartitionDeleted": False,
            }
        return {
            "startCleanTime": self.instant,
            "timeTakenInMillis": took_ms,
            "totalFilesDeleted": sum(len(each["successDeleteFiles"]) for each in partitions.values()),
            "earliestCommitToRetain": self.plan.retained.time if self.plan.retained else "",
            "lastCompletedCommitTimestamp": self.plan.last_completed,
            "partitionMetadata": partitions,
            "version": _METADATA_VERSION,
            "bootstrapPartitionMetadata": {},
            "extraMetadata": dict(self.plan.extra),
        }


def _delete_all(storage: Storage, paths: Sequence[str]) -> set[str]:
    """Delete files, missing ones included; return those that could not be deleted."""

    def delete(path: str) -> bool:
        try:
            storage.remove(path)
        except OSError as error:
            logger.warning("could not delete %s: %s", path, error)
            return False
        return True

    return {path for path, done in zip(paths, on_threads(delete, paths)) if not done}


def _delete_sidecars(
    storage: Storage, publication: Publication, view: FileSystemView, keep_from: str
) -> None:
    if publication.obsolete_sidecars is None:
        return
    try:
        going = publication.obsolete_sidecars({each: view.files(each) for each in view.partitions}, keep_from)
        live = publication.live_files() if going else ()
        for path in going:
            if path not in live:
                storage.remove(path)
    except (OSError, HudiError) as error:
        logger.warning("could not delete files made for readers, the next clean will: %s", error)


def _bring_past(
    config: TableConfig, paths: Iterable[str], publication: Publication, live: Collection[str]
) -> Collection[str]:
    """Renew the published list when it names files that are to go, and return what the list names then."""
    if not any(path in live for path in paths):
        return live
    try:
        publication.publish(config)
        return publication.live_files()
    except (OSError, HudiError) as error:
        raise ServiceError(
            f"nothing was cleaned, because the file list that readers use could not be renewed: {error}"
        ) from error


def _sum(one: CleanResult, other: CleanResult) -> CleanResult:
    return CleanResult(
        other.instant,
        one.files_deleted + other.files_deleted,
        one.files_kept + other.files_kept,
        one.partitions + other.partitions,
        other.earliest_retained,
    )


def savepointed_paths(state: TableState, view: FileSystemView) -> frozenset[str]:
    """Return the paths of the files that savepoints hold: those they list, and those that their states are read from today.

    The two differ where a service that was planned before the saved commit ran after it was saved: its files count as of that
    commit too.
    """
    return frozenset(chain(_listed(state), _read_today(state, view)))


@dataclass(frozen=True)
class Needed:
    """Paths of files that are going to be read, looked up one by one."""

    planned: frozenset[str]
    live: Container[str]

    def __contains__(self, path: object) -> bool:
        return path in self.planned or path in self.live


def needed_paths(state: TableState, live: Container[str]) -> Needed:
    """Return the paths of files that planned services are going to read, or readers hold on to."""
    return Needed(frozenset(_planned(state)), live)


def keeps(file_slice: FileSlice, protected: Container[str]) -> bool:
    """Return whether a slice stays as a whole because one of its files is protected."""
    return any(path in protected for path in file_slice.paths)


def _read_today(state: TableState, view: FileSystemView) -> Iterator[str]:
    """Yield the files of each group's newest slice as of each savepoint, unless the group was taken out by then."""
    replaced = view.replaced_groups
    for saved in [instant.requested_time for instant in state.timeline.savepoints]:
        for partition in view.partitions:
            for file_id, slices in view.all_slices(partition).items():
                replaced_at = replaced.get((partition, file_id))
                if replaced_at is None or replaced_at > saved:
                    for newest in [each for each in slices if each.base_instant <= saved][:1]:
                        yield from newest.paths


def _listed(state: TableState) -> Iterable[str]:
    for instant in state.timeline.savepoints:
        source = f"{state.storage.base}/{state.config.timeline_path}/{instant.file_name}"
        record = decode_avro_file(state.timeline.read_file(instant.file_name), source)
        for partition, saved in (record.get("partitionMetadata") or {}).items():
            for name in saved.get("savepointDataFile") or ():
                yield join(partition, str(name).rpartition("/")[2])


def _planned(state: TableState) -> Iterator[str]:
    """Yield the files that pending compactions, log compactions and clusterings are going to read."""
    timeline = state.timeline
    plans = [*timeline.pending_compaction_plans().values(), *timeline.pending_log_compaction_plans().values()]
    entries = [operation for plan in plans for operation in plan.get("operations") or ()]
    for instant in timeline.pending:
        if instant.action in ("replacecommit", "clustering"):
            clustering = (timeline.plan(instant) or {}).get("clusteringPlan") or {}
            for group in clustering.get("inputGroups") or ():
                entries += group.get("slices") or ()
    for entry in entries:
        for path in (entry.get("dataFilePath"), *(entry.get("deltaFilePaths") or ())):
            if path:
                yield join(str(entry.get("partitionPath") or ""), str(path).rpartition("/")[2])


_NAME = re.compile(re.escape(TEMP_PREFIX) + "[0-9a-f]{32}")


def drop_temporaries(state: TableState, view: FileSystemView, now_ms: int) -> int:
    """Delete temporary files that were not written to for an hour; errors are not fatal."""
    storage, dropped = state.storage, 0
    try:
        folders = (storage.list(each) for each in sorted({HOODIE_FOLDER, state.config.timeline_path}))
        for status in chain(*folders, *(view.files(each) for each in view.partitions)):
            is_old = now_ms - status.modified_ms > TEMPORARY_KEPT_MS
            if is_old and not status.is_dir and _NAME.fullmatch(status.name):
                dropped += storage.delete(status.path)
    except OSError as error:
        logger.warning("could not delete what killed writers left, the next clean will: %s", error)
    return dropped
