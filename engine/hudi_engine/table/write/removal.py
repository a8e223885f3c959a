"""Files that another writer removed while a write read them: it was overtaken, and may begin again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hudi_engine.errors import HudiError, TimelineError, WriteConflictError
from hudi_engine.format.filegroup.missing import GONE
from hudi_engine.format.storage.base import Storage

# What Java and Spark call a file that is not there
_NOT_THERE = ("FileNotFoundException", "NoSuchFileException", "FILE_NOT_EXIST", "SparkFileNotFound")


@contextmanager
def removal_is_conflict(storage: Storage) -> Iterator[None]:
    """Turn the error of a read of the table's own files that have gone into a conflict.

    Raises:
        WriteConflictError: Instead of Spark's error, a worker's or the engine's.
    """
    try:
        yield
    except Exception as error:
        if not _is_of_removal(storage, error):
            raise
        raise WriteConflictError(
            f"files of {storage.base!r} that the write was reading have gone: a clean, compaction or rollback of another writer "
            "removed them meanwhile. Nothing was committed; write again, let it begin again by itself "
            "(hoodie.write.num.retries.on.conflict.failures), or let clean retain more commits"
        ) from error


def _is_of_removal(storage: Storage, error: Exception) -> bool:
    text = str(error)
    if isinstance(error, HudiError):
        return isinstance(error, TimelineError) and GONE in text
    place = storage.base.partition("://")[2] or storage.base
    return GONE in text or (place in text and any(each in text for each in _NOT_THERE))
