"""Columns and statistics of relations, for macros and for ``dbt docs``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.relation import BaseRelation
from dbt_common.exceptions import DbtRuntimeError
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from dbt.adapters.hudi import bridge
from dbt.adapters.hudi.column import HudiColumn
from dbt.adapters.hudi.rows.alignment import META_PREFIX
from dbt.adapters.hudi.spark.errors import short_message
from dbt.adapters.hudi.spark.warehouse import Entry, Warehouse

if TYPE_CHECKING:
    import agate

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
    "bytes": ("Size", "Bytes of the newest files"),
    "files": ("Files", "Files of the newest version"),
    "last_modified": ("Last commit", "Time of the newest commit (UTC)"),
    "table_type": ("Table type", "Copy-on-write or merge-on-read"),
    "record_key": ("Record key", "Columns of the record key"),
    "partition_by": ("Partitions", "Partition columns"),
}


def columns(session: SparkSession, relation: BaseRelation) -> list[HudiColumn]:
    """Columns of a relation without Hudi's own; none when it does not exist."""
    schema = _schema(session, relation.render())
    return [
        HudiColumn(
            column=column.name,
            dtype=column.dataType.simpleString(),
            table_schema=relation.schema,
            table_name=relation.name,
            table_type=relation.type,
            column_index=number,
        )
        for number, column in enumerate(schema.fields)
        if not column.name.lower().startswith(META_PREFIX)
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
    """The rows of dbt's catalog: one for each column of each relation that exists."""
    from dbt_common.clients.agate_helper import table_from_rows

    known: dict[str, dict[str, Entry]] = {}
    rows: list[dict[str, Any]] = []
    for relation in relations:
        if relation.schema not in known:
            known[relation.schema] = {
                entry.name.lower(): entry for entry in warehouse.entries(session, relation.schema)
            }
        entry = known[relation.schema].get(str(relation.identifier).lower())
        if entry is None:
            continue
        try:
            rows.extend(_rows(session, entry))
        except AnalysisException as error:
            # a view that no longer fits what it reads does not cost the others their pages
            bridge.logger.warning(
                "{}.{} is left out of the catalog: {}", entry.schema, entry.name, short_message(error)
            )
    names = list(dict.fromkeys([*_TEXT_COLUMNS, "column_index", *(name for row in rows for name in row)]))
    return table_from_rows(
        [[row.get(name) for name in names] for row in rows], names, text_only_columns=list(_TEXT_COLUMNS)
    )


def _rows(session: SparkSession, entry: Entry) -> list[dict[str, Any]]:
    schema = _schema(session, f"`{entry.schema}`.`{entry.name}`")
    shared = {
        "table_database": None,
        "table_schema": entry.schema,
        "table_name": entry.name,
        "table_type": "view" if entry.is_view else "table",
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
            "column_comment": column.metadata.get("comment"),
        }
        for number, column in enumerate(schema.fields)
        if not column.name.lower().startswith(META_PREFIX)
    ]


def _statistics(session: SparkSession, entry: Entry) -> dict[str, Any]:
    if entry.base is None or entry.is_view:
        return {}
    try:
        values = bridge.statistics(session, entry.base)
    except DbtRuntimeError as error:
        bridge.logger.warning("no statistics of {}.{}: {}", entry.schema, entry.name, str(error))
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
