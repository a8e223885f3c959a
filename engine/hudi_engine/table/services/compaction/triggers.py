"""When inline compaction is due: a pure function of the timeline and the time.

An explicit compaction does not ask (Hudi's compaction triggers).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo

from hudi_engine.format.config.declared.service_options import CompactionOptions
from hudi_engine.format.config.enums import CompactionTrigger
from hudi_engine.format.config.options import Options
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.clock import parse_instant_time


@dataclass(frozen=True)
class DeltaCommits:
    """Completed delta commits since a moment: how many, and the instant from which time is measured."""

    count: int
    since: str | None


def compaction_due(timeline: Timeline, options: Options, now: str) -> bool:
    """Return whether ``hoodie.compact.inline.trigger.strategy`` fires.

    Args:
        options: Trigger, number of delta commits, seconds.
    """
    trigger = options[CompactionOptions.TRIGGER]
    enough = options[CompactionOptions.DELTA_COMMITS]
    if trigger is CompactionTrigger.NUM_COMMITS_AFTER_LAST_REQUEST:
        return since_last_compaction(timeline, requested=True).count >= enough
    commits = since_last_compaction(timeline)
    by_number = commits.count >= enough
    by_time = (
        commits.count > 0
        and _seconds(commits.since, now, timeline.zone) >= options[CompactionOptions.DELTA_SECONDS]
    )
    return {
        CompactionTrigger.NUM_COMMITS: by_number,
        CompactionTrigger.TIME_ELAPSED: by_time,
        CompactionTrigger.NUM_AND_TIME: by_number and by_time,
        CompactionTrigger.NUM_OR_TIME: by_number or by_time,
    }[trigger]


def since_last_compaction(timeline: Timeline, *, requested: bool = False) -> DeltaCommits:
    """Count the delta commits after the newest compaction.

    Args:
        requested: Whether a compaction counts from its request on, rather than when it has completed.
    """
    compactions = [each.requested_time for each in timeline.completed if each.action == "commit"]
    if requested:
        compactions += [each.requested_time for each in timeline.pending if each.action == "compaction"]
    last = max(compactions, default=None)
    deltas = [
        each.requested_time
        for each in timeline.completed
        if each.action == "deltacommit" and (last is None or each.requested_time > last)
    ]
    return DeltaCommits(len(deltas), last if last is not None else min(deltas, default=None))


def _seconds(since: str | None, now: str, zone: tzinfo | None) -> float:
    if since is None:
        return 0.0
    return (parse_instant_time(now, zone) - parse_instant_time(since, zone)).total_seconds()
