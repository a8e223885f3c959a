"""When sources last changed: by the newest commit of a table, or the newest file of a folder."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

from dbt.adapters.base.relation import BaseRelation
from pyspark.sql import SparkSession

from dbt.adapters.hudi.relation import named
from dbt.adapters.hudi.spark.catalog_rows import last_commit_time
from dbt.adapters.hudi.spark.errors import dbt_errors
from dbt.adapters.hudi.spark.warehouse import Warehouse


def last_changes(
    warehouse: Warehouse,
    work: Callable[[str], AbstractContextManager[SparkSession]],
    sources: Iterable[BaseRelation],
) -> dict[BaseRelation, datetime.datetime | None]:
    """Return the UTC time of each source's last change, None for a table without a commit.

    Args:
        warehouse: The warehouse.
        work: Opens a session; Spark is not started when all sources are files.
        sources: The sources.

    Raises:
        DbtRuntimeError: A source is not there.
    """
    names = {source: named(source) for source in sources}
    with dbt_errors("freshness"):
        found = {
            source: warehouse.newest_file_time(name.database, name.name) for source, name in names.items()
        }
    tables = [source for source, written in found.items() if written is None]
    if tables:
        with work("freshness") as session:
            for source in tables:
                table = warehouse.require_table(session, names[source].database, names[source].name)
                found[source] = last_commit_time(table)
    return found
