"""What runs where, in one line for ``dbt debug``."""

from __future__ import annotations

from hudi_engine.spark.jvm.session import java_version
from pyspark.sql import SparkSession

from dbt.adapters.hudi.credentials import ANSI
from dbt.adapters.hudi.spark.warehouse import Warehouse


def described(warehouse: Warehouse, session: SparkSession) -> str:
    """Versions of Spark and Java, master, ANSI mode, and the tables of a warehouse."""
    schemas = warehouse.schemas(session)
    plural = "schema" if len(schemas) == 1 else "schemas"
    tables = sum(entry.is_hudi_table for schema in schemas for entry in warehouse.entries(session, schema))
    noun = "table" if tables == 1 else "tables"
    java = java_version(session)
    ansi = "on" if session.conf.get(ANSI, "false") == "true" else "off"
    catalog = "hive" if warehouse.folders is None else "directory"
    return (
        f"Spark {session.version} on Java {java} ({session.sparkContext.master}), ANSI mode {ansi}; {tables} {noun} in "
        f"{len(schemas)} {plural} below {warehouse.places.location_root} ({catalog} catalog)"
    )
