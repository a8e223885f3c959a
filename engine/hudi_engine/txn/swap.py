"""Putting a table that was built beside another in its place.

Where a storage renames folders in one step the swap is two renames. Between them there is no table at the path; whoever comes by
then finishes the swap, and the rebuilder finds it done.

A flat store (S3, GCS) has keys only, and a "rename" is a copy of every file. There the switch is a record beside the table,
``.<name>.swap``, which names the folder of the new one. While it stands the table *is* the new folder: :func:`table_storage`
follows it. Then the old files go (timeline first, so that no reader takes what is left for a table), the new ones are copied with
``hoodie.properties`` last, and the record goes. Every step can be done again by anybody, so a swap that was cut off is finished by
the next to open the table. A mark in the table's folder comes before the record: where nothing at all is in the folder the table
was removed since, and it stays removed.
"""

from __future__ import annotations

import logging
import time
import uuid
from contextlib import suppress

from hudi_engine.config.properties_file import PROPERTIES_PATH
from hudi_engine.errors import (
    CorruptTableError,
    StorageError,
    TableExistsError,
    WriteConflictError,
)
from hudi_engine.storage.base import Storage
from hudi_engine.storage.factory import open_storage
from hudi_engine.storage.read_only import ReadOnlyStorage, is_refusal
from hudi_engine.txn.owner import Beating, Owner, register, unregister
from hudi_engine.txn.swap_record import SwapRecord, read_swap_record
from hudi_engine.txn.table_folder import (
    BUILDER,
    copy_order,
    delete_table,
    files_of_table,
    in_timeline,
    removal_order,
)
from hudi_engine.txn.table_place import TablePlace, place_of

logger = logging.getLogger(__name__)

_BUILD, _OLD, _RECORD = ".rebuild-", ".replaced-", ".swap"
_TRIES = 20
_STALE_MS = 24 * 3600 * 1000
"""Age at which what a builder on another machine has left counts as abandoned."""


def side_folder(base: str) -> str:
    """Return a fresh folder beside a table's for building its successor.

    Raises:
        StorageError: There is no folder above the table's, as for a bucket.
    """
    place = place_of(base)
    if place is None:
        raise StorageError(
            f"a table at {base!r} cannot be rebuilt with another definition, because nothing can be built beside it; move it into "
            "a folder, or drop it and build it again"
        )
    return place.beside(f".{place.name}{_BUILD}{uuid.uuid4().hex[:12]}")


def mark_builder(side: Storage) -> None:
    """Write down in a side folder which process builds there, so that others can tell when it is gone."""
    side.replace(BUILDER, Owner.current().to_json())


def table_storage(path: str) -> Storage:
    """Open the storage in which a table is to be found now; finishes swaps that were cut off.

    While another process is putting a rebuilt table in its place on a flat store, that is the folder of the new table, and only
    for reading.

    Raises:
        ConfigError, StorageError: as :func:`~hudi_engine.storage.factory.open_storage` does.
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
        record = _standing_record(place)
    if record is None:
        return storage
    return ReadOnlyStorage(
        open_storage(place.beside(record.new)),
        f"a rebuild is putting a new table in the place of {storage.base!r}",
    )


def recover_swap(base: str) -> None:
    """Finish or undo a swap that was cut off, and remove what dead builders have left beside a table.

    Raises:
        WriteConflictError: Another process is putting a rebuilt table in place.
    """
    place = place_of(open_storage(base).base)
    if place is None:
        return
    if place.parent.renames_folders:
        _recover_renames(place)
    elif _standing_record(place) is not None:
        raise WriteConflictError(
            f"another process is putting a rebuilt table in the place of {base}; try again when it is done"
        )
    _tidy(place)


def swap(base: str, side: str) -> None:
    """Put the table built in ``side`` in the place of the one at ``base``, and remove the old one.

    Raises:
        StorageError: The storage failed. The old table stands; or on a flat store, once the switch is made, the
            new one does, and the next to open the table finishes its move.
    """
    place = place_of(base)
    assert place is not None, "side_folder has refused it"
    new = _name(side)
    if place.parent.renames_folders:
        _swap_by_rename(place, base, new)
        return
    try:
        _finish(place, new)
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
        place.parent.delete(f"{place.name}/{BUILDER}")


def is_switched(base: str, side: str) -> bool:
    """Return whether the table at ``base`` is by now the one built in ``side``, which must then not be removed."""
    place = place_of(base)
    if place is None:
        return False
    if place.parent.renames_folders:
        # between the two renames: whoever opens the table next does the second one
        is_there = place.parent.exists(f"{place.name}/{PROPERTIES_PATH}")
        return not is_there and place.parent.exists(_name(side).replace(_BUILD, _OLD))
    record = _read_record(place)
    return record is not None and record.new == _name(side)


def remove_side(side: str) -> None:
    """Remove a side folder after a failed build."""
    place = place_of(side)
    if place is not None:
        delete_table(place.parent, place.name)


def _swap_by_rename(place: TablePlace, base: str, new: str) -> None:
    parent, name = place.parent, place.name
    old = new.replace(_BUILD, _OLD)
    try:
        if parent.exists(name):
            parent.rename(name, old)
        _give_name(parent, new, name, old)
    except OSError as error:
        is_there = parent.exists(f"{name}/{PROPERTIES_PATH}")
        if is_there and not parent.exists(new):
            logger.info("another process has put the rebuilt table of %s in place", base)
        else:
            if not is_there and parent.exists(old):
                _give_name(parent, old, name, old)
            raise StorageError(
                f"could not put the rebuilt table of {base} in place: {error}; the old one stands"
            ) from error
    _clear(place, old)


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
            _remove_old(parent, aside)
    parent.rename(folder, name)


def _recover_renames(place: TablePlace) -> None:
    """After the first rename the successor is complete, so it takes the place.

    Where it has taken it and the old table lies beside it still, the table that is not there was removed since: then
    nothing comes back.
    """
    parent, name = place.parent, place.name
    if parent.exists(f"{name}/{PROPERTIES_PATH}"):
        return
    for old in _side_folders(place, _OLD):
        new = old.replace(_OLD, _BUILD)
        if not parent.exists(new):
            logger.info("%s is the table that %s has replaced; it can be deleted", old, name)
            continue
        try:
            if parent.exists(f"{new}/{PROPERTIES_PATH}"):
                logger.warning("finishing the rebuild of %s that was cut off", name)
                _give_name(parent, new, name, old)
                _clear(place, old)
            else:
                logger.warning("bringing back %s: its rebuild was cut off", name)
                _give_name(parent, old, name, old)
        except OSError:
            if not parent.exists(name):
                raise
        return


def _clear(place: TablePlace, old: str) -> None:
    """Remove the old table, and from the new one the mark of its builder."""
    with suppress(OSError):
        place.parent.delete(f"{place.name}/{BUILDER}")
    _remove_old(place.parent, old)


def _tidy(place: TablePlace) -> None:
    """Remove old tables whose successor is in place, and side folders whose builder is gone."""
    parent = place.parent
    if not parent.exists(f"{place.name}/{PROPERTIES_PATH}"):
        return
    building = set(_side_folders(place, _BUILD))
    for old in _side_folders(place, _OLD):
        if old.replace(_OLD, _BUILD) not in building:
            _remove_old(parent, old)
    for side in building:
        if _is_abandoned(parent, side):
            logger.warning("removing %s, which a rebuild that is gone has left", side)
            _remove_old(parent, side)


def _is_abandoned(parent: Storage, side: str) -> bool:
    owner = None
    with suppress(FileNotFoundError):
        owner = Owner.parse(parent.read(f"{side}/{BUILDER}"))
    running = None if owner is None else owner.process.is_running()
    if running is not None:
        return not running
    newest = max((each.modified_ms for each in parent.list(side, recursive=True)), default=0)
    return time.time() * 1000 - newest > _STALE_MS


def _remove_old(parent: Storage, folder: str) -> None:
    try:
        delete_table(parent, folder)
    except OSError as error:
        logger.warning("could not remove %s, the next rebuild will: %s", folder, error)


def _record_path(place: TablePlace) -> str:
    return f".{place.name}{_RECORD}"


def _read_record(place: TablePlace) -> SwapRecord | None:
    return read_swap_record(place.parent, _record_path(place), f".{place.name}{_BUILD}")


def _standing_record(place: TablePlace) -> SwapRecord | None:
    """Return the record of a swap that another process is at work on, None when the table is at its place.

    A swap that was cut off is finished first.

    Raises:
        StorageError: It cannot be finished.
    """
    record = _read_record(place)
    if record is None or record.is_at_work(place.parent):
        return record
    try:
        _resume(place, record)
    except OSError as error:
        # Another process may have taken it over, and be done by now; whoever may only read follows the record.
        record = _read_record(place)
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
    return _read_record(place)


def _write_record(place: TablePlace, owner: Owner, new: str, before: SwapRecord | None) -> bytes:
    """Write who puts the new table in place; raises FileNotFoundError where somebody else was faster to take that over."""
    body = owner.to_json(new=new)
    if before is None:
        place.parent.replace(_record_path(place), body)
    else:
        place.parent.take_over(_record_path(place), before.body, body)
    return body


def _resume(place: TablePlace, record: SwapRecord) -> None:
    """Finish a swap that was cut off; a table of which nothing is left was removed since, and its successor goes too."""
    if all(each.is_dir for each in place.parent.list(place.name, recursive=True)):
        logger.info("%s was removed after a rebuild that was cut off, so what it left goes too", place.name)
        place.parent.delete(_record_path(place))
        _remove_old(place.parent, record.new)
    elif _is_moved(place, record.new):
        # The table may have been written to since: only what it came from is left to be removed.
        place.parent.delete(_record_path(place))
        _clear(place, record.new)
    else:
        _finish(place, record.new, record)


def _is_moved(place: TablePlace, new: str) -> bool:
    """Tell whether a table's last file, its properties, has been copied to its place after all of its timeline."""
    try:
        one, other = (place.parent.read(f"{each}/{PROPERTIES_PATH}") for each in (place.name, new))
    except FileNotFoundError:
        return False
    if one != other:
        return False
    there, moving = files_of_table(place.parent, place.name), files_of_table(place.parent, new)
    return all(path in there for path in moving if in_timeline(path))


def _finish(place: TablePlace, new: str, before: SwapRecord | None = None) -> None:
    """Move the new table to its place, file by file, under the record; skip what an earlier try has done.

    Args:
        place: Where the table belongs.
        new: Folder of the new table.
        before: The record of the process that was cut off.
    """
    owner = Owner.current()
    if before is None:
        place.parent.replace(f"{place.name}/{BUILDER}", owner.to_json())
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
    if _is_mine(place, owner):
        place.parent.delete(_record_path(place))
        _clear(place, new)


def _move(place: TablePlace, new: str, owner: Owner) -> None:
    """Take the old table's files away, its properties first, and copy the new one's, its properties last."""
    moving = files_of_table(place.parent, new)
    if PROPERTIES_PATH not in moving:
        raise CorruptTableError(
            f"the record {_record_path(place)!r} beside {place.name!r} names {new!r}, where there is no whole table; "
            "delete the record if the table itself is whole"
        )
    there = files_of_table(place.parent, place.name)
    if not _is_mine(place, owner):
        return
    for path in sorted(there, key=removal_order):
        if path not in moving or path == PROPERTIES_PATH:
            place.parent.delete(f"{place.name}/{path}")
    for path in sorted(moving, key=copy_order):
        known = there.get(path)
        if known is None or in_timeline(path) or known.size != moving[path].size:
            place.parent.copy(f"{new}/{path}", f"{place.name}/{path}")


def _is_mine(place: TablePlace, owner: Owner) -> bool:
    """Tell whether nobody has taken a swap over from a process that stood still for so long that it counted as dead."""
    record = _read_record(place)
    return record is not None and record.owner is not None and record.owner.token == owner.token


def _side_folders(place: TablePlace, kind: str) -> list[str]:
    start = f".{place.name}{kind}"
    return [each.name for each in place.parent.list("") if each.is_dir and each.name.startswith(start)]


def _name(base: str) -> str:
    return base.rstrip("/").rpartition("/")[2]
