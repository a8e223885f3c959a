"""Tables of other Hudi writers under a name of the catalog, without writing into them.

Manifest, delta sidecars and rewritten base files are kept in a cache folder outside the table. A base file is
rewritten when Spark's Parquet reader would get it wrong: a column was widened or renamed since, or partition
columns are not in the files.
"""

from __future__ import annotations

import hashlib
import time

from pyspark.sql import SparkSession

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.base_file import BaseFile
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.schema.meta_fields import without_meta_columns
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.spark.catalog.entry_notes import EntryNotes
from hudi_engine.spark.catalog.session import sidecar_runner
from hudi_engine.spark.catalog.spark_table import put_entries, refresh_table
from hudi_engine.spark.catalog.sql_text import TableName
from hudi_engine.table.snapshot.manifest import Published, listed_uris, publish
from hudi_engine.table.snapshot.manifest_file import CATALOG_FOLDER
from hudi_engine.table.snapshot.native import natively_readable, release_of
from hudi_engine.table.snapshot.snapshot_files import IsReadable

_KEEP_MS = 60 * 60 * 1000
"""How long a file of the cache that no manifest lists is left to readers and publishers that began earlier."""


def register_foreign(
    spark: SparkSession,
    name: TableName,
    path: str,
    cache_folder: str,
) -> Published:
    """Show a table that somebody else writes; call again to see its newest commit.

    Args:
        name: Name to register; for a merge-on-read table ``_rt`` and ``_ro`` come with it.
        path: Base path of the table; nothing is written below it.
        cache_folder: Folder for what is derived from such tables, outside all of them.

    Returns:
        What the manifest in the cache shows.

    Raises:
        ConfigError: when the cache folder is inside the table, or the table has no schema yet.
        UnsupportedTableError: when the engine cannot read the table either.
        TableExistsError: when the name belongs to something that is not a Hudi table.
    """
    storage = open_storage(path)
    config = TableConfig.load(storage)
    place = _cache_of(storage, cache_folder, spark.version)
    published = publish(
        storage,
        config,
        run_sidecars=sidecar_runner(spark),
        target=place,
        is_readable=_readable_by(spark.version),
    )
    if published.published:
        sweep_cache(place)
    put_entries(spark, name, storage, config, published, EntryNotes(), place)
    refresh_table(spark, name, table_type=config.table_type)
    return published


def sweep_cache(place: Storage, keep_ms: int = _KEEP_MS) -> int:
    """Delete files of a table's cache that no manifest lists and that are older; returns how many."""
    listed = listed_uris(place)
    oldest = time.time() * 1000 - keep_ms
    top = CATALOG_FOLDER.partition("/")[0]
    deleted = 0
    for status in place.list("", recursive=True, skip=frozenset({top})):
        if not status.is_dir and place.uri(status.path) not in listed and status.modified_ms < oldest:
            deleted += place.delete(status.path)
    return deleted


def _cache_of(storage: Storage, cache_folder: str, spark_version: str) -> Storage:
    """Return the cache of one table; what has to be rewritten depends on Spark's release."""
    release = ".".join(map(str, release_of(spark_version)))
    digest = hashlib.sha256(f"{release} {storage.uri()}".encode()).hexdigest()[:24]
    place = open_storage(f"{cache_folder.rstrip('/')}/{digest}")
    if f"{place.uri()}/".startswith(f"{storage.uri()}/"):
        raise ConfigError(
            f"the cache folder {cache_folder!r} lies inside the table at {storage.base!r}, which must not be "
            "written into; choose a folder outside"
        )
    return place


def _readable_by(spark_version: str) -> IsReadable:
    def is_readable(context: ReadContext, base: BaseFile) -> bool:
        if context.schema_history is not None:
            return False
        # The meta columns, which may be empty, are not declared.
        config = context.config.with_properties({"hoodie.populate.meta.fields": "true"})
        schema = without_meta_columns(context.schema)
        return natively_readable(
            context.storage, config, [base.path], schema, spark=release_of(spark_version)
        )

    return is_readable
