"""How SparkSessions know Hudi tables by name."""

from hudi_engine.spark.catalog.directory import DirectoryCatalog
from hudi_engine.spark.catalog.entry import CatalogEntry
from hudi_engine.spark.catalog.foreign import FORMATS, PlainFiles, mark_of, register_files, register_foreign
from hudi_engine.spark.catalog.kept import FunctionDefinition, function_names
from hudi_engine.spark.catalog.session import session_conf
from hudi_engine.spark.catalog.spark_entry import find_entry, list_entries, listed_schemas
from hudi_engine.spark.catalog.spark_table import (
    drop_table,
    register_table,
    registered_base,
)
from hudi_engine.spark.catalog.sql_text import TableName, literal

__all__ = [
    "CatalogEntry",
    "FORMATS",
    "FunctionDefinition",
    "DirectoryCatalog",
    "PlainFiles",
    "TableName",
    "drop_table",
    "find_entry",
    "function_names",
    "list_entries",
    "listed_schemas",
    "literal",
    "mark_of",
    "register_files",
    "register_foreign",
    "register_table",
    "registered_base",
    "session_conf",
]
