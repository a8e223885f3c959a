"""A table as a folder of files: in which order they are copied and deleted, so that nobody takes a part of one for a table.

The properties make the table. They are copied last and deleted first, and the timeline right before and after them.
"""

from __future__ import annotations

import os

from hudi_engine.config.properties_file import PROPERTIES_PATH
from hudi_engine.storage.base import FileStatus, Storage
from hudi_engine.txn.lock import LOCK_PATH
from hudi_engine.txn.owner import LOCK_FILES

BUILDER = ".hoodie/.rebuild-owner"
"""File in a folder in which a table is being built, that names the process."""
_TIMELINE = ".hoodie"


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
    """Return all files of a table by their path in its folder, without the mark of its builder and its lock.

    Who moves a table holds its lock, which stays where it is until that is done.
    """
    start = len(folder) + 1
    found = {each.path[start:]: each for each in parent.list(folder, recursive=True) if not each.is_dir}
    return {path: each for path, each in found.items() if path not in (BUILDER, LOCK_PATH)}


def is_removed(parent: Storage, folder: str) -> bool:
    """Return whether nothing of a table is left in its folder: the lock that somebody holds, or breaks, there is no part of it."""
    start = len(folder) + 1
    found = (each.path[start:] for each in parent.list(folder, recursive=True) if not each.is_dir)
    return all(path == LOCK_PATH or path.startswith(f"{LOCK_FILES}/") for path in found)


def delete_table(parent: Storage, folder: str) -> None:
    """Delete a table's folder, its timeline first: what is left is no table to any reader.

    The mark of its builder goes last, so that a removal that is cut off can be told from a table being built. Of a symbolic link
    only the link goes.

    Args:
        parent: What is above the folder.
        folder: The folder, which need not be there.

    Raises:
        OSError: The storage failed.
    """
    if not os.path.islink(f"{parent.base}/{folder}"):
        parent.remove(f"{folder}/{PROPERTIES_PATH}")
        for inside in (f"{folder}/{_TIMELINE}", folder):
            for entry in parent.list(inside):
                if entry.path in (f"{folder}/{BUILDER}", f"{folder}/{_TIMELINE}"):
                    continue
                if entry.is_dir:
                    parent.delete_tree(entry.path)
                else:
                    parent.remove(entry.path)
    parent.delete_tree(folder)
