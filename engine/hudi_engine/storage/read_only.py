"""A storage that is looked at and not changed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import BinaryIO, NoReturn

import pyarrow as pa

from hudi_engine.errors import StorageError
from hudi_engine.storage.base import FileStatus, Listing, Storage


class ReadOnlyStorage(Storage):
    """Another storage without its changes.

    Args:
        storage: The storage.
        reason: Why nothing may be changed now, for the message.
    """

    def __init__(self, storage: Storage, reason: str) -> None:
        self._storage = storage
        self._reason = reason
        self.base = storage.base
        self.renames_folders = storage.renames_folders

    @property
    def exclusive_create(self) -> bool:  # type: ignore[override]
        """Whether the storage creates files exclusively, which some can tell only by writing: not asked before."""
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

    def create(self, path: str, data: bytes) -> None:
        self._refuse()

    def replace(self, path: str, data: bytes) -> None:
        self._refuse()

    def delete(self, path: str) -> bool:
        self._refuse()

    def delete_tree(self, path: str) -> None:
        self._refuse()

    def rename(self, source: str, target: str) -> None:
        self._refuse()

    def make_dirs(self, path: str) -> None:
        self._refuse()

    def open_output(
        self, path: str, *, before_publish: Callable[[], None] | None = None
    ) -> AbstractContextManager[BinaryIO]:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise StorageError(f"nothing can be written now: {self._reason}. Try again when that is done")
