"""Which files a snapshot manifest lists, and how they are labelled.

Copy-on-write: the newest base file of every file group. Merge-on-read: those, and a delta sidecar for each
slice whose logs change something. Base and delta stand in one manifest, so a reader always gets both from the
same commit. The modification time, which Spark shows as ``_metadata.file_modification_time``, carries a label
there: the slice's ordinal, plus the kind of file. The snapshot view splits and joins by it, and Spark leaves
out files by it before it opens them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from hudi_engine.catalog.layout import choose_layout, column_is_null
from hudi_engine.catalog.manifest_file import DeltaKey, Layout, Manifest, ManifestEntry, Stamp
from hudi_engine.catalog.sidecar import RunSidecars, SidecarTask, sidecar_path, slice_digest
from hudi_engine.config.enums import TableType
from hudi_engine.config.table_config import TableConfig
from hudi_engine.filegroup.file_slice import FileSlice
from hudi_engine.filegroup.view import FileSystemView
from hudi_engine.merge.read_context import ReadContext
from hudi_engine.schema.avro import avro_to_arrow
from hudi_engine.schema.meta_fields import with_meta_columns, without_meta_columns
from hudi_engine.storage.base import Storage
from hudi_engine.timeline.active import Timeline

MASKED_LABEL = 1 << 40
"""Added to the ordinal of a base file whose slice has a sidecar; below it are base files read as they are."""

DELTA_LABEL = 1 << 41
"""Added to the ordinal of a slice to label its sidecar."""


@dataclass(frozen=True)
class SnapshotRequest:
    """One state of a table to be listed.

    Args:
        storage: The table's storage.
        config: Its settings.
        timeline: Its timeline.
        stamp: What the manifest will say about itself.
        target: Storage for sidecars.
        layout: Layout of the manifest before; flat stays flat.
    """

    storage: Storage
    config: TableConfig
    timeline: Timeline
    stamp: Stamp
    target: Storage
    layout: Layout

    @property
    def is_mor(self) -> bool:
        """Whether the table is merge-on-read."""
        return self.config.table_type is TableType.MERGE_ON_READ


@dataclass(frozen=True)
class SnapshotContent:
    """Layout and files of a manifest."""

    layout: Layout
    entries: tuple[ManifestEntry, ...]


@dataclass(frozen=True)
class _Slice:
    """A base file and its sidecar, either of which may be missing."""

    partition: str
    base: ManifestEntry | None
    delta: ManifestEntry | None


def table_schema(timeline: Timeline) -> pa.Schema | None:
    """Return the data columns of a table, None while it has none."""
    text = timeline.table_schema_json()
    return None if text is None else without_meta_columns(avro_to_arrow(text))


def snapshot_entries(
    request: SnapshotRequest,
    previous: Manifest | None,
    run_sidecars: RunSidecars,
) -> SnapshotContent:
    """List the files of a table's newest state.

    Only partitions that were written since the manifest before are listed anew, and only sidecars whose logs
    changed are built.

    Args:
        request: The state.
        previous: Newest manifest so far, None for none.
        run_sidecars: Builds sidecars, sizes in the same order, None for no file needed.
    """
    touched = None if previous is None else _touched_partitions(request, previous)
    before = [] if previous is None else _slices_of(request, previous)
    kept = [] if touched is None else [each for each in before if each.partition not in touched]
    view = FileSystemView.build(request.storage, request.config, request.timeline, partitions=touched)
    fresh = (
        _merged_slices(request, view, before, run_sidecars) if request.is_mor else _base_slices(request, view)
    )
    slices = sorted([*kept, *fresh], key=_sort_key)
    layout = _layout(request, previous, fresh, slices)
    entries = _labelled(slices) if request.is_mor else [each.base for each in slices if each.base is not None]
    return SnapshotContent(layout, tuple(entries))


def _touched_partitions(request: SnapshotRequest, previous: Manifest) -> set[str] | None:
    """Return the partitions written since; None when the manifest before is no base to go on from."""
    stamp, timeline = previous.stamp, request.timeline
    if stamp is None or (stamp.base, stamp.table_type) != (request.stamp.base, request.stamp.table_type):
        return None
    listed = set(stamp.writes)
    if not all(timeline.is_committed(time) for time in listed - set(request.stamp.writes)):
        return None
    touched: set[str] = set()
    for instant in timeline.completed_writes:
        if instant.requested_time not in listed:
            metadata = timeline.commit_metadata(instant)
            touched.update(metadata.partition_to_write_stats)
            touched.update(metadata.partition_to_replace_file_ids or ())
    return touched


def _slices_of(request: SnapshotRequest, previous: Manifest) -> list[_Slice]:
    """Read a manifest back into slices; base file and sidecar share the ordinal of their label."""
    prefix = request.stamp.base + "/"
    bases: dict[int, ManifestEntry] = {}
    deltas: dict[int, ManifestEntry] = {}
    found = []
    for entry in previous.entries:
        if not request.is_mor:
            found.append(_Slice(_partition_of(entry, prefix), entry, None))
        elif entry.delta is not None:
            deltas[entry.modified_ms - DELTA_LABEL] = entry
        else:
            bases[entry.modified_ms % MASKED_LABEL] = entry
    for ordinal in bases.keys() | deltas.keys():
        base, delta = bases.get(ordinal), deltas.get(ordinal)
        partition = delta.delta.partition if delta is not None and delta.delta is not None else ""
        if base is not None:
            partition = _partition_of(base, prefix)
        found.append(_Slice(partition, base, delta))
    return found


def _base_slices(request: SnapshotRequest, view: FileSystemView) -> list[_Slice]:
    return [
        _Slice(base.partition, _entry(request, base.path, base.size, base.modified_ms), None)
        for base in view.latest_base_files()
    ]


def _merged_slices(
    request: SnapshotRequest, view: FileSystemView, before: Iterable[_Slice], run_sidecars: RunSidecars
) -> list[_Slice]:
    known = {each.delta.delta: each.delta for each in before if each.delta is not None}
    pending = [each.requested_time for each in request.timeline.pending if each.action == "deltacommit"]
    slices = view.latest_slices()
    deltas: dict[tuple[str, str], ManifestEntry] = {}
    missing: list[tuple[DeltaKey, FileSlice]] = []
    for each in slices:
        if each.log_files:
            key = DeltaKey(each.partition, each.file_id, slice_digest(each, pending))
            if key in known:
                deltas[each.partition, each.file_id] = known[key]
            else:
                missing.append((key, each))
    for key, entry in _built(request, missing, run_sidecars):
        deltas[key.partition, key.file_id] = entry
    return [
        _Slice(
            each.partition,
            None
            if each.base_file is None
            else _entry(request, each.base_file.path, each.base_file.size, each.base_file.modified_ms),
            deltas.get((each.partition, each.file_id)),
        )
        for each in slices
    ]


def _built(
    request: SnapshotRequest, missing: Sequence[tuple[DeltaKey, FileSlice]], run_sidecars: RunSidecars
) -> list[tuple[DeltaKey, ManifestEntry]]:
    schema = table_schema(request.timeline)
    if not missing or schema is None:
        return []
    context = ReadContext(
        request.storage, request.config, with_meta_columns(schema), request.timeline.committed()
    )
    tasks = [
        SidecarTask(context, each, request.target, sidecar_path(each, request.stamp.instant))
        for _, each in missing
    ]
    sizes = run_sidecars(tasks)
    own = request.target is request.storage
    return [
        (
            key,
            ManifestEntry(_uri(request, task.path) if own else request.target.uri(task.path), size, 0, key),
        )
        for (key, _), task, size in zip(missing, tasks, sizes, strict=True)
        if size is not None
    ]


def _labelled(slices: Sequence[_Slice]) -> list[ManifestEntry]:
    entries = []
    for ordinal, each in enumerate(slices, start=1):
        if each.base is not None:
            label = ordinal if each.delta is None else MASKED_LABEL + ordinal
            entries.append(replace(each.base, modified_ms=label))
        if each.delta is not None:
            entries.append(replace(each.delta, modified_ms=DELTA_LABEL + ordinal))
    return entries


def _layout(
    request: SnapshotRequest, previous: Manifest | None, fresh: Sequence[_Slice], slices: Sequence[_Slice]
) -> Layout:
    """Decide the layout; what an earlier manifest in the hive layout lists was looked at then.

    A manifest outside the table has no base path to end Spark's walk up the folders at, and its sidecars are
    not in the partition folders.
    """
    if previous is not None and request.layout is Layout.FLAT:
        return Layout.FLAT
    files: dict[str, list[ManifestEntry]] = {}
    for each in fresh:
        found = files.setdefault(each.partition, [])
        found.extend(entry for entry in (each.base, each.delta) if entry is not None)

    def all_null(partition: str, column: str) -> bool:
        return all(_column_is_null(request, entry, column) for entry in files.get(partition, ()))

    outside = request.target is not request.storage and (
        any(each.delta is not None for each in slices) or "=" in request.stamp.base.rpartition("/")[2]
    )
    return choose_layout(
        request.config,
        table_schema(request.timeline),
        {each.partition for each in slices},
        all_null,
        files_in_partitions=not outside,
    )


def _column_is_null(request: SnapshotRequest, entry: ManifestEntry, column: str) -> bool:
    prefix = request.stamp.base + "/"
    return column_is_null(request.storage, entry.uri.removeprefix(prefix), column)


def _entry(request: SnapshotRequest, path: str, size: int, modified_ms: int) -> ManifestEntry:
    return ManifestEntry(_uri(request, path), size, modified_ms)


def _uri(request: SnapshotRequest, path: str) -> str:
    return f"{request.stamp.base}/{path}"


def _partition_of(entry: ManifestEntry, prefix: str) -> str:
    return entry.uri.removeprefix(prefix).rpartition("/")[0]


def _sort_key(each: _Slice) -> tuple[str, str]:
    entry = each.base or each.delta
    return each.partition, entry.uri if entry is not None else ""
