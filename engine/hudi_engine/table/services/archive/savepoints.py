"""Deleting a savepoint that archiving has left behind (``hoodie.archive.beyond.savepoint``).

The saved commit then stands alone before a gap. Once nothing saves it, a reader takes it for the first write,
and the archived ones after it for uncommitted. So it goes to the archive before its savepoint goes, unless no
younger one is left: then the archived ones after it are none of the table's (a clone of the saved commit once had them).
"""

from __future__ import annotations

from hudi_engine.errors import TimelineError
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.archive_files import entry_key, list_archive_files, read_archive_log
from hudi_engine.format.timeline.history import History
from hudi_engine.format.timeline.instant import WRITE_ACTIONS, State
from hudi_engine.table.services.archive.execute import archive_instants
from hudi_engine.table.services.archive.select import ReplacedGroups
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.savepoint import delete_savepoint


def drop_savepoint(storage: Storage, options: Options, instant_time: str) -> None:
    """Give a saved commit free to the cleaner, under the table's lock.

    Raises:
        TimelineError: when there is no such savepoint, or files must be cleaned before it can go.
    """

    def release(config: TableConfig, timeline: Timeline) -> None:
        _archive_left_behind(TableState(storage, config, timeline), instant_time, options)

    delete_savepoint(storage, options, instant_time, release=release)


def _archive_left_behind(state: TableState, saved: str, options: Options) -> None:
    """Archive a saved commit after which others were archived, if a younger one is still active; any other stays."""
    active = state.timeline.completed_writes
    writes = [each for each in active if each.requested_time == saved]
    if not writes or writes[-1] is active[-1]:
        return
    if not _is_passed(state, saved):
        return
    replaced = ReplacedGroups(state)
    if any(replaced.may_show_again(write) for write in writes):
        raise TimelineError(
            f"the savepoint {saved} of the table at {state.storage.base!r} cannot be deleted yet: files that the saved "
            "commit replaced are still there, and younger commits are archived already. Run a clean first"
        )
    archive_instants(state, writes, options)


def _is_passed(state: TableState, saved: str) -> bool:
    """Return whether writes younger than a saved one are archived; no more of the archive is read than that takes.

    Archiving goes from the oldest on. So it has not come by where an older one without a savepoint is active, unless it was
    killed before that went: then what it took is in the newest file with writes. Else any file may tell, as another savepoint
    that went before may have left an older commit in the newest one.
    """
    if state.config.table_version.keeps_history:
        known = History(state.storage, state.config.archive_folder).instants_since(saved)
        return any(action in WRITE_ACTIONS and time > saved for time, action in known)
    held = {each.requested_time for each in state.timeline.savepoints}
    active = [each.requested_time for each in state.timeline.completed_writes]
    newest_tells = any(time < saved and time not in held for time in active)
    for file in reversed(list_archive_files(state.storage, state.config.archive_folder)):
        keys = map(entry_key, read_archive_log(state.storage.read(file.path), file.path))
        times = [time for time, action, at in keys if action in WRITE_ACTIONS and at == State.COMPLETED.value]
        if any(time > saved for time in times):
            return True
        if times and newest_tells:
            return False
    return False
