"""Where a table's folder is: within the one above it, in which other folders lie beside it."""

from __future__ import annotations

import os
from dataclasses import dataclass

from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.factory import open_storage


@dataclass(frozen=True)
class TablePlace:
    """A table's folder within the one above it."""

    parent: Storage
    name: str

    @property
    def base(self) -> str:
        """The folder itself."""
        return self.beside(self.name)

    def beside(self, name: str) -> str:
        """Tell where something beside the table is."""
        return f"{self.parent.base.rstrip('/')}/{name}"


def place_of(base: str) -> TablePlace | None:
    """Return where a folder is; None for one that has no folder above it.

    A symbolic link stays: what takes the table's place does so where the link leads to.
    """
    base = base.rstrip("/")
    parent, _, name = (os.path.realpath(base) if os.path.islink(base) else base).rpartition("/")
    if not name or parent.endswith((":/", "://")):
        return None
    return TablePlace(open_storage(parent or "/"), name)


def lie_in_one(one: str, other: str) -> bool:
    """Return whether two folders are the same, or one of them is inside of the other, whatever links lead there."""
    one, other = _real(one), _real(other)
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/") or _are_same(one, other)


def _real(base: str) -> str:
    return base if "://" in base else os.path.realpath(base)


def _are_same(one: str, other: str) -> bool:
    """Tell whether a disk has one folder under two names, as where case does not count."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
