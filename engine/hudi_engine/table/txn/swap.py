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
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from hudi_engine.errors import StorageError, TableExistsError, TableNotFoundError, WriteConflictError
from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.storage.read_only import ReadOnlyStorage
from hudi_engine.table.txn.owner import Owner
from hudi_engine.table.txn.swap_by_copies import (
    BUILD,
    clear_after_swap,
    is_being_put,
    move_by_copies,
    record_path_of,
    remove_old,
    standing_swap,
    swap_under_way,
)
from hudi_engine.table.txn.table_folder import BUILDER, clear_put_aside, delete_table, table_inside
from hudi_engine.table.txn.table_place import TablePlace, place_of

logger = logging.getLogger(__name__)

_OLD = ".replaced-"
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
    return place.beside(f".{place.name}{BUILD}{uuid.uuid4().hex[:12]}")


def mark_builder(side: Storage) -> None:
    """Write down in a side folder which process builds there, so that others can tell when it is gone."""
    side.replace(BUILDER, Owner.current().to_json())


def table_storage(path: str) -> Storage:
    """Open the storage in which a table is to be found now; finishes swaps that were cut off.

    While another process is putting a rebuilt table in its place on a flat store, that is the folder of the new table, and only
    for reading.

    Raises:
        ConfigError, StorageError: as :func:`~hudi_engine.format.storage.factory.open_storage` does.
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
        record = standing_swap(place)
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
    elif standing_swap(place) is not None:
        raise is_being_put(base)
    _tidy(place)


@contextmanager
def swap_is_conflict(storage: Storage) -> Iterator[None]:
    """Turn the error that there is no table into a conflict where a rebuilt one is being put in its place."""
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
        TableExistsError: Another table lies in the folder of the old one, and would go with it; the old table stands.
        WriteConflictError: On a flat store another process is putting a table there; its is the one that counts.
        StorageError: The storage failed. The old table stands; or on a flat store, once the switch is made, the
            new one does, and the next to open the table finishes its move.
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
        move_by_copies(place, new)
    except OSError as error:
        raise StorageError(
            f"the storage failed while the rebuilt table was put in the place of {base}: {error}. If {record_path_of(place)!r} "
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
        is_there = parent.exists(f"{name}/{PROPERTIES_PATH}")
        if is_there and not parent.exists(new):
            logger.info("another process has put the rebuilt table of %s in place", base)
        else:
            if not is_there and parent.exists(old):
                _give_name(parent, old, name, old)
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

    Where it has taken it and the old table lies beside it still, the table that is not there was removed since: then
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
            if not parent.exists(name):
                raise
        return


def _tidy(place: TablePlace) -> None:
    """Remove old tables whose successor is in place, removed ones, and side folders whose builder is gone."""
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
