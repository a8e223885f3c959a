"""What killed writers left under temporary names: nobody reads it, no instant names it, and a base file may be large."""

from __future__ import annotations

import logging
import re
from itertools import chain

from hudi_engine.format.config.properties_file import HOODIE_FOLDER
from hudi_engine.format.filegroup.view import FileSystemView
from hudi_engine.format.storage.base import TEMP_PREFIX
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.recovery import TEMPORARY_KEPT_MS

logger = logging.getLogger(__name__)

_NAME = re.compile(re.escape(TEMP_PREFIX) + "[0-9a-f]{32}")


def drop_temporaries(state: TableState, view: FileSystemView, now_ms: int) -> int:
    """Delete temporary files that nobody has written to for an hour; trouble is not fatal.

    Args:
        view: Partitions that are looked at; the folders of the timeline are too.

    Returns:
        How many went.
    """
    storage, dropped = state.storage, 0
    try:
        folders = (storage.list(each) for each in sorted({HOODIE_FOLDER, state.config.timeline_path}))
        for status in chain(*folders, *(view.files(each) for each in view.partitions)):
            is_old = now_ms - status.modified_ms > TEMPORARY_KEPT_MS
            if is_old and not status.is_dir and _NAME.fullmatch(status.name):
                dropped += storage.delete(status.path)
    except OSError as error:
        logger.warning("could not delete what killed writers left, the next clean will: %s", error)
    return dropped
