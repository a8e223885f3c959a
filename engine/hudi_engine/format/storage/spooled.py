"""Storages whose files appear when an upload ends: what is written is held back until it is complete."""

from __future__ import annotations

import errno
import tempfile
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import IO, BinaryIO, cast

from hudi_engine.format.storage.base import Storage

_SPOOL_BYTES = 64 * 1024 * 1024


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
