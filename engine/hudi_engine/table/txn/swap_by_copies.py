"""The move of a rebuilt table on a store that has keys only, under the record beside the table that says where it is until then.

One process moves a table at a time: it makes the record, which must not be there yet, or takes over that of one that is gone. Two
would leave files of both tables, and each would take it for its own.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from itertools import groupby

from hudi_engine.errors import CorruptTableError, StorageError, WriteConflictError
from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.filegroup.base_file import parse_base_file
from hudi_engine.format.storage.base import FileStatus, Storage
from hudi_engine.format.storage.read_only import is_refusal
from hudi_engine.table.txn.owner import Beating, Owner, register, unregister
from hudi_engine.table.txn.swap_record import SwapRecord, read_swap_record
from hudi_engine.table.txn.table_folder import (
    BUILDER,
    copy_order,
    delete_table,
    files_of_table,
    in_timeline,
    is_removed,
    removal_order,
    unmark,
)
from hudi_engine.table.txn.table_place import TablePlace

logger = logging.getLogger(__name__)

BUILD = ".rebuild-"
"""What comes after the table's name in that of a folder in which it is built anew."""
_RECORD = ".swap"


def is_being_put(base: str) -> WriteConflictError:
    """Return the error of whoever would put a table where another process is putting one."""
    return WriteConflictError(
        f"another process is putting a rebuilt table in the place of {base}; try again when it is done"
    )


def record_path_of(place: TablePlace) -> str:
    """Return where the record of a table's swap is, in the folder above it."""
    return f".{place.name}{_RECORD}"


def swap_under_way(place: TablePlace) -> SwapRecord | None:
    """Return the record of a table's swap, None when there is none; raises CorruptTableError when it is damaged."""
    return read_swap_record(place.parent, record_path_of(place), f".{place.name}{BUILD}")


def standing_swap(place: TablePlace) -> SwapRecord | None:
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
        WriteConflictError: Somebody else puts another table there; over that record this one would be mixed with it.
        FileNotFoundError: Somebody else was faster to take over what was cut off.
    """
    body = owner.to_json(new=new)
    if before is not None:
        place.parent.take_over(record_path_of(place), before.body, body)
        return body
    try:
        place.parent.create(record_path_of(place), body)
    except FileExistsError as error:
        raise is_being_put(place.base) from error
    return body


def _resume(place: TablePlace, record: SwapRecord) -> None:
    """Finish a swap that was cut off; a table of which nothing is left was removed since, and its successor goes too."""
    if is_removed(place.parent, place.name):
        logger.info("%s was removed after a rebuild that was cut off, so what it left goes too", place.name)
        place.parent.remove(record_path_of(place))
        remove_old(place.parent, record.new)
    elif _is_moved(place, record.new):
        # The table may have been written to since: only what it came from is left to be removed.
        place.parent.remove(record_path_of(place))
        clear_after_swap(place, record.new)
    else:
        move_by_copies(place, record.new, record)


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


def move_by_copies(place: TablePlace, new: str, before: SwapRecord | None = None) -> None:
    """Move the new table to its place, file by file, under the record; skip what an earlier try has done.

    Args:
        before: The record of the process that was cut off.

    Raises:
        WriteConflictError: Another process is putting a table there.
        OSError: The storage failed.
    """
    owner = Owner.current()
    if before is None:
        place.parent.replace(f"{place.name}/{BUILDER}", owner.to_json())
    # one from before the record, or of a table that has its properties: those are the next to go, and do not end the new table
    unmark(place.parent, place.name)
    register(owner)
    try:
        beating = Beating(
            place.parent, record_path_of(place), owner, _write_record(place, owner, new, before)
        )
        beating.start()
        try:
            _move(place, new, owner)
        finally:
            beating.stop()
    finally:
        unregister(owner)
    if _is_mine(place, new, owner):
        place.parent.remove(record_path_of(place))
        clear_after_swap(place, new)


def _move(place: TablePlace, new: str, owner: Owner) -> None:
    """Take the old table's files away, its properties first, and copy the new one's, its properties last."""
    moving = files_of_table(place.parent, new)
    if PROPERTIES_PATH not in moving:
        raise CorruptTableError(
            f"the record {record_path_of(place)!r} beside {place.name!r} names {new!r}, where there is no whole table; "
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
    """Tell whether a file need not be copied: only of a base file, whose name no other one has, does its size say enough.

    Two clones of one table have the same file ids and base instants, and their logs of rollbacks the same token and length.
    """
    return known is not None and known.size == moving.size and parse_base_file(path, "") is not None


def _is_mine(place: TablePlace, new: str, owner: Owner) -> bool:
    """Tell whether nobody has taken a swap over from a process that stood still for so long that it counted as dead.

    Who took it over has finished it, or does: nothing is left to be done here.

    Raises:
        WriteConflictError: By now it is another table that is put in place.
    """
    record = swap_under_way(place)
    if record is not None and record.new != new:
        raise is_being_put(place.base)
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
