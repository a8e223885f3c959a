"""A storage that is looked at and not changed, and refusals of one that must not be."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import BinaryIO, NoReturn

from hudi_engine.errors import StorageError
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.forwarding import ForwardingStorage

_REFUSALS = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


def is_refusal(error: OSError) -> bool:
    """Tell whether an error says that somebody must not write, or read, where it happened."""
    return error.errno in _REFUSALS


class ReadOnlyStorage(ForwardingStorage):
    """Another storage without its changes."""

    def __init__(self, storage: Storage, reason: str) -> None:
        super().__init__(storage)
        self._reason = reason

    def create(self, path: str, data: bytes) -> None:
        self._refuse()

    def replace(self, path: str, data: bytes) -> None:
        self._refuse()

    def refresh(self, path: str, data: bytes) -> None:
        self._refuse()

    def take_over(self, path: str, before: bytes, data: bytes) -> None:
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
