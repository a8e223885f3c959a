"""Procedures that take partitions or all rows out, take the table back, or clear what others have left in its folder."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.markers import delete_markers
from hudi_engine.spark.procedures.procedure import Call, Row
from hudi_engine.spark.write.metadata_only import delete_partitions, empty_table
from hudi_engine.table.txn.metadata_table import METADATA_TABLE, drop_foreign_metadata_table
from hudi_engine.table.txn.recovery import table_lock

RESTORED = (
    "restore_result boolean, start_restore_time string, time_taken_in_millis long, instants_rolled_back long, "
    "audit_result string"
)
TRUNCATED = "result string, time_cost long"


def restore_to_instant(call: Call) -> list[Row]:
    """Take the table back to a commit, saved or not; every later write goes."""
    begun = time.monotonic()
    done = call.services.restore(call.text("instant_time"))
    if done.restore_time is None:
        return [(True, None, 0, 0, None)]
    instant = call.state.timeline.find(done.restore_time, "restore")
    taken = call.state.timeline.record(instant).get("timeTakenInMillis")
    millis = round((time.monotonic() - begun) * 1000) if taken is None else taken
    return [(True, done.restore_time, millis, len(done.taken_back), None)]


def drop_partition(call: Call) -> list[Row]:
    """Take partitions out, named by their paths with commas between."""
    _delete(call, call.text("partition"))
    return [("Success",)]


def truncate_table(call: Call) -> list[Row]:
    """Take all rows out, or those of some partitions, in one commit; earlier states stay readable until clean."""
    begun = time.monotonic()
    if "partitions" in call.given:
        _delete(call, call.text("partitions"))
    elif call.state.view().latest_slices():
        empty_table(call.services.storage, call.services.options)
        call.services.after_commit()
    return [("SUCCESS", round((time.monotonic() - begun) * 1000))]


def delete_marker(call: Call) -> list[Row]:
    """Delete the markers of a write that is over."""
    instant, services = call.text("instant_time"), call.services
    if not instant.isdigit():
        raise ConfigError(f"instant_time is {instant!r}; legal values: instants, such as 20260101093000000")
    with table_lock(services.storage, services.options):
        if any(each.requested_time == instant for each in call.state.timeline.pending):
            raise ConfigError(
                f"instant {instant} is under way, and its markers tell what it has written; roll it back instead"
            )
        delete_markers(services.storage, instant)
    return [(True,)]


def delete_metadata_table(call: Call) -> list[Row]:
    """Switch off and delete the metadata table that another writer keeps, so that readers list files."""
    storage = call.services.storage
    with table_lock(storage, call.services.options):
        drop_foreign_metadata_table(storage, TableConfig.load(storage))
    return [(f"Deleted Metadata Table at '{storage.uri(METADATA_TABLE)}'",)]


def _delete(call: Call, paths: str) -> None:
    partitions = _named(paths, {each.partition for each in call.state.view().latest_slices()})
    delete_partitions(call.services.storage, partitions, call.services.options)
    call.services.after_commit()


def _named(text: str, known: Collection[str]) -> Sequence[str]:
    """Return the paths that a text names with commas between; where paths have commas too, those that are there.

    Raises:
        ConfigError: The text can be read in several ways.
    """
    pieces = text.split(",")
    longest = max((each.count(",") + 1 for each in known), default=1)
    readings: list[list[tuple[str, ...]]] = [[()]]
    for end in range(1, len(pieces) + 1):
        found = []
        for start in range(max(0, end - longest), end):
            path = ",".join(pieces[start:end]).strip().strip("/")
            if path in known or not path:
                found += [(*before, path) if path else before for before in readings[start]]
        readings.append(found[:2])
    if len(readings[-1]) > 1:
        ways = " or ".join(str(list(each)) for each in readings[-1])
        raise ConfigError(
            f"{text!r} can be the partitions {ways}; DELETE FROM ... WHERE takes the rows of one out, and "
            "HudiTable.delete_partitions takes a list"
        )
    return readings[-1][0] if readings[-1] else [each.strip() for each in pieces if each.strip()]
