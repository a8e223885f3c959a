"""Making a clone in a side folder that is renamed, so that one that was killed is no table.

On a disk the base files are hard links: a file goes when neither table has it any more, so a clean of one never breaks the
other. An object store copies them by itself. Logs are copied, since another writer may append to the original's.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypedDict

from hudi_engine.errors import ConfigError, StorageError, TableExistsError, TimelineError
from hudi_engine.format.config.options import Options, resolve_options
from hudi_engine.format.config.other_keys import CLONE_REPLACED
from hudi_engine.format.config.properties import TABLE_NAME_KEY
from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.parallel import on_threads
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.storage.paths import join
from hudi_engine.format.timeline.active import CleanBound, Timeline
from hudi_engine.format.timeline.moments import Moment
from hudi_engine.table.clone.content import Content, bound_of_others, clean_for_others
from hudi_engine.table.inspect.as_of import instant_as_of
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.metadata_table import METADATA_PROPERTIES
from hudi_engine.table.txn.moving import without_writers
from hudi_engine.table.txn.storage_errors import storage_errors
from hudi_engine.table.txn.swap import (
    Instead,
    is_switched,
    mark_builder,
    place_new,
    recover_swap,
    remove_side,
    side_folder,
    swap,
)
from hudi_engine.table.txn.table_folder import lie_in_one
from hudi_engine.table.write.define.create_table import FOLDERS, check_absent
from hudi_engine.table.write.define.problems import name_problems

if TYPE_CHECKING:
    from typing_extensions import Unpack

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
    **asked: Unpack[CloneArguments],
) -> CloneResult:
    """Make a table that shares the base files of another, and from then on goes its own way.

    Args:
        make_room: Removes what else has the folder, with all it holds, once the clone is built next to it.
        options: Lock and heartbeat of a table that is replaced; None for the defaults.

    Raises:
        ConfigError: The path is the original's, or inside it, or the name is none of a table.
        TableExistsError: A table is there and is not to be replaced, or a folder with other files.
        TimelineError: A clean has deleted files of ``at``, or it has left the active timeline.
        UnsupportedTableError: A table that this engine does not write.
        StorageError: The files cannot be shared, or the storage failed.
        WriteConflictError: Somebody works on the table that is to be replaced.
    """
    target = open_storage(path)
    if lie_in_one(storage.base, target.base):
        raise ConfigError(
            f"a clone of {storage.base!r} cannot be at {target.base!r}; choose a folder beside it"
        )
    name = asked.get("name") or target.base.rpartition("/")[2]
    problems = name_problems(name)
    if problems:
        raise ConfigError(f"{problems[0]}; give the clone a name of these")
    recover_swap(target.base)
    is_there = target.exists(PROPERTIES_PATH)
    if is_there and not asked.get("replace"):
        raise TableExistsError(
            f"a Hudi table is already at {target.base}; replace it (replace=True, in YAML replace: true, as a command "
            "--replace), or choose another path"
        )
    if not is_there and make_room is None:
        check_absent(target)
    ends = _Ends.at(target, make_room, options or resolve_options(None), replaces=is_there)
    for tries_left in reversed(range(_TRIES)):
        try:
            with storage_errors(storage, "clone a table"):
                copy = asked.get("copy", False)
                return _attempt(storage, target, name, asked.get("at"), copy, ends)
        except (StorageError, TimelineError) as error:
            # A clean, archive or rollback of the original went by meanwhile: look at it again.
            if not (isinstance(error.__cause__, FileNotFoundError) and tries_left):
                raise
    raise AssertionError("the last try raises")


def _attempt(
    storage: Storage, target: Storage, name: str, at: Moment | None, copy: bool, ends: _Ends
) -> CloneResult:
    """Build the clone in a side folder and put it in its place."""
    state = TableState.load(storage)
    state.config.check_writable()
    content = Content.of(state, None if at is None else instant_as_of(state, at, asked="at"))
    # Before files are shared, which may take long: the cleans may be archived meanwhile.
    bound = bound_of_others(content)
    side = side_folder(target.base)
    try:
        clone = open_storage(side)
        mark_builder(clone)
        result = _fill(clone, content, bound, Sharing(storage, clone, copy=copy), target.base)
        clone.create(
            PROPERTIES_PATH,
            state.config.with_properties({TABLE_NAME_KEY: name}, METADATA_PROPERTIES).to_bytes(),
        )
        ends.put(target.base, side)
    except BaseException:
        if not ends.must_stay(target.base, side):
            remove_side(side)
        raise
    # What earlier tries have left, if they died.
    recover_swap(target.base)
    return result


@dataclass(frozen=True)
class _Ends:
    """How a clone comes into its place, and when what is built next to it must not be removed."""

    put: Callable[[str, str], None]
    must_stay: Callable[[str, str], bool]

    @classmethod
    def at(
        cls, target: Storage, make_room: Callable[[], None] | None, options: Options, *, replaces: bool
    ) -> _Ends:
        """Choose by what is at the place."""
        if make_room is not None and not replaces:
            instead = Instead(target, make_room)
            return cls(instead.put, instead.is_only)
        return cls(partial(_put, target, options, replaces), is_switched)


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
    newest = Timeline.load(replaced, was).latest_instant_time or ""
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
