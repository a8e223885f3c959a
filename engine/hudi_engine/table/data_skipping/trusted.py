"""Whether a metadata table shows what its table does.

A writer completes its part of the metadata table before its commit, so a table whose completed instants all are in there can be
read by it. One that lacks an instant was left out by some writer: its files would not be seen.
"""

from __future__ import annotations

import logging
import re

from hudi_engine.errors import HudiError
from hudi_engine.format.metadata.records import MetadataPartition
from hudi_engine.format.metadata.table import MetadataTable
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.instant import WRITE_ACTIONS, Instant
from hudi_engine.table.state import TableState

logger = logging.getLogger(__name__)

_IN_METADATA = (*WRITE_ACTIONS, "clean")
"""Actions of a table that have an instant of their own in its metadata table."""
_DIGITS = 17
_BUILT_LAYOUT_1 = re.compile(r"\d{17}(0[1-9]\d)")
"""Instant of a partition built over existing data in table version 6: the newest instant then, and a number from 010 on."""


def trusted_metadata(state: TableState) -> MetadataTable | None:
    """Return the metadata table of a state; None where there is none, or one that may not show what the state does."""
    try:
        metadata = MetadataTable.open(state.storage, state.config, state.timeline)
        doubt = None if metadata is None else _doubt(state.timeline, metadata)
    except (HudiError, OSError) as error:
        metadata, doubt = None, f"it cannot be read: {error}"
    if doubt is None:
        return metadata
    logger.warning(
        "%s: files are listed, as the metadata table is not used: %s. Dropping the index files drops it, "
        "and the next write builds what its options ask for",
        state.storage.base,
        doubt,
    )
    return None


def has_partition(metadata: MetadataTable, kind: MetadataPartition) -> bool:
    """Return whether a metadata table has a partition that is complete."""
    return kind.value in metadata.partitions and bool(metadata.groups(kind.value))


def _doubt(timeline: Timeline, metadata: MetadataTable) -> str | None:
    """Return why a metadata table may show another state than a timeline; None where it shows the same."""
    if not metadata.groups(MetadataPartition.FILES.value):
        return "it has no files partition"
    own = [each for each in metadata.timeline.completed if each.action == "deltacommit"]
    named = {each.requested_time for each in own}
    absent = [
        each
        for each in timeline.completed
        if each.action in _IN_METADATA and each.requested_time not in named and not _built_over(own, each)
    ]
    if absent:
        archived = {each.requested_time for each in metadata.timeline.archived.instants}
        absent = [each for each in absent if each.requested_time not in archived]
    if absent:
        return f"it lacks {absent[0].action} {absent[0].requested_time}"
    newest = max((each.requested_time[:_DIGITS] for each in own), default="")
    if newest > (timeline.latest_time or ""):
        return f"it has instant {newest}, which began after the table was looked at"
    return None


def _built_over(own: list[Instant], instant: Instant) -> bool:
    """Return whether the metadata table was built when an instant had completed, so that its files were listed then."""
    for each in own:
        if each.requested_time.startswith("0" * 14):
            if each.completion_time is not None and instant.order < each.completion_time:
                return True
        elif _BUILT_LAYOUT_1.fullmatch(each.requested_time) and instant.requested_time <= each.requested_time:
            return True
    return False
