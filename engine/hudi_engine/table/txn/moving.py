"""Tables that move: by one rename, or on stores without folders by a copy of every file, one after the other.

A writer looks right before it puts a file whether its instant is still under way, and the put may take seconds. One that is under
way while the table moves would lose that file; or, where another table has the place by then, bring that table rows that nobody
committed: an instant older than all of its timeline counts as archived.
"""

from __future__ import annotations

import errno
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby

from hudi_engine.errors import (
    CorruptTableError,
    HudiError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedTableError,
    WriteConflictError,
)
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.instant import State
from hudi_engine.table.txn.liveness import Liveness
from hudi_engine.table.txn.lock import LOCK_PATH, TableLock
from hudi_engine.table.txn.recovery import pending_writes, table_lock
from hudi_engine.table.txn.storage_errors import storage_errors
from hudi_engine.table.txn.swap import recover_swap, swap_is_conflict
from hudi_engine.table.txn.table_folder import BUILDER, copy_order, delete_table, files_of_table, in_timeline

logger = logging.getLogger(__name__)

_INSTANT = re.compile(r"\d{14}")
"""In the names of data files and of instants: of another table none has the same. Lists of files, archives and notes have none."""


def check_no_writers(storage: Storage, options: Options, done: str) -> None:
    """Refuse what a file that is under way, or a delete, would spoil.

    Plans of services that nobody has begun do no harm. The caller holds the table's lock, so that nobody begins to write meanwhile.

    Args:
        done: What would be done to the table, for the message, such as ``"moved"``.
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
    """Hold a table's lock for a block that nobody may write in; of a table that cannot be opened there is nobody, and no lock."""
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
    """Move a table's folder to where nothing is.

    On a store without folders the copy has its properties last and the table loses them first, so that one of both is whole at
    any time, and no part of one is a table. Where another process makes a table at the target meanwhile, that stays.

    Raises:
        FileNotFoundError: There is no table.
        FileExistsError: Something is at the target.
        TableExistsError: A table has come to be there meanwhile; this one is where it was.
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
    """Rename a table's folder while nobody writes to it, who would make the folder again with a file that is no table's."""
    with without_writers(table, options, "moved") as lock:
        parent.rename(source, target)
        if lock is None:
            return
        try:
            open_storage(f"{parent.base}/{target}").remove(LOCK_PATH)  # it has come along
        except (HudiError, OSError) as error:
            logger.warning("%s has moved with its lock, which the next writer will break: %s", target, error)


class _Copy:
    """A table's copy in another folder, of which others know nothing before its properties are there."""

    def __init__(self, parent: Storage, source: str, target: str) -> None:
        self._parent, self._source, self._target = parent, source, target
        self._properties = parent.read(f"{source}/{PROPERTIES_PATH}")
        self._copied: list[str] = []

    def make(self) -> None:
        """Copy the table, unless another process makes one there; that refuses a folder with files from the first copy on."""
        paths = [path for path in files_of_table(self._parent, self._source) if path != PROPERTIES_PATH]
        for _, part in groupby(sorted(paths, key=copy_order), key=in_timeline):
            if self._is_anothers():
                raise self._taken()
            for path in part:
                self._put(path)
        self._create(PROPERTIES_PATH, self._properties)

    def remove(self) -> None:
        """Remove what it has put there, its properties first, after a failure, which is the one to be told."""
        try:
            for path in reversed(self._copied):
                self._parent.remove(f"{self._target}/{path}")
        except OSError as error:
            logger.warning(
                "could not remove the copy of %s at %s/%s, delete it: %s",
                self._source,
                self._parent.base,
                self._target,
                error,
            )

    def _put(self, path: str) -> None:
        """Copy one file; one whose name other tables have too goes through this process: no store copies to where nothing is."""
        if _INSTANT.search(path.rpartition("/")[2]):
            self._copied.append(path)
            self._parent.copy(f"{self._source}/{path}", f"{self._target}/{path}")
        else:
            self._create(path, self._parent.read(f"{self._source}/{path}"))

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
