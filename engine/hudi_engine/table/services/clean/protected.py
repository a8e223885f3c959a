"""Files that no clean may take, whatever its plan or policy says."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.view import FileSystemView
from hudi_engine.format.storage.paths import join
from hudi_engine.format.timeline.avro_file import decode_avro_file
from hudi_engine.table.state import TableState


def savepointed_paths(state: TableState, view: FileSystemView) -> frozenset[str]:
    """Return the paths of the files that savepoints hold: those they list, and those that their states are read from today.

    The two differ where a service that was planned before the saved commit ran after it was saved: its files count as of that
    commit too.

    Args:
        view: Its files, of some partitions or all.

    Raises:
        CorruptTableError: when a savepoint cannot be read; nothing may be deleted then.
    """
    return frozenset(chain(_listed(state), _read_today(state, view)))


@dataclass(frozen=True)
class Needed:
    """Paths of files that somebody is going to read, told by asking for one."""

    planned: frozenset[str]
    live: Container[str]

    def __contains__(self, path: object) -> bool:
        return path in self.planned or path in self.live


def needed_paths(state: TableState, live: Container[str]) -> Needed:
    """Return the paths of files that planned services are going to read, or readers hold on to.

    Args:
        live: Paths that readers may hold on to.
    """
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


def _planned(state: TableState) -> Iterable[str]:
    """Yield the files that pending compactions, log compactions and clusterings are going to read."""
    timeline = state.timeline
    plans = [*timeline.pending_compaction_plans().values(), *timeline.pending_log_compaction_plans().values()]
    for plan in plans:
        for operation in plan.get("operations") or ():
            names = [operation.get("dataFilePath"), *(operation.get("deltaFilePaths") or ())]
            yield from _in_partition(operation.get("partitionPath"), names)
    for instant in timeline.pending:
        if instant.action in ("replacecommit", "clustering"):
            clustering = (timeline.plan(instant) or {}).get("clusteringPlan") or {}
            for group in clustering.get("inputGroups") or ():
                for entry in group.get("slices") or ():
                    names = [entry.get("dataFilePath"), *(entry.get("deltaFilePaths") or ())]
                    yield from _in_partition(entry.get("partitionPath"), names)


def _in_partition(partition: object, paths: Iterable[object]) -> Iterable[str]:
    for path in paths:
        if path:
            yield join(str(partition or ""), str(path).rpartition("/")[2])
