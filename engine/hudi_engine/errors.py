"""Every error the engine raises on purpose.

::

    HudiError
    ├── ConfigError              an option, argument or table setting that makes no sense (also a ValueError)
    ├── DataError                rows that cannot be written (also a ValueError)
    │   ├── InvalidKeyError      a record key or ordering value is missing, null, empty or no text
    │   ├── RepeatedKeyError     several stored rows share the record key of one that alone is to change
    │   └── SchemaError          a type or name Hudi cannot hold, or a change Hudi refuses
    ├── PathEscapeError          a path would leave the table folder
    ├── TableNotFoundError       no Hudi table at the path
    ├── TableExistsError         a Hudi table (or other files) is already at the path
    ├── CorruptTableError        a file of the table cannot be parsed
    ├── UnsupportedTableError    a real Hudi table or feature that this engine does not handle
    ├── TimelineError            an instant is not there, or is in the wrong state
    │   └── HistoryGapError      clean, archive or a restore took what a window of changes needs
    ├── WriteConflictError       another writer won
    │   ├── ConsumedMeanwhileError   it noted a checkpoint of its own, so that the rows are those of a window that is past
    │   └── PlannedMeanwhileError    it planned a clustering that is not running
    ├── StorageError             the storage failed or cannot give a needed guarantee
    ├── StatementError           a SQL statement on a Hudi table that cannot be run as it is written
    └── ServiceError             a table service (compaction, clean, ...) failed
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class HudiError(Exception):
    """Base of all errors raised by the engine on purpose."""


class ConfigError(HudiError, ValueError):
    """An option, argument or table setting makes no sense.

    Args:
        message: What is wrong, with the value received and the next step.
        problems: All problems found, when several were collected before raising.
    """

    def __init__(self, message: str, problems: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.problems = problems or (message,)


class DataError(HudiError, ValueError):
    """The given rows cannot be written; the table is unchanged."""


class InvalidKeyError(DataError):
    """A record key, partition value or ordering value is missing, null, empty or no UTF-8 text."""


class RepeatedKeyError(DataError):
    """Several stored rows have the record key of a row that alone is to change or go."""


class SchemaError(DataError):
    """A column type or name that Hudi cannot hold, or a schema change that Hudi refuses."""


class PathEscapeError(HudiError, ValueError):
    """A path taken from data or metadata would leave the table folder, or cannot be a folder of it."""

    def __init__(self, path: str, base: str = "", problem: str = "") -> None:
        where = f" below {base}" if base else " below the table folder"
        said = f"cannot be a folder{where}: it {problem}" if problem else f"does not stay{where}"
        super().__init__(
            f"path {path!r} {said}; nothing was read or written there. "
            "Paths must be relative, without '..', '.', empty parts or control characters."
        )
        self.path = path
        self.base = base


class TableNotFoundError(HudiError):
    """There is no Hudi table at the path."""


class TableExistsError(HudiError):
    """A table, or a folder that is not a Hudi table, is already at the path."""


class CorruptTableError(HudiError):
    """A file of the table is truncated or cannot be parsed."""


class UnsupportedTableError(HudiError):
    """A real Hudi table, or a feature of one, that this engine does not handle."""


class TimelineError(HudiError):
    """An instant does not exist or is not in the state the call needs."""


class HistoryGapError(TimelineError):
    """Files or commits that the changes since an instant need no longer exist.

    Args:
        lost: What is lost, without a full stop.
        oldest: Oldest start whose changes are complete, None when unknown.
        advice: The choices, appended to what is lost.
    """

    def __init__(self, lost: str, start: str, oldest: str | None = None, advice: str = "") -> None:
        super().__init__(f"{lost}. {advice}" if advice else lost)
        self.lost = lost
        self.start = start
        self.oldest = oldest
        self.advice = advice

    def __reduce__(self) -> tuple[type[HistoryGapError], tuple[str, str, str | None, str]]:
        return HistoryGapError, (self.lost, self.start, self.oldest, self.advice)


class WriteConflictError(HudiError):
    """Another writer committed, or is committing, what this write touches."""


class ConsumedMeanwhileError(WriteConflictError):
    """Another writer stored another checkpoint than the one that the rows of this write start from, or the batch itself.

    Writing them again does not help: read the changes again from the checkpoint that the table has now, and leave the batch out.
    """


class PlannedMeanwhileError(WriteConflictError):
    """A planned clustering, which is not running, includes what this write touches.

    Writing again does not help until the plan has run or was rolled back.
    """


class StorageError(HudiError):
    """The storage failed, or lacks a guarantee that the call needs."""


class StatementError(HudiError, ValueError):
    """A SQL statement on a Hudi table that cannot be run as it is written; nothing was."""


class TaskMemoryError(HudiError):
    """A task needs more memory than its Python worker has."""


class IncompleteWriteError(HudiError):
    """What was planned did not come back once each, so that rows may be missing or twice; nothing was committed."""


class ServiceError(HudiError):
    """A table service failed; the commits before it are kept."""


@contextmanager
def translate_unicode_errors() -> Iterator[None]:
    """Turn Python's errors about text that is not UTF-8, in record keys and partition values, into InvalidKeyError.

    Raises:
        InvalidKeyError: Instead of Python's error.
    """
    try:
        yield
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise InvalidKeyError(
            f"{error.object[:80]!r} is not UTF-8 text, as each record key, partition value and ordering value of a delete has to "
            "be. Correct it in the query, or take hex() of the column; nothing was committed"
        ) from error
