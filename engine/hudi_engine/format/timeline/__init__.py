"""What happened to a table and when: instants, their states, and what each commit wrote."""

from hudi_engine.format.timeline.active import CommittedInstants, Timeline, TimelineWriter
from hudi_engine.format.timeline.archived import ArchivedTimeline
from hudi_engine.format.timeline.clock import InstantClock
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_engine.format.timeline.instant import Instant, State

__all__ = [
    "ArchivedTimeline",
    "CommitMetadata",
    "CommittedInstants",
    "Instant",
    "InstantClock",
    "State",
    "Timeline",
    "TimelineWriter",
    "WriteStat",
]
