"""Putting a rebuilt table in the place of the old one.

Where a storage renames folders in one step the swap is two renames. Between them there is no table at the path; whoever comes by
then finishes the swap, and the rebuilder finds it done.

A flat store (S3, GCS) has keys only, and a "rename" is a copy of every file. There the switch is a record next to the table,
``.<name>.swap``, which names the folder of the new one. While it stands the table *is* the new folder: :func:`table_storage`
follows it. Then the old files go (timeline first, so that no reader takes what is left for a table), the new ones are copied with
``hoodie.properties`` last, and the record goes. Every step can be done again by anybody, so a swap that was cut off is finished by
the next to open the table. A mark in the table's folder comes before the record: where nothing at all is in the folder the table
was removed since, and it stays removed.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby

from hudi_engine.errors import (
    CorruptTableError,
    StorageError,
    TableExistsError,
    TableNotFoundError,
    WriteConflictError,
)
from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.filegroup.base_file import parse_base_file
from hudi_engine.format.storage.base import FileStatus, Storage
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.storage.read_only import ReadOnlyStorage, is_refusal
from hudi_engine.table.txn.owner import Beating, Owner, OwnerState, read_with_time, register, unregister
from hudi_engine.table.txn.table_folder import (
    BUILDER,
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
    unmark,
)

logger = logging.getLogger(__name__)

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
        owner: Who finishes it, None where the file does not say it.
    """

    new: str
    owner: Owner | None
    modified_ms: int
    body: bytes

    def is_at_work(self, parent: Storage) -> bool:
        """Return whether somebody is finishing it: a process that lives, or elsewhere one that still beats.

        Args:
            parent: The folder of the record; beats of other machines are judged by its clock.
        """
        if self.owner is None:
            return False
        try:
            return self.owner.state_in(parent, self.modified_ms) is OwnerState.ALIVE
        except OSError as error:
            if is_refusal(error):
                return True  # whoever may only read follows the record
            raise


def read_swap_record(parent: Storage, path: str, start: str) -> SwapRecord | None:
    """Return the record of a table, None when there is none.

    Args:
        start: How names of folders begin in which the table is rebuilt.
    """
    found = read_with_time(parent, path)
    if found is None:
        return None
    body, modified_ms = found
    where = f"{parent.base.rstrip('/')}/{path}"
    try:
        new = str(json.loads(body)["new"])
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTableError(
            f"{where} cannot be read: {error!r}. It says which folder holds the rebuilt table; look which one is whole, and "
            "delete the record"
        ) from error
    if not new.startswith(start) or "/" in new:
        raise CorruptTableError(
            f"{where} names {new!r}, which is no folder of a rebuild of this table; delete the record if the table is whole"
        )
    return SwapRecord(new, Owner.parse(body), modified_ms, body)


def side_folder(base: str) -> str:
    """Return a fresh folder next to a table's for building its successor.

    Raises:
        StorageError: There is no folder above the table's, as for a bucket.
    """
    place = place_of(base)
    if place is None:
        raise StorageError(
            f"a table at {base!r} cannot be rebuilt with another definition, because nothing can be built beside it; move it into "
            "a folder, or drop it and build it again"
        )
    return place.sibling(f".{place.name}{BUILD}{uuid.uuid4().hex[:12]}")


def mark_builder(side: Storage) -> None:
    """Write down in a side folder which process builds there, so that others can tell when it is gone."""
    side.replace(BUILDER, Owner.current().to_json())


def table_storage(path: str) -> Storage:
    """Open the storage in which a table is to be found now; finishes swaps that were cut off.

    While another process is putting a rebuilt table in its place on a flat store, that is the folder of the new table, and only
    for reading.
    """
    storage = open_storage(path)
    place = place_of(storage.base)
    if place is None:
        return storage
    if storage.renames_folders:
        _recover_renames(place)
        return storage
    record = None
    with suppress(PermissionError):  # of whoever may read this folder and not the one above it
        record = _unfinished_swap(place)
    if record is None:
        return storage
    return ReadOnlyStorage(
        open_storage(place.sibling(record.new)),
        f"a rebuild is putting a new table in the place of {storage.base!r}",
    )


def recover_swap(base: str) -> None:
    """Finish or undo a swap that was cut off, and remove what dead builders have left next to a table.

    Raises:
        WriteConflictError: Another process is putting a rebuilt table in place.
    """
    place = place_of(open_storage(base).base)
    if place is None:
        return
    if place.parent.renames_folders:
        _recover_renames(place)
    elif _unfinished_swap(place) is not None:
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
    """Put the table built in ``side`` in the place of the one at ``base``, and remove the old one.

    Raises:
        TableExistsError: Another table lies in the folder of the old one, and would go with it; the old table stays.
        WriteConflictError: On a flat store another process is putting a table there; its is the one that counts.
    """
    place = place_of(base)
    assert place is not None, "side_folder has refused it"
    new = _name(side)
    try:
        inside = table_inside(place.parent, place.name)
    except OSError as error:
        raise StorageError(
            f"the storage failed before the rebuilt table was put in the place of {base}: {error}. The old one stands"
        ) from error
    if inside is not None:
        raise TableExistsError(
            f"the table at {base} cannot be replaced: in its folder lies another Hudi table, at {inside}, whose rows would go with "
            "it. Build that one in another folder, or drop it, first; nothing has changed"
        )
    if place.parent.renames_folders:
        _swap_by_rename(place, base, new)
        return
    try:
        _swap_by_copies(place, new)
    except OSError as error:
        raise StorageError(
            f"the storage failed while the rebuilt table was put in the place of {base}: {error}. If {_record_path(place)!r} "
            "is beside it the new table counts, and the next to open it finishes the move; else the old one stands"
        ) from error


def place_new(base: str, side: str) -> None:
    """Put the table built in ``side`` where nothing is yet.

    Raises:
        TableExistsError: Another process has put something there meanwhile.
    """
    place = place_of(base)
    assert place is not None, "side_folder has refused it"
    if not place.parent.renames_folders:
        swap(base, side)
        return
    try:
        place.parent.rename(_name(side), place.name)
    except FileExistsError as error:
        raise TableExistsError(
            f"something has come to be at {base} meanwhile; choose another path"
        ) from error
    with suppress(OSError):
        place.parent.remove(f"{place.name}/{BUILDER}")


def is_switched(base: str, side: str) -> bool:
    """Return whether the table at ``base`` is by now the one built in ``side``, which must then not be removed."""
    place = place_of(base)
    if place is None:
        return False
    if place.parent.renames_folders:
        # between the two renames: whoever opens the table next does the second one
        is_there = place.parent.exists(f"{place.name}/{PROPERTIES_PATH}")
        return not is_there and place.parent.exists(_name(side).replace(BUILD, _OLD))
    record = swap_under_way(place)
    return record is not None and record.new == _name(side)


def remove_side(side: str) -> None:
    """Remove a side folder after a failed build."""
    place = place_of(side)
    if place is not None:
        delete_table(place.parent, place.name)


def _swap_by_rename(place: TablePlace, base: str, new: str) -> None:
    parent, name = place.parent, place.name
    old = new.replace(BUILD, _OLD)
    try:
        if parent.exists(name):
            parent.rename(name, old)
        _give_name(parent, new, name, old)
    except OSError as error:
        _recover_renames(place)
        if parent.exists(new):
            raise StorageError(
                f"could not put the rebuilt table of {base} in place: {error}; the old one stands"
            ) from error
    clear_after_swap(place, old)


def _give_name(parent: Storage, folder: str, name: str, old: str) -> None:
    """Rename a table to its place; what a writer of the one before has made there since that went is moved aside."""
    for _ in range(_TRIES):
        try:
            parent.rename(folder, name)
            return
        except OSError:
            if (
                not parent.exists(folder)
                or not parent.exists(name)
                or parent.exists(f"{name}/{PROPERTIES_PATH}")
            ):
                raise
        aside = f"{old}-{uuid.uuid4().hex[:8]}"
        parent.rename(name, aside)
        if parent.exists(f"{aside}/{PROPERTIES_PATH}"):
            parent.rename(aside, name)
        else:
            remove_old(parent, aside)
    parent.rename(folder, name)


def _recover_renames(place: TablePlace) -> None:
    """After the first rename the successor is complete, so it takes the place.

    Where it has taken it and the old table lies next to it still, the table that is not there was removed since: then
    nothing comes back.
    """
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
                _give_name(parent, new, name, old)
                clear_after_swap(place, old)
            else:
                logger.warning("bringing back %s: its rebuild was cut off", name)
                _give_name(parent, old, name, old)
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
            logger.warning("removing %s, which a rebuild that is gone has left", side)
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
    """Return the error of whoever would put a table where another process is putting one."""
    return WriteConflictError(
        f"another process is putting a rebuilt table in the place of {base}; try again when it is done"
    )


def _record_path(place: TablePlace) -> str:
    """Return where the record of a table's swap is, in the folder above it."""
    return f".{place.name}{_RECORD}"


def swap_under_way(place: TablePlace) -> SwapRecord | None:
    """Return the record of a table's swap, None when there is none; raises CorruptTableError when it is damaged."""
    return read_swap_record(place.parent, _record_path(place), f".{place.name}{BUILD}")


def _unfinished_swap(place: TablePlace) -> SwapRecord | None:
    """Return the record of a swap that another process is at work on, None when the table is at its place.

    A swap that was cut off is finished first.

    Raises:
        StorageError: It cannot be finished.
    """
    record = swap_under_way(place)
    if record is None or record.is_at_work(place.parent):
        return record
    try:
        _resume(place, record)
    except WriteConflictError:  # it stood still, and the table is being replaced once more
        return swap_under_way(place)
    except OSError as error:
        # Another process may have taken it over, and be done by now; whoever may only read follows the record.
        record = swap_under_way(place)
        taken = (
            isinstance(error, FileNotFoundError) and record is not None and record.is_at_work(place.parent)
        )
        if record is None or taken or is_refusal(error):
            return record
        raise StorageError(
            f"a rebuild of {place.base} that was cut off cannot be finished now: {error}. The next to "
            "open the table tries again"
        ) from error
    # none, unless another process took it over from this one, which stood still
    return swap_under_way(place)


def _write_record(place: TablePlace, owner: Owner, new: str, before: SwapRecord | None) -> bytes:
    """Write who puts the new table in place.

    Raises:
        WriteConflictError: Another process puts another table there; over that record this one would be mixed with it.
        FileNotFoundError: Another process was faster to take over what was cut off.
    """
    body = owner.to_json(new=new)
    if before is not None:
        place.parent.take_over(_record_path(place), before.body, body)
        return body
    try:
        place.parent.create(_record_path(place), body)
    except FileExistsError as error:
        raise _another_swaps(place.base) from error
    return body


def _resume(place: TablePlace, record: SwapRecord) -> None:
    """Finish a swap that was cut off; a table of which nothing is left was removed since, and its successor goes too."""
    if is_removed(place.parent, place.name):
        logger.info("%s was removed after a rebuild that was cut off, so what it left goes too", place.name)
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
    if one != other:
        return False
    there, moving = files_of_table(place.parent, place.name), files_of_table(place.parent, new)
    return all(path in there for path in moving if in_timeline(path))


def _swap_by_copies(place: TablePlace, new: str, before: SwapRecord | None = None) -> None:
    """Move the new table to its place, file by file, under the record; skip what an earlier try has done.

    Args:
        before: The record of the process that was cut off.

    Raises:
        WriteConflictError: Another process is putting a table there.
    """
    owner = Owner.current()
    if before is None:
        place.parent.replace(f"{place.name}/{BUILDER}", owner.to_json())
    # one from before the record, or of a table that has its properties: those are the next to go, and do not end the new table
    unmark(place.parent, place.name)
    register(owner)
    try:
        beating = Beating(place.parent, _record_path(place), owner, _write_record(place, owner, new, before))
        beating.start()
        try:
            _move(place, new, owner)
        finally:
            beating.stop()
    finally:
        unregister(owner)
    if _is_mine(place, new, owner):
        place.parent.remove(_record_path(place))
        clear_after_swap(place, new)


def _move(place: TablePlace, new: str, owner: Owner) -> None:
    """Take the old table's files away, its properties first, and copy the new one's, its properties last."""
    moving = files_of_table(place.parent, new)
    if PROPERTIES_PATH not in moving:
        raise CorruptTableError(
            f"the record {_record_path(place)!r} beside {place.name!r} names {new!r}, where there is no whole table; "
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
    """Return whether a file need not be copied: only of a base file, whose name no other one has, does its size say enough.

    Two clones of one table have the same file ids and base instants, and their logs of rollbacks the same token and length.
    """
    return known is not None and known.size == moving.size and parse_base_file(path, "") is not None


def _is_mine(place: TablePlace, new: str, owner: Owner) -> bool:
    """Return whether nobody has taken a swap over from a process that stood still for so long that it counted as dead.

    Who took it over has finished it, or does: nothing is left to be done here.

    Raises:
        WriteConflictError: By now it is another table that is put in place.
    """
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


class Instead:
    """Puts a table in the place of a folder that something else has."""

    def __init__(self, storage: Storage, make_room: Callable[[], None]) -> None:
        self._storage = storage
        self._make_room = make_room
        self._known: list[str] | None = None

    def put(self, base: str, side: str) -> None:
        """Make room for the table built in ``side`` and put it there."""
        self._known = self._paths()
        try:
            self._make_room()
            place_new(base, side)
        except Exception as error:
            if not self.is_only(base, side):
                raise
            raise StorageError(
                f"the table is built at {side}, and could not be put in the place of what was at {base}: {error}. Move that folder "
                "there, or run this again"
            ) from error

    def is_only(self, base: str, side: str) -> bool:
        """Return whether some of what was there may be gone, so that the table built next to must stay."""
        if self._known is None:
            return False
        try:
            return self._paths() != self._known
        except OSError as error:
            logger.warning("%s is kept, as it cannot be told what is left at %s: %s", side, base, error)
            return True

    def _paths(self) -> list[str]:
        return sorted(each.path for each in self._storage.list("", recursive=True))
