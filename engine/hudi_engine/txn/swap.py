"""Putting a table that was built beside another in its place.

Where a storage renames folders in one step the swap is two renames. Between them there is no table at the path;
whoever comes by then finishes the swap, and the rebuilder finds it done.

A flat store (S3, GCS) has keys only, and a "rename" is a copy of every file. There the switch is a record beside
the table, ``.<name>.swap``, which names the folder of the new one. While it stands the table *is* the new folder:
:func:`table_storage` follows it. Then the old files go (timeline first, so that no reader takes what is left for
a table), the new ones are copied with ``hoodie.properties`` last, and the record goes. Every step can be done
again by anybody, so a swap that was cut off is finished by the next to open the table. A mark in the table's folder comes
before the record: where nothing at all is in the folder the table was removed since, and it stays removed.
"""

from __future__ import annotations

import json
import logging
import os
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass

from hudi_engine.config.properties_file import PROPERTIES_PATH
from hudi_engine.errors import (
    CorruptTableError,
    PathEscapeError,
    StorageError,
    TableExistsError,
    WriteConflictError,
)
from hudi_engine.storage.base import FileStatus, Storage
from hudi_engine.storage.factory import open_storage
from hudi_engine.storage.read_only import ReadOnlyStorage
from hudi_engine.txn.owner import Beating, Owner, OwnerState, register, unregister

logger = logging.getLogger(__name__)

_BUILD, _OLD, _RECORD = ".rebuild-", ".replaced-", ".swap"
_BUILDER = ".hoodie/.rebuild-owner"
_TOP = ".hoodie"
_TRIES = 20
_STALE_MS = 24 * 3600 * 1000
"""Age at which what a builder on another machine has left counts as abandoned."""


@dataclass(frozen=True)
class _Place:
    """A table's folder within the one above it."""

    parent: Storage
    name: str

    @property
    def record(self) -> str:
        return f".{self.name}{_RECORD}"

    def sibling(self, name: str) -> Storage:
        return open_storage(_join(self.parent.base, name))

    def side_folders(self, kind: str) -> list[str]:
        start = f".{self.name}{kind}"
        return [each.name for each in self.parent.list("") if each.is_dir and each.name.startswith(start)]


@dataclass(frozen=True)
class _Record:
    """A swap that has been switched on a flat store."""

    new: str
    owner: Owner | None
    modified_ms: int

    @property
    def is_at_work(self) -> bool:
        """Whether somebody is finishing it: a process that lives, or elsewhere one that still beats."""
        if self.owner is None:
            return False
        return self.owner.state(self.modified_ms, int(time.time() * 1000)) is OwnerState.ALIVE


def side_folder(base: str) -> str:
    """Return a fresh folder beside a table's for building its successor.

    Raises:
        StorageError: There is no folder above the table's, as for a bucket.
    """
    place = _place(base)
    if place is None:
        raise StorageError(
            f"a table at {base!r} cannot be rebuilt with another definition, because nothing can be built beside "
            "it; move it into a folder, or drop it and build it again"
        )
    return _join(place.parent.base, f".{place.name}{_BUILD}{uuid.uuid4().hex[:12]}")


def mark_builder(side: Storage) -> None:
    """Write down in a side folder which process builds there, so that others can tell when it is gone."""
    side.replace(_BUILDER, Owner.current().to_json())


def table_storage(path: str) -> Storage:
    """Open the storage in which a table is to be found now; finishes swaps that were cut off.

    While another process is putting a rebuilt table in its place on a flat store, that is the folder of the
    new table, and only for reading.

    Raises:
        ConfigError, StorageError: as :func:`~hudi_engine.storage.factory.open_storage` does.
    """
    storage = open_storage(path)
    place = _place(storage.base)
    if place is None:
        return storage
    if storage.renames_folders:
        _recover_renames(place)
        return storage
    record = _read_record(place)
    if record is None:
        return storage
    if record.is_at_work:
        return ReadOnlyStorage(
            place.sibling(record.new), f"a rebuild is putting a new table in the place of {storage.base!r}"
        )
    _resume(place, record.new)
    return storage


def recover_swap(base: str) -> None:
    """Finish or undo a swap that was cut off, and remove what dead builders have left beside a table.

    Raises:
        WriteConflictError: Another process is putting a rebuilt table in place.
    """
    place = _place(open_storage(base).base)
    if place is None:
        return
    if place.parent.renames_folders:
        _recover_renames(place)
    else:
        record = _read_record(place)
        if record is not None and record.is_at_work:
            raise WriteConflictError(
                f"another process is putting a rebuilt table in the place of {base}; try again when it is done"
            )
        if record is not None:
            _resume(place, record.new)
    _tidy(place)


def swap(base: str, side: str) -> None:
    """Put the table built in ``side`` in the place of the one at ``base``, and remove the old one.

    Raises:
        StorageError: The storage failed. The old table stands; or on a flat store, once the switch is made, the
            new one does, and the next to open the table finishes its move.
    """
    place = _place(base)
    assert place is not None, "side_folder has refused it"
    new = _name(side)
    if place.parent.renames_folders:
        _swap_by_rename(place, base, new)
        return
    try:
        _finish(place, new)
    except OSError as error:
        raise StorageError(
            f"the storage failed while the rebuilt table was put in the place of {base}: {error}. If {place.record!r} "
            "is beside it the new table counts, and the next to open it finishes the move; else the old one stands"
        ) from error


def place_new(base: str, side: str) -> None:
    """Put the table built in ``side`` where nothing is yet.

    Raises:
        TableExistsError: Another process has put something there meanwhile.
    """
    place = _place(base)
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
        place.parent.delete(f"{place.name}/{_BUILDER}")


def is_switched(base: str, side: str) -> bool:
    """Return whether the table at ``base`` is by now the one built in ``side``, which must then not be removed."""
    place = _place(base)
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
    place = _place(side)
    if place is not None:
        _delete_table(place.parent, place.name)


def _swap_by_rename(place: _Place, base: str, new: str) -> None:
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


def _recover_renames(place: _Place) -> None:
    """After the first rename the successor is complete, so it takes the place.

    Where it has taken it and the old table lies beside it still, the table that is not there was removed since: then
    nothing comes back.
    """
    parent, name = place.parent, place.name
    if parent.exists(f"{name}/{PROPERTIES_PATH}"):
        return
    for old in place.side_folders(_OLD):
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


def _clear(place: _Place, old: str) -> None:
    """Remove the old table, and from the new one the mark of its builder."""
    with suppress(OSError):
        place.parent.delete(f"{place.name}/{_BUILDER}")
    _remove_old(place.parent, old)


def _tidy(place: _Place) -> None:
    """Remove old tables whose successor is in place, and side folders whose builder is gone."""
    parent = place.parent
    if not parent.exists(f"{place.name}/{PROPERTIES_PATH}"):
        return
    building = set(place.side_folders(_BUILD))
    for old in place.side_folders(_OLD):
        if old.replace(_OLD, _BUILD) not in building:
            _remove_old(parent, old)
    for side in building:
        if _is_abandoned(parent, side):
            logger.warning("removing %s, which a rebuild that is gone has left", side)
            _remove_old(parent, side)


def _is_abandoned(parent: Storage, side: str) -> bool:
    owner = None
    with suppress(FileNotFoundError):
        owner = Owner.parse(parent.read(f"{side}/{_BUILDER}"))
    running = None if owner is None else owner.process.is_running()
    if running is not None:
        return not running
    newest = max((each.modified_ms for each in parent.list(side, recursive=True)), default=0)
    return time.time() * 1000 - newest > _STALE_MS


def _remove_old(parent: Storage, folder: str) -> None:
    try:
        _delete_table(parent, folder)
    except PathEscapeError:
        logger.warning("%s is a link; it goes, and the old table stays where it leads to", folder)
        parent.delete_tree(folder)
    except OSError as error:
        logger.warning("could not remove %s, the next rebuild will: %s", folder, error)


def _delete_table(parent: Storage, folder: str) -> None:
    """Delete a table's folder, its timeline first: what is left is no table to any reader.

    The mark of its builder goes last, so that a removal that is cut off can be told from a table being built.
    """
    parent.delete(f"{folder}/{PROPERTIES_PATH}")
    for inside in (f"{folder}/{_TOP}", folder):
        for entry in parent.list(inside):
            if entry.path in (f"{folder}/{_BUILDER}", f"{folder}/{_TOP}"):
                continue
            if entry.is_dir:
                parent.delete_tree(entry.path)
            else:
                parent.delete(entry.path)
    parent.delete_tree(folder)


def _read_record(place: _Place) -> _Record | None:
    status = place.parent.stat(place.record)
    if status is None or status.is_dir:
        return None
    try:
        body = place.parent.read(place.record)
    except FileNotFoundError:
        return None
    try:
        new = str(json.loads(body)["new"])
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTableError(
            f"{_join(place.parent.base, place.record)} cannot be read: {error!r}. It says which folder holds the "
            "rebuilt table; look which one is whole, and delete the record"
        ) from error
    if not new.startswith(f".{place.name}{_BUILD}") or "/" in new:
        raise CorruptTableError(
            f"{_join(place.parent.base, place.record)} names {new!r}, which is no folder of a rebuild of this table; "
            "delete the record if the table is whole"
        )
    return _Record(new, Owner.parse(body), status.modified_ms)


def _write_record(place: _Place, owner: Owner, new: str) -> bytes:
    body = owner.to_json(new=new)
    place.parent.replace(place.record, body)
    return body


def _resume(place: _Place, new: str) -> None:
    """Finish a swap that was cut off; a table of which nothing is left was removed since, and its successor goes too."""
    if place.parent.list(place.name, recursive=True):
        _finish(place, new)
        return
    logger.info("%s was removed after a rebuild that was cut off, so what it left goes too", place.name)
    place.parent.delete(place.record)
    _remove_old(place.parent, new)


def _finish(place: _Place, new: str) -> None:
    """Move the new table to its place, file by file, under the record; skip what an earlier try has done."""
    owner = Owner.current()
    place.parent.replace(f"{place.name}/{_BUILDER}", owner.to_json())
    register(owner)
    beating = Beating(place.parent, place.record, owner, _write_record(place, owner, new))
    beating.start()
    try:
        moving = _files(place.parent, new)
        if PROPERTIES_PATH not in moving:
            raise CorruptTableError(
                f"the record {place.record!r} beside {place.name!r} names {new!r}, where there is no whole table; "
                "delete the record if the table itself is whole"
            )
        there = _files(place.parent, place.name)
        for path in sorted(there, key=_removal_order):
            if path not in moving or path == PROPERTIES_PATH:
                place.parent.delete(f"{place.name}/{path}")
        for path in sorted(moving, key=_copy_order):
            known = there.get(path)
            if known is None or path.startswith(f"{_TOP}/") or known.size != moving[path].size:
                place.parent.copy(f"{new}/{path}", f"{place.name}/{path}")
    finally:
        beating.stop()
        unregister(owner)
    place.parent.delete(place.record)
    _clear(place, new)


def _files(parent: Storage, folder: str) -> dict[str, FileStatus]:
    start = len(folder) + 1
    found = {each.path[start:]: each for each in parent.list(folder, recursive=True) if not each.is_dir}
    found.pop(_BUILDER, None)
    return found


def _removal_order(path: str) -> tuple[bool, bool, str]:
    return path != PROPERTIES_PATH, not path.startswith(f"{_TOP}/"), path


def _copy_order(path: str) -> tuple[bool, bool, str]:
    return path == PROPERTIES_PATH, path.startswith(f"{_TOP}/"), path


def _place(base: str) -> _Place | None:
    """Return where a folder is; None for one that has no folder above it.

    A symbolic link stays: what takes the table's place does so where the link leads to.
    """
    base = base.rstrip("/")
    parent, _, name = (os.path.realpath(base) if os.path.islink(base) else base).rpartition("/")
    if not name or parent.endswith((":/", "://")):
        return None
    return _Place(open_storage(parent or "/"), name)


def _name(base: str) -> str:
    return base.rstrip("/").rpartition("/")[2]


def _join(parent: str, name: str) -> str:
    return f"{parent.rstrip('/')}/{name}"
