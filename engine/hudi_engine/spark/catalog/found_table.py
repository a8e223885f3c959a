"""A table that a folder of the warehouse holds, on its way into a session's catalog."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from pyspark.sql import SparkSession

from hudi_engine.errors import HudiError
from hudi_engine.format.config.enums import TableType
from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage import Storage, is_refusal, open_storage
from hudi_engine.spark.catalog.entry_notes import EntryNotes
from hudi_engine.spark.catalog.read_only import place_beside
from hudi_engine.spark.catalog.spark_table import put_entries
from hudi_engine.spark.catalog.sql_text import TableName
from hudi_engine.spark.read.reason import reason_of, spark_errors
from hudi_engine.table.snapshot.derive import RunTasks
from hudi_engine.table.snapshot.manifest import Published, publish
from hudi_engine.table.state import TableState

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Found:
    """A table of the warehouse, read and published, or why it could not be; with the place of its manifest if not its own."""

    name: TableName
    storage: Storage
    state: tuple[TableConfig, Published, EntryNotes] | None
    problem: str = ""
    place: Storage | None = None


def is_there(storage: Storage, folder: str, label: str, warnings: list[str]) -> bool:
    """Tell whether a folder of the warehouse is a table; one that cannot be looked at is none, and said in ``warnings``."""
    try:
        return storage.exists(f"{folder}/{PROPERTIES_PATH}")
    except OSError as error:
        warnings.append(f"{label} was not registered: {error}")
        return False


def type_when_shown(base: str) -> TableType | None:
    """Return the type of a table that sessions show, None for one without a schema yet or one that cannot be read."""
    try:
        state = TableState.load(open_storage(base))
        return None if state.schema_json() is None else state.config.table_type
    except (HudiError, OSError):
        return None


def prepare(name: TableName, base: str, run_sidecars: RunTasks) -> Found:
    """Read a table and publish it when its manifest is behind."""
    storage = open_storage(base)
    try:
        config = TableConfig.load(storage)
        published, place = _published(storage, config, run_sidecars)
        return Found(name, storage, (config, published, EntryNotes.load(storage)), place=place)
    except (HudiError, OSError) as error:
        return Found(name, storage, None, f"{name.label} was not registered: {error}")


def _published(storage: Storage, config: TableConfig, run: RunTasks) -> tuple[Published, Storage | None]:
    """Publish a table; beside it where its folder must not be written to."""
    try:
        return publish(storage, config, run_sidecars=run), None
    except OSError as error:
        if not is_refusal(error):
            raise
    place = place_beside(storage)
    return publish(storage, config, run_sidecars=run, target=place), place


def show_found(spark: SparkSession, found: Found, warnings: list[str]) -> bool:
    """Show a table in a session; what cannot be shown is said in ``warnings``."""
    assert found.state is not None
    config, published, notes = found.state
    if published.schema is None:
        logger.debug("%s has no schema yet and is left out", found.name.label)
        return False
    try:
        put_entries(spark, found.name, found.storage, config, published, notes, found.place)
    except HudiError as error:
        warnings.append(f"{found.name.label} was not registered: {error}")
        return False
    except spark_errors() as error:
        warnings.append(f"{found.name.label} was not registered: {reason_of(error)}")
        return False
    return True
