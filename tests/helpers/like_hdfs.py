"""A file system of pyarrow that behaves as HDFS does where the local one does not."""

from __future__ import annotations

import errno
import os
from typing import Any

import pyarrow as pa
from pyarrow import fs


class LikeHdfs:
    """The local disk, which renames onto no file and copies none."""

    def __init__(self) -> None:
        self._disk = fs.LocalFileSystem()

    def __getattr__(self, name: str) -> Any:
        if name == "_disk":
            raise AttributeError(name)
        return getattr(self._disk, name)

    def move(self, source: str, target: str) -> None:
        """Rename a file or folder whose new name is free."""
        if os.path.lexists(target):
            raise OSError(errno.EIO, "HDFS Rename failed", source)
        self._disk.move(source, target)

    def copy_file(self, source: str, target: str) -> None:
        """Refuse, as pyarrow does for HDFS."""
        raise pa.ArrowNotImplementedError("CopyFile")
