"""The interface of a storage.

All paths are POSIX paths relative to the table's base path; see :mod:`hudi_engine.format.storage.paths`. A storage
holds no open connection in its pickled form, so it can be sent to the tasks of a distributed write.
"""

from __future__ import annotations

import errno
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import IO, BinaryIO, cast

import pyarrow as pa

from hudi_engine.errors import StorageError
from hudi_engine.format.storage import paths

_SPOOL_BYTES = 64 * 1024 * 1024
TEMP_PREFIX = ".tmp-"
"""Start of the names of unfinished files. It matches neither a timeline, base file, log file nor partition
metadata name, so every Hudi reader ignores what a killed process leaves behind."""


@dataclass(frozen=True, slots=True)
class FileStatus:
    """A file or folder: path relative to the table's base path, size in bytes, modification time in epoch ms."""

    path: str
    size: int
    modified_ms: int
    is_dir: bool

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self.path.rpartition("/")[2]


Listing = list[FileStatus]


class Storage(ABC):
    """Files below one table's base path.

    Attributes:
        base: Absolute local path or URI (``s3://…``, ``hdfs://…``) without trailing slash.
        exclusive_create: Whether :meth:`create` has exactly one winner when several processes race. Where it
            is False, ``create`` still refuses an existing path, but two writers that check in the same
            moment can both succeed.
        renames_folders: Whether :meth:`rename` of a folder is one step. Where it is False the storage has keys
            only, and every file is copied.
        is_near: Whether bytes that were just read cost next to nothing when they are read again.
        sets_times: Whether :meth:`set_modified` works.
        is_planned: Whether what is written is dropped, so that writers of files leave out the work of making them.
    """

    base: str
    exclusive_create: bool = False
    renames_folders: bool = True
    is_near: bool = False
    sets_times: bool = False
    is_planned: bool = False

    def checked(self, path: str) -> str:
        """Return ``path``; raise PathEscapeError when it would leave the table folder."""
        return paths.relative_path(path, self.base)

    def require_exclusive_create(self, purpose: str) -> None:
        """Refuse work that is only safe where :meth:`create` has one winner.

        Args:
            purpose: What needs the guarantee, for the message, such as ``"optimistic concurrency control"``.

        Raises:
            StorageError: when this storage cannot create a file exclusively.
        """
        if not self.exclusive_create:
            raise StorageError(
                f"{purpose} needs a storage that creates a file only if it is absent, and the storage of "
                f"{self.base!r} cannot: use a local path or an object store with conditional writes (docs/stores.md), or "
                "say with hoodie.write.concurrency.mode=SINGLE_WRITER that one writer at a time works on the table"
            )

    @abstractmethod
    def read(self, path: str) -> bytes:
        """Return the whole content. Raises FileNotFoundError when missing."""

    def read_start(self, path: str, size: int) -> bytes:
        """Return the first bytes of a file, fewer of a shorter one. Raises FileNotFoundError when missing."""
        with self.open_input(path) as file:
            return bytes(file.read(size))

    @abstractmethod
    def stat(self, path: str) -> FileStatus | None:
        """Return the status of a file or folder, None when missing."""

    def exists(self, path: str) -> bool:
        """Return whether a file or folder is there."""
        return self.stat(path) is not None

    @abstractmethod
    def list(self, path: str, recursive: bool = False, skip: frozenset[str] = frozenset()) -> Listing:
        """List a folder: files and folders sorted by path, ``[]`` when it is missing.

        Args:
            path: Folder; ``""`` is the base.
            recursive: Whether to list what is below its folders too.
            skip: Names of folders that are neither listed nor entered.
        """

    def list_after(self, path: str, after: str = "") -> Listing:
        """List all files below a folder whose paths sort after a text, by UTF-8; a store that can begins its listing there."""
        return [each for each in self.list(path, recursive=True) if not each.is_dir and each.path > after]

    @abstractmethod
    def create(self, path: str, data: bytes) -> None:
        """Create a file that must not exist yet, whole and durable, parents included.

        Raises:
            FileExistsError: when the path exists; it is left as it was.
        """

    @abstractmethod
    def replace(self, path: str, data: bytes) -> None:
        """Create or overwrite a file atomically.

        Where Hadoop keeps checksum files, on disks and HDFS, a stale ``.<name>.crc`` next to it goes.
        """

    def refresh(self, path: str, data: bytes) -> None:
        """Give a file a new modification time.

        Args:
            data: Its content, for storages that can do so only by writing it again.

        Raises:
            FileNotFoundError: when it is missing or, where the storage can check, has another content.
        """
        self.replace(path, data)

    def set_modified(self, path: str, modified_ms: int) -> None:
        """Set a file's modification time, in milliseconds since 1970; raises StorageError where the store does not take one."""
        raise StorageError(f"this storage sets no modification time {modified_ms} of {path!r}")

    def take_over(self, path: str, before: bytes, data: bytes) -> None:
        """Give a file other content.

        Raises:
            FileNotFoundError: when it is missing or has another content; where the storage can check, in that moment.
        """
        if self.read(path) != before:
            raise FileNotFoundError(
                errno.ENOENT, "the file has another content by now", f"{self.base}/{path}"
            )
        self.replace(path, data)

    @abstractmethod
    def delete(self, path: str) -> bool:
        """Delete a file, and its ``.<name>.crc`` where there are such; return False when it was missing."""

    def remove(self, path: str) -> None:
        """Delete a file as `delete` does, without the question whether it is there, which is a request in an object store."""
        self.delete(path)

    @abstractmethod
    def delete_tree(self, path: str) -> None:
        """Delete a folder and all below it; nothing happens when it is missing. The base itself is refused."""

    def delete_empty(self, path: str) -> None:
        """Delete a folder that has nothing in it, where there are folders; another one is left as it is."""
        self.checked(path)

    @abstractmethod
    def rename(self, source: str, target: str) -> None:
        """Rename a file or folder.

        Raises:
            FileNotFoundError: when the source is missing.
            FileExistsError: when the target exists.
        """

    def copy(self, source: str, target: str) -> None:
        """Copy a file over another; the target is whole or as it was. Raises FileNotFoundError when missing."""
        self.replace(target, self.read(source))

    def share(self, source: str, target: str) -> None:
        """Give a file that never changes a second path, that stays when the first goes; no bytes pass through this process.

        Raises:
            FileNotFoundError: when the source is missing.
            StorageError: when this storage cannot.
        """
        raise StorageError(f"this storage gives {source!r} no second path {target!r}")

    @abstractmethod
    def make_dirs(self, path: str) -> None:
        """Make a folder and its parents; nothing happens when it is there."""

    @abstractmethod
    def open_input(self, path: str) -> pa.NativeFile:
        """Open a file for random access. Raises FileNotFoundError when missing."""

    @abstractmethod
    def open_output(
        self, path: str, *, before_publish: Callable[[], None] | None = None
    ) -> AbstractContextManager[BinaryIO]:
        """Open a new file for writing that gets its name only when the block ends without an error.

        Args:
            before_publish: Called when the content is durable and before the file gets its name; an error it
                raises cancels the file.

        Raises:
            FileExistsError: at the end of the block, when the path exists by then.
        """

    @abstractmethod
    def uri(self, path: str = "") -> str:
        """Return the URI that Spark understands (``file:/…``, ``s3a://…``), not percent-encoded."""


def crc_path(path: str) -> str:
    """Return the checksum file that Hadoop's local file system keeps next to ``path``."""
    return paths.join(paths.parent(path), f".{paths.name(path)}.crc")


class SpooledStorage(Storage):
    """A storage that takes whole files: closing an upload publishes it, even after an error."""

    def open_output(
        self, path: str, *, before_publish: Callable[[], None] | None = None
    ) -> AbstractContextManager[BinaryIO]:
        self.checked(path)
        return self._output(path, before_publish)

    @contextmanager
    def _output(self, path: str, before_publish: Callable[[], None] | None) -> Iterator[BinaryIO]:
        with tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES) as spool:
            yield cast(BinaryIO, spool)
            spool.seek(0)
            self._upload(path, cast("IO[bytes]", spool), before_publish or _nothing)

    @abstractmethod
    def _upload(self, path: str, source: IO[bytes], before_publish: Callable[[], None]) -> None:
        """Make the file of what ``source`` holds; call ``before_publish`` last before it appears."""

    def _refuse_existing(self, path: str) -> None:
        if self.stat(path) is not None:
            raise FileExistsError(errno.EEXIST, "the file exists already", f"{self.base}/{path}")


def _nothing() -> None:
    return None


@contextmanager
def storage_errors(storage: Storage, doing: str) -> Iterator[None]:
    """Turn an OSError into a StorageError that names what was being done, such as ``"begin a write"``."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"the storage failed to {doing} in {storage.base!r}: {error}. Readers see a committed "
            "state; mend the storage and try again, which finishes or undoes what was begun"
        ) from error
