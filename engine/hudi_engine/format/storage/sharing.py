"""Files of one table that another is to have too: shared where the storage can, copied where it may."""

from __future__ import annotations

import os
import re
import shutil

from hudi_engine.errors import StorageError
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.storage.paths import join

_AUTHORITY = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://[^/]*")


class Sharing:
    """The way of files from a table's folder to another folder."""

    def __init__(self, source: Storage, target: Storage, *, copy: bool) -> None:
        self._source = source
        self._target = target
        self._may_copy = copy
        common = _folder_above(source, target)
        self._above = None if common is None else open_storage(common)
        cut = len((common or "").rstrip("/")) + 1
        self._from, self._to = source.base[cut:], target.base[cut:]

    def share(self, path: str) -> bool:
        """Give a file that never changes to the other folder; returns whether no bytes went through this process."""
        try:
            if self._above is None:
                raise StorageError("they are in different stores")
            self._above.share(join(self._from, path), join(self._to, path))
            return True
        except StorageError as error:
            if not self._may_copy:
                raise StorageError(
                    f"the files of {self._source.base!r} cannot be shared with {self._target.base!r}: {error}. Clone it to the "
                    "same file system or bucket, or let the bytes be copied (copy=True; --copy of the command line;"
                    " clone_copy: true in a model's config)"
                ) from error
        self.copy(path)
        return False

    def copy(self, path: str) -> None:
        """Copy a file that may yet change; raises FileNotFoundError."""
        with self._source.open_input(path) as source, self._target.open_output(path) as target:
            shutil.copyfileobj(source, target, 1 << 20)


def _folder_above(source: Storage, target: Storage) -> str | None:
    """Return the nearest folder that holds both, None when they are not in one store."""
    if isinstance(source, LocalStorage) and isinstance(target, LocalStorage):
        return os.path.commonpath([source.base, target.base])
    one, other = (_AUTHORITY.match(each.base) for each in (source, target))
    if one is None or other is None or one.group() != other.group():
        return None
    parts = [each.base.split("/") for each in (source, target)]
    shared = os.path.commonprefix(parts)
    return "/".join(shared)
