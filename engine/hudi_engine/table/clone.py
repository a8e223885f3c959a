"""A second table over the base files of a first one, which is independent of it from then on.

A clone is made in a side folder that is renamed, so that one that was killed is no table. On a disk the base files are hard links:
a file is deleted when neither table has it any more, so a clean of one never breaks the other. An object store copies them by
itself. Logs are copied, since another writer may append to the original's.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypedDict

from hudi_engine.errors import ConfigError, CorruptTableError, StorageError, TableExistsError, TimelineError
from hudi_engine.format.config.enums import CleanPolicy
from hudi_engine.format.config.options import Options, resolve_options
from hudi_engine.format.config.own_keys import CLONE_OF, CLONE_REPLACED
from hudi_engine.format.config.properties import TABLE_NAME_KEY
from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.partition_metadata import PARTITION_METADATA_NAMES
from hudi_engine.format.filegroup.view import FileSystemView
from hudi_engine.format.logformat.format import BlockPlace, BlockType
from hudi_engine.format.logformat.reader import scan_blocks
from hudi_engine.format.logformat.source import BytesSource, FileSource
from hudi_engine.format.parallel import on_threads
from hudi_engine.format.storage.base import Storage, storage_errors
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.storage.paths import join
from hudi_engine.format.timeline.active import CleanBound, Timeline
from hudi_engine.format.timeline.archive_files import (
    encode_archive,
    entry_key,
    list_archive_files,
    read_archive_log,
)
from hudi_engine.format.timeline.avro_file import encode_avro_file
from hudi_engine.format.timeline.clock import InstantClock
from hudi_engine.format.timeline.continuity import lasts
from hudi_engine.format.timeline.history import History
from hudi_engine.format.timeline.instant import WRITE_ACTIONS, Instant, State, timeline_file_name
from hudi_engine.format.timeline.moments import Moment
from hudi_engine.format.timeline.rolled_back import hidden_writes
from hudi_engine.format.timeline.schema_commits import histories_of
from hudi_engine.format.timeline.schemas import CLEAN_METADATA
from hudi_engine.table.inspect.as_of import instant_as_of
from hudi_engine.table.metadata.writer import METADATA_PROPERTIES
from hudi_engine.table.services.archive.execute import files_of
from hudi_engine.table.services.clean.plan import CleanPlan
from hudi_engine.table.snapshot.manifest_file import CATALOG_FOLDER
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.swap import Build, mark_builder, place_new, recover_swap, swap, without_writers
from hudi_engine.table.txn.table_folder import lie_in_one
from hudi_engine.table.write.define.create_table import FOLDERS, check_absent
from hudi_engine.table.write.define.definition import name_problems

if TYPE_CHECKING:
    from typing_extensions import Unpack

_NOTES = f"{CATALOG_FOLDER}/entry.json"


@dataclass(frozen=True)
class Content:
    """The files of a table at one instant.

    Args:
        as_of: Newest requested time that counts, None for now.
        gap: Newest archived write by then that counts by later commits alone, ``""`` without one. The saved commits before it
            stay behind, as if they had been archived too.
    """

    state: TableState
    view: FileSystemView
    later: Timeline
    as_of: str | None
    gap: str = ""

    @classmethod
    def of(cls, state: TableState, as_of: str | None) -> Content:
        """List what a table holds."""
        timeline = state.timeline
        timeline.check_readable(as_of)
        writes = timeline.completed_writes
        if as_of is not None and writes and as_of < writes[0].requested_time:
            raise TimelineError(
                f"the oldest write on the active timeline of {state.storage.base!r} is {writes[0].requested_time}, so it cannot be "
                f"cloned as of {as_of}; name that write or a later one"
            )
        gap = _gap(timeline, as_of)
        if gap and not any(gap < each.requested_time <= str(as_of) for each in writes):
            raise TimelineError(
                f"the newest write of {state.storage.base!r} as of {as_of} is {gap}, which is archived, so it cannot be cloned as "
                "of then; name a write on the active timeline"
            )
        for write in writes if as_of is None else ():
            timeline.commit_metadata(write)
        view = state.whole_view(as_of=as_of)
        later = Timeline.load(state.storage, state.config)
        if not lasts(timeline, later, as_of):
            raise FileNotFoundError(
                errno.ENOENT, "files of the table may have been removed", state.storage.base
            )
        return cls(state, view, later, as_of, gap)

    @property
    def newest(self) -> str | None:
        """Requested time of the newest write, None for a table without any."""
        found = [each.requested_time for each in self.instants if each.action in WRITE_ACTIONS]
        return found[-1] if found else None

    @cached_property
    def base_files(self) -> list[tuple[str, int]]:
        """Paths and bytes of the base files, older versions and replaced file groups too."""
        bases = [each.base_file for each in self._slices if each.base_file is not None]
        return sorted({(base.path, base.size) for base in bases})

    @cached_property
    def logs(self) -> list[str]:
        """Paths of logs of which something may belong to the table, change data too."""
        return sorted({log.path for each in self._slices for log in (*each.log_files, *each.cdc_files)})

    def log_bytes(self, path: str) -> bytes:
        """Return what of a log belongs to the table: the blocks that count; nothing for one of a write that does not."""
        data = self.state.storage.read(path)
        if self._is_still:
            return data
        places = list(scan_blocks(BytesSource(data)))
        undone = self._undone_in_slice_of(path, places)
        kept = [
            each.kind is BlockType.CORRUPT or (self._counts(each) and each.instant_time not in undone)
            for each in places
        ]
        if all(kept):
            return data
        ends = [*(each.offset for each in places[1:]), len(data)]
        pieces = zip(places, ends, kept, strict=True)
        return b"".join(data[each.offset : end] for each, end, is_kept in pieces if is_kept)

    def archives(self) -> list[str]:
        """Return the paths of the archive's files."""
        if self.state.config.table_version.keeps_history:
            return History(self.state.storage, self.state.config.archive_folder).paths
        files = list_archive_files(self.state.storage, self.state.config.archive_folder)
        return [each.path for each in files]

    def archive_bytes(self, path: str) -> bytes:
        """Return what of a file of the archive belongs to the table: later cleans too, as they name deleted files."""
        data = self.state.storage.read(path)
        if self.as_of is None or self.state.config.table_version.keeps_history:
            return data
        entries = list(read_archive_log(data, path))
        kept = []
        for entry in entries:
            time, action, _ = entry_key(entry)
            if self._is_in_time(time) or action == "clean":
                kept.append(entry)
        if len(kept) == len(entries):
            return data
        return encode_archive(kept)

    def other_files(self) -> list[str]:
        """Return paths of small files: of partitions, schemas, comments, and of the timeline."""
        storage, config = self.state.storage, self.state.config
        found = [
            each.path
            for partition in self.view.partitions
            for each in self.view.files(partition)
            if each.name in PARTITION_METADATA_NAMES
        ]
        found += histories_of(storage, self.state.timeline, self.as_of)
        found += [_NOTES] if storage.exists(_NOTES) else []
        files = files_of(storage, config, self.instants)
        done = {
            (each.instant.requested_time, each.instant.action) for each in files if each.instant.is_completed
        }
        gone = [each for each in self.instants if (each.requested_time, each.action) not in done]
        if gone:
            raise FileNotFoundError(f"{gone[0].file_name} has left the timeline")
        return [*found, *(each.path for each in files), *self._plans()]

    @cached_property
    def instants(self) -> list[Instant]:
        """Completed instants that come along."""
        return [
            each
            for each in self.state.timeline.completed
            if self._is_in_time(each.requested_time) and not self._stays_behind(each)
        ]

    @cached_property
    def _slices(self) -> list[FileSlice]:
        timeline = self.state.timeline
        behind = [each for each in timeline.completed_writes if self._stays_behind(each)]
        gone = {group for write in behind for group in timeline.replaced_by(write)}
        return [each for each in self.view.every_slice() if (each.partition, each.file_id) not in gone]

    @cached_property
    def _is_still(self) -> bool:
        """Whether every block of a log counts: there was no write while files were listed, and the newest state is meant."""
        before, after = (
            [each for each in timeline.instants if each.action in WRITE_ACTIONS]
            for timeline in (self.state.timeline, self.later)
        )
        return self.as_of is None and before == after and all(each.is_completed for each in before)

    @cached_property
    def _done(self) -> frozenset[str]:
        return frozenset(each.requested_time for each in self.state.timeline.completed)

    def _counts(self, block: BlockPlace) -> bool:
        """Return whether a block is of an action that is done, by the moment that is meant."""
        time, first = block.instant_time, self.state.timeline.first_write_time
        if not block.is_rollback:
            return self.state.timeline.committed(self.as_of)(time)
        return self._is_in_time(time) and (time in self._done or (first is not None and time < first))

    def _undone_in_slice_of(self, path: str, places: Sequence[BlockPlace]) -> frozenset[str]:
        """Return the instants whose blocks in a log were taken back, however late: a reader knows by the slice's commands.

        A block that is older than the active timeline counts as committed but for those. The command may lie in a later log of
        the slice, and stay behind because it is later than the moment that is meant; so the block stays behind too.
        """
        writes = {each.requested_time for each in self.state.timeline.completed_writes}
        if all(
            each.kind is BlockType.CORRUPT or each.is_rollback or each.instant_time in writes
            for each in places
        ):
            return frozenset()
        return self._commands.targets(path)

    @cached_property
    def _commands(self) -> RollbackCommands:
        return RollbackCommands(self.state.storage, self._slices)

    def _stays_behind(self, instant: Instant) -> bool:
        return instant.requested_time < self.gap and instant.action in (*WRITE_ACTIONS, "savepoint")

    def _is_in_time(self, requested_time: str) -> bool:
        return self.as_of is None or requested_time <= self.as_of

    def _plans(self) -> Iterator[str]:
        """Yield the plans of pending compactions: logs carry their names by now, and readers look for them."""
        for each in self.state.timeline.pending:
            if each.action == "compaction" and self._is_in_time(each.requested_time):
                name = timeline_file_name(each.requested_time, each.action, State.REQUESTED)
                yield f"{self.state.config.timeline_path}/{name}"


def _gap(timeline: Timeline, as_of: str | None) -> str:
    """Return the newest archived write by an instant that counts by a later one than that, ``""`` without one."""
    if as_of is None:
        return ""
    later = {each.requested_time for each in timeline.instants if each.requested_time > as_of}
    hidden = hidden_writes(timeline, timeline.without(later))
    return max((time for time in hidden if time <= as_of), default="")


class RollbackCommands:
    """The rollback commands of slices; the logs of a slice are read once, when one of them is looked up."""

    def __init__(self, storage: Storage, slices: Iterable[FileSlice]) -> None:
        self._storage = storage
        self._logs: dict[str, tuple[str, ...]] = {}
        for each in slices:
            logs = tuple(log.path for log in each.log_files)
            self._logs.update((log.path, logs) for log in (*each.log_files, *each.cdc_files))
        self._found: dict[tuple[str, ...], frozenset[str]] = {}

    def targets(self, path: str) -> frozenset[str]:
        """Return the instants that are taken back in the slice of a log, by commands of whatever time."""
        logs = self._logs[path]
        if logs not in self._found:
            self._found[logs] = frozenset(target for log in logs for target in self._in_log(log))
        return self._found[logs]

    def _in_log(self, path: str) -> list[str]:
        with self._storage.open_input(path) as file:
            targets = [each.target_instant_time for each in scan_blocks(FileSource(file)) if each.is_rollback]
        return [each for each in targets if each is not None]


def clean_for_others(bound: CleanBound, content: Content, clone: Storage) -> Iterator[tuple[str, bytes]]:
    """Yield paths and bodies of the timeline files of the clean that replaces those which stay behind."""
    plan = CleanPlan(CleanPolicy.KEEP_LATEST_FILE_VERSIONS.value, None, bound.oldest, {}).to_bytes(clone)
    record = {
        "startCleanTime": bound.clean,
        "timeTakenInMillis": 0,
        "totalFilesDeleted": 0,
        "earliestCommitToRetain": "",
        "lastCompletedCommitTimestamp": bound.oldest,
        "partitionMetadata": {},
        "version": 2,
        "bootstrapPartitionMetadata": {},
        "extraMetadata": {},
    }
    done = encode_avro_file(CLEAN_METADATA, record)
    config = content.state.config
    completion_time = None
    if config.table_version.has_completion_times:
        completion_time = InstantClock().next(bound.clean, config.timeline_zone)
    names = {
        timeline_file_name(bound.clean, "clean", State.REQUESTED): plan,
        timeline_file_name(bound.clean, "clean", State.INFLIGHT): plan,
        timeline_file_name(bound.clean, "clean", State.COMPLETED, completion_time): done,
    }
    for name, body in names.items():
        yield f"{config.timeline_path}/{name}", body


def bound_of_others(content: Content) -> CleanBound | None:
    """Return how far back the cleans that stay behind left the clone whole, None where those that come along say as much.

    The newest write of the clone is whole whatever a later clean took, as its files are here. A clean that is only planned has
    taken nothing.
    """
    along = {each.requested_time for each in content.instants if each.action == "clean"}
    begun = [
        each
        for each in content.later.instants
        if each.action == "clean" and each.state is not State.REQUESTED
    ]
    behind = [content.later.clean_bound(each) for each in begun if each.requested_time not in along]
    if not behind:
        return None
    others = max(behind)
    oldest = min(others.oldest, content.newest or "")
    known = (_told(content, each) for each in begun if each.requested_time in along)
    return None if oldest <= max(known, default="") else CleanBound(oldest, others.clean)


def _told(content: Content, clean: Instant) -> str:
    """Return how far back a clean that comes along leaves the clone whole; one that is damaged does not say it."""
    try:
        return content.later.clean_bound(clean).oldest
    except CorruptTableError:
        return ""


_AUTHORITY = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://[^/]*")


class Sharing:
    """The way of files from a table's folder to another folder."""

    def __init__(self, source: Storage, target: Storage, *, copy: bool) -> None:
        self._source = source
        self._target = target
        self._may_copy = copy
        common = _folder_above(source, target)
        self._above = None if common is None else open_storage(common)
        cut = len((common or "").rstrip("/")) + 1
        self._from, self._to = source.base[cut:], target.base[cut:]

    def share(self, path: str) -> bool:
        """Give a file that never changes to the other folder; returns whether no bytes went through this process."""
        try:
            if self._above is None:
                raise StorageError("they are in different stores")
            self._above.share(join(self._from, path), join(self._to, path))
            return True
        except StorageError as error:
            if not self._may_copy:
                raise StorageError(
                    f"the files of {self._source.base!r} cannot be shared with {self._target.base!r}: {error}. Clone it to the "
                    "same file system or bucket, or let the bytes be copied (copy=True; --copy of the command line;"
                    " clone_copy: true in a model's config)"
                ) from error
        self.copy(path)
        return False

    def copy(self, path: str) -> None:
        """Copy a file that may yet change; raises FileNotFoundError."""
        with self._source.open_input(path) as source, self._target.open_output(path) as target:
            shutil.copyfileobj(source, target, 1 << 20)


def _folder_above(source: Storage, target: Storage) -> str | None:
    """Return the nearest folder that holds both, None when they are not in one store."""
    if isinstance(source, LocalStorage) and isinstance(target, LocalStorage):
        return os.path.commonpath([source.base, target.base])
    one, other = (_AUTHORITY.match(each.base) for each in (source, target))
    if one is None or other is None or one.group() != other.group():
        return None
    parts = [each.base.split("/") for each in (source, target)]
    shared = os.path.commonprefix(parts)
    return "/".join(shared)


_TRIES = 4


@dataclass(frozen=True)
class CloneResult:
    """What a clone is made of.

    Args:
        instant: Its newest write, None for a table without any.
        files_shared: Base files that did not pass through this process.
        files_copied: Logs, and base files that could not be shared.
    """

    path: str
    instant: str | None
    files_shared: int = 0
    bytes_shared: int = 0
    files_copied: int = 0
    bytes_copied: int = 0


class CloneArguments(TypedDict, total=False):
    """What `HudiTable.clone` takes by name."""

    name: str | None
    at: Moment | None
    replace: bool
    copy: bool


def clone_table(
    storage: Storage,
    path: str,
    make_room: Callable[[], None] | None = None,
    options: Options | None = None,
    **given: Unpack[CloneArguments],
) -> CloneResult:
    """Make a table that shares the base files of another, and from then on goes its own way.

    Args:
        make_room: Removes what else has the folder, with all it holds, once the clone is built next to it.
    """
    target = open_storage(path)
    if lie_in_one(storage.base, target.base):
        raise ConfigError(
            f"a clone of {storage.base!r} cannot be at {target.base!r}; choose a folder outside it"
        )
    name = given.get("name") or target.base.rpartition("/")[2]
    problems = name_problems(name)
    if problems:
        raise ConfigError(f"{problems[0]}; give the clone a name of these")
    recover_swap(target.base)
    is_there = target.exists(PROPERTIES_PATH)
    if is_there and not given.get("replace"):
        raise TableExistsError(
            f"a Hudi table is already at {target.base}; replace it (replace=True, in YAML replace: true, as a command "
            "--replace), or choose another path"
        )
    if not is_there and make_room is None:
        check_absent(target)
    options = options or resolve_options(None)
    for tries_left in reversed(range(_TRIES)):
        try:
            with storage_errors(storage, "clone a table"):
                state = TableState.load(storage)
                state.config.check_writable()
                at = given.get("at")
                content = Content.of(state, None if at is None else instant_as_of(state, at, asked="at"))
                # Before files are shared, which may take long: the cleans may be archived meanwhile.
                bound = bound_of_others(content)
                with Build(target.base, None if is_there else make_room) as build:
                    mark_builder(build.storage)
                    sharing = Sharing(storage, build.storage, copy=given.get("copy", False))
                    result = _fill(build.storage, content, bound, sharing, target.base)
                    own = {TABLE_NAME_KEY: name, CLONE_OF: content.newest or ""}
                    config = state.config.with_properties(own, METADATA_PROPERTIES)
                    build.storage.create(PROPERTIES_PATH, config.to_bytes())
                    if make_room is not None and not is_there:
                        build.put()
                    else:
                        _put(target, options, is_there, target.base, build.path)
                # What earlier tries have left, if they died.
                recover_swap(target.base)
                return result
        except (StorageError, TimelineError) as error:
            # A clean, archive or rollback of the original went by meanwhile: look at it again.
            if not (isinstance(error.__cause__, FileNotFoundError) and tries_left):
                raise
    raise AssertionError("the last try raises")


def _put(target: Storage, options: Options, replaces: bool, base: str, side: str) -> None:
    """Put the clone that is built in a side folder in its place."""
    if not replaces:
        check_absent(target)  # another process may have made a table there meanwhile
    if not (replaces or target.exists("")):
        place_new(base, side)
    else:
        # On every store: two clones of one table have files of the same names, so what a clean of the old one is about to delete
        # would go from the new one.
        with without_writers(target, options, "replaced") as lock:
            if lock is not None:
                _note_replaced(target, open_storage(side))
            swap(base, side)


def _note_replaced(replaced: Storage, clone: Storage) -> None:
    """Note in a clone up to which instant another table has the place that it takes, and those before that one."""
    was, config = TableConfig.load(replaced), TableConfig.load(clone)
    newest = Timeline.load(replaced, was).latest_time or ""
    until = max(newest, *(each.properties.get(CLONE_REPLACED, "") for each in (was, config)))
    if until:
        config.with_properties({CLONE_REPLACED: until}).save(clone)


def _fill(
    clone: Storage, content: Content, bound: CleanBound | None, sharing: Sharing, path: str
) -> CloneResult:
    """Fill a folder with all but the properties; raises FileNotFoundError for a file that has gone since it was listed."""
    for folder in FOLDERS if clone.renames_folders else ():
        clone.make_dirs(folder)

    def put(path: str, data: bytes) -> int:
        if data:
            clone.create(path, data)
        return len(data)

    is_shared = on_threads(lambda base: sharing.share(base[0]), content.base_files)
    bases = list(zip(is_shared, (size for _, size in content.base_files), strict=True))
    shared = [size for was_shared, size in bases if was_shared]
    copied = [size for was_shared, size in bases if not was_shared]
    logs = on_threads(lambda path: put(path, content.log_bytes(path)), content.logs)
    copied += [size for size in logs if size]
    on_threads(lambda path: put(path, content.archive_bytes(path)), content.archives())
    on_threads(sharing.copy, content.other_files())
    for file, body in () if bound is None else clean_for_others(bound, content, clone):
        clone.create(file, body)
    return CloneResult(path, content.newest, len(shared), sum(shared), len(copied), sum(copied))
