"""Overtaken writes: errors of files that another writer removed count as conflicts, and a write begins again after one."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from hudi_engine.errors import (
    ConsumedMeanwhileError,
    HudiError,
    PlannedMeanwhileError,
    TimelineError,
    WriteConflictError,
)
from hudi_engine.format.filegroup.missing import GONE
from hudi_engine.format.storage.base import Storage

# What Java and Spark call a file that is not there
_NOT_THERE = ("FileNotFoundException", "NoSuchFileException", "FILE_NOT_EXIST", "SparkFileNotFound")


@contextmanager
def removal_is_conflict(storage: Storage) -> Iterator[None]:
    """Turn the error of a read of the table's own files that have gone into a conflict."""
    try:
        yield
    except Exception as error:
        if not _is_of_removal(storage, error):
            raise
        raise WriteConflictError(
            f"files of {storage.base!r} that the write was reading were removed: a clean, compaction or rollback of another writer "
            "ran meanwhile. Nothing was committed; write again, let it begin again by itself "
            "(hoodie.write.num.retries.on.conflict.failures), or let clean retain more commits"
        ) from error


def _is_of_removal(storage: Storage, error: Exception) -> bool:
    text = str(error)
    if isinstance(error, HudiError):
        return isinstance(error, TimelineError) and GONE in text
    place = storage.base.partition("://")[2] or storage.base
    return GONE in text or (place in text and any(each in text for each in _NOT_THERE))


logger = logging.getLogger(__name__)

Result = TypeVar("Result")

_FIRST_PAUSE_S = 0.05
_MAX_PAUSE_S = 5.0


def retried(write: Callable[[], Result], retries: int) -> Result:
    """Run a write, and again from the start after each conflict."""
    pause = _FIRST_PAUSE_S
    for left in range(retries, 0, -1):
        try:
            return write()
        except (ConsumedMeanwhileError, PlannedMeanwhileError):
            raise
        except WriteConflictError as conflict:
            logger.warning("beginning again after a conflict, %d attempt(s) left: %s", left, conflict)
            time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - no secret
            pause = min(pause * 2, _MAX_PAUSE_S)
    return write()
