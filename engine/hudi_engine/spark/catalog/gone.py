"""Names of tables that are gone: dropped by another process since a session was filled, or of a warehouse used before."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from hudi_engine.errors import HudiError
from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.spark.catalog.entry import FILES_SUFFIX, READ_OPTIMIZED_SUFFIX, REALTIME_SUFFIX
from hudi_engine.spark.catalog.kept import drop_shown
from hudi_engine.spark.catalog.spark_entry import drop_entry, find_entry, listed_names
from hudi_engine.spark.catalog.spark_table import drop_table
from hudi_engine.spark.catalog.sql_text import TableName
from hudi_engine.spark.jvm.catalog import session_catalog
from hudi_engine.spark.jvm.errors import call_errors
from hudi_engine.spark.read.reason import spark_errors

if TYPE_CHECKING:
    from hudi_engine.spark.catalog.directory import DirectoryCatalog

logger = logging.getLogger(__name__)

_filled_from: set[str] = set()
"""Folders that this process has filled its catalog from."""

_FROM_FOLDERS: set[tuple[str, str]] = set()
"""Catalogs and the schemas, in lower case, that this process has made from their folders."""

_FACES = (READ_OPTIMIZED_SUFFIX, REALTIME_SUFFIX, FILES_SUFFIX)


def note_schemas(root: str, schemas: Iterable[str]) -> None:
    """Note that sessions of this process have schemas from the folders of a catalog."""
    _FROM_FOLDERS.update((root, schema.lower()) for schema in schemas)


def gone_schemas(spark: SparkSession, root: str, there: Iterable[str]) -> list[str]:
    """Return the schemas that sessions have from folders which are gone, dropped by another process.

    Args:
        there: Names of the schemas that it has.
    """
    known = {schema.lower() for schema in there}
    gone = sorted(schema for folder, schema in _FROM_FOLDERS if folder == root and schema not in known)
    # of names that are no identifiers, spark.catalog would not tell
    names = session_catalog(spark)
    return [schema for schema in gone if names.databaseExists(schema)]


def forget_schemas(
    spark: SparkSession, root: str, schemas: Iterable[str], place_of: Callable[[str], str]
) -> None:
    """Drop schemas that are gone from a session's catalog; one that holds what was made by no file stays.

    So does one that has another place than this catalog gives it: somebody else has made it, and Spark deletes the place of
    a schema with all that lies there.

    Args:
        place_of: Tells where the catalog has Spark put what it makes in a schema.
    """
    names = session_catalog(spark)
    for schema in schemas:
        _FROM_FOLDERS.discard((root, schema))
        try:
            place = open_storage(str(names.getDatabaseMetadata(schema).locationUri().toString())).uri()
            if place.lower() == open_storage(place_of(schema)).uri().lower():
                names.dropDatabase(schema, True, False)
        except spark_errors(HudiError, OSError) as error:
            logger.info("the schema %s stays: %s", schema, error)


def forget_gone(spark: SparkSession, schema: str, there: Collection[str]) -> None:
    """Drop the entries of Hudi tables whose folders are gone, which Spark would read as tables without rows.

    Args:
        there: Names of the tables that it has.
    """
    known = {name.lower() for name in there}
    for text in listed_names(spark, schema):
        face = next((each for each in _FACES if text.endswith(each)), "")
        if text.lower() in known or (face and text.removesuffix(face).lower() in known):
            continue
        entry = find_entry(spark, TableName(schema, text))
        # another thread of this process may just have made it
        if entry is not None and entry.base and _is_gone(entry.base):
            drop_entry(spark, entry)


def _is_gone(base: str) -> bool:
    """Tell whether there is no table any more; of a place that cannot be looked at nobody knows."""
    try:
        return not open_storage(base).exists(PROPERTIES_PATH)
    except (HudiError, OSError) as error:
        logger.warning("%s may be gone, as it cannot be looked at: %s", base, error)
        return False


def forget_other_warehouses(spark: SparkSession, catalog: DirectoryCatalog) -> None:
    """Drop the entries of warehouses that the process used before; no file is touched.

    Else a schema of the same name would show their tables, and what drops a table would delete theirs.
    """
    for root in _filled_from - {catalog.root}:
        try:
            _unload(spark, type(catalog)(root))
        except call_errors(HudiError, OSError) as error:
            logger.warning("names of %s may still be shown, as it cannot be read: %s", root, error)
    _filled_from.clear()
    _filled_from.add(catalog.root)


def _unload(spark: SparkSession, catalog: DirectoryCatalog) -> None:
    """Drop the entries that show what a warehouse holds; those of another one with the same names stay."""
    drop_shown(spark, catalog.root)
    for schema in catalog.schemas():
        for name, base in catalog.names(schema, faces=False).items():
            entry = find_entry(spark, name)
            if entry is None or entry.foreign:
                continue
            if base is None and entry.base is None and entry.reads_only:
                drop_entry(spark, entry)
            elif (
                base is not None and entry.base and open_storage(entry.base).uri() == open_storage(base).uri()
            ):
                drop_table(spark, name)
