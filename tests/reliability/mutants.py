"""Safety steps of the engine removed one at a time: each has to be noticed by a row of the scorecard.

A mutant replaces one function for the time of its run; the rows it is given are small parts of theirs.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timezone, tzinfo
from pathlib import Path
from typing import Any

from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.clock import InstantClock, format_instant

from tests.reliability import attempts, clocks, kill, pairs
from tests.reliability.figures import Figures
from tests.reliability.kill import Size


@dataclass(frozen=True)
class Mutant:
    """A safety step that is left out.

    Args:
        name: What is missing.
        places: ``module:name`` of the function, in every module that has imported it.
        instead: What is called instead.
        row: Row that has to notice.
        only: Operations of the row.
        share: Of its points.
    """

    name: str
    places: tuple[str, ...]
    instead: Callable[..., Any]
    row: Callable[..., Figures]
    only: str
    share: float = 1.0


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _no_files(*_: Any, **__: Any) -> list[str]:
    return []


@contextmanager
def without(mutant: Mutant) -> Iterator[None]:
    """Leave the step out."""
    before = []
    for place in mutant.places:
        module, _, names = place.partition(":")
        *owners, name = names.split(".")
        home: Any = importlib.import_module(module)
        for owner in owners:
            home = getattr(home, owner)
        before.append((home, name, home.__dict__[name] if isinstance(home, type) else getattr(home, name)))
        setattr(home, name, mutant.instead)
    try:
        yield
    finally:
        for home, name, real in before:
            setattr(home, name, real)


def run(spark: Any, root: Path, size: Size, seed: int = 5) -> Figures:
    """Run the row: a point for each mutant, a violation for one that nobody notices."""
    figures = Figures()
    for number, mutant in enumerate(MUTANTS):
        if size.only not in mutant.name:
            continue
        figures.points += 1
        if not noticed(spark, root / f"mutant{number}", mutant):
            figures.violations.append(f"nobody notices: {mutant.name}")
    return figures


def noticed(spark: Any, root: Path, mutant: Mutant) -> bool:
    """Tell whether the row of a mutant finds a violation."""
    with without(mutant):
        try:
            found = mutant.row(
                spark, root, Size(share=mutant.share, again=0.3, spark=False, only=mutant.only, first=True)
            )
        except Exception:  # the table is broken before the first point
            return True
    return bool(found.violations)


E = "hudi_engine."
_UPSERT, _NEW = (
    "cow: upsert of a stored key + upsert of a stored key",
    "cow unpacked: upsert of a new key + upsert of a new key",
)


def _every(timeline: Timeline, as_of: str | None = None) -> Callable[[str], bool]:
    return lambda instant: True


def _by_the_clock(clock: InstantClock, after: str | None = None, zone: tzinfo | None = timezone.utc) -> str:
    return format_instant(clock._now(), zone)


MUTANTS = (
    Mutant("conflicts are looked for", (f"{E}table.txn.transaction:check_conflicts",), _nothing, pairs.run, _UPSERT, 0.008),
    Mutant("two new rows of one key conflict", (f"{E}table.txn.conflict:_new_keys",), _nothing, pairs.run, _NEW, 0.006),
    Mutant(
        "a commit is published",
        (f"{E}table.table_services:TableServices.publish_or_warn",),
        _nothing,
        kill.run,
        "insert, cow",
        0.2,
    ),
    Mutant("dead writers are rolled back", (f"{E}table.txn.recovery:failed_writes",), _no_files, kill.run, "insert, cow", 0.4),
    Mutant(
        "half a rollback is finished", (f"{E}table.txn.recovery:resume_rollbacks",), _no_files, kill.run, "rollback, cow", 0.5
    ),
    Mutant(
        "half a restore is finished", (f"{E}table.txn.recovery:resume_restores",), _no_files, kill.run, "restore, cow", 0.4
    ),
    Mutant(
        "an undone commit leaves the timeline before its files",
        (f"{E}table.txn.removal:Removal.unpublish",),
        lambda removal: False,
        kill.run,
        "rollback, cow",
        0.5,
    ),
    Mutant(
        "an undone commit leaves the published list before its files",
        (f"{E}table.txn.removal:unpublish",),
        lambda removals, *_: [each.unpublish() for each in removals],
        kill.run,
        "rollback, cow",
        0.5,
    ),
    Mutant(
        "files of other attempts go before the commit",
        (f"{E}table.txn.transaction:delete_unwanted_files", f"{E}table.txn.transaction:settle_markers"),
        _no_files,
        attempts.run,
        "insert, cow",
    ),
    Mutant(
        "a late task looks whether its write goes on",
        (
            f"{E}table.handles.write_task:check_inflight",
            f"{E}table.txn.transaction:delete_unwanted_files",
            f"{E}table.txn.transaction:settle_markers",
        ),
        _no_files,
        attempts.run,
        "first upsert, cow",
    ),
    Mutant("files are announced", (f"{E}table.handles.write_task:write_marker",), _nothing, attempts.run, "first upsert, cow"),
    Mutant(
        "only committed files count", (f"{E}format.timeline.active:Timeline.committed",), _every, kill.run, "insert, cow", 0.4
    ),
    Mutant(
        "the archive takes pending states with it", (f"{E}table.services.archive.execute:_remove",), _nothing, kill.run,
        "archive, mor", 0.3,
    ),
    Mutant("an instant is later than all before it", (f"{E}format.timeline.clock:InstantClock.next",), _by_the_clock, clocks.run, "", 0.03),
)  # fmt: skip
