"""SHOW and DESCRIBE as clients of Hudi expect them: Hudi tables are tables of the provider hudi, and internal names are left out.

Spark's catalog knows a Hudi table as Parquet files, and a merge-on-read table as a view over them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame

from hudi_engine.spark.catalog.entry import CatalogEntry
from hudi_engine.spark.jvm import plans
from hudi_engine.spark.sql.statement import own_name
from hudi_engine.spark.sql.statements import first_keyword
from hudi_engine.spark.sql.warehouse import StatementWarehouse

_LISTED = ["namespace", "tableName", "isTemporary"]
_LISTED_VIEWS = ["namespace", "viewName", "isTemporary"]
_DESCRIBED = ["col_name", "data_type", "comment"]
_DETAILS = "# Detailed Table Information"
_OF_FILES = frozenset(
    {
        *("View Text", "View Original Text", "View Schema Mode", "View Catalog and Namespace"),
        *("View Query Output Columns", "SQL Path", "Table Properties", "Storage Properties"),
        *("Serde Library", "InputFormat", "OutputFormat", "Partition Provider", "Provider", "Location"),
    }
)
"""What Spark shows of the files and the view behind a Hudi table, which are not the user's."""
Row = list[Any]


def with_hudi_names(warehouse: StatementWarehouse, frame: DataFrame, statement: str) -> DataFrame:
    """Return the result of a SHOW or DESCRIBE statement with Hudi's names; that of another statement as it is."""
    keyword = first_keyword(statement)
    if keyword not in ("show", "describe", "desc"):
        return frame
    columns = frame.columns
    if keyword == "show" and columns[:3] in (_LISTED, _LISTED_VIEWS):
        return _changed(frame, lambda rows: _listed(warehouse, frame, rows, views=columns[1] == "viewName"))
    if keyword != "show" and columns == _DESCRIBED:
        entry = _described(warehouse, frame, statement)
        if entry is not None:
            return _changed(frame, lambda rows: _description(entry, rows))
    return frame


def _changed(frame: DataFrame, change: Callable[[list[Row]], list[Row]]) -> DataFrame:
    rows = [list(row) for row in frame.collect()]
    return frame.sparkSession.createDataFrame([tuple(row) for row in change(rows)], frame.schema)


def _listed(warehouse: StatementWarehouse, frame: DataFrame, rows: list[Row], *, views: bool) -> list[Row]:
    """Return the rows of SHOW TABLES, SHOW TABLE EXTENDED or SHOW VIEWS, without internal names; Hudi tables are no views."""
    session = frame.sparkSession
    if session.catalog.currentCatalog().lower() != "spark_catalog":
        return rows
    entries: dict[str, dict[str, CatalogEntry]] = {}
    kept = []
    for row in rows:
        schema = str(row[0])
        if schema not in entries:
            entries[schema] = {
                each.name.name.lower(): each
                for each in (warehouse.entries(session, schema) if schema else ())
            }
        entry = entries[schema].get(str(row[1]).lower())
        if row[2] or not schema:
            kept.append(row)
        elif entry is not None and not (views and entry.base is not None):
            kept.append([*row[:3], *(_information(entry, str(text)) for text in row[3:])])
    return kept


def _information(entry: CatalogEntry, text: str) -> str:
    """Return what SHOW TABLE EXTENDED shows of an entry."""
    if entry.base is None:
        return text
    head, schema, rest = text.partition("Schema: root")
    lines = []
    for line in head.splitlines():
        key, _, _ = line.partition(": ")
        if key == "Type":
            lines += [f"{each}: {shown}" for each, shown in _facts(entry)]
        elif key not in _OF_FILES:
            lines.append(line)
    return "\n".join([*lines, schema + rest])


def _facts(entry: CatalogEntry) -> list[tuple[str, str]]:
    return [("Type", "EXTERNAL"), ("Provider", "hudi"), ("Location", str(entry.base))]


def _described(warehouse: StatementWarehouse, frame: DataFrame, statement: str) -> CatalogEntry | None:
    """Return the entry of a Hudi table that a DESCRIBE is about; None for anything else."""
    session = frame.sparkSession
    child = plans.parse(session, statement)
    for method in ("relation", "child"):
        if plans.hasattr_java(child, method):
            parts, _ = plans.target_parts(getattr(child, method)())
            break
    else:
        return None
    named = own_name(session, parts)
    entry = None if named is None else warehouse.entry(session, *named)
    return entry if entry is not None and entry.base is not None else None


def _description(entry: CatalogEntry, rows: list[Row]) -> list[Row]:
    """Return the rows of DESCRIBE EXTENDED."""
    names = [row[0] for row in rows]
    start = names.index(_DETAILS) if _DETAILS in names else len(rows)
    shown = rows[:start]
    for row in rows[start:]:
        if row[0] == "Type":
            shown += [[*fact, ""] for fact in _facts(entry)]
        elif row[0] not in _OF_FILES:
            shown.append(row)
    return shown
