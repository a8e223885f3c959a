"""A table as a folder of files, copied and deleted in an order in which no part of one is taken for a table.

The properties make the table. They are copied last and deleted first, and the timeline right before and after them.
"""

from __future__ import annotations

import logging
import os
import uuid
from contextlib import suppress
from dataclasses import dataclass

from hudi_engine.format.config.properties_file import BACKUP_PATH, PROPERTIES_PATH
from hudi_engine.format.storage.base import FileStatus, Storage
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.table.txn.owner import (
    LOCK_FILES,
    LOCK_PATH,
    Owner,
    OwnerState,
    at_work,
    read_with_time,
)


@dataclass(frozen=True)
class TablePlace:
    """A table's folder within the one above it."""

    parent: Storage
    name: str

    @property
    def base(self) -> str:
        """The folder itself."""
        return self.sibling(self.name)

    def sibling(self, name: str) -> str:
        """Return where something next to the table is."""
        return f"{self.parent.base.rstrip('/')}/{name}"


def place_of(base: str) -> TablePlace | None:
    """Return where a folder is; None for one that has no folder above it.

    A symbolic link stays: what takes the table's place does so where the link leads to.
    """
    base = base.rstrip("/")
    parent, _, name = (os.path.realpath(base) if os.path.islink(base) else base).rpartition("/")
    if not name or parent.endswith((":/", "://")):
        return None
    return TablePlace(open_storage(parent or "/"), name)


def lie_in_one(one: str, other: str) -> bool:
    """Return whether two folders are the same, or one of them is inside of the other, whatever links lead there."""
    one, other = _real(one), _real(other)
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/") or _are_same(one, other)


def _real(base: str) -> str:
    return base if "://" in base else os.path.realpath(base)


def _are_same(one: str, other: str) -> bool:
    """Return whether a disk has one folder under two names, as where case does not count."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


logger = logging.getLogger(__name__)

BUILDER = ".hoodie/.rebuild-owner"
"""File in a folder in which a table is being built, that names the process."""
REMOVED = ".removed-"
"""What comes after the table's name in that of a folder that was put aside to be removed."""
REMOVER = ".hoodie/.removal-owner"
"""File in the folder of a table that is being removed, where it cannot be put aside, that names the process."""
_TIMELINE = ".hoodie"
_REMOVAL_BEAT_MS = 12 * 3600 * 1000
"""A removal of another machine counts as under way for a day, which is two beats."""
_MAKING = (BACKUP_PATH, PROPERTIES_PATH)
"""What makes a folder a table, in the order in which it goes: the backup is read where the properties are not there."""


def in_timeline(path: str) -> bool:
    """Return whether a file of a table is none of its data."""
    return path.startswith(f"{_TIMELINE}/")


def copy_order(path: str) -> tuple[bool, bool, str]:
    """Sort the files of a table to be copied: data, timeline, properties."""
    return path == PROPERTIES_PATH, in_timeline(path), path


def removal_order(path: str) -> tuple[bool, bool, str]:
    """Sort the files of a table to be deleted: properties, timeline, data."""
    return path != PROPERTIES_PATH, not in_timeline(path), path


def files_of_table(parent: Storage, folder: str) -> dict[str, FileStatus]:
    """Return all files of a table by their path in its folder, without its lock and the marks of its builder and its remover.

    A process that moves a table holds its lock until that is done. A copied mark of a removal that was cut off would name a table
    as removed whose properties are still to come.
    """
    start = len(folder) + 1
    found = {each.path[start:]: each for each in parent.list(folder, recursive=True) if not each.is_dir}
    return {path: each for path, each in found.items() if path not in (BUILDER, REMOVER, LOCK_PATH)}


def table_inside(parent: Storage, folder: str) -> str | None:
    """Return the folder of another table that lies in one's folder, next to its timeline; None where there is none."""
    start = len(folder) + 1
    end = f"/{PROPERTIES_PATH}"
    for each in parent.list(folder, recursive=True):
        if each.path.endswith(end) and not in_timeline(each.path[start:]):
            return f"{parent.base}/{each.path[: -len(end)]}"
    return None


def is_removed(parent: Storage, folder: str) -> bool:
    """Return whether nothing of a table but its lock is left in its folder, or what a removal that was cut off leaves."""
    start = len(folder) + 1
    found = {each.path[start:] for each in parent.list(folder, recursive=True) if not each.is_dir}
    return (REMOVER in found and found.isdisjoint(_MAKING)) or all(
        path == LOCK_PATH or path.startswith(f"{LOCK_FILES}/") for path in found
    )


def delete_table(parent: Storage, folder: str) -> None:
    """Delete a table's folder; one that was there is no table to any reader from the first call on.

    If folders are renamed in one step it is first put aside, under a hidden name. Elsewhere a mark lets others finish a removal
    that was cut off, and its properties go first, then its timeline. The mark of its builder goes last, which distinguishes such a
    removal from a table being built. Of a symbolic link only the link goes.
    """
    above, slash, name = folder.rpartition("/")
    if os.path.islink(f"{parent.base}/{folder}"):
        parent.delete_tree(folder)
        return
    is_hidden = name.startswith(".")
    if not is_hidden and parent.renames_folders and parent.exists(folder):
        aside = f"{above}{slash}.{name}{REMOVED}{uuid.uuid4().hex[:12]}"
        with suppress(OSError):  # the folder above may be one that is not to be written to
            parent.rename(folder, aside)
            folder, is_hidden = aside, True
    if is_hidden:
        _delete_files(parent, folder)
    else:
        _delete_marked(parent, folder)


def clear_removed(storage: Storage) -> None:
    """Finish removals of the table at a place that were cut off; other files stay."""
    place = place_of(storage.base)
    if place is None or storage.exists(PROPERTIES_PATH):
        return
    clear_put_aside(place)
    found = read_with_time(storage, REMOVER)
    owner = None if found is None else Owner.parse(found[0])
    if found is None or owner is None:
        return
    if owner.state_in(storage, found[1], beats=False) is not OwnerState.DEAD:
        return
    if storage.exists(BACKUP_PATH):  # of a table whose properties are being changed
        return
    mine = Owner.current(_REMOVAL_BEAT_MS)
    with suppress(FileNotFoundError), at_work(mine):  # another process was faster
        storage.take_over(REMOVER, found[0], mine.to_json())
        _delete_files(place.parent, place.name)


def clear_put_aside(place: TablePlace) -> None:
    """Remove folders that were put aside to be removed; what cannot be removed is left to the next one."""
    if not place.parent.renames_folders:
        return
    for each in place.parent.list(""):
        if each.is_dir and each.name.startswith(f".{place.name}{REMOVED}"):
            try:
                _delete_files(place.parent, each.path)
            except OSError as error:
                logger.warning("could not remove %s, the next to make a table will: %s", each.path, error)


def _delete_marked(parent: Storage, folder: str) -> None:
    """Delete a table's files, under a mark of the removal, which stays only if the table is deleted."""
    mine = Owner.current(_REMOVAL_BEAT_MS)
    with at_work(mine):
        try:
            if _is_table(parent, folder):
                parent.replace(f"{folder}/{REMOVER}", mine.to_json())
            _delete_files(parent, folder)
        except BaseException:
            with suppress(OSError):
                if _is_table(parent, folder):
                    parent.remove(f"{folder}/{REMOVER}")
            raise


def _is_table(parent: Storage, folder: str) -> bool:
    return any(parent.exists(f"{folder}/{each}") for each in reversed(_MAKING))


def _delete_files(parent: Storage, folder: str) -> None:
    for each in _MAKING:
        parent.remove(f"{folder}/{each}")
    kept = {f"{folder}/{each}" for each in (BUILDER, REMOVER, _TIMELINE)}
    for inside in (f"{folder}/{_TIMELINE}", folder):
        for entry in parent.list(inside):
            if entry.path in kept:
                continue
            if entry.is_dir:
                parent.delete_tree(entry.path)
            else:
                parent.remove(entry.path)
    parent.delete_tree(folder)
