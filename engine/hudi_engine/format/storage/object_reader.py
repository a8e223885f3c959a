"""Reading objects: small ones with one request, large ones by ranges."""

from __future__ import annotations

import io

import obstore
import pyarrow as pa

from hudi_engine.format.storage.object_client import ObjectClient

_WHOLE_BYTES = 4 * 1024 * 1024
"""Up to this size an object is read whole: a request more costs as much as the bytes."""


def open_object(client: ObjectClient, path: str) -> pa.NativeFile:
    """Open an object for random access."""
    with client.errors(path):
        found = _begun(client, path)
        size = found.meta["size"]
        if size <= _WHOLE_BYTES:
            return pa.BufferReader(pa.py_buffer(found.bytes().to_bytes()))
    return pa.PythonFile(_Ranges(client, path, size), mode="r")


def _begun(client: ObjectClient, path: str) -> obstore.GetResult:
    """Ask for as much as is read whole; the answer tells the size too, and a large object is not sent for nothing."""
    try:
        return obstore.get(client.store, path, options={"range": (0, _WHOLE_BYTES)})
    except obstore.exceptions.GenericError as error:
        # an empty object has no range, and some services send none
        if "range" not in str(error).lower():
            raise
        return obstore.get(client.store, path)


class _Ranges(io.RawIOBase):
    """A large object as a file: each read is one request for a range."""

    def __init__(self, client: ObjectClient, path: str, size: int) -> None:
        self._client = client
        self._path = path
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def size(self) -> int:
        """Size in bytes, which pyarrow asks for."""
        return self._size

    def read(self, size: int | None = -1) -> bytes:
        end = self._size if size is None or size < 0 else min(self._at + size, self._size)
        if end <= self._at:
            return b""
        with self._client.errors(self._path):
            data = obstore.get_range(self._client.store, self._path, start=self._at, end=end).to_bytes()
        self._at += len(data)
        return data
