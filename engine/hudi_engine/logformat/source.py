"""The bytes of a log file, in memory or read piece by piece."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

_WINDOW = 4 * 1024 * 1024


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
    """A log file in memory.

    Args:
        data: The whole file.
    """

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


class FileSource:
    """A log file too large to be held in memory as a whole.

    Args:
        file: Random access to it.
    """

    def __init__(self, file: pa.NativeFile) -> None:
        self._file = file
        self._size = int(file.size())
        self._window_start = 0
        self._window = b""

    @property
    def size(self) -> int:
        """Length in bytes."""
        return self._size

    def read(self, start: int, count: int) -> bytes:
        """Up to ``count`` bytes from ``start`` on; fewer at the end."""
        offset = start - self._window_start
        if 0 <= offset and offset + count <= len(self._window):
            return self._window[offset : offset + count]
        self._file.seek(min(start, self._size))
        return bytes(self._file.read(max(0, min(count, self._size - start))))

    def find(self, pattern: bytes, start: int) -> int:
        """Return first position of ``pattern`` from ``start`` on; -1 when there is none."""
        position = start
        while position < self._size:
            # What was read for the last search serves the next one, so that a file full of the pattern is read once.
            if not 0 <= position - self._window_start < len(self._window):
                self._window, self._window_start = self.read(position, _WINDOW), position
            found = self._window.find(pattern, position - self._window_start)
            if found >= 0:
                return self._window_start + found
            end = self._window_start + len(self._window)
            if end >= self._size:
                return -1
            # The pattern may lie across the border of two windows.
            position = max(end - len(pattern) + 1, position + 1)
            self._window = b""
        return -1
