"""How SparkSessions know Hudi tables by name."""

from hudi_engine.spark.catalog.directory import DirectoryCatalog, LoadReport
from hudi_engine.spark.catalog.entry import CatalogEntry
from hudi_engine.spark.catalog.foreign import FORMATS, PlainFiles, mark_of, register_files, register_foreign
from hudi_engine.spark.catalog.kept import FunctionDefinition, function_names
from hudi_engine.spark.catalog.session import session_conf, sidecar_runner
from hudi_engine.spark.catalog.spark_entry import find_entry, list_entries, listed_schemas
from hudi_engine.spark.catalog.spark_table import (
    drop_table,
    is_internal,
    refresh_table,
    register_table,
    registered_base,
)
from hudi_engine.spark.catalog.sql_text import TableName, identifier, literal
from hudi_engine.table.snapshot.manifest import Published, is_current, live_manifest_files, publish
from hudi_engine.table.snapshot.manifest_file import Layout
from hudi_engine.table.snapshot.publication import obsolete_sidecars, sidecar_files

__all__ = [
    "CatalogEntry",
    "FORMATS",
    "FunctionDefinition",
    "DirectoryCatalog",
    "Layout",
    "LoadReport",
    "PlainFiles",
    "Published",
    "TableName",
    "drop_table",
    "find_entry",
    "function_names",
    "identifier",
    "is_current",
    "is_internal",
    "list_entries",
    "listed_schemas",
    "literal",
    "live_manifest_files",
    "mark_of",
    "obsolete_sidecars",
    "publish",
    "refresh_table",
    "register_files",
    "register_foreign",
    "register_table",
    "registered_base",
    "session_conf",
    "sidecar_files",
    "sidecar_runner",
]
