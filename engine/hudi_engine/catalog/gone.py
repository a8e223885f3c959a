"""Names of tables that are gone: another process has dropped them since a session was filled."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from hudi_engine.catalog.entry import FILES_SUFFIX, READ_OPTIMIZED_SUFFIX, REALTIME_SUFFIX
from hudi_engine.catalog.spark_entry import drop_entry, find_entry, listed_names
from hudi_engine.catalog.sql_text import TableName
from hudi_engine.config.properties_file import PROPERTIES_PATH
from hudi_engine.storage.factory import open_storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FACES = (READ_OPTIMIZED_SUFFIX, REALTIME_SUFFIX, FILES_SUFFIX)


def forget_gone(spark: SparkSession, schema: str, there: Collection[str]) -> None:
    """Drop the entries of Hudi tables whose folders are gone, which Spark would read as tables without rows.

    Args:
        spark: The session.
        schema: The schema.
        there: Names of the tables that it has.
    """
    known = {name.lower() for name in there}
    for text in listed_names(spark, schema):
        face = next((each for each in _FACES if text.endswith(each)), "")
        if text.lower() in known or (face and text.removesuffix(face).lower() in known):
            continue
        entry = find_entry(spark, TableName(schema, text))
        # another thread of this process may just have made it
        if entry is not None and entry.base and not open_storage(entry.base).exists(PROPERTIES_PATH):
            drop_entry(spark, entry)
