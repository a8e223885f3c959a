"""Record keys of base files, kept between the writes of the driver's process; a base file never changes under its name."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

import pyarrow as pa

from hudi_engine.format.filegroup.base_file import BaseFile
from hudi_engine.format.merge.base_reader import read_base_file
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.schema.meta_fields import RECORD_KEY
from hudi_engine.format.storage.base import Storage

KeysOf = Callable[[ReadContext, BaseFile], pa.ChunkedArray]
"""Returns the record keys of a base file, in file order."""

KeepKeys = Callable[[Storage, str, pa.ChunkedArray], None]
"""Is told the storage and path of a base file, and its record keys in file order."""

_Name = tuple[str, str, int, int]


def keys_of_file(read: ReadContext, base_file: BaseFile) -> pa.ChunkedArray:
    """Read the record keys of a base file."""
    return read_base_file(read, base_file, columns=[RECORD_KEY]).column(RECORD_KEY)


class KeyCache:
    """The keys of the base files that were asked for last; safe to use by several threads."""

    def __init__(self) -> None:
        self._held: OrderedDict[_Name, pa.ChunkedArray] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def keys_of(self, limit: int) -> KeysOf:
        """Return a way to the keys of base files that keeps at most ``limit`` bytes of them; 0 keeps nothing."""

        def find(read: ReadContext, base_file: BaseFile) -> pa.ChunkedArray:
            name = (read.storage.base, base_file.path, base_file.size, base_file.modified_ms)
            with self._lock:
                known = self._held.get(name)
                if known is not None:
                    self._held.move_to_end(name)
                    return known
            keys = keys_of_file(read, base_file)
            self._keep(name, keys, limit)
            return keys

        return find

    def keeping(self, limit: int) -> KeepKeys:
        """Return a way to tell the keys of a base file that was just written; of a storage that takes long to ask none are kept."""

        def keep(storage: Storage, path: str, keys: pa.ChunkedArray) -> None:
            status = storage.stat(path) if storage.is_near else None
            if status is not None:
                self._keep((storage.base, path, status.size, status.modified_ms), keys, limit)

        return keep

    def _keep(self, name: _Name, keys: pa.ChunkedArray, limit: int) -> None:
        with self._lock:
            if name in self._held or keys.nbytes > limit:
                return
            self._held[name] = keys
            self._bytes += keys.nbytes
            while self._bytes > limit:
                _, gone = self._held.popitem(last=False)
                self._bytes -= gone.nbytes


DRIVER_KEYS = KeyCache()
"""Of the process that plans writes."""
