"""Publishing a table's newest committed state as a snapshot manifest.

Number and content derive from the timeline alone, so any process may publish at any time. Publishers race for the next number
with an exclusive create. A publisher reads the newest manifest before the timeline, so the winner of a number shows at least
what the previous manifest showed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pyarrow as pa

from hudi_engine.errors import StorageError, TimelineError, UnsupportedTableError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.merge.table_reader import table_schema
from hudi_engine.format.schema.meta_fields import without_meta_columns
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.continuity import Look, writes_since
from hudi_engine.format.timeline.schema_commits import LATEST_SCHEMA
from hudi_engine.table.snapshot.derive import RunTasks, make_in_threads
from hudi_engine.table.snapshot.manifest_file import (
    FIRST_NUMBER,
    NUMBER_STEP,
    Layout,
    Manifest,
    ManifestFolder,
    Stamp,
    decode_uri,
    encode_uri,
    encoded_uri,
    format_ended,
    format_manifest,
    is_healthy,
    number_after,
)
from hudi_engine.table.snapshot.snapshot_files import (
    IsReadable,
    SnapshotContent,
    SnapshotRequest,
    schema_digest,
    snapshot_entries,
)

logger = logging.getLogger(__name__)

_ATTEMPTS = 20
_MOVES = 3


@dataclass(frozen=True)
class Published:
    """The manifest that shows the table as of now.

    Args:
        published: Whether this call published it; False when it was current already.
        instant: Newest completed write it shows, ``""`` for none.
        schema: The table's data columns, None while it has none.
    """

    number: int
    published: bool
    layout: Layout
    instant: str
    manifest: Manifest = field(repr=False)
    schema: pa.Schema | None

    @property
    def files(self) -> int:
        """Files listed."""
        return len(self.manifest.lines)

    @property
    def size_bytes(self) -> int:
        """Bytes of those files."""
        return self.manifest.size_bytes


def publish(
    storage: Storage,
    config: TableConfig | None = None,
    *,
    run_sidecars: RunTasks = make_in_threads,
    target: Storage | None = None,
    served_at: str | None = None,
    is_readable: IsReadable | None = None,
    renew: bool = False,
) -> Published:
    """Make the newest manifest show the newest committed state; arguments as of `Publisher`, the table's settings read when None.

    Raises:
        UnsupportedTableError: Spark cannot read the table's base files.
        StorageError: Other publishers won every attempt.
    """
    publisher = Publisher(storage, run_sidecars, target, served_at, is_readable)
    return publisher.publish(config or TableConfig.load(storage), renew=renew)


@dataclass(frozen=True)
class Publisher:
    """Publishes the state of a table.

    Args:
        target: Storage that gets manifest and sidecars, None for the table's own.
        served_at: URI at which the table will be read, for a table that is moved after this call.
        is_readable: Test of base files; one that Spark would misread is listed as a rewritten copy. None looks at one
            file of each instant, as a writer gives all of them the same columns.
    """

    storage: Storage
    run_sidecars: RunTasks = make_in_threads
    target: Storage | None = None
    served_at: str | None = None
    is_readable: IsReadable | None = None

    def publish(
        self,
        config: TableConfig,
        *,
        renew: bool = False,
        found: NewestManifest | None = None,
        committed: Timeline | None = None,
    ) -> Published:
        """Make the newest manifest show the newest committed state; safe at any time, by any number of processes, and after a kill.

        Args:
            renew: Take a number even when the newest manifest is current, so that a publisher of an older state cannot have it.
            found: The newest manifest when the caller has just looked it up.
            committed: Timeline right after a commit of the caller, which saves a listing.
        """
        _check_format(config)
        storage, moved = self.storage, 0
        place = self.target if self.target is not None else storage
        base = self.served_at if self.served_at is not None else storage.uri()
        for _ in range(_ATTEMPTS):
            found = found or find_newest(place)
            timeline = committed if committed is not None and _is_behind(found.manifest, committed) else None
            timeline = timeline or Timeline.load(storage, config)
            if not timeline.instants:
                # An upgrade may have moved the timeline since the caller read the settings.
                config = TableConfig.load(storage)
                timeline = Timeline.load(storage, config)
            schema = _schema(config, timeline)
            stamp = _stamp(base, config, timeline, schema, "" if place is storage else place.uri())
            shown = found.manifest if found.healthy and not renew else None
            if shown is not None and _shows(shown, stamp, timeline):
                return _published(shown, found.layout, schema, published=False)
            try:
                state = (storage, config, timeline, schema, stamp)
                request = SnapshotRequest(*state, place, found.layout, self.is_readable)
                content = snapshot_entries(request, found.manifest, self.run_sidecars)
            except (TimelineError, FileNotFoundError) as error:
                # Files of a state that was listed go only when a newer state is there.
                moved += 1
                if moved == _MOVES:
                    raise
                logger.debug("%s moved while its manifest was made, starting again: %s", storage.base, error)
                found = committed = None
                config = TableConfig.load(storage)
                continue
            manifest = _create(place, found, content, stamp)
            if manifest is not None and (
                found.manifest is not None or _is_still_committed(storage, config, stamp)
            ):
                return _published(manifest, content.layout, schema, published=True)
            found = committed = None
            # An upgrade may have moved the timeline, so that the settings of before would show an empty one.
            config = TableConfig.load(storage)
        raise StorageError(
            f"the snapshot manifest of {storage.base!r} could not be published: other publishers took the number "
            f"in {_ATTEMPTS} attempts. The commit is complete; publish again"
        )


def _is_behind(manifest: Manifest | None, timeline: Timeline) -> bool:
    """Return whether a manifest shows no write that a timeline, which was read before the manifest, does not have."""
    stamp = None if manifest is None else manifest.stamp
    return stamp is None or set(stamp.writes) <= {each.requested_time for each in timeline.completed_writes}


def _is_still_committed(storage: Storage, config: TableConfig, stamp: Stamp) -> bool:
    """Return whether nothing that a first manifest shows was undone meanwhile: there was no list then to be rebuilt."""
    timeline = Timeline.load(storage, config)
    return all(timeline.is_committed(time) for time in stamp.writes)


def _check_format(settings: TableConfig) -> None:
    if settings.base_file_format != "PARQUET":
        raise UnsupportedTableError(
            f"table {settings.name!r} has base files in {settings.base_file_format}; Spark SQL reads Parquet "
            "tables by name. Read it with HudiTable.open(...).snapshot()"
        )


def current_manifest(
    storage: Storage, timeline: Timeline, config: TableConfig
) -> tuple[Layout, Manifest] | None:
    """Return the newest manifest, with its layout, when it shows this timeline and Spark can read it, else None."""
    found = find_newest(storage)
    if found.manifest is None or not found.healthy:
        return None
    stamp = _stamp(storage.uri(), config, timeline, _schema(config, timeline))
    return (found.layout, found.manifest) if _shows(found.manifest, stamp, timeline) else None


def newest_manifest(storage: Storage) -> Manifest | None:
    """Return the manifest that Spark reads, None when there is none."""
    return find_newest(storage).manifest


def listed_uris(storage: Storage) -> set[str]:
    """Return every file that a manifest still there lists, the one before the newest included."""
    found: set[str] = set()
    for layout in Layout:
        folder = ManifestFolder(storage, layout)
        for number in folder.numbers():
            manifest = folder.read(number)
            if manifest is not None:
                found.update(manifest.uris())
    return found


class LiveFiles(Set[str]):
    """The files of a manifest as paths relative to the table's base path; asking for one of many is cheap."""

    def __init__(self, manifest: Manifest | None) -> None:
        stamp = None if manifest is None else manifest.stamp
        self._manifest = None if stamp is None else manifest
        self._prefix = "" if stamp is None else stamp.base + "/"

    def __contains__(self, path: object) -> bool:
        return self._manifest is not None and self._manifest.lists(f"{self._prefix}{path}")

    def __iter__(self) -> Iterator[str]:
        if self._manifest is not None:
            prefix = encode_uri(self._prefix).encode()
            inside = (uri for uri in map(encoded_uri, self._manifest.lines) if uri.startswith(prefix))
            yield from (decode_uri(uri[len(prefix) :].decode()) for uri in inside)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @classmethod
    def _from_iterable(cls, paths: Iterable[str]) -> set[str]:
        return set(paths)


def live_manifest_files(storage: Storage) -> LiveFiles:
    """Return the files that readers by name may be reading; clean, rollback and restore publish first, and then keep these."""
    return LiveFiles(newest_manifest(storage))


@dataclass(frozen=True)
class NewestManifest:
    """The newest manifest of a table and the state of its folder."""

    layout: Layout
    numbers: Sequence[int]
    manifest: Manifest | None

    @property
    def healthy(self) -> bool:
        return is_healthy(self.numbers)


def find_newest(storage: Storage) -> NewestManifest:
    """Look at the flat layout first: a table that had to change to it never changes back."""
    for layout in (Layout.FLAT, Layout.HIVE):
        folder = ManifestFolder(storage, layout)
        numbers = folder.numbers()
        while numbers:
            manifest = folder.read(numbers[-1])
            if manifest is not None:
                return NewestManifest(layout, numbers, manifest)
            numbers = folder.numbers()
    return NewestManifest(Layout.HIVE, (), None)


def _schema(config: TableConfig, timeline: Timeline) -> pa.Schema | None:
    """Return the data columns of a table, None while it has none."""
    schema = without_meta_columns(table_schema(config, timeline))
    return schema if len(schema) else None


def _stamp(
    base: str, config: TableConfig, timeline: Timeline, schema: pa.Schema | None, derived_at: str = ""
) -> Stamp:
    look = Look.at(timeline)
    writes, pending = tuple(sorted(look.writes)), tuple(sorted(look.pending or ()))
    newest = writes[-1] if writes else ""
    metadata = timeline.newest_metadata()
    ids = "" if metadata is None else metadata.extra_metadata.get(LATEST_SCHEMA, "")
    digest = schema_digest(schema, ids)
    return Stamp(base, config.table_type.value, newest, writes, digest, pending, derived_at=derived_at)


def _shows(manifest: Manifest, wanted: Stamp, timeline: Timeline) -> bool:
    stamp = manifest.stamp
    if stamp is None or not stamp.is_same_table_as(wanted):
        return False
    return writes_since(timeline, stamp.look) == ()


def _create(place: Storage, found: NewestManifest, content: SnapshotContent, stamp: Stamp) -> Manifest | None:
    """Publish under the next number; None when another publisher was faster."""
    folder = ManifestFolder(place, content.layout)
    number = number_after(found.numbers if content.layout is found.layout else folder.numbers())
    manifest = Manifest(number, replace(stamp, native=content.native), content.lines)
    assert manifest.stamp is not None
    try:
        folder.create(number, format_manifest(manifest.stamp, manifest.lines))
    except FileExistsError:
        return None
    if not place.exclusive_create and folder.read(number) != manifest:
        return None
    folder.trim(number, found.numbers)
    return manifest if _ends_hive(place, found, content.layout, number) else None


def _ends_hive(place: Storage, found: NewestManifest, layout: Layout, number: int) -> bool:
    """End the manifests by folder names when a table is listed flat from now on, as their readers would use them for ever.

    The second flat manifest does it too, in case the publisher of the first one died. Returns False when another publisher wrote
    a manifest by folder names since ``found``, which may be newer than the flat one.
    """
    if layout is Layout.HIVE or number > FIRST_NUMBER + NUMBER_STEP:
        return True
    folder = ManifestFolder(place, Layout.HIVE)
    for _ in range(_ATTEMPTS):
        numbers = folder.numbers()
        newest = folder.read(numbers[-1]) if numbers and found.layout is Layout.FLAT else None
        if not numbers or (newest is not None and newest.stamp is None):
            break
        with suppress(FileExistsError):
            folder.create(number_after(numbers), format_ended(layout))
            folder.trim(number_after(numbers), numbers)
            break
    return found.layout is Layout.FLAT or numbers == list(found.numbers)


def _published(manifest: Manifest, layout: Layout, schema: pa.Schema | None, *, published: bool) -> Published:
    assert manifest.stamp is not None
    return Published(
        manifest.number,
        published,
        layout,
        manifest.stamp.instant,
        manifest,
        schema,
    )
