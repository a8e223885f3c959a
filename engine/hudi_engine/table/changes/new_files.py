"""Which files of a folder a table has not taken yet, and the note in its commits of those that it has.

A file is known by its path, size and modification time. The note holds the newest files that were taken, each as a hash of its path
with size and time, and a watermark: files that are no newer than that count as taken, whatever their names.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from hudi_engine.errors import ConfigError, CorruptTableError
from hudi_engine.format.spelling import shortened
from hudi_engine.format.storage.base import FileStatus, Storage

MAX_KNOWN = 10_000
"""Files that a note knows one by one, if no more than these came within `LATE_MS`."""
LATE_MS = 60 * 60 * 1000
"""A file that appears this late, by the newest file that was taken, is read in any case."""
_HASH_BYTES = 8
_START = '{"files":'
_NUMBERS = "<i8"
_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class FileLimits:
    """How much is taken at most at once; None is no limit. One file is always taken.

    Args:
        max_bytes: Bytes of the files.

    Raises:
        ConfigError: A limit that is no whole number of at least 1.
    """

    max_files: int | None = None
    max_bytes: int | None = None

    def __post_init__(self) -> None:
        """Refuse limits under which nothing could be read."""
        check_limits(self.__dict__)


def check_limits(given: Mapping[str, object]) -> None:
    """Refuse limits that are no whole number of at least 1 with a ConfigError; None is no limit."""
    problems = [
        f"{name} is {value!r}; legal values: whole numbers of at least 1"
        for name, value in given.items()
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1)
    ]
    if problems:
        raise ConfigError("; ".join(problems), tuple(problems))


@dataclass(frozen=True)
class TakenFiles:
    """The files that a table has taken of one folder.

    Args:
        known: Modification time (epoch ms) and size (bytes) by the hash of a path, of the version that was taken last.
        watermark: Files up to this modification time (epoch ms) count as taken; None for no such time.
        older: Files taken up to the watermark, whose hashes are no longer kept.
        columns: Columns of the files so far, as the reader of the files notes them.
    """

    known: Mapping[bytes, tuple[int, int]] = field(default_factory=dict)
    watermark: int | None = None
    older: int = 0
    columns: str = ""

    @property
    def count(self) -> int:
        """Files that were taken; one that changed counts again once its hash is no longer kept."""
        return len(self.known) + self.older

    def has(self, file: FileStatus) -> bool:
        """Return whether a file was taken as it is."""
        found = self.known.get(path_hash(file.path))
        if found is not None:
            return found == (file.modified_ms, file.size)
        return self.watermark is not None and file.modified_ms <= self.watermark

    def with_files(self, taken: Iterable[FileStatus], waiting: Iterable[FileStatus]) -> TakenFiles:
        """Return the note after some more files.

        Args:
            waiting: Files that are there and not taken yet, above which the watermark does not rise.
        """
        known = {
            **self.known,
            **{path_hash(each.path): (each.modified_ms, each.size) for each in taken},
        }
        watermark = self.watermark
        if len(known) > MAX_KNOWN:
            times = sorted((time for time, _ in known.values()), reverse=True)
            bounds = [times[MAX_KNOWN], times[0] - LATE_MS, *(each.modified_ms - 1 for each in waiting)]
            watermark = max(min(bounds), -1 if watermark is None else watermark)
        kept = known if watermark is None else {key: v for key, v in known.items() if v[0] > watermark}
        return TakenFiles(kept, watermark, self.older + len(known) - len(kept), self.columns)

    def text(self) -> str:
        """Return the note as it is stored."""
        keys = sorted(self.known, key=lambda key: self.known[key])
        numbers = np.array([self.known[key] for key in keys], dtype=_NUMBERS).reshape(-1, 2)
        # in the order of times, their differences are small
        columns = (np.diff(numbers[:, 0], prepend=0), numbers[:, 1])
        packed = b"".join([*keys, *(each.astype(_NUMBERS).tobytes() for each in columns)])
        return json.dumps(
            {
                "files": len(keys),
                "older": self.older,
                "watermark": self.watermark,
                "known": b64encode(zlib.compress(packed, 6)).decode(),
                "columns": self.columns,
            },
            separators=(",", ":"),
        )

    @classmethod
    def parse(cls, text: str) -> TakenFiles:
        """Read a note; raises CorruptTableError for a damaged one."""
        try:
            raw = json.loads(text)
            count = int(raw["files"])
            packed = zlib.decompress(b64decode(raw["known"], validate=True))
            end = count * _HASH_BYTES
            numbers: _Numbers = np.frombuffer(packed[end:], dtype=_NUMBERS).reshape(2, count)
            keys = [packed[at : at + _HASH_BYTES] for at in range(0, end, _HASH_BYTES)]
            values = zip(np.cumsum(numbers[0]).tolist(), numbers[1].tolist(), strict=True)
            known = dict(zip(keys, values, strict=True))
            return cls(known, raw["watermark"], int(raw["older"]), str(raw["columns"]))
        except (ValueError, KeyError, TypeError, zlib.error) as error:
            raise CorruptTableError(
                f"the checkpoint of files {shortened(text)!r} cannot be read: {error}. Reset it with the operation "
                "hudi_checkpoint, after which all files are read again, or rebuild the table"
            ) from error

    def described(self) -> str:
        """Return the note in words."""
        if not self.count:
            return "no files"
        newest = max((time for time, _ in self.known.values()), default=self.watermark or 0)
        moment = datetime.fromtimestamp(newest / 1000, timezone.utc)
        return f"{self.count:,} files, the newest of {moment:%Y-%m-%d %H:%M:%S} UTC"


def is_note_of_files(noted: str) -> bool:
    """Return whether what a checkpoint notes of an input is of files, and no instant."""
    return noted.startswith(_START)


def shown_note(noted: str) -> str:
    """Return what a checkpoint notes of an input as messages show it."""
    return TakenFiles.parse(noted).described() if is_note_of_files(noted) else noted


def path_hash(path: str) -> bytes:
    """Return the 64 bits that stand for a path."""
    return blake2b(path.encode("utf-8", "surrogateescape"), digest_size=_HASH_BYTES).digest()


@dataclass(frozen=True)
class FileChoice:
    """What is taken next of a folder.

    Args:
        files: The oldest files that are new or changed.
        waiting: Those that the limits leave for later.
        unseen: Files up to the watermark that were not there when it rose, as far as their number shows it: they came late, and are
            not read.
    """

    files: Sequence[FileStatus]
    waiting: Sequence[FileStatus] = ()
    unseen: int = 0


def list_files(storage: Storage, after: str = "", names: str = "*") -> list[FileStatus]:
    """List the files below a folder that Spark reads; a file by itself is listed as ``""``.

    Args:
        after: Only files whose paths sort after this text. An object store lists a thousand with a request, from there on.
        names: Pattern of the last part of a path, with ``*``, ``?`` and ``[]``.
    """
    if "{" in names:
        raise ConfigError(
            f"pathGlobFilter is {names!r}; legal values: *, ? and [], and no alternatives in braces"
        )
    found = storage.list_after("", after)
    if not found and (top := storage.stat("")) is not None and not top.is_dir:
        return [top]
    shown = [each for each in found if not is_hidden(each.path)]
    return shown if names == "*" else [each for each in shown if fnmatchcase(each.name, names)]


def is_hidden(path: str) -> bool:
    """Tell whether Spark passes a file over: a part of its path starts with a dot, or an underscore without ``=``."""
    return path.endswith("._COPYING_") or any(
        part.startswith(".") or (part.startswith("_") and "=" not in part) for part in path.split("/")
    )


def choose_files(listed: Iterable[FileStatus], taken: TakenFiles, limits: FileLimits) -> FileChoice:
    """Return which of the listed files are taken next: those that are new or changed, the oldest first, names deciding."""
    watermark = taken.watermark
    new, old = [], 0
    for file in listed:
        if not taken.has(file):
            new.append(file)
        elif watermark is not None and file.modified_ms <= watermark:
            old += path_hash(file.path) not in taken.known
    new.sort(key=lambda each: (each.modified_ms, each.path))
    end = len(new) if limits.max_files is None else min(len(new), limits.max_files)
    if limits.max_bytes is not None:
        sizes = np.cumsum([each.size for each in new[:end]])
        end = min(end, max(1, int(np.searchsorted(sizes, limits.max_bytes, side="right"))))
    return FileChoice(new[:end], new[end:], max(0, old - taken.older))
