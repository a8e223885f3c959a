"""A storage that hands every call on to another one; what it does differently is said by those made of it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import BinaryIO

import pyarrow as pa

from hudi_engine.format.storage.base import FileStatus, Listing, Storage


class ForwardingStorage(Storage):
    """Another storage, call by call."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.base = storage.base
        self.renames_folders = storage.renames_folders
        self.is_near = storage.is_near

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
        self._storage.create(path, data)

    def replace(self, path: str, data: bytes) -> None:
        self._storage.replace(path, data)

    def refresh(self, path: str, data: bytes) -> None:
        self._storage.refresh(path, data)

    def take_over(self, path: str, before: bytes, data: bytes) -> None:
        self._storage.take_over(path, before, data)

    def delete(self, path: str) -> bool:
        return self._storage.delete(path)

    def delete_tree(self, path: str) -> None:
        self._storage.delete_tree(path)

    def delete_empty(self, path: str) -> None:
        self._storage.delete_empty(path)

    def rename(self, source: str, target: str) -> None:
        self._storage.rename(source, target)

    def make_dirs(self, path: str) -> None:
        self._storage.make_dirs(path)

    def open_output(
        self, path: str, *, before_publish: Callable[[], None] | None = None
    ) -> AbstractContextManager[BinaryIO]:
        return self._storage.open_output(path, before_publish=before_publish)
