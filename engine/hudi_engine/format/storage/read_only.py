"""A storage that is looked at and not changed, and refusals of one that must not be."""

from __future__ import annotations

import errno
import io
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import BinaryIO, NoReturn

import pyarrow as pa

from hudi_engine.errors import StorageError
from hudi_engine.format.storage.base import FileStatus, Listing, Storage


class ForwardingStorage(Storage):
    """Another storage, call by call."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.base = storage.base
        self.renames_folders = storage.renames_folders
        self.is_near = storage.is_near
        self.sets_times = storage.sets_times

    @property
    def exclusive_create(self) -> bool:  # type: ignore[override]
        """Whether the storage creates files exclusively, which some can check only by writing: not queried before."""
        return self._storage.exclusive_create

    def read(self, path: str) -> bytes:
        return self._storage.read(path)

    def stat(self, path: str) -> FileStatus | None:
        return self._storage.stat(path)

    def list(self, path: str, recursive: bool = False, skip: frozenset[str] = frozenset()) -> Listing:
        return self._storage.list(path, recursive, skip)

    def open_input(self, path: str) -> pa.NativeFile:
        return self._storage.open_input(path)

    def uri(self, path: str = "") -> str:
        return self._storage.uri(path)

    def _changes(self) -> bool:
        """Whether a change is made; False drops it, and an error refuses it."""
        return True

    def create(self, path: str, data: bytes) -> None:
        if self._changes():
            self._storage.create(path, data)

    def replace(self, path: str, data: bytes) -> None:
        if self._changes():
            self._storage.replace(path, data)

    def refresh(self, path: str, data: bytes) -> None:
        if self._changes():
            self._storage.refresh(path, data)

    def set_modified(self, path: str, modified_ms: int) -> None:
        if self._changes():
            self._storage.set_modified(path, modified_ms)

    def take_over(self, path: str, before: bytes, data: bytes) -> None:
        if self._changes():
            self._storage.take_over(path, before, data)

    def delete(self, path: str) -> bool:
        return self._changes() and self._storage.delete(path)

    def delete_tree(self, path: str) -> None:
        if self._changes():
            self._storage.delete_tree(path)

    def delete_empty(self, path: str) -> None:
        if self._changes():
            self._storage.delete_empty(path)

    def rename(self, source: str, target: str) -> None:
        if self._changes():
            self._storage.rename(source, target)

    def make_dirs(self, path: str) -> None:
        if self._changes():
            self._storage.make_dirs(path)

    def open_output(
        self, path: str, *, before_publish: Callable[[], None] | None = None
    ) -> AbstractContextManager[BinaryIO]:
        if self._changes():
            return self._storage.open_output(path, before_publish=before_publish)
        return nullcontext(io.BytesIO())


_REFUSALS = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


def is_refusal(error: OSError) -> bool:
    """Return whether an error means missing rights to write, or read."""
    return error.errno in _REFUSALS


class ReadOnlyStorage(ForwardingStorage):
    """Another storage without its changes."""

    def __init__(self, storage: Storage, reason: str) -> None:
        super().__init__(storage)
        self._reason = reason

    def _changes(self) -> NoReturn:
        raise StorageError(f"nothing can be written now: {self._reason}. Try again when that is done")
