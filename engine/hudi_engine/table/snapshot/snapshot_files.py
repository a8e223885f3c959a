"""Which files a snapshot manifest lists, and how they are labelled.

Copy-on-write: the newest base file of every file group. Merge-on-read: those, and a delta sidecar for each slice whose logs
change something. The modification time, which Spark shows as ``_metadata.file_modification_time``, is a label there: the
slice's ordinal, plus the kind of file. The snapshot view splits and joins by it, and Spark prunes files by it.

A base file that Spark would misread is listed as a rewritten copy: in a table of another writer outside of it, in one of
this engine next to the file, named as a sidecar.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count

import pyarrow as pa

from hudi_engine.errors import CorruptTableError, TimelineError, UnsupportedTableError
from hudi_engine.format.config.enums import TableType
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.base_file import BaseFile
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.view import FileSystemView
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.merge.table_reader import read_context
from hudi_engine.format.schema.internal_schema import SchemaHistory
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.continuity import lasts, unseen_log_writers, writes_since
from hudi_engine.table.snapshot.derive import (
    CONVERSION,
    AfterWrite,
    ConversionTask,
    DeriveTask,
    RunTasks,
    conversion_path,
)
from hudi_engine.table.snapshot.layout import choose_layout, column_is_null
from hudi_engine.table.snapshot.manifest_file import (
    Derived,
    Layout,
    Manifest,
    ManifestEntry,
    Origin,
    Stamp,
    encode_uri,
    encoded_uri,
    format_line,
    is_derived,
    label_of,
    parse_line,
)
from hudi_engine.table.snapshot.native import OLDEST_SPARK, is_misread, natively_readable
from hudi_engine.table.snapshot.sidecar import SidecarTask, sidecar_path, slice_digest

MASKED_LABEL = 1 << 40
"""Added to the ordinal of a base file whose slice has a sidecar; below it are base files read as they are."""

DELTA_LABEL = 1 << 41
"""Added to the ordinal of a slice to label its sidecar."""

IsReadable = Callable[[ReadContext, BaseFile], bool]
"""Whether Spark reads a base file right under the table's schema."""


@dataclass(frozen=True)
class SnapshotRequest:
    """One state of a table to be listed.

    Args:
        layout: Layout of the previous manifest; flat stays flat.
        is_readable: Test of base files, None for that of the table's own writers.
    """

    storage: Storage
    config: TableConfig
    timeline: Timeline
    schema: pa.Schema | None
    stamp: Stamp
    target: Storage
    layout: Layout
    is_readable: IsReadable | None = None

    @property
    def is_mor(self) -> bool:
        """Whether the table is merge-on-read."""
        return self.config.table_type is TableType.MERGE_ON_READ

    def uri(self, path: str) -> str:
        """Return where readers find a file of the table."""
        return f"{self.stamp.base}/{path}"

    def derived_uri(self, path: str) -> str:
        """Return where readers find a derived file."""
        return self.uri(path) if self.target is self.storage else f"{self.target.uri()}/{path}"


@dataclass(frozen=True)
class SnapshotContent:
    """Layout and files of a manifest, and whether every base file has the types of the schema."""

    layout: Layout
    lines: tuple[bytes, ...]
    native: bool


@dataclass(frozen=True)
class _Slice:
    """A base file and its sidecar, either of which may be missing."""

    partition: str
    base: ManifestEntry | None
    delta: ManifestEntry | None

    @property
    def entries(self) -> tuple[ManifestEntry, ...]:
        return tuple(each for each in (self.base, self.delta) if each is not None)


def snapshot_entries(
    request: SnapshotRequest, previous: Manifest | None, run_tasks: RunTasks
) -> SnapshotContent:
    """List the files of a table's newest state; only partitions written since the previous manifest are listed again."""
    touched = None if previous is None else _touched_partitions(request, previous)
    try:
        kept, dropped = _parted(request, previous, touched)
        before = _slices_of(request, [parse_line(line) for line in dropped])
    except CorruptTableError:
        # A changed manifest: nothing of it is copied.
        touched, kept, before = None, [], []
    view = FileSystemView.build(request.storage, request.config, request.timeline, partitions=touched)
    now = Timeline.load(request.storage, request.config)
    if not lasts(request.timeline, now):
        raise TimelineError(f"files of {request.storage.base!r} may have been deleted while they were listed")
    derivation = _Derivation(request, before, run_tasks, unseen_log_writers(request.timeline, now))
    fresh = sorted(_fresh_slices(request, view, derivation, run_tasks), key=_sort_key)
    layout = _layout(request, previous, fresh, kept)
    if request.is_mor:
        entries = _labelled(fresh, kept)
    else:
        entries = [each for one in fresh for each in one.entries]
    lines = sorted([*kept, *map(format_line, entries)])
    native = _is_native(request, fresh, derivation.schema_history) and (not kept or _was_native(previous))
    return SnapshotContent(layout, tuple(lines), native)


def schema_digest(schema: pa.Schema | None, ids: str = "") -> str:
    """Return the identity of a table's schema, ``""`` for none; ``ids`` are those of its columns, by the newest commit."""
    return "" if schema is None else hashlib.sha256(f"{list(schema)!r}{ids}".encode()).hexdigest()[:24]


def _touched_partitions(request: SnapshotRequest, previous: Manifest) -> set[str] | None:
    """Return the partitions written since; None when the manifest before is no base to continue from."""
    stamp, timeline = previous.stamp, request.timeline
    if stamp is None or not stamp.is_same_table_as(request.stamp):
        return None
    unlisted = writes_since(timeline, stamp.look)
    if unlisted is None:
        return None
    touched: set[str] = set()
    for instant in unlisted:
        touched |= timeline.commit_metadata(instant).partitions
    return touched


def _parted(
    request: SnapshotRequest, previous: Manifest | None, touched: set[str] | None
) -> tuple[list[bytes], list[bytes]]:
    """Part the lines of the manifest before: those of partitions that were left alone, and the others."""
    if previous is None or touched is None:
        return [], [] if previous is None else list(previous.lines)
    if request.target is not request.storage:
        # Derived files lie elsewhere; their lines say what partition they are of.
        parted: tuple[list[bytes], list[bytes]] = [], []
        for line in previous.lines:
            parted[_partition_of(request, parse_line(line)) in touched].append(line)
        return parted
    places: set[int] = set()
    for partition in touched:
        folder = request.uri(partition) if partition else request.stamp.base
        below = len(encode_uri(folder)) + 1
        inside = previous.lines_in(folder)
        places.update(n for n in inside if b"/" not in encoded_uri(previous.lines[n])[below:])
    kept = list(previous.lines)
    dropped = [kept[place] for place in sorted(places)]
    for place in sorted(places, reverse=True):
        del kept[place]
    return kept, dropped


def _is_native(request: SnapshotRequest, slices: Sequence[_Slice], history: SchemaHistory | None) -> bool:
    """Return whether base files have the types of the schema; files of one instant are alike, so one of each is looked at."""
    if request.schema is None or request.is_readable is not None or request.target is not request.storage:
        return False
    if history is not None:
        return False
    inside = f"{request.stamp.base}/"
    if any(each.base is not None and each.base.origin is not None for each in slices):
        return False
    paths = [each.base.uri.removeprefix(inside) for each in slices if each.base is not None]
    return natively_readable(request.storage, request.config, paths, request.schema, spark=OLDEST_SPARK)


def _was_native(previous: Manifest | None) -> bool:
    return previous is not None and previous.stamp is not None and previous.stamp.native


def _slices_of(request: SnapshotRequest, entries: Sequence[ManifestEntry]) -> list[_Slice]:
    """Read entries back into slices; base file and sidecar share the ordinal of their label."""
    if not request.is_mor:
        return [_Slice(_partition_of(request, entry), entry, None) for entry in entries]
    bases: dict[int, ManifestEntry] = {}
    deltas: dict[int, ManifestEntry] = {}
    for entry in entries:
        if entry.is_delta:
            deltas[entry.modified_ms - DELTA_LABEL] = entry
        else:
            bases[entry.modified_ms % MASKED_LABEL] = entry
    return [
        _Slice(
            _partition_of(request, bases.get(ordinal) or deltas[ordinal]),
            bases.get(ordinal),
            deltas.get(ordinal),
        )
        for ordinal in bases.keys() | deltas.keys()
    ]


class _Derivation:
    """Collects what has to be derived for some slices, and does it in one go."""

    def __init__(
        self,
        request: SnapshotRequest,
        before: Sequence[_Slice],
        run_tasks: RunTasks,
        unseen: Sequence[str],
    ) -> None:
        self._request, self._unseen = request, unseen
        self._known = _derived_here(request, before)
        if isinstance(run_tasks, AfterWrite) and request.target is request.storage:
            for (partition, file_id, digest), (path, size) in run_tasks.made.items():
                origin = Origin(Derived.DELTA, partition, file_id, digest)
                self._known.setdefault(origin, ManifestEntry(request.uri(path), size, 0, origin))
        self._context = (
            None
            if request.schema is None
            else read_context(request.storage, request.config, request.timeline)
        )
        self._tasks: dict[Origin, DeriveTask] = {}
        self._misread: dict[str, bool] = {}

    @property
    def schema_history(self) -> SchemaHistory | None:
        """Names of the columns over time, None where the table keeps no ids of them."""
        return None if self._context is None else self._context.schema_history

    def base_origin(self, base: BaseFile) -> Origin | None:
        """Return what a base file has to be replaced by, None when it can be listed as it is."""
        request = self._request
        if self._context is None or self._is_readable(self._context, base):
            return None
        digest = request.stamp.schema_digest
        origin = Origin(Derived.BASE, base.partition, base.file_id, f"{base.name} {digest} {CONVERSION}")
        if origin not in self._known:
            inside = request.target is request.storage
            path = conversion_path(base, digest)
            if inside:
                file_slice = FileSlice(base.partition, base.file_id, base.instant, base)
                path = sidecar_path(file_slice, request.stamp.instant)
            self._tasks[origin] = ConversionTask(self._context, base, request.target, path, inside)
        return origin

    def _is_readable(self, context: ReadContext, base: BaseFile) -> bool:
        """Return whether Spark may read a base file; of this engine's own a writer gives all of an instant the same columns."""
        request, history = self._request, context.schema_history
        if request.is_readable is not None:
            return request.is_readable(context, base)
        assert request.schema is not None
        if base.instant not in self._misread:
            by_name = history is None or history.is_read_by_name(base.instant, request.schema.names)
            self._misread[base.instant] = not by_name or is_misread(
                request.storage, base.path, request.schema
            )
        return not self._misread[base.instant]

    def delta_origin(self, file_slice: FileSlice) -> Origin | None:
        """Return the sidecar a slice needs, None when it has no logs."""
        request = self._request
        if not file_slice.log_files or self._context is None:
            return None
        digest = slice_digest(file_slice, self._unseen, request.stamp.schema_digest)
        origin = Origin(Derived.DELTA, file_slice.partition, file_slice.file_id, digest)
        if origin not in self._known:
            path = sidecar_path(file_slice, request.stamp.instant)
            self._tasks[origin] = SidecarTask(self._context, file_slice, request.target, path)
        return origin

    def run(self, run_tasks: RunTasks) -> None:
        """Derive what is missing."""
        tasks = list(self._tasks.items())
        sizes = run_tasks([task for _, task in tasks]) if tasks else []
        for (origin, task), size in zip(tasks, sizes, strict=True):
            if size is not None:
                self._known[origin] = ManifestEntry(self._request.derived_uri(task.path), size, 0, origin)

    def entry(self, origin: Origin | None) -> ManifestEntry | None:
        """Return the derived file, None when none was needed."""
        return None if origin is None else self._known.get(origin)


def _derived_here(request: SnapshotRequest, slices: Sequence[_Slice]) -> dict[Origin, ManifestEntry]:
    """Return derived files that can be used again; the list of a table that was moved or copied names its first place's."""
    inside, entries = request.derived_uri(""), (entry for each in slices for entry in each.entries)
    return {each.origin: each for each in entries if each.origin and each.uri.startswith(inside)}


def _fresh_slices(
    request: SnapshotRequest, view: FileSystemView, derivation: _Derivation, run_tasks: RunTasks
) -> list[_Slice]:
    """List the slices with what is derived from them; derivations are collected first, so that they run together."""
    if request.is_mor:
        slices = view.latest_slices()
    else:
        slices = [
            FileSlice(base.partition, base.file_id, base.instant, base) for base in view.latest_base_files()
        ]
    origins = [
        (
            None if each.base_file is None else derivation.base_origin(each.base_file),
            derivation.delta_origin(each),
        )
        for each in slices
    ]
    derivation.run(run_tasks)
    return [
        _Slice(
            each.partition,
            derivation.entry(base) or (None if each.base_file is None else _entry(request, each.base_file)),
            derivation.entry(delta),
        )
        for each, (base, delta) in zip(slices, origins, strict=True)
    ]


def _labelled(slices: Sequence[_Slice], kept: Sequence[bytes]) -> list[ManifestEntry]:
    """Label slices with ordinals that no kept line has; the smallest first, so that they stay dense."""
    taken = {label_of(line) % MASKED_LABEL for line in kept}
    free = (ordinal for ordinal in count(1) if ordinal not in taken)
    entries = []
    for ordinal, each in zip(free, slices, strict=False):
        if each.base is not None:
            label = ordinal if each.delta is None else MASKED_LABEL + ordinal
            entries.append(replace(each.base, modified_ms=label))
        if each.delta is not None:
            entries.append(replace(each.delta, modified_ms=DELTA_LABEL + ordinal))
    return entries


def _layout(
    request: SnapshotRequest, previous: Manifest | None, fresh: Sequence[_Slice], kept: Sequence[bytes]
) -> Layout:
    """Decide the layout; a manifest outside the table, or with derived files elsewhere, is flat."""
    files: dict[str, list[ManifestEntry]] = {}
    for each in fresh:
        files.setdefault(each.partition, []).extend(each.entries)

    def all_null(partition: str, column: str) -> bool:
        return all(_column_is_null(request, entry, column) for entry in files.get(partition, ()))

    layout = Layout.FLAT
    outside = request.target is not request.storage and (
        any(entry.origin is not None for each in fresh for entry in each.entries)
        or any(is_derived(line) for line in kept)
        or "=" in request.stamp.base.rpartition("/")[2]
    )
    if not outside and (previous is None or request.layout is not Layout.FLAT):
        layout = choose_layout(request.config, request.schema, {each.partition for each in fresh}, all_null)
    plain = any(each.base is not None and each.base.origin is None for each in fresh)
    if layout is Layout.FLAT and request.config.drop_partition_columns and plain:
        raise UnsupportedTableError(
            f"table {request.config.name!r} keeps partition columns out of its files "
            "(hoodie.datasource.write.drop.partition.columns=true) and its folder names do not hold their "
            "values, so Spark cannot read it by name; read it with HudiTable.open(...).snapshot()"
        )
    return layout


def _column_is_null(request: SnapshotRequest, entry: ManifestEntry, column: str) -> bool:
    return column_is_null(request.storage, entry.uri.removeprefix(f"{request.stamp.base}/"), column)


def _entry(request: SnapshotRequest, base: BaseFile) -> ManifestEntry:
    return ManifestEntry(request.uri(base.path), base.size, base.modified_ms)


def _partition_of(request: SnapshotRequest, entry: ManifestEntry) -> str:
    if entry.origin is not None:
        return entry.origin.partition
    return entry.uri.removeprefix(f"{request.stamp.base}/").rpartition("/")[0]


def _sort_key(each: _Slice) -> tuple[str, str]:
    return each.partition, each.entries[0].uri if each.entries else ""
