"""Bringing the entries of a table in a Hive metastore up to its newest commit."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hudi_engine.config.declared.sync_options import SyncOptions
from hudi_engine.config.options import Options
from hudi_engine.config.table_config import TableConfig
from hudi_engine.errors import ConfigError, HudiError, ServiceError, TableExistsError
from hudi_engine.hive_sync.entry import INPUT_FORMAT, REALTIME_INPUT_FORMAT, HiveEntry, entries_of
from hudi_engine.hive_sync.extractors import PartitionValues
from hudi_engine.hive_sync.metastore import Metastore, check_hive
from hudi_engine.storage.base import Storage
from hudi_engine.table_state import TableState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SyncedEntry:
    """What became of one entry.

    Args:
        name: Database and name.
        created: Whether it was made, or made anew.
        partitions_added: Partitions that it got.
        partitions_dropped: Partitions that it lost.
    """

    name: str
    created: bool
    partitions_added: int
    partitions_dropped: int


def check_sync(spark: SparkSession, config: TableConfig, options: Options) -> None:
    """Refuse a sync that cannot be, before anything is written; raises ConfigError."""
    if not options[SyncOptions.IGNORE_ERRORS]:
        check_hive(spark)
        _values(config, options)


def sync_hive(spark: SparkSession, storage: Storage, options: Options) -> list[SyncedEntry]:
    """Make the entries of a table equal to it.

    Args:
        spark: A session with a Hive catalog.
        storage: The table.
        options: ``hoodie.datasource.hive_sync.*``.

    Returns:
        The entries; none with ``ignore_exceptions`` when they could not be made.

    Raises:
        ConfigError: The session has no metastore, the database is not there and is not to be made, the table has no columns
            yet, or the extractor does not fit.
        TableExistsError: A name belongs to something else.
        ServiceError: The metastore failed.
    """
    from py4j.protocol import Py4JJavaError

    try:
        return _sync(spark, storage, options)
    except Py4JJavaError as error:
        said = str(error.java_exception)
        problem: HudiError = ServiceError(
            f"the table {storage.base!r} is as it was written, but its entries in the Hive metastore are not: {said}"
        )
        cause: Exception = error
    except HudiError as error:
        problem = cause = error
    if not options[SyncOptions.IGNORE_ERRORS]:
        raise problem from cause
    logger.warning("no entries in the Hive metastore: %s", problem)
    return []


def _sync(spark: SparkSession, storage: Storage, options: Options) -> list[SyncedEntry]:
    state = TableState.load(storage)
    schema = state.data_schema()
    if schema is None:
        raise ConfigError(f"the table at {storage.base!r} has no columns yet; write to it first")
    values = _values(state.config, options)
    entries = entries_of(state, schema, options, values.fields, spark.version)
    found: dict[str, tuple[str, ...]] = {}
    if values.fields:
        partitions = {each.partition for each in state.view().latest_slices()}
        found = {path: values.of(path) for path in partitions}
    metastore = Metastore(spark)
    try:
        _provide_database(metastore, entries[0].database, options)
        return [_sync_entry(metastore, entry, found) for entry in entries]
    finally:
        metastore.close()


def _values(config: TableConfig, options: Options) -> PartitionValues:
    return PartitionValues(config, options[SyncOptions.EXTRACTOR], decode=options[SyncOptions.DECODE])


def _provide_database(metastore: Metastore, name: str, options: Options) -> None:
    if metastore.has_database(name):
        return
    if not options[SyncOptions.AUTO_CREATE]:
        raise ConfigError(
            f"the database {name!r} is not in the Hive metastore; create it, or set "
            "hoodie.datasource.hive_sync.auto_create_database to true"
        )
    metastore.create_database(name)


def _sync_entry(metastore: Metastore, entry: HiveEntry, found: Mapping[str, tuple[str, ...]]) -> SyncedEntry:
    """Make one entry and its partitions equal to the table; ``found`` has the values of each partition by its path."""
    table = metastore.table(entry)
    if table is not None:
        _check_own(entry, str(table.getSd().getInputFormat()), str(table.getSd().getLocation()))
        if metastore.keys_of(table) != list(entry.keys):
            metastore.drop(entry)
            table = None
    created = table is None
    if table is None:
        metastore.create(entry)
    else:
        created = _altered_or_made_anew(metastore, entry, table)
    names = [name for name, _ in entry.keys]
    wanted = {metastore.name_of(names, values): path for path, values in found.items()}
    there = metastore.partitions(entry) if entry.keys else set()
    added = {wanted[name]: found[wanted[name]] for name in wanted.keys() - there}
    if added:
        metastore.add_partitions(entry, added)
    gone = sorted(there - wanted.keys())
    for name in gone:
        metastore.drop_partition(entry, name)
    return SyncedEntry(entry.label, created, len(added), len(gone))


def _altered_or_made_anew(metastore: Metastore, entry: HiveEntry, table: object) -> bool:
    """Alter an entry; where the metastore refuses the types at their positions, as of a dropped column, make it anew."""
    from py4j.protocol import Py4JJavaError

    try:
        metastore.alter(entry, table)
    except Py4JJavaError as error:
        logger.info("the entry %s is made anew, for it cannot be altered: %s", entry.label, error)
        metastore.drop(entry)
        metastore.create(entry)
        return True
    return False


def _check_own(entry: HiveEntry, input_format: str, location: str) -> None:
    if input_format not in (INPUT_FORMAT, REALTIME_INPUT_FORMAT):
        raise TableExistsError(
            f"{entry.label} is not an entry of Hudi's form, perhaps the one by which Spark reads the table without Apache "
            "Hudi; set hoodie.datasource.hive_sync.database or hoodie.datasource.hive_sync.table to another name"
        )
    if _place(location) != _place(entry.location):
        raise TableExistsError(
            f"{entry.label} is the Hudi table at {location!r}; set hoodie.datasource.hive_sync.table to another name, or drop that"
        )


def _place(location: str) -> str:
    """Return a location without the ways in which the same local folder is written."""
    return re.sub(r"^file:/+", "/", location).rstrip("/")
