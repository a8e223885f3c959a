"""A look at what a write leaves, after its files are written and before a reader can see them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from hudi_engine.format.config.options import Options
from hudi_engine.format.telemetry.phases import phase
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.conflict import ReadsOfWrite
from hudi_engine.table.txn.transaction import WriteTransaction
from hudi_engine.table.write.request import Source

Look = Callable[[Any], None]
_LOOK: ContextVar[Look | None] = ContextVar("hudi_engine_before_commit", default=None)


@contextmanager
def before_commit(look: Look) -> Iterator[None]:
    """Show every write of this block to a function, which stops it by raising.

    The function gets the rows of the table as the write leaves them: of a `HudiTable` a DataFrame, Hudi's meta columns first,
    of a `Table` what `hudi_engine.read` returns. They can be read while it runs, and by no one else. When it raises, the write
    is rolled back, the table is as it was, and the error reaches the caller. What other writers commit to the table while
    it looks is a conflict: what was looked at is what becomes visible. Commits without rows (schema changes, dropped
    partitions, services) are not shown.

    Args:
        look: The function; writes to other tables that it makes itself are not shown to it.
    """
    token = _LOOK.set(look)
    try:
        yield
    finally:
        _LOOK.reset(token)


@contextmanager
def not_inspected() -> Iterator[None]:
    """Write to other tables in a block of `before_commit`: its function is not shown what this block writes."""
    token = _LOOK.set(None)
    try:
        yield
    finally:
        _LOOK.reset(token)


def reads_if_inspected(reads: ReadsOfWrite | None, begun: Timeline) -> ReadsOfWrite | None:
    """Return what a write depends on: all of the table when somebody looks at it, else what it reads itself."""
    if _LOOK.get() is None:
        return reads
    return ReadsOfWrite(begun if reads is None else reads.base)


def inspect(
    rows: Source,
    state: TableState,
    transaction: WriteTransaction,
    metadata: CommitMetadata,
    options: Options,
) -> None:
    """Show a write that has only its commit left, in the form that its rows had; nothing where no function is set."""
    look = _LOOK.get()
    if look is None:
        return
    transaction.drop_unwanted_files(metadata)
    timeline = state.timeline.as_if_completed(transaction.instant, transaction.action, metadata)
    shown = rows.snapshot(TableState(state.storage, state.config, timeline), options)
    with not_inspected(), phase("inspect"):
        look(shown)
