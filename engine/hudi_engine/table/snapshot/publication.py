"""What writers may do with a table's published file lists (:class:`hudi_engine.table.txn.publication.Publication`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence

from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.base_file import parse_base_file
from hudi_engine.format.storage.base import FileStatus, Storage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.table.snapshot.derive import RunTasks, make_in_threads
from hudi_engine.table.snapshot.manifest import Published, Publisher, find_newest, live_manifest_files
from hudi_engine.table.snapshot.sidecar import parse_sidecar
from hudi_engine.table.txn.publication import Publication


def publication_of(
    storage: Storage,
    run_sidecars: RunTasks = make_in_threads,
    *,
    first: bool = False,
    on_renew: Callable[[Published], object] = lambda _: None,
) -> Publication:
    """Return the published file lists of a table.

    Args:
        first: Whether to publish a first list where there is none.
        on_renew: Called with each list that was published again.
    """
    publisher = Publisher(storage, run_sidecars)

    def bring_up(config: TableConfig, committed: Timeline | None = None) -> None:
        found = find_newest(storage)
        if first or found.manifest is not None:
            publisher.publish(config, found=found, committed=committed)

    def renew(config: TableConfig) -> None:
        found = find_newest(storage)
        if found.manifest is not None:
            on_renew(publisher.publish(config, renew=True, found=found))

    def shows(instants: Collection[str]) -> bool:
        manifest = find_newest(storage).manifest
        if manifest is None:
            return False
        return manifest.stamp is None or not set(manifest.stamp.writes).isdisjoint(instants)

    return Publication(
        publish=bring_up,
        live_files=lambda: live_manifest_files(storage),
        obsolete_sidecars=lambda listed, oldest: obsolete_sidecars(storage, listed, oldest, listed),
        renew=renew,
        shows=shows,
    )


def obsolete_sidecars(
    storage: Storage,
    partitions: Iterable[str],
    keep_from_instant: str,
    listed: Mapping[str, Sequence[FileStatus]] | None = None,
) -> list[str]:
    """Return the sidecars that clean may delete, as paths relative to the table's base path.

    Readers of the commits from a sidecar's own instant up to the next sidecar or base file of its file group
    need it. It is obsolete when the newest manifest does not list it and that next file is older than the oldest instant to
    keep; one that was never listed, because its publisher died or its write was rolled back, when it is older itself.

    Args:
        keep_from_instant: Oldest instant whose readers are still served.
        listed: The files of the partitions, None to list them.
    """
    live: Container[str] = ()
    found = []
    timeline: Timeline | None = None
    for partition in partitions:
        statuses = _files(storage, partition) if listed is None else listed[partition]
        sidecars = [side for each in statuses if (side := parse_sidecar(each.name, partition, each))]
        if not sidecars:
            continue
        if timeline is None:
            live = live_manifest_files(storage)
            timeline = Timeline.load(storage, TableConfig.load(storage))
        under_way = {each.requested_time for each in timeline.pending}
        starts: dict[str, set[str]] = {}
        for status in statuses:
            base = parse_base_file(status.name, partition, status)
            if base is not None:
                starts.setdefault(base.file_id, set()).add(base.instant)
        # That of a write that was rolled back ends nothing, and that of one under way may be listed yet.
        committed = [side for side in sidecars if timeline.is_committed(side.instant)]
        for side in committed:
            starts.setdefault(side.file_id, set()).add(side.instant)
        for side in sidecars:
            later = [start for start in starts.get(side.file_id, ()) if start > side.instant]
            end = min(later, default=side.instant) if side in committed else side.instant
            if side.path not in live and side.instant not in under_way and end < keep_from_instant:
                found.append(side.path)
    return sorted(found)


def _files(storage: Storage, partition: str) -> list[FileStatus]:
    return [status for status in storage.list(partition) if not status.is_dir]
