"""Errors of the file system, told in the engine's words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hudi_engine.errors import StorageError
from hudi_engine.format.storage.base import Storage


@contextmanager
def storage_errors(storage: Storage, doing: str) -> Iterator[None]:
    """Turn an OSError into a StorageError that names what was being done.

    Args:
        doing: What was being done, such as ``"begin a write"``.
    """
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"the storage failed to {doing} in {storage.base!r}: {error}. Readers see a committed "
            "state; mend the storage and try again, which finishes or undoes what was begun"
        ) from error
