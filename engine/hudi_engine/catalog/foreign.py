"""Tables of other Hudi writers under a name of the catalog, without writing into them.

Manifest and delta sidecars are kept in a cache folder outside the table. What Spark cannot read natively is
shown through the engine's own reader as a temporary view.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from hudi_engine.catalog.entry_notes import EntryNotes
from hudi_engine.catalog.manifest import newest_manifest, publish
from hudi_engine.catalog.session import sidecar_runner
from hudi_engine.catalog.spark_table import put_entries, refresh_table
from hudi_engine.catalog.sql_text import TableName, identifier
from hudi_engine.config.table_config import TableConfig
from hudi_engine.errors import ConfigError, UnsupportedTableError
from hudi_engine.storage.base import Storage
from hudi_engine.storage.factory import open_storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)

IsReadable = Callable[[Storage, TableConfig, str, pa.Schema], bool]
"""Whether Spark reads a base file (third) right under the table's data columns (fourth)."""

_CHECKED_PATH = "readable.json"
_SCHEMA_HISTORY = ".hoodie/.schema"


@dataclass(frozen=True)
class ForeignEntry:
    """How a foreign table can be named in SQL.

    Args:
        relation: Text to select from.
        is_native: True for a catalog table that Spark reads itself, False for a temporary view.
    """

    relation: str
    is_native: bool


def register_foreign(
    spark: SparkSession,
    name: TableName,
    path: str,
    cache_folder: str,
    *,
    is_readable: IsReadable | None = None,
    fallback: Callable[[SparkSession], DataFrame] | None = None,
    sessions: Iterable[SparkSession] = (),
) -> ForeignEntry:
    """Show a table that somebody else writes; call again to see its newest commit.

    Args:
        spark: A session of the catalog.
        name: Name to register; for a merge-on-read table ``_rt`` and ``_ro`` come with it.
        path: Base path of the table; nothing is written below it.
        cache_folder: Folder for manifests and sidecars of such tables, outside all of them.
        is_readable: Test of each new base file; None trusts that Spark can read them all.
        fallback: Makes a DataFrame of the table through the engine's reader, for what Spark cannot read.
        sessions: Further live sessions that may read the table.

    Raises:
        ConfigError: when the cache folder is inside the table.
        UnsupportedTableError: when Spark cannot read the table and there is no fallback.
    """
    storage = open_storage(path)
    config = TableConfig.load(storage)
    place = _cache_of(storage, cache_folder)
    try:
        problem = _unreadable_table(storage, config)
        if problem:
            raise UnsupportedTableError(problem)
        published = publish(storage, config, run_sidecars=sidecar_runner(spark), target=place)
        if is_readable is not None and published.schema is not None:
            _check_files(storage, config, place, published.schema, is_readable)
    except UnsupportedTableError as error:
        if fallback is None:
            raise
        logger.info("%s is read through the engine: %s", name.label, error)
        return _temporary_view(name, fallback, (spark, *sessions))
    put_entries(spark, name, storage, config, published, EntryNotes(), place)
    refresh_table(spark, name, sessions, table_type=config.table_type)
    return ForeignEntry(name.sql, True)


def _cache_of(storage: Storage, cache_folder: str) -> Storage:
    digest = hashlib.sha256(storage.uri().encode()).hexdigest()[:24]
    place = open_storage(f"{cache_folder.rstrip('/')}/{digest}")
    if f"{place.uri()}/".startswith(f"{storage.uri()}/"):
        raise ConfigError(
            f"the cache folder {cache_folder!r} lies inside the table at {storage.base!r}, which must not be "
            "written into; choose a folder outside"
        )
    return place


def _unreadable_table(storage: Storage, config: TableConfig) -> str:
    """Say why Spark's Parquet reader would read a table wrongly, ``""`` when it would not."""
    history = [each for each in storage.list(_SCHEMA_HISTORY) if each.name.endswith(".schemacommit")]
    if history:
        return (
            f"table {config.name!r} was altered by schema on read ({history[-1].path}), so its files have "
            "other column names than the table"
        )
    return ""


def _check_files(
    storage: Storage, config: TableConfig, place: Storage, schema: pa.Schema, is_readable: IsReadable
) -> None:
    """Test the base files that were not tested before under this schema."""
    manifest = newest_manifest(place)
    if manifest is None or manifest.stamp is None:
        return
    prefix = f"{manifest.stamp.base}/"
    paths = [entry.uri.removeprefix(prefix) for entry in manifest.entries if entry.delta is None]
    digest = hashlib.sha256(repr(schema).encode()).hexdigest()[:24]
    known = _checked(place, digest)
    fresh = [path for path in paths if path not in known]
    for path in fresh:
        if not is_readable(storage, config, path, schema):
            raise UnsupportedTableError(
                f"Spark cannot read {path!r} of table {config.name!r} under the table's schema: a column has "
                "another type there"
            )
    if fresh:
        place.replace(_CHECKED_PATH, json.dumps({"schema": digest, "paths": sorted(paths)}).encode())


def _checked(place: Storage, digest: str) -> set[str]:
    try:
        raw = json.loads(place.read(_CHECKED_PATH))
        return set(raw["paths"]) if raw["schema"] == digest else set()
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        # Only a saving of work: what cannot be read is tested again.
        return set()


def _temporary_view(
    name: TableName, fallback: Callable[[SparkSession], DataFrame], sessions: Iterable[SparkSession]
) -> ForeignEntry:
    view = f"{name.database}__{name.name}"
    for session in {id(each): each for each in sessions}.values():
        fallback(session).createOrReplaceTempView(view)
    return ForeignEntry(identifier(view), False)
