"""Stored rows that a write has compared with what came and leaves as they are: nobody may change them before its commit."""

from __future__ import annotations

from collections.abc import Iterable

from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.table.lookup.partition import TaggedUnit
from hudi_engine.table.txn.footprint import FileGroup

_LEFT = "fileIdsLeft"


def stat_of_left(found: TaggedUnit, kept: TaggedUnit) -> list[WriteStat]:
    """Tell in a write stat without a file, which no commit gets, in which file groups rows were left as they are."""
    written = {tag.file_slice.file_id: len(tag.matched) for tag in kept.tags}
    left = [
        tag.file_slice.file_id
        for tag in found.tags
        if len(tag.matched) > written.get(tag.file_slice.file_id, 0)
    ]
    return [WriteStat(partition_path=found.unit.partition, other={_LEFT: left})] if left else []


def groups_left(stats: Iterable[WriteStat]) -> frozenset[FileGroup]:
    """Return the file groups that write stats of the tasks name so."""
    return frozenset(
        (stat.partition_path or "", file_id) for stat in stats for file_id in stat.other.get(_LEFT, ())
    )
