"""Tables that move on stores without folders, where that is a copy of every file, one after the other.

A writer looks right before it puts a file whether its instant is still under way, and the put may take seconds. One that is under
way while the table moves would lose that file; or, where another table has the place by then, bring that table rows that nobody
committed: an instant older than all of its timeline counts as archived.
"""

from __future__ import annotations

import errno
import logging

from hudi_engine.config.options import Options
from hudi_engine.config.properties_file import PROPERTIES_PATH
from hudi_engine.config.table_config import TableConfig
from hudi_engine.errors import WriteConflictError
from hudi_engine.storage.base import Storage
from hudi_engine.storage.factory import open_storage
from hudi_engine.timeline.active import Timeline
from hudi_engine.timeline.instant import State
from hudi_engine.txn.liveness import Liveness
from hudi_engine.txn.lock import LOCK_PATH
from hudi_engine.txn.recovery import pending_writes, table_lock
from hudi_engine.txn.storage_errors import storage_errors
from hudi_engine.txn.swap import recover_swap
from hudi_engine.txn.table_folder import copy_order, delete_table, files_of_table

logger = logging.getLogger(__name__)


def check_nobody_writes(storage: Storage, options: Options, done: str) -> None:
    """Refuse what a file that is under way would spoil; where folders are renamed it goes along, or finds no place, and nothing is.

    Plans of services that nobody has begun do no harm. The caller holds the table's lock, so that nobody begins to write meanwhile.

    Args:
        storage: The table's storage.
        options: Heartbeat.
        done: What would be done to the table, for the message, such as ``"moved"``.

    Raises:
        WriteConflictError: naming an instant whose writer is at work.
    """
    if storage.renames_folders:
        return
    config = TableConfig.load(storage)
    timeline, living = Timeline.load(storage, config), Liveness(storage, config, options)
    writes = pending_writes(timeline)
    for each in timeline.pending:
        if (each in writes or each.state is State.INFLIGHT) and living.is_at_work(each):
            raise WriteConflictError(
                f"the table at {storage.base} cannot be {done} while {each.action} {each.requested_time} of another writer is "
                "under way, whose files may come at any time. The table is as it was; try again when that writer has ended"
            )


def move_table(parent: Storage, source: str, target: str, options: Options) -> None:
    """Move a table's folder to where nothing is.

    On a store without folders the copy has its properties last and the table loses them first, so that one of both is whole at
    any time, and no part of one is a table.

    Args:
        parent: A folder above both.
        source: The table's folder in it.
        target: Its folder to be.
        options: Lock, heartbeat.

    Raises:
        FileNotFoundError: There is no table.
        FileExistsError: Something is at the target.
        WriteConflictError: The table's lock is not free in time, or a writer is at work; the table is where it was.
        StorageError: The storage failed; the table is where it was.
    """
    if parent.renames_folders:
        parent.rename(source, target)
        return
    table = open_storage(f"{parent.base}/{source}")
    recover_swap(table.base)
    if not table.exists(PROPERTIES_PATH):
        raise FileNotFoundError(errno.ENOENT, "there is no table", table.base)
    if parent.exists(target):
        raise FileExistsError(errno.EEXIST, "the target of a move exists already", f"{parent.base}/{target}")
    with storage_errors(table, "move the table"), table_lock(table, options):
        check_nobody_writes(table, options, "moved")
        try:
            for path in sorted(files_of_table(parent, source), key=copy_order):
                if path != LOCK_PATH:
                    parent.copy(f"{source}/{path}", f"{target}/{path}")
        except BaseException:
            _remove(parent, target)
            raise
        try:
            delete_table(parent, source)
        except OSError as error:
            if table.exists(PROPERTIES_PATH):
                _remove(parent, target)
                raise
            logger.warning("%s has moved; what is left there can be deleted: %s", table.base, error)


def _remove(parent: Storage, folder: str) -> None:
    """Remove a copy after a failure, which is the one to be told."""
    try:
        delete_table(parent, folder)
    except OSError as error:
        logger.warning("could not remove %s/%s, delete it: %s", parent.base, folder, error)
