"""Bringing the entries of a table in a Hive metastore up to its newest commit."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from hudi_engine.errors import ConfigError, HudiError, ServiceError, TableExistsError
from hudi_engine.format.config.declared.sync_options import SyncOptions
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.layout.layout import split_names
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.uris import KINDS
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.continuity import LOOKS, Look, writes_since
from hudi_engine.spark.hive_sync.entry import (
    LAST_COMMIT,
    HiveEntry,
    PartitionValues,
    entries_of,
    entry_names,
    is_of_hudi,
    outlived_names,
)
from hudi_engine.spark.hive_sync.metastore import Metastore, check_hive
from hudi_engine.spark.jvm.errors import JAVA_ERRORS, JVM_ERRORS, call_errors
from hudi_engine.table.state import TableState

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SyncedEntry:
    """What became of one entry."""

    name: str
    created: bool
    partitions_added: int
    partitions_dropped: int


def check_sync(spark: SparkSession, storage: Storage, config: TableConfig, options: Options) -> None:
    """Refuse a sync that cannot be, before anything is written: with two calls of the metastore."""
    if options[SyncOptions.IGNORE_ERRORS]:
        return
    check_hive(spark)
    _values(config, options)
    names = [name for name, _ in entry_names(config, options)]
    try:
        with closing(Metastore(spark)) as metastore:
            if _is_database_there(metastore, options):
                _own_tables(metastore, options, names, storage.uri())
    except TypeError as error:
        raise ConfigError(f"this session has not got the classes of Hive's metastore: {error}") from error
    except JVM_ERRORS as error:
        # a metastore that fails now may be well again after the commit; if not, the sync reports that the commit is kept
        logger.info("the names in the Hive metastore are looked at after the commit only: %s", error)


def sync_after_commit(spark: SparkSession, storage: Storage, options: Options, instant: str) -> None:
    """Make the entries equal to a table that was just written.

    A table that is written faster than it is synced is a warning: the commits that came since have syncs of their own where their
    writers sync too; else the entries stay behind until `sync_hive` is called.
    """
    try:
        sync_hive(spark, storage, options)
    except _OvertakenError as error:
        logger.warning("the commit %s is complete: %s", instant, error)
    except HudiError as error:
        raise ServiceError(
            f"the commit {instant} is complete, but the entries in the Hive metastore are not up to date: {error}; "
            "correct that and call sync_hive, do not write again"
        ) from error


def sync_hive(spark: SparkSession, storage: Storage, options: Options) -> list[SyncedEntry]:
    """Make the entries of a table equal to it."""
    try:
        return _sync(spark, storage, options)
    except HudiError as error:
        problem: HudiError = error
        cause: Exception = error
    except call_errors(OSError, TypeError) as error:
        # a class that the session has not got is a TypeError
        reason = getattr(error, "java_exception", error)
        behind = f"the table {storage.base!r} is as it was written, but its entries in the Hive metastore are not: {reason}"
        problem, cause = ServiceError(behind), error
    if not options[SyncOptions.IGNORE_ERRORS]:
        raise problem from cause
    logger.warning("no entries in the Hive metastore: %s", problem)
    return []


class _OvertakenError(ServiceError):
    """The table has other commits than those that its entries are made by."""


def _sync(spark: SparkSession, storage: Storage, options: Options) -> list[SyncedEntry]:
    for _ in range(LOOKS):
        try:
            return _sync_to(spark, TableState.load(storage), options)
        except _OvertakenError:
            logger.debug("%s was written while its entries were made, making them again", storage.base)
    raise _OvertakenError(
        f"the table {storage.base!r} was written each of the {LOOKS} times that its entries in the Hive metastore were made; "
        "they may be behind, call sync_hive when it is written less often"
    )


def _sync_to(spark: SparkSession, state: TableState, options: Options) -> list[SyncedEntry]:
    """Make the entries equal to one state of the table; raises _OvertakenError when that was not its newest one.

    A sync of a later commit may run at the same time: what it has added must stay, and its commit must not be set back.
    """
    schema = state.data_schema()
    if schema is None:
        raise ConfigError(f"the table at {state.storage.base!r} has no columns yet; write to it first")
    values = _values(state.config, options)
    entries = entries_of(state, schema, options, values.fields, spark.version)
    found: dict[str, tuple[str, ...]] = {}
    if values.fields:
        found = _of_partitions(values, {each.partition for each in state.view().latest_slices()})
    check = partial(_check_newest, state)
    with closing(Metastore(spark)) as metastore:
        if not _is_database_there(metastore, options):
            metastore.create_database(entries[0].database)
        tables = _own_tables(metastore, options, [each.name for each in entries], entries[0].location)
        _drop_outlived(metastore, entries[0], outlived_names(state.config, options))
        synced = [_sync_entry(metastore, entry, tables.get(entry.name), found, check) for entry in entries]
    check()
    return synced


def _check_newest(state: TableState) -> None:
    """Raise when a write has completed since, perhaps one that began before others, or was taken back; archiving is neither."""
    if writes_since(Timeline.load(state.storage, state.config), Look.at(state.timeline)) != ():
        raise _OvertakenError


def _values(config: TableConfig, options: Options) -> PartitionValues:
    fields = split_names(options[SyncOptions.PARTITION_FIELDS])
    extractor, decode = options[SyncOptions.EXTRACTOR], options[SyncOptions.DECODE]
    return PartitionValues(config, extractor, decode=decode, fields=fields)


def _of_partitions(values: PartitionValues, paths: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the values of each partition by its path; a metastore has one partition for the same values."""
    by_values: dict[tuple[str, ...], str] = {}
    for path in sorted(paths):
        found = values.of(path)
        other = by_values.setdefault(found, path)
        if other != path:
            raise ConfigError(
                f"the partitions {other!r} and {path!r} have the same values {', '.join(found)!r} in the Hive metastore, which can "
                "show one of them alone; set hoodie.datasource.hive_sync.partition_extractor_class to one that tells them apart, "
                "or write the rows of one to the other"
            )
    return {path: found for found, path in by_values.items()}


def _is_database_there(metastore: Metastore, options: Options) -> bool:
    """Tell whether the database is there; when it is neither there nor to be made that is refused."""
    name = options[SyncOptions.DATABASE].lower()
    if metastore.has_database(name):
        return True
    if not options[SyncOptions.AUTO_CREATE]:
        raise ConfigError(
            f"the database {name!r} is not in the Hive metastore; create it, or set "
            "hoodie.datasource.hive_sync.auto_create_database to true"
        )
    return False


def _own_tables(
    metastore: Metastore, options: Options, names: Sequence[str], location: str
) -> dict[str, Any]:
    """Return the entries that are there by their names; none is touched when one of them is not the table's own."""
    database = options[SyncOptions.DATABASE].lower()
    tables = metastore.tables(database, names)
    for name, table in tables.items():
        stored = table.getSd()
        _check_own(f"{database}.{name}", location, str(stored.getInputFormat()), str(stored.getLocation()))
    return tables


def _drop_outlived(metastore: Metastore, own: HiveEntry, names: Sequence[str]) -> None:
    """Drop entries that a table no longer gets, as it or the strategy changed: they would go stale."""
    for name, table in metastore.tables(own.database, names).items():
        stored = table.getSd()
        if is_of_hudi(str(stored.getInputFormat())) and _place(str(stored.getLocation())) == _place(
            own.location
        ):
            entry = replace(own, name=name)
            logger.warning("the entry %s is dropped: a sync with these options does not keep it", entry.label)
            metastore.drop(entry)


def _sync_entry(
    metastore: Metastore,
    entry: HiveEntry,
    table: Any,
    found: Mapping[str, tuple[str, ...]],
    check: Callable[[], None],
) -> SyncedEntry:
    """Make one entry and its partitions equal to the table.

    The commit of the entry is set last: a sync that died on the way leaves none.

    Args:
        check: Raises when the table has changed since, so that what is there may be of a later sync.
    """
    if table is not None and metastore.keys_of(table) != list(entry.keys):
        metastore.drop(entry)
        table = None
    names = [name for name, _ in entry.keys]
    wanted = {metastore.name_of(names, values): path for path, values in found.items()}
    there = metastore.partitions(entry) if entry.keys and table is not None else set()
    if there - wanted.keys():
        check()
    if _are_of_before(metastore, entry, there, wanted):
        metastore.drop(entry)
        table, there = None, set()
    created = _made_or_altered(metastore, _unfinished(entry) if wanted or there else entry, table)
    if created:
        there = set()
    added = {wanted[name]: found[wanted[name]] for name in wanted.keys() - there}
    if added:
        metastore.add_partitions(entry, added)
    outdated = sorted(there - wanted.keys())
    for name in outdated:
        metastore.drop_partition(entry, name)
    if wanted or there:
        metastore.alter(entry, metastore.tables(entry.database, [entry.name])[entry.name])
    return SyncedEntry(entry.label, created, len(added), len(outdated))


def _are_of_before(
    metastore: Metastore, entry: HiveEntry, there: Collection[str], wanted: Mapping[str, str]
) -> bool:
    """Tell whether partitions of an entry are in other folders, or of another table type, than now: of a table that was rebuilt.

    One is enough, as a rebuild changes all.
    """
    name = min(wanted.keys() & set(there), default=None)
    if name is None:
        return False
    location, input_format = metastore.partition(entry, name)
    return input_format != entry.input_format or not _place(location).endswith(f"/{wanted[name]}")


def _unfinished(entry: HiveEntry) -> HiveEntry:
    """Return an entry that does not say up to which commit it is."""
    return replace(
        entry, properties={key: value for key, value in entry.properties.items() if key != LAST_COMMIT}
    )


def _made_or_altered(metastore: Metastore, entry: HiveEntry, table: Any) -> bool:
    """Make an entry, or alter it; recreated where the metastore refuses types at their positions, as of a dropped column."""
    if table is not None:
        try:
            metastore.alter(entry, table)
        except JAVA_ERRORS as error:
            logger.info("the entry %s is recreated, as it cannot be altered: %s", entry.label, error)
            metastore.drop(entry)
        else:
            return False
    metastore.create(entry)
    return True


def _check_own(label: str, own: str, input_format: str, location: str) -> None:
    if not is_of_hudi(input_format):
        raise TableExistsError(
            f"{label} is not an entry of Hudi's form, perhaps the one by which Spark reads the table without Apache "
            "Hudi; set hoodie.datasource.hive_sync.database or hoodie.datasource.hive_sync.table to another name"
        )
    if _place(location) != _place(own):
        raise TableExistsError(
            f"{label} is the Hudi table at {location!r}; set hoodie.datasource.hive_sync.table to another name, or drop that"
        )


def _place(location: str) -> str:
    """Return a location without the ways in which the same folder is written: of a disk, or of a store that has several schemes."""
    plain = re.sub(r"^file:/+", "/", location).rstrip("/")
    scheme, is_uri, below = plain.partition("://")
    if not is_uri:
        return plain
    kind = KINDS.get(scheme.lower())
    return f"{scheme.lower() if kind is None else kind.value}://{below}"
