"""Writes that are planned: their rows are looked up and merged as ever, and nothing of them is written."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from hudi_engine.errors import ConfigError
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.read_only import ForwardingStorage


@dataclass(frozen=True)
class PlanWish:
    """How writes are planned.

    Args:
        examples: How many rows of each kind of change are shown.
    """

    examples: int = 0


_WISH: ContextVar[PlanWish | None] = ContextVar("hudi_engine_planned_writes", default=None)
_everywhere: list[PlanWish] = []


@contextmanager
def planned_writes(examples: int = 0, *, everywhere: bool = False) -> Iterator[None]:
    """Plan every write of this block, and write none: its result has the counts of the commit, and ``plan`` what else it does.

    A write resolves its options, evaluates and keys its rows, looks them up and merges them by the code of every write; the files
    are not encoded, and there is no instant. What others write meanwhile is no conflict, and audits are not run. Services and
    other work on a table raise ConfigError::

        with planned_writes(examples=3):
            result = table.upsert(df)
        print(result.rows_updated, result.plan.bytes_to_rewrite, result.plan.examples)

    Args:
        examples: How many rows of each kind of change are shown, from 0.
        everywhere: In all threads of this process; storages that are opened meanwhile then refuse what a read-only disk refuses.
    """
    if everywhere:
        _everywhere.append(PlanWish(examples))
        try:
            yield
        finally:
            _everywhere.pop()
        return
    token = _WISH.set(PlanWish(examples))
    try:
        yield
    finally:
        _WISH.reset(token)


def plan_wish() -> PlanWish | None:
    """Return how writes are planned here; None where they are made."""
    return _WISH.get() or (_everywhere[-1] if _everywhere else None)


def refuse_in_plan(what: str) -> None:
    """Refuse work on a table in a block of `planned_writes`; raises ConfigError."""
    if plan_wish() is not None:
        raise ConfigError(
            f"{what} changes a table, and in planned_writes() nothing is changed; call it outside of that block"
        )


class LookedAtStorage(ForwardingStorage):
    """Another storage, which refuses to be written to as a read-only disk does while all writes of the process are planned."""

    def _changes(self) -> bool:
        if _everywhere:
            raise OSError(errno.EROFS, "nothing is written while writes are planned", self.base)
        return True


_own_folders: set[str] = set()


def is_own_folder(folder: str) -> str:
    """Return a folder that this process keeps for itself, and writes to while it plans writes to tables."""
    _own_folders.add(folder)
    return folder


def as_planned(storage: Storage) -> Storage:
    """Return a storage that this process has opened, as it may be used now."""
    own = any(storage.base.startswith(each) for each in _own_folders)
    return LookedAtStorage(storage) if _everywhere and not own else storage


class PlannedStorage(ForwardingStorage):
    """Another storage, of which a write that goes through its steps leaves no trace: what it writes is dropped."""

    is_planned = True

    def _changes(self) -> bool:
        return False
