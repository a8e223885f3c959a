"""Columns and statistics of relations, for macros and for ``dbt docs``."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.relation import BaseRelation
from dbt_common.contracts.metadata import CatalogTable, ColumnMetadata, StatsItem, TableMetadata
from dbt_common.events.contextvars import get_node_info
from hudi_engine import HudiTable
from hudi_engine.errors import HudiError
from hudi_engine.format.config.enums import TableType
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.schema.any_case import AnyCase
from hudi_engine.format.schema.meta_fields import DELETES, IS_DELETED
from hudi_engine.format.storage import open_storage
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.active import newest_first
from hudi_engine.format.timeline.clock import parse_instant_time
from hudi_engine.spark.catalog import CatalogEntry, TableName
from hudi_engine.spark.sql.failure import short_message
from hudi_engine.table.services.due import table_stats
from hudi_engine.table.state import TableState
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from dbt.adapters.hudi.column import HudiColumn, users_columns
from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.model.reading import absolute_location
from dbt.adapters.hudi.relation import named
from dbt.adapters.hudi.run import RUNS
from dbt.adapters.hudi.spark.errors import dbt_errors
from dbt.adapters.hudi.spark.warehouse import Warehouse

if TYPE_CHECKING:
    import agate

STORED_MARKS = (IS_DELETED,)
_TABLE_TYPES = {TableType.COPY_ON_WRITE: "copy on write", TableType.MERGE_ON_READ: "merge on read"}
_NOT_FOUND = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")
_TEXT_COLUMNS = (
    "table_database",
    "table_schema",
    "table_name",
    "table_type",
    "table_comment",
    "table_owner",
    "column_name",
    "column_type",
    "column_comment",
)
_STATISTICS: Mapping[str, tuple[str, str]] = {
    "num_rows": ("Rows", "Rows of the table"),
    "base_rows": (
        "Rows in base files",
        "Rows of the base files; what the logs change of them is not counted",
    ),
    "bytes": ("Size", "Bytes of base files and logs of the newest state"),
    "file_groups": ("File groups", "File groups of the newest state"),
    "files": ("Files", "Base files and logs of the newest state"),
    "last_instant": ("Last instant", "Instant time of the newest commit"),
    "last_modified": ("Last commit", "Time of the newest commit (UTC)"),
    "table_type": ("Table type", "Copy-on-write or merge-on-read"),
    "record_key": ("Record key", "Columns of the record key"),
    "partition_by": ("Partitions", "Partition columns"),
}

# Digits that are no number.
_TEXT_STATISTICS = ("stats:last_instant:value",)


def columns(
    session: SparkSession,
    relation: BaseRelation,
    marks: Collection[str] | None = None,
    shown: str | None = None,
) -> list[HudiColumn]:
    """Return the columns of a relation without Hudi's own; none when it does not exist.

    Args:
        marks: Which marks of deleted rows count. Schema changes see none, as queries may leave them out; None for what the
            node that runs takes: rows that a unit test gives and expects have them all.
        shown: What is looked at in place of the relation, as SQL.
    """
    if marks is None:
        marks = (IS_DELETED, DELETES) if get_node_info().get("resource_type") == "unit_test" else ()
    schema = _schema(session, shown or relation.render())
    return [
        HudiColumn(
            column=column.name,
            dtype=column.dataType.simpleString(),
            table_schema=relation.schema,
            table_name=relation.name,
            table_type=relation.type,
            column_index=number,
        )
        for number, column in enumerate(users_columns(schema, marks), start=1)
    ]


def _schema(session: SparkSession, name: str) -> T.StructType:
    try:
        return session.table(name).schema
    except AnalysisException as error:
        if any(mark in str(error) for mark in _NOT_FOUND):
            return T.StructType()
        raise


def catalog_table(
    warehouse: Warehouse, session: SparkSession, relations: Iterable[BaseRelation]
) -> agate.Table:
    """Return the rows of dbt's catalog: one for each column of each relation that exists."""
    from dbt_common.clients.agate_helper import table_from_rows

    known: dict[str, dict[str, CatalogEntry]] = {}
    rows: list[dict[str, Any]] = []
    for relation in relations:
        name = named(relation)
        if name.database not in known:
            entries = warehouse.entries(session, name.database)
            known[name.database] = {entry.name.name.lower(): entry for entry in entries}
        entry = known[name.database].get(name.name.lower())
        if entry is None:
            continue
        try:
            rows.extend(_rows(session, entry))
        except AnalysisException as error:
            # a view that no longer fits what it reads does not cost the others their pages
            logger.warning("{} is left out of the catalog: {}", entry.name.label, short_message(error))
    names = list(dict.fromkeys([*_TEXT_COLUMNS, "column_index", *(name for row in rows for name in row)]))
    texts = [*_TEXT_COLUMNS, *(name for name in names if name in _TEXT_STATISTICS)]
    return table_from_rows(
        [[row.get(name) for name in names] for row in rows], names, text_only_columns=texts
    )


def catalog_entry(warehouse: Warehouse, session: SparkSession, relation: BaseRelation) -> CatalogTable | None:
    """Return dbt's catalog entry of one relation; None when it does not exist."""
    name = named(relation)
    entry = warehouse.entry(session, name.database, name.name)
    rows = [] if entry is None else _rows(session, entry)
    if not rows:
        return None
    first = rows[0]
    return CatalogTable(
        TableMetadata(
            type=first["table_type"],
            schema=first["table_schema"],
            name=first["table_name"],
            comment=first["table_comment"],
        ),
        {
            row["column_name"]: ColumnMetadata(
                row["column_type"], row["column_index"], row["column_name"], row["column_comment"]
            )
            for row in rows
        },
        {
            name: StatsItem(name, label, first[f"stats:{name}:value"], True, description)
            for name, (label, description) in _STATISTICS.items()
            if f"stats:{name}:value" in first
        },
    )


def _rows(session: SparkSession, entry: CatalogEntry) -> list[dict[str, Any]]:
    schema, comments = _schema(session, entry.name.sql), _comments(entry)
    shared = {
        "table_database": None,
        "table_schema": entry.name.database,
        "table_name": entry.name.name,
        "table_type": "view" if entry.reads_only else "table",
        "table_comment": entry.comment,
        "table_owner": None,
        **_statistics(session, entry),
    }
    return [
        {
            **shared,
            "column_name": column.name,
            "column_index": number,
            "column_type": column.dataType.simpleString(),
            "column_comment": comments.get(column.name) or column.metadata.get("comment") or None,
        }
        for number, column in enumerate(users_columns(schema, STORED_MARKS), start=1)
    ]


def _comments(entry: CatalogEntry) -> AnyCase[str]:
    """Return the comments of columns; in the schema that Spark reads, partition columns have lost theirs."""
    fields = json.loads(entry.schema_json)["fields"]
    return AnyCase((field["name"], field["metadata"].get("comment", "")) for field in fields)


def _statistics(session: SparkSession, entry: CatalogEntry) -> dict[str, Any]:
    if entry.base is None or entry.reads_only:
        return {}
    try:
        values = _figures(HudiTable.open(session, entry.base, hold=True))
    except (HudiError, OSError) as error:
        logger.warning("no statistics of {}: {}", entry.name.label, str(error))
        return {}
    found: dict[str, Any] = {}
    for name, (label, description) in _STATISTICS.items():
        value = values.get(name)
        if value is None:
            continue
        found[f"stats:{name}:label"] = label
        found[f"stats:{name}:value"] = value
        found[f"stats:{name}:description"] = description
        found[f"stats:{name}:include"] = True
    return found


def _figures(table: HudiTable) -> dict[str, Any]:
    """Figures of a table for its documentation; what is not known is left out."""
    state = TableState.load(table.storage)
    config, last = state.config, last_commit_time(state)
    found = table_stats(state, resolve_options(None))
    return {
        "num_rows": found.rows,
        "base_rows": found.base_rows if found.rows is None else None,
        "bytes": found.base_bytes + found.log_bytes,
        "file_groups": found.file_groups,
        "files": found.base_files + found.log_files,
        "last_instant": found.instant,
        "last_modified": None if last is None else last.strftime("%Y-%m-%d %H:%M:%SZ"),
        "table_type": _TABLE_TYPES[config.table_type],
        "record_key": ", ".join(config.record_key_fields) or None,
        "partition_by": ", ".join(item.name for item in config.partition_fields) or None,
    }


def last_commit_time(state: TableState) -> datetime.datetime | None:
    """Return the UTC time of the newest completed instant, None for a table without one."""
    done = [item.requested_time for item in state.timeline.instants if item.is_completed]
    return parse_instant_time(done[-1], state.config.timeline_zone) if done else None


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
    if place is not None and place.location is not None and not place.problem:
        base = absolute_location(place.location, warehouse.places.project_root)
        storage: Storage | None = open_storage(base)
    else:
        storage = warehouse.storage_on_disk(name.database, name.name)
    return UNKNOWN if storage is None else last_write_time(TableState.load(storage))
