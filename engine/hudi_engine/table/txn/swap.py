"""Putting a rebuilt table in the place of the old one.

Where a storage renames folders in one step the swap is two renames. Between them there is no table at the path; the next process
that opens it finishes the swap, and the rebuilder finds it done.

A flat store (S3, GCS) has keys only, and a "rename" is a copy of every file. There the switch is a record next to the table,
``.<name>.swap``, which names the folder of the new one. As long as it is there the table *is* the new folder:
:func:`table_storage` follows it. Then the old files are deleted (timeline first, so that no reader takes the rest for a table),
the new ones are copied with ``hoodie.properties`` last, and the record is removed. Every step can be repeated by any process, so
a swap that was cut off is finished by the next to open the table. A mark in the table's folder comes before the record: if the
folder is empty the table was removed since, and it stays removed.
"""

from __future__ import annotations

import errno
import json
import logging
import re
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from types import TracebackType

from hudi_engine.errors import (
    CorruptTableError,
    HudiError,
    StorageError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedTableError,
    WriteConflictError,
)
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.base_file import parse_base_file
from hudi_engine.format.storage.base import FileStatus, Storage, storage_errors
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.storage.read_only import ReadOnlyStorage, is_refusal
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.instant import State
from hudi_engine.table.txn.lock import TableLock
from hudi_engine.table.txn.owner import (
    LOCK_PATH,
    Beating,
    Liveness,
    Owner,
    OwnerState,
    at_work,
    read_with_time,
)
from hudi_engine.table.txn.recovery import pending_writes, table_lock
from hudi_engine.table.txn.table_folder import (
    BUILDER,
    REMOVER,
    TablePlace,
    clear_put_aside,
    copy_order,
    delete_table,
    files_of_table,
    in_timeline,
    is_removed,
    place_of,
    removal_order,
    table_inside,
)

logger = logging.getLogger(__name__)


_INSTANT = re.compile(r"\d{14}")
"""In the names of data files and instants, which no other table has; not in those of file lists, archives and notes."""


def check_no_writers(storage: Storage, options: Options, done: str) -> None:
    """Refuse to move or delete a table while another writer may still make files in it; the caller holds its lock.

    Plans of services that no process has begun do no harm.

    Args:
        done: What would be done to the table, for the message, such as ``moved``.
    """
    config = TableConfig.load(storage)
    timeline, living = Timeline.load(storage, config), Liveness(storage, config, options)
    writes = pending_writes(timeline)
    for each in timeline.pending:
        if (each in writes or each.state is State.INFLIGHT) and living.is_at_work(each):
            raise WriteConflictError(
                f"the table at {storage.base} cannot be {done} while {each.action} {each.requested_time} of another writer is "
                "under way, whose files may come, or go, at any time. The table is as it was; try again when that writer has ended"
            )


@contextmanager
def without_writers(storage: Storage, options: Options, done: str) -> Iterator[TableLock | None]:
    """Hold a table's lock for a block in which no process may write; no lock for a table that cannot be opened."""
    if not storage.renames_folders:
        recover_swap(storage.base)  # while a table moves there is none at its place
    try:
        TableConfig.load(storage)
    except (TableNotFoundError, CorruptTableError, UnsupportedTableError):
        yield None
        return
    with table_lock(storage, options) as lock:
        with swap_is_conflict(storage):
            check_no_writers(storage, options, done)
        yield lock


def move_table(parent: Storage, source: str, target: str, options: Options) -> None:
    """Move a table's folder to an empty place.

    On a store without folders the copy has its properties last and the table loses them first, so that one of both is whole at
    any time, and no part of one is a table. If another process makes a table at the target meanwhile, that one stays.

    Raises:
        FileNotFoundError: There is no table.
        FileExistsError: Something is at the target.
        TableExistsError: A table was made there meanwhile; this one stays.
    """
    table = open_storage(f"{parent.base}/{source}")
    if parent.renames_folders:
        _rename(parent, source, target, table, options)
        return
    recover_swap(table.base)
    if not table.exists(PROPERTIES_PATH):
        raise FileNotFoundError(errno.ENOENT, "there is no table", table.base)
    if parent.exists(target):
        raise FileExistsError(errno.EEXIST, "the target of a move exists already", f"{parent.base}/{target}")
    with storage_errors(table, "move the table"), table_lock(table, options):
        check_no_writers(table, options, "moved")
        copy = _Copy(parent, source, target)
        try:
            copy.make()
        except BaseException:
            copy.remove()
            raise
        try:
            delete_table(parent, source)
        except OSError as error:
            if table.exists(PROPERTIES_PATH):
                copy.remove()
                raise
            logger.warning("%s has moved; what is left there can be deleted: %s", table.base, error)


def _rename(parent: Storage, source: str, target: str, table: Storage, options: Options) -> None:
    """Rename a table's folder while no process writes to it, which would make the folder again with a file of no table."""
    with without_writers(table, options, "moved") as lock:
        parent.rename(source, target)
        if lock is None:
            return
        try:
            open_storage(f"{parent.base}/{target}").remove(LOCK_PATH)  # it was renamed with the folder
        except (HudiError, OSError) as error:
            logger.warning("%s has moved with its lock, which the next writer will break: %s", target, error)


class _Copy:
    """A table's copy in another folder, which is no table before its properties are there."""

    def __init__(self, parent: Storage, source: str, target: str) -> None:
        self._parent, self._source, self._target = parent, source, target
        self._properties = parent.read(f"{source}/{PROPERTIES_PATH}")
        self._copied: list[str] = []

    def make(self) -> None:
        """Copy the table, unless another process makes one there, which refuses a folder with files from the first copy on."""
        paths = [path for path in files_of_table(self._parent, self._source) if path != PROPERTIES_PATH]
        for _, part in groupby(sorted(paths, key=copy_order), key=in_timeline):
            if self._is_anothers():
                raise self._taken()
            for path in part:
                if _INSTANT.search(path.rpartition("/")[2]):
                    self._copied.append(path)
                    self._parent.copy(f"{self._source}/{path}", f"{self._target}/{path}")
                else:
                    # other tables have a file of this name too, and no store copies only to an empty place
                    self._create(path, self._parent.read(f"{self._source}/{path}"))
        self._create(PROPERTIES_PATH, self._properties)

    def remove(self) -> None:
        """Remove what it has put there, its properties first, after a failure, which is the one to report."""
        try:
            for path in reversed(self._copied):
                self._parent.remove(f"{self._target}/{path}")
        except OSError as error:
            place = f"{self._parent.base}/{self._target}"
            logger.warning("could not remove the copy of %s at %s, delete it: %s", self._source, place, error)

    def _create(self, path: str, data: bytes) -> None:
        self._copied.append(path)
        try:
            self._parent.create(f"{self._target}/{path}", data)
        except FileExistsError as error:
            self._copied.pop()
            raise self._taken() from error

    def _is_anothers(self) -> bool:
        """Return whether another process has made a table at the target, or is putting one there."""
        if self._parent.exists(f"{self._target}/{BUILDER}"):
            return True
        path = f"{self._target}/{PROPERTIES_PATH}"
        return self._parent.exists(path) and self._parent.read(path) != self._properties

    def _taken(self) -> TableExistsError:
        return TableExistsError(
            f"a table has come to be at {self._parent.base}/{self._target} meanwhile; the one that was to be moved there is where "
            "it was. Choose another name, or remove the new one"
        )


BUILD = ".rebuild-"
"""Suffix of a table's name in that of the folder in which its successor is built."""
_RECORD = ".swap"
_OLD = ".replaced-"
_TRIES = 20
_STALE_MS = 24 * 3600 * 1000
"""Age at which what a builder on another machine has left counts as abandoned."""


@dataclass(frozen=True)
class SwapRecord:
    """A swap that has been switched.

    Args:
        new: Name of the folder with the new table.
        owner: The process that finishes it, None if the file does not name one.
    """

    new: str
    owner: Owner | None
    modified_ms: int
    body: bytes

    def is_at_work(self, parent: Storage) -> bool:
        """Return whether a process is finishing it: one that lives here, or elsewhere one that still beats."""
        try:
            return (
                self.owner is not None and self.owner.state_in(parent, self.modified_ms) is OwnerState.ALIVE
            )
        except OSError as error:
            if is_refusal(error):
                return True  # a process that may only read follows the record
            raise


def read_swap_record(parent: Storage, path: str, start: str) -> SwapRecord | None:
    """Return the record of a table, None without one; ``start`` is how names of folders begin in which it is rebuilt."""
    found = read_with_time(parent, path)
    if found is None:
        return None
    body, modified_ms = found
    where = f"{parent.base.rstrip('/')}/{path}"
    try:
        new = str(json.loads(body)["new"])
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTableError(
            f"{where} cannot be read: {error!r}. It names the folder that holds the rebuilt table; look which one is whole, and "
            "delete the record"
        ) from error
    if not new.startswith(start) or "/" in new:
        raise CorruptTableError(
            f"{where} names {new!r}, which is no folder of a rebuild of this table; delete the record if the table is whole"
        )
    return SwapRecord(new, Owner.parse(body), modified_ms, body)


def swap_under_way(place: TablePlace) -> SwapRecord | None:
    """Return the record of a table's swap, None without one; raises CorruptTableError when it is damaged."""
    return read_swap_record(place.parent, _record_path(place), f".{place.name}{BUILD}")


def side_folder(base: str) -> str:
    """Return a fresh folder next to a table's for building its successor."""
    place = place_of(base)
    if place is None:
        raise StorageError(
            f"a table at {base!r} cannot be rebuilt with another definition, because it has no parent folder to build in; move it "
            "into a folder, or drop it and build it again"
        )
    return place.sibling(f".{place.name}{BUILD}{uuid.uuid4().hex[:12]}")


def mark_builder(side: Storage) -> None:
    """Name the process that builds in a side folder, so that others see when it has ended."""
    side.replace(BUILDER, Owner.current().to_json())


class Build:
    """A table that is built in a folder next to its place, used as a context manager.

    After an error, or when it is interrupted, the folder is removed, unless nothing else would be left.

    Args:
        make_room: Removes another format's folder from the place, with all it holds; None to replace a table.
    """

    def __init__(self, base: str, make_room: Callable[[], None] | None = None) -> None:
        self.base = base
        self.path = side_folder(base)
        self.storage = open_storage(self.path)
        self._make_room = make_room
        self._known: list[str] | None = None

    def put(self) -> None:
        """Make room for the table and put it there."""
        assert self._make_room is not None
        self._known = self._paths_at_place()
        try:
            self._make_room()
            place_new(self.base, self.path)
        except Exception as error:
            if not self._is_only():
                raise
            raise StorageError(
                f"the table is built at {self.path}, and could not be put in the place of what was at {self.base}: {error}. Move "
                "that folder there, or run this again"
            ) from error

    def __enter__(self) -> Build:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or (self._is_only() if self._make_room else is_switched(self.base, self.path)):
            return
        side = place_of(self.path)
        assert side is not None
        delete_table(side.parent, side.name)

    def _is_only(self) -> bool:
        """Return whether part of what was at the place may have been removed."""
        if self._known is None:
            return False
        try:
            return self._paths_at_place() != self._known
        except OSError as error:
            logger.warning("%s is kept, as %s cannot be listed: %s", self.path, self.base, error)
            return True

    def _paths_at_place(self) -> list[str]:
        return sorted(each.path for each in open_storage(self.base).list("", recursive=True))


def table_storage(path: str) -> Storage:
    """Open the storage in which a table is now; finishes swaps that were cut off.

    While another process is putting a rebuilt table in its place on a flat store, that is the folder of the new table, and only
    for reading.
    """
    storage = open_storage(path)
    place = place_of(storage.base)
    if place is None:
        return storage
    try:
        record = _finish_cut_off(place)
    except PermissionError:
        if storage.renames_folders:
            raise
        record = None  # this process may read the folder and not the one above it
    if record is None:
        return storage
    return ReadOnlyStorage(
        open_storage(place.sibling(record.new)),
        f"a rebuild is putting a new table in the place of {storage.base!r}",
    )


def recover_swap(base: str) -> None:
    """Finish or undo a swap that was cut off, and remove what dead builders have left next to a table."""
    place = place_of(open_storage(base).base)
    if place is None:
        return
    if _finish_cut_off(place) is not None:
        raise _another_swaps(base)
    _tidy(place)


@contextmanager
def swap_is_conflict(storage: Storage) -> Iterator[None]:
    """Turn a missing table into a conflict while a rebuilt one is being put in its place."""
    try:
        yield
    except TableNotFoundError as error:
        if not table_storage(storage.base).exists(PROPERTIES_PATH):
            raise
        raise WriteConflictError(
            f"a rebuilt table was being put in the place of the one at {storage.base} when this write was to begin; run this "
            "write again"
        ) from error


def swap(base: str, side: str) -> None:
    """Put the table built in ``side`` in the place of the one at ``base``, and remove the old one."""
    place = place_of(base)
    assert place is not None, "side_folder has refused it"
    new = _name(side)
    try:
        inside = table_inside(place.parent, place.name)
    except OSError as error:
        raise StorageError(
            f"the storage failed before the rebuilt table was put in the place of {base}: {error}. The old table is still in place"
        ) from error
    if inside is not None:
        raise TableExistsError(
            f"the table at {base} cannot be replaced: in its folder lies another Hudi table, at {inside}, whose rows would go with "
            "it. Build that one in another folder, or drop it, first; nothing has changed"
        )
    try:
        if place.parent.renames_folders:
            _swap_by_rename(place, new)
        else:
            _swap_by_copies(place, new)
    except OSError as error:
        if not place.parent.renames_folders:
            raise StorageError(
                f"the storage failed while the rebuilt table was put in the place of {base}: {error}. If {_record_path(place)!r} "
                "is next to it the new table counts, and the next one to open it finishes the move; else the old one is in place"
            ) from error
        _recover_renames(place)
        if place.parent.exists(new):
            raise StorageError(
                f"could not put the rebuilt table of {base} in place: {error}; the old one is still there"
            ) from error
        clear_after_swap(place, new.replace(BUILD, _OLD))


def place_new(base: str, side: str) -> None:
    """Put the table built in ``side`` in an empty place."""
    place = place_of(base)
    assert place is not None, "side_folder has refused it"
    if not place.parent.renames_folders:
        swap(base, side)
        return
    try:
        place.parent.rename(_name(side), place.name)
    except FileExistsError as error:
        raise TableExistsError(f"another process has made {base} meanwhile; choose another path") from error
    with suppress(OSError):
        place.parent.remove(f"{place.name}/{BUILDER}")


def is_switched(base: str, side: str) -> bool:
    """Return whether the table at ``base`` is by now the one built in ``side``, which must then not be removed."""
    place = place_of(base)
    if place is None:
        return False
    if place.parent.renames_folders:
        # between the two renames: the next process to open the table does the second one
        is_there = place.parent.exists(f"{place.name}/{PROPERTIES_PATH}")
        return not is_there and place.parent.exists(_name(side).replace(BUILD, _OLD))
    record = swap_under_way(place)
    return record is not None and record.new == _name(side)


def _swap_by_rename(place: TablePlace, new: str) -> None:
    old = new.replace(BUILD, _OLD)
    if place.parent.exists(place.name):
        place.parent.rename(place.name, old)
    _give_name(place, new, old)
    clear_after_swap(place, old)


def _give_name(place: TablePlace, folder: str, old: str) -> None:
    """Rename a table to its place; files that a writer of the old table has made there meanwhile are moved aside."""
    parent, name = place.parent, place.name
    for tries_left in reversed(range(_TRIES)):
        try:
            parent.rename(folder, name)
            return
        except OSError:
            is_table = parent.exists(f"{name}/{PROPERTIES_PATH}")
            if not tries_left or is_table or not parent.exists(folder) or not parent.exists(name):
                raise
        aside = f"{old}-{uuid.uuid4().hex[:8]}"
        parent.rename(name, aside)
        if parent.exists(f"{aside}/{PROPERTIES_PATH}"):
            parent.rename(aside, name)
        else:
            remove_old(parent, aside)


def _recover_renames(place: TablePlace) -> None:
    """Take the complete successor after the first rename; if only the old table is left the successor was removed since."""
    parent, name = place.parent, place.name
    if parent.exists(f"{name}/{PROPERTIES_PATH}"):
        return
    for old in _side_folders(place, _OLD):
        new = old.replace(_OLD, BUILD)
        if not parent.exists(new):
            logger.info("%s is the table that %s has replaced; it can be deleted", old, name)
            continue
        try:
            if parent.exists(f"{new}/{PROPERTIES_PATH}"):
                logger.warning("finishing the rebuild of %s that was cut off", name)
                _give_name(place, new, old)
                clear_after_swap(place, old)
            else:
                logger.warning("bringing back %s: its rebuild was cut off", name)
                _give_name(place, old, old)
        except OSError:
            if not parent.exists(f"{name}/{PROPERTIES_PATH}"):
                raise  # unless another process was faster
        return


def _tidy(place: TablePlace) -> None:
    """Remove old tables whose successor is in place, removed ones, and side folders whose builder has ended."""
    parent = place.parent
    clear_put_aside(place)
    if not parent.exists(f"{place.name}/{PROPERTIES_PATH}"):
        return
    building = set(_side_folders(place, BUILD))
    for old in _side_folders(place, _OLD):
        if old.replace(_OLD, BUILD) not in building:
            remove_old(parent, old)
    for side in building:
        if _is_abandoned(parent, side):
            logger.warning("removing %s of a rebuild whose process has ended", side)
            remove_old(parent, side)


def _is_abandoned(parent: Storage, side: str) -> bool:
    owner = None
    with suppress(FileNotFoundError):
        owner = Owner.parse(parent.read(f"{side}/{BUILDER}"))
    running = None if owner is None else owner.process.is_running()
    if running is not None:
        return not running
    newest = max((each.modified_ms for each in parent.list(side, recursive=True)), default=0)
    return time.time() * 1000 - newest > _STALE_MS


def _side_folders(place: TablePlace, kind: str) -> list[str]:
    start = f".{place.name}{kind}"
    return [each.name for each in place.parent.list("") if each.is_dir and each.name.startswith(start)]


def _name(base: str) -> str:
    return base.rstrip("/").rpartition("/")[2]


def _another_swaps(base: str) -> WriteConflictError:
    return WriteConflictError(
        f"another process is putting a rebuilt table in the place of {base}; try again when it is done"
    )


def _record_path(place: TablePlace) -> str:
    return f".{place.name}{_RECORD}"


def _finish_cut_off(place: TablePlace) -> SwapRecord | None:
    """Finish a swap that was cut off; return the record of one that another process is at work on, None without such a one."""
    if place.parent.renames_folders:
        _recover_renames(place)
        return None
    record = swap_under_way(place)
    if record is None or record.is_at_work(place.parent):
        return record
    try:
        _resume(place, record)
    except WriteConflictError:  # its process was suspended, and the table is being replaced once more
        return swap_under_way(place)
    except OSError as error:
        # Another process may have taken it over, and be done by now; one that may only read follows the record.
        record = swap_under_way(place)
        taken = (
            isinstance(error, FileNotFoundError) and record is not None and record.is_at_work(place.parent)
        )
        if record is None or taken or is_refusal(error):
            return record
        raise StorageError(
            f"a rebuild of {place.base} that was cut off cannot be finished now: {error}. The next to open the table tries again"
        ) from error
    # none, unless another process took it over from this one while it was suspended
    return swap_under_way(place)


def _resume(place: TablePlace, record: SwapRecord) -> None:
    """Finish a swap that was cut off; if nothing is left of the table it was removed since, and its successor goes too."""
    if is_removed(place.parent, place.name):
        logger.info("%s was removed after a rebuild that was cut off, and so is what that left", place.name)
        place.parent.remove(_record_path(place))
        remove_old(place.parent, record.new)
    elif _is_moved(place, record.new):
        # The table may have been written to since: only what it came from is left to be removed.
        place.parent.remove(_record_path(place))
        clear_after_swap(place, record.new)
    else:
        _swap_by_copies(place, record.new, record)


def _is_moved(place: TablePlace, new: str) -> bool:
    """Return whether a table's last file, its properties, has been copied to its place after all of its timeline."""
    try:
        one, other = (place.parent.read(f"{each}/{PROPERTIES_PATH}") for each in (place.name, new))
    except FileNotFoundError:
        return False
    there = files_of_table(place.parent, place.name) if one == other else {}
    return one == other and all(
        path in there for path in files_of_table(place.parent, new) if in_timeline(path)
    )


def _swap_by_copies(place: TablePlace, new: str, before: SwapRecord | None = None) -> None:
    """Move the new table to its place, file by file, under the record; skip what an earlier try has done.

    Args:
        before: The record of the process that was cut off.
    """
    parent, path, owner = place.parent, _record_path(place), Owner.current()
    if before is None:
        parent.replace(f"{place.name}/{BUILDER}", owner.to_json())
    # one from before the record, or of a table that has its properties: those are the next to go, and do not end the new table
    parent.remove(f"{place.name}/{REMOVER}")
    body = owner.to_json(new=new)
    with at_work(owner):
        try:
            if before is None:
                parent.create(path, body)
            else:
                parent.take_over(path, before.body, body)
        except FileExistsError as error:
            # written over another one's record this table would be mixed with that one
            raise _another_swaps(place.base) from error
        beating = Beating(parent, path, owner, body)
        beating.start()
        try:
            _move(place, new, owner)
        finally:
            beating.stop()
    if _is_mine(place, new, owner):
        parent.remove(path)
        clear_after_swap(place, new)


def _move(place: TablePlace, new: str, owner: Owner) -> None:
    """Take the old table's files away, its properties first, and copy the new one's, its properties last."""
    moving = files_of_table(place.parent, new)
    if PROPERTIES_PATH not in moving:
        raise CorruptTableError(
            f"the record {_record_path(place)!r} next to {place.name!r} names {new!r}, where there is no whole table; "
            "delete the record if the table itself is whole"
        )
    there = files_of_table(place.parent, place.name)
    if not _is_mine(place, new, owner):
        return
    for path in sorted(there, key=removal_order):
        if path not in moving or path == PROPERTIES_PATH:
            place.parent.remove(f"{place.name}/{path}")
    left = [path for path, file in moving.items() if not _is_there(path, there.get(path), file)]
    for _, part in groupby(sorted(left, key=copy_order), key=lambda path: copy_order(path)[:2]):
        if not _is_mine(place, new, owner):
            return
        try:
            for path in part:
                place.parent.copy(f"{new}/{path}", f"{place.name}/{path}")
        except FileNotFoundError:
            if _is_mine(place, new, owner):
                raise
            return


def _is_there(path: str, known: FileStatus | None, moving: FileStatus) -> bool:
    """Return whether a file need not be copied: only of a base file, whose name is unique, the size decides.

    Two clones of one table have the same file ids and base instants, and their logs of rollbacks the same token and length.
    """
    return known is not None and known.size == moving.size and parse_base_file(path, "") is not None


def _is_mine(place: TablePlace, new: str, owner: Owner) -> bool:
    """Return whether no other process has taken a swap over from this one, which then leaves the rest to it."""
    record = swap_under_way(place)
    if record is not None and record.new != new:
        raise _another_swaps(place.base)
    return record is not None and record.owner is not None and record.owner.token == owner.token


def clear_after_swap(place: TablePlace, old: str) -> None:
    """Remove the old table, and from the new one the mark of its builder."""
    with suppress(OSError):
        place.parent.remove(f"{place.name}/{BUILDER}")
    remove_old(place.parent, old)


def remove_old(parent: Storage, folder: str) -> None:
    """Remove what a rebuild has left; what cannot be removed is left to the next one."""
    try:
        delete_table(parent, folder)
    except OSError as error:
        logger.warning("could not remove %s, the next rebuild will: %s", folder, error)
