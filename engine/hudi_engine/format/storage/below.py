"""A folder of a table as a storage of its own, such as the metadata table below a table."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import BinaryIO

import pyarrow as pa

from hudi_engine.format.storage.base import FileStatus, Listing, Storage
from hudi_engine.format.storage.paths import join


class StorageBelow(Storage):
    """The files below one folder of a storage.

    Args:
        storage: Storage of the table.
        folder: Path of the folder in it.
    """

    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage, self._folder = storage, storage.checked(folder)
        self.base = f"{storage.base}/{self._folder}"
        self.exclusive_create = storage.exclusive_create
        self.renames_folders = storage.renames_folders
        self.is_near = storage.is_near
        self.sets_times = storage.sets_times

    def _whole(self, path: str) -> str:
        return join(self._folder, self.checked(path))

    def _inside(self, status: FileStatus) -> FileStatus:
        return replace(status, path=status.path[len(self._folder) + 1 :])

    def read(self, path: str) -> bytes:
        return self._storage.read(self._whole(path))

    def stat(self, path: str) -> FileStatus | None:
        found = self._storage.stat(self._whole(path))
        return None if found is None else self._inside(found)

    def list(self, path: str, recursive: bool = False, skip: frozenset[str] = frozenset()) -> Listing:
        return [self._inside(each) for each in self._storage.list(self._whole(path), recursive, skip)]

    def create(self, path: str, data: bytes) -> None:
        self._storage.create(self._whole(path), data)

    def replace(self, path: str, data: bytes) -> None:
        self._storage.replace(self._whole(path), data)

    def refresh(self, path: str, data: bytes) -> None:
        self._storage.refresh(self._whole(path), data)

    def set_modified(self, path: str, modified_ms: int) -> None:
        self._storage.set_modified(self._whole(path), modified_ms)

    def take_over(self, path: str, before: bytes, data: bytes) -> None:
        self._storage.take_over(self._whole(path), before, data)

    def delete(self, path: str) -> bool:
        return self._storage.delete(self._whole(path))

    def remove(self, path: str) -> None:
        self._storage.remove(self._whole(path))

    def delete_tree(self, path: str) -> None:
        self._storage.delete_tree(self._whole(path))

    def delete_empty(self, path: str) -> None:
        self._storage.delete_empty(self._whole(path))

    def rename(self, source: str, target: str) -> None:
        self._storage.rename(self._whole(source), self._whole(target))

    def copy(self, source: str, target: str) -> None:
        self._storage.copy(self._whole(source), self._whole(target))

    def make_dirs(self, path: str) -> None:
        self._storage.make_dirs(self._whole(path))

    def open_input(self, path: str) -> pa.NativeFile:
        return self._storage.open_input(self._whole(path))

    def open_output(
        self, path: str, *, before_publish: Callable[[], None] | None = None
    ) -> AbstractContextManager[BinaryIO]:
        return self._storage.open_output(self._whole(path), before_publish=before_publish)

    def uri(self, path: str = "") -> str:
        return self._storage.uri(self._whole(path))
