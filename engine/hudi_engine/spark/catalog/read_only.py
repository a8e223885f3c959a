"""Warehouses and tables that must not be written to: what is derived from them is kept beside, for this process alone."""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
from functools import lru_cache

from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.storage.local import LocalStorage


def is_read_only(root: str) -> bool:
    """Tell whether a folder of a disk is there and must not be written to; of other stores only a write would tell."""
    storage = open_storage(root)
    if not isinstance(storage, LocalStorage):
        return False
    return os.path.isdir(storage.base) and not os.access(storage.base, os.W_OK)


@lru_cache(maxsize=1)
def folder_of_process() -> str:
    """Return a folder that goes when this process ends, for what is derived from tables that must not be written to."""
    folder = tempfile.mkdtemp(prefix="hudi-engine-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def place_beside(storage: Storage) -> Storage:
    """Return the storage for what is derived from a table that must not be written to."""
    digest = hashlib.sha256(storage.uri().encode()).hexdigest()[:24]
    return open_storage(f"{folder_of_process()}/{digest}")
