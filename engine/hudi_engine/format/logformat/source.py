"""The bytes of a log file, in memory or read piece by piece."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

_WINDOW = 4 * 1024 * 1024
_MIN_READ = 64 * 1024
"""Bytes of a read at least: in an object store each is a request, and the head of a block takes several of a few bytes."""


class LogSource(Protocol):
    """A file that blocks are looked for in."""

    @property
    def size(self) -> int:
        """Length in bytes."""

    def read(self, start: int, count: int) -> bytes:
        """Up to ``count`` bytes from ``start`` on; fewer at the end."""

    def find(self, pattern: bytes, start: int) -> int:
        """Return first position of ``pattern`` from ``start`` on; -1 when there is none."""


class BytesSource:
    """A log file in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    @property
    def size(self) -> int:
        """Length in bytes."""
        return len(self._data)

    def read(self, start: int, count: int) -> bytes:
        """Up to ``count`` bytes from ``start`` on; fewer at the end."""
        return self._data[start : start + count]

    def find(self, pattern: bytes, start: int) -> int:
        """Return first position of ``pattern`` from ``start`` on; -1 when there is none."""
        return self._data.find(pattern, start)


@dataclass(frozen=True)
class _Window:
    """A part of a file that is in memory."""

    start: int
    data: bytes

    def has(self, start: int, count: int) -> bool:
        """Whether ``count`` bytes from ``start`` on lie in it."""
        return 0 <= start - self.start and start + count <= self.start + len(self.data)


class FileSource:
    """A log file too large to be held in memory as a whole."""

    def __init__(self, file: pa.NativeFile) -> None:
        self._file = file
        self._size = int(file.size())
        self._searched = _Window(0, b"")
        # Two, since the end of a block is looked at before its head; with the end comes the next block's head.
        self._read: deque[_Window] = deque(maxlen=2)

    @property
    def size(self) -> int:
        """Length in bytes."""
        return self._size

    def read(self, start: int, count: int) -> bytes:
        """Up to ``count`` bytes from ``start`` on; fewer at the end."""
        count = max(0, min(count, self._size - start))
        for window in (self._searched, *self._read):
            if window.has(start, count):
                return window.data[start - window.start : start - window.start + count]
        data = self._fetched(start, max(count, _MIN_READ))
        if count < _MIN_READ:
            self._read.append(_Window(start, data))
        return data[:count]

    def _fetched(self, start: int, count: int) -> bytes:
        self._file.seek(min(start, self._size))
        return bytes(self._file.read(max(0, min(count, self._size - start))))

    def find(self, pattern: bytes, start: int) -> int:
        """Return first position of ``pattern`` from ``start`` on; -1 when there is none."""
        position = start
        while position < self._size:
            # What was read for the last search serves the next one, so that a file full of the pattern is read once.
            if not self._searched.has(position, 1):
                self._searched = _Window(position, self._fetched(position, _WINDOW))
            window = self._searched
            found = window.data.find(pattern, position - window.start)
            if found >= 0:
                return window.start + found
            end = window.start + len(window.data)
            if end >= self._size:
                return -1
            # The pattern may lie across the border of two windows.
            position = max(end - len(pattern) + 1, position + 1)
            self._searched = _Window(0, b"")
        return -1
