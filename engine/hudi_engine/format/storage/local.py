"""Files on a local or POSIX-mounted file system."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import BinaryIO

import pyarrow as pa

from hudi_engine.errors import PathEscapeError, StorageError
from hudi_engine.format.storage.base import TEMP_PREFIX, FileStatus, Listing, Storage, crc_path

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


class LocalStorage(Storage):
    """A folder of a POSIX file system with hard links.

    A file is written under a temporary name, synced, and linked to its own name, so a reader sees all of it
    or nothing and an existing file is never overwritten by :meth:`create`.
    """

    exclusive_create = True
    is_near = True
    sets_times = True

    def __init__(self, base: str) -> None:
        self.base = os.path.abspath(base)

    def __repr__(self) -> str:
        return f"LocalStorage({self.base!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalStorage) and other.base == self.base

    def __hash__(self) -> int:
        return hash(self.base)

    def read(self, path: str) -> bytes:
        try:
            with open(self._absolute(path), "rb") as file:
                return file.read()
        except NotADirectoryError as error:
            raise FileNotFoundError(errno.ENOENT, "no such file", error.filename) from error

    def stat(self, path: str) -> FileStatus | None:
        try:
            found = os.stat(self._absolute(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        is_dir = stat.S_ISDIR(found.st_mode)
        return FileStatus(path, 0 if is_dir else found.st_size, found.st_mtime_ns // 1_000_000, is_dir)

    def list(self, path: str, recursive: bool = False, skip: frozenset[str] = frozenset()) -> Listing:
        """List a folder; one that goes meanwhile is empty, and links are shown but not entered."""
        found: Listing = []
        pending = [(self._absolute(path), f"{path}/" if path else "")]
        while pending:
            folder, prefix = pending.pop()
            try:
                entries = os.scandir(folder)
            except (FileNotFoundError, NotADirectoryError):
                continue
            with entries:
                for entry in entries:
                    status = _entry_status(entry, prefix)
                    if status is None or (status.is_dir and entry.name in skip):
                        continue
                    found.append(status)
                    if recursive and status.is_dir and not entry.is_symlink():
                        pending.append((entry.path, f"{status.path}/"))
        found.sort(key=lambda status: status.path)
        return found

    def create(self, path: str, data: bytes) -> None:
        target = self._mutable(path)
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, "the file exists already", target)
        with self._temporary(target) as temporary:
            _write_synced(temporary, data)
            self._publish(temporary, target)

    def replace(self, path: str, data: bytes) -> None:
        target = self._mutable(path)
        with self._temporary(target) as temporary:
            _write_synced(temporary, data)
            # The checksum goes first: a missing one is fine for Hadoop, a stale one makes its next read fail.
            self._remove(self._absolute(crc_path(path)))
            os.replace(temporary, target)
            _sync(os.path.dirname(target))

    def refresh(self, path: str, data: bytes) -> None:
        os.utime(self._mutable(path))

    def set_modified(self, path: str, modified_ms: int) -> None:
        os.utime(self._mutable(path), ns=(modified_ms * 1_000_000,) * 2)

    def delete(self, path: str) -> bool:
        target = self._mutable(path)
        self._remove(self._absolute(crc_path(path)))
        return self._remove(target)

    def delete_tree(self, path: str) -> None:
        if path == "":
            raise PathEscapeError(path, self.base)
        target = self._mutable(path)
        if os.path.islink(target):
            os.unlink(target)
            return
        if sys.version_info >= (3, 12):
            shutil.rmtree(target, onexc=_unless_gone)
        else:
            shutil.rmtree(target, onerror=lambda call, path, found: _unless_gone(call, path, found[1]))

    def delete_empty(self, path: str) -> None:
        if path:
            with suppress(OSError):
                os.rmdir(self._mutable(path))

    def rename(self, source: str, target: str) -> None:
        old, new = self._mutable(source), self._mutable(target)
        if os.path.lexists(new):
            raise FileExistsError(errno.EEXIST, "the target of a rename exists already", new)
        self._make_parent(new)
        self._remove(self._absolute(crc_path(source)))
        if os.path.isdir(old):
            os.rename(old, new)
        else:
            self._publish(old, new)
            os.unlink(old)
        _sync(os.path.dirname(new))

    def share(self, source: str, target: str) -> None:
        old, new = self._absolute(source), self._mutable(target)
        self._make_parent(new)
        try:
            os.link(os.path.realpath(old), new)
        except OSError as error:
            if error.errno in {*_NO_LINKS, errno.EXDEV}:
                raise StorageError(f"no hard link can be made ({error.strerror})") from error
            raise

    def make_dirs(self, path: str) -> None:
        os.makedirs(self._mutable(path), exist_ok=True)

    def open_input(self, path: str) -> pa.NativeFile:
        return pa.OSFile(self._absolute(path), "rb")

    def open_output(
        self, path: str, *, before_publish: Callable[[], None] | None = None
    ) -> AbstractContextManager[BinaryIO]:
        return self._output(self._mutable(path), before_publish)

    def uri(self, path: str = "") -> str:
        return f"file:{self._absolute(path)}"

    @contextmanager
    def _output(self, target: str, before_publish: Callable[[], None] | None) -> Iterator[BinaryIO]:
        with self._temporary(target) as temporary:
            with pa.OSFile(temporary, "wb") as sink:
                yield sink
            _sync(temporary)
            if before_publish is not None:
                before_publish()
            self._publish(temporary, target)

    @contextmanager
    def _temporary(self, target: str) -> Iterator[str]:
        """Yield a fresh name next to ``target``; what still has that name at the end is removed."""
        self._make_parent(target)
        temporary = os.path.join(os.path.dirname(target), f"{TEMP_PREFIX}{uuid.uuid4().hex}")
        try:
            yield temporary
        finally:
            self._remove(temporary)

    def _publish(self, temporary: str, target: str) -> None:
        """Give a finished file its name unless the name is taken."""
        try:
            os.link(temporary, target, follow_symlinks=False)
        except OSError as error:
            if error.errno in _NO_LINKS:
                raise StorageError(
                    f"the file system of {self.base!r} has no hard links, so a file cannot be created there "
                    "both whole and exclusively; put the table on another file system"
                ) from error
            raise
        _sync(os.path.dirname(target))

    def _make_parent(self, target: str) -> None:
        folder = missing = os.path.dirname(target)
        if os.path.isdir(folder):
            return
        above = []
        while not os.path.isdir(missing):
            missing = os.path.dirname(missing)
            above.append(missing)
        os.makedirs(folder, exist_ok=True)
        for each in above:
            # a folder that may be entered and written but not listed, above the table, cannot be synced
            with suppress(PermissionError):
                _sync(each)

    def _absolute(self, path: str) -> str:
        return os.path.join(self.base, self.checked(path)) if path else self.base

    def _mutable(self, path: str) -> str:
        """Return the absolute path, refusing one whose folders lead out of the table through a symbolic link."""
        absolute = self._absolute(path)
        folder = os.path.realpath(os.path.dirname(absolute) if path else absolute)
        root = os.path.realpath(self.base)
        if folder != root and not folder.startswith(root.rstrip("/") + "/"):
            raise PathEscapeError(path, self.base)
        return absolute

    @staticmethod
    def _remove(absolute: str) -> bool:
        try:
            os.unlink(absolute)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True


def _entry_status(entry: os.DirEntry[str], prefix: str) -> FileStatus | None:
    """Return the status of a folder entry, None when it vanished or is a dangling link."""
    try:
        if entry.is_dir():
            return FileStatus(prefix + entry.name, 0, entry.stat().st_mtime_ns // 1_000_000, True)
        found = entry.stat()
    except FileNotFoundError:
        return None
    return FileStatus(prefix + entry.name, found.st_size, found.st_mtime_ns // 1_000_000, False)


def _unless_gone(_call: object, _path: str, error: BaseException) -> None:
    """Let the removal of a folder go on next to others that delete in it, such as a writer that ends."""
    if not isinstance(error, FileNotFoundError):
        raise error


def _write_synced(absolute: str, data: bytes) -> None:
    with open(absolute, "xb") as file:
        if data:  # an empty file is as durable as its entry in the folder
            file.write(data)
            file.flush()
            os.fsync(file.fileno())


def _sync(absolute: str) -> None:
    """Make a file's content, or a folder's entries, durable."""
    descriptor = os.open(absolute, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
