"""What the page shows, gathered with one listing of the table and one look at each of its commits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from hudi_engine.format.config.declared.write_options import FileOptions
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.table.inspect import (
    CommitFacts,
    InstantFacts,
    Snapshot,
    archived_commit_facts,
    commit_facts,
    instant_facts,
)
from hudi_engine.table.services.due import TableStats, Upcoming, table_stats, upcoming
from hudi_engine.table.state import TableState

MOST_COMMITS = 10_000
"""Commits that are looked at, the newest."""


@dataclass(frozen=True)
class Facts:
    """A table at a moment.

    Args:
        commits: What writes did, newest first, archived ones last.
        small_limit: Bytes below which a base file is small.
    """

    base: str
    config: TableConfig
    stats: TableStats
    snapshot: Snapshot
    instants: Sequence[InstantFacts]
    commits: Sequence[CommitFacts]
    upcoming: Sequence[Upcoming]
    small_limit: int
    seen_at: datetime


def gather(state: TableState, options: Options, *, count_rows: bool = False) -> Facts:
    """Look at a table.

    Args:
        count_rows: Whether logs are merged to know the rows of a merge-on-read table.

    Raises:
        CorruptTableError: A commit, a file of the archive or a footer cannot be read.
    """
    snapshot = Snapshot.of(state)
    instants = instant_facts(state)
    commits = commit_facts(state, MOST_COMMITS, instants)
    commits += archived_commit_facts(state, MOST_COMMITS - len(commits))
    return Facts(
        base=state.storage.base,
        config=state.config,
        stats=table_stats(state, options, count_rows=count_rows, snapshot=snapshot),
        snapshot=snapshot,
        instants=instants,
        commits=commits,
        upcoming=upcoming(state, options, snapshot),
        small_limit=options[FileOptions.SMALL_FILE_LIMIT],
        seen_at=datetime.now(timezone.utc),
    )


def rows_over_time(facts: Facts) -> list[int]:
    """Return the rows of the table after each commit, oldest first, as far back as commits tell it for sure.

    It goes back from the rows there are now. It ends before a commit that took out file groups, as nothing says how many
    rows they had, unless it only moved rows.
    """
    if facts.stats.rows is None:
        return []
    found = [facts.stats.rows]
    for commit in facts.commits:
        before = found[-1] - commit.rows_inserted + commit.rows_deleted
        if before < 0 or (commit.groups_replaced and not commit.is_service):
            break
        found.append(before)
    return found[::-1]
