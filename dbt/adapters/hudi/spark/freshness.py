"""When sources last changed: by the newest commit of a table, or the newest file of a folder."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from operator import attrgetter

from dbt.adapters.base.relation import BaseRelation
from hudi_engine.format.storage import open_storage
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.active import newest_first
from hudi_engine.format.timeline.clock import parse_instant_time
from hudi_engine.spark.catalog import TableName
from hudi_engine.table.state import TableState
from pyspark.sql import SparkSession

from dbt.adapters.hudi.model.locations import absolute_location
from dbt.adapters.hudi.relation import named
from dbt.adapters.hudi.run import RUNS
from dbt.adapters.hudi.spark.errors import dbt_errors
from dbt.adapters.hudi.spark.warehouse import Warehouse

UNKNOWN = datetime.datetime.min
"""A time that the files do not have."""


def last_changes(
    warehouse: Warehouse,
    work: Callable[[str], AbstractContextManager[SparkSession]],
    sources: Iterable[BaseRelation],
) -> dict[BaseRelation, datetime.datetime | None]:
    """Return the UTC time of each source's last change, None for a table without a commit; ``work`` opens a session."""
    names = {source: named(source) for source in sources}
    with dbt_errors("freshness"):
        found = {source: _without_spark(warehouse, name) for source, name in names.items()}
    unknown = [source for source, written in found.items() if written is UNKNOWN]
    if unknown:
        with work("freshness") as session:
            for source in unknown:
                table = warehouse.require_table(session, names[source].database, names[source].name)
                found[source] = last_write_time(TableState.load(table.storage))
    return found


def last_write_time(state: TableState) -> datetime.datetime | None:
    """Return the UTC time of the newest commit that brought rows or took them away, None for a table without one.

    Services, rollbacks of failed writes and commits without rows do not count: they continue where no rows are loaded any more.
    """
    for instant, metadata in newest_first(state.timeline, attrgetter("requested_time")):
        touches_rows = any(metadata.write_stats()) or bool(metadata.partition_to_replace_file_ids)
        if touches_rows and not metadata.is_of_service:
            return parse_instant_time(instant.requested_time, state.config.timeline_zone)
    return None


def _without_spark(warehouse: Warehouse, name: TableName) -> datetime.datetime | None:
    """When a source last changed, by its files alone; UNKNOWN where only Spark's catalog knows it."""
    written = warehouse.newest_file_time(name.database, name.name)
    if written is not None:
        return written
    place = RUNS.source(name.database, name.name)
    storage: Storage | None = None
    if place is not None and place.location is not None and not place.problem:
        storage = open_storage(absolute_location(place.location, warehouse.places.project_root))
    elif warehouse.folders is not None:
        storage = warehouse.folders.table(name.database, name.name)
    return UNKNOWN if storage is None else last_write_time(TableState.load(storage))
