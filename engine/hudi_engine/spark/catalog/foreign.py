"""Tables of other Hudi writers under a name of the catalog, without writing into them.

Manifest, delta sidecars and rewritten base files are kept in a cache folder outside the table. A base file is
rewritten when Spark's Parquet reader would get it wrong: a column was widened or renamed since, or partition
columns are not in the files.
"""

from __future__ import annotations

import hashlib
import logging
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.types import _parse_datatype_string

from hudi_engine.errors import ConfigError, TableExistsError, TableNotFoundError
from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.base_file import BaseFile
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.schema.meta_fields import without_meta_columns
from hudi_engine.format.storage.base import FileStatus, Storage
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.spark.catalog.entry import CatalogEntry, EntryNotes
from hudi_engine.spark.catalog.session import sidecar_runner
from hudi_engine.spark.catalog.spark_entry import (
    Column,
    TableSpec,
    ViewSpec,
    drop_entry,
    find_entry,
    put_table,
    put_view,
)
from hudi_engine.spark.catalog.spark_table import put_entries, refresh_table
from hudi_engine.spark.catalog.sql_text import TableName, identifier, type_text
from hudi_engine.spark.read.reason import reason_of, spark_errors
from hudi_engine.table.changes.new_files import list_files
from hudi_engine.table.snapshot.manifest import Published, listed_uris, publish
from hudi_engine.table.snapshot.manifest_file import CATALOG_FOLDER
from hudi_engine.table.snapshot.native import natively_readable, release_of
from hudi_engine.table.snapshot.snapshot_files import IsReadable

logger = logging.getLogger(__name__)

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
        cache_folder: Folder for what is derived from such tables, outside all of them.
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


FORMATS = ("parquet", "csv", "json")
FILES_PROPERTY = "hoodie.catalog.files"
# The first bytes of a Parquet file, without and with an encrypted footer.
_PARQUET_STARTS = (b"PAR1", b"PARE")
_CORRUPT = "_corrupt_record"
_AS_MICROS = "write the files with microseconds (pandas, pyarrow: coerce_timestamps='us')"
_NO_HEADER = re.compile(r"_c\d+")


@dataclass(frozen=True)
class PlainFiles:
    """Files of one format in a folder or file, given as a path or URI.

    Args:
        columns: Declared columns with their types in SQL, ``""`` for none: those of CSV files without a header, by position.
        partitions: Declared types of columns that are in the names of folders.
    """

    location: str
    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    columns: Sequence[tuple[str, str]] = ()
    partitions: Sequence[tuple[str, str]] = ()

    def list(self) -> list[FileStatus]:
        """List the files that Spark reads; TableNotFoundError without any, ConfigError for a Hudi table."""
        storage = open_storage(self.location)
        files = list_files(storage)
        if not files and storage.stat("") is None:
            raise TableNotFoundError(f"there is no folder {self.location}; make it, or correct the location")
        if storage.exists(PROPERTIES_PATH):
            raise ConfigError(f"the folder {self.location} is a Hudi table; read it with using: hudi")
        if not files:
            raise TableNotFoundError(
                f"the folder {self.location} holds no files; put {self.format} files into it"
            )
        return files


def mark_of(files: list[FileStatus]) -> str:
    """Return a text that changes when files come, go or change."""
    text = "\n".join(f"{each.path} {each.size} {each.modified_ms}" for each in files)
    return hashlib.sha256(text.encode()).hexdigest()


def register_files(spark: SparkSession, name: TableName, source: PlainFiles) -> None:
    """Show files as a table; call again to see those that came since."""
    storage = open_storage(source.location)
    newest = max(source.list(), key=lambda each: each.modified_ms)
    _check_start(storage, source, newest)
    existing = _own_entry(spark, name)
    location = storage.uri()
    columns = _columns(spark, source, location)
    properties = {FILES_PROPERTY: source.format}
    nanos = _in_nanoseconds(storage, source, newest) if source.format == "parquet" else {}
    if existing is not None and existing.is_view != bool(nanos):
        drop_entry(spark, existing)
        existing = None
    if nanos:
        chosen = ", ".join(nanos.get(each.name, identifier(each.name)) for each in columns)
        query = f"SELECT {chosen} FROM parquet.{identifier(location)}"
        names = [Column(each.name, "") for each in columns]
        put_view(spark, ViewSpec(name, names, query, properties=properties), existing)
    else:
        put_table(
            spark, TableSpec(name, columns, location, source.options, "", properties, source.format), existing
        )
    spark.catalog.refreshTable(name.sql)


def _in_nanoseconds(storage: Storage, source: PlainFiles, file: FileStatus) -> dict[str, str]:
    """Return SQL for each column of times in nanoseconds, which Spark reads as whole numbers: the times in microseconds.

    ConfigError for such times inside of other columns, and where options of the reader were given, which a path in SQL has not.
    """
    found = nanoseconds(storage, source, file)
    if found and source.options:
        raise ConfigError(
            f"{', '.join(found)} of {source.location} are times in nanoseconds, which are not read with options; {_AS_MICROS}"
        )
    return {name: f"{text} AS {identifier(name)}" for name, text in found.items()}


def nanoseconds(storage: Storage, source: PlainFiles, file: FileStatus) -> dict[str, str]:
    """Return SQL that makes microseconds of each column of a Parquet file that holds times in nanoseconds.

    ConfigError for such times inside of other columns.
    """
    with storage.open_input(file.path) as opened:
        schema = pq.read_schema(opened)
    found, inside = {}, []
    for each in schema:
        if pa.types.is_timestamp(each.type) and each.type.unit == "ns":
            column = identifier(each.name)
            micros = f"({column} - pmod({column}, 1000)) div 1000"
            of_zone = f"timestamp_micros({micros})"
            without = f"timestampadd(MICROSECOND, {micros}, timestamp_ntz'1970-01-01 00:00:00')"
            found[each.name] = without if each.type.tz is None else of_zone
        elif pa.types.is_nested(each.type) and "timestamp[ns" in str(each.type):
            inside.append(each.name)
    if inside:
        raise ConfigError(
            f"{', '.join(inside)} of {source.location} hold times in nanoseconds inside; {_AS_MICROS}"
        )
    return found


def _own_entry(spark: SparkSession, name: TableName) -> CatalogEntry | None:
    found = find_entry(spark, name)
    if found is None or FILES_PROPERTY in found.properties:
        return found
    if found.foreign and not found.is_view:
        drop_entry(spark, found)
        return None
    raise TableExistsError(
        f"{name.label} is a {'view' if found.is_view else 'table'} of the warehouse; give the source another schema or "
        "identifier"
    )


def _check_start(storage: Storage, source: PlainFiles, file: FileStatus) -> None:
    with storage.open_input(file.path) as opened:
        is_parquet = opened.read(len(_PARQUET_STARTS[0])) in _PARQUET_STARTS
    if is_parquet != (source.format == "parquet"):
        what = "is a" if is_parquet else "is no"
        path = f"{source.location}/{file.path}".rstrip("/")
        raise ConfigError(
            f"{path} {what} Parquet file, but using is {source.format!r}; legal values: {', '.join(FORMATS)}"
        )


def _columns(spark: SparkSession, source: PlainFiles, location: str) -> list[Column]:
    """Return the columns Spark finds in the files and in folders named column=value."""
    try:
        fields = spark.read.format(source.format).options(**source.options).load(location).schema.fields
    except spark_errors() as error:
        reason = reason_of(error)
        raise ConfigError(
            f"Spark cannot read {source.location} as {source.format}{_with_options(source, reason)}: {reason}"
        ) from error
    if not fields or [each.name for each in fields] == [_CORRUPT]:
        raise ConfigError(
            f"Spark finds no columns in {source.location} as {source.format}; check what using and options say"
        )
    found = [Column(each.name, type_text(each.dataType)) for each in fields]
    return declared_columns(source, found)


def declared_columns(source: PlainFiles, found: list[Column]) -> list[Column]:
    """Return the columns with the names and types that were declared for them; a warning names those that are ignored.

    Raises:
        ConfigError: A type that Spark does not know.
    """
    try:
        return _declared(source, found)
    except spark_errors() as error:
        raise ConfigError(
            f"the columns of {source.location} are declared with a type that Spark does not know: {reason_of(error)}"
        ) from error


def _declared(source: PlainFiles, found: list[Column]) -> list[Column]:
    """Return the columns as declared: types of partitions by name, CSV files without a header by position."""
    types = {name.lower(): text for name, text in source.partitions if text}
    found = [Column(each.name, _known_type(types.get(each.name.lower(), each.type_text))) for each in found]
    header = next((text.lower() for key, text in source.options.items() if key.lower() == "header"), None)
    if source.format != "csv" or header == "true":
        return found
    plain = [each for each in found if _NO_HEADER.fullmatch(each.name)]
    declared = list(source.columns)
    if len(declared) != len(plain):
        if not declared and header is not None:
            return found
        many = f"{len(declared)} columns are declared and the files have {len(plain)}"
        logger.warning(
            "%s has CSV files that were read without a header, so that their columns are _c0, _c1, ...: %s. The option header: "
            "true takes the names from the first line; without it declare all columns of the files, in their order",
            source.location,
            many if declared else "no columns are declared",
        )
        return found
    named = [
        Column(name, _known_type(text) if text else each.type_text)
        for (name, text), each in zip(declared, plain, strict=True)
    ]
    return [*named, *(each for each in found if each not in plain)]


def _known_type(text: str) -> str:
    return type_text(_parse_datatype_string(text))


def _with_options(source: PlainFiles, reason: str) -> str:
    """Name the options that Spark's reason names, else all of them."""
    named = {key: value for key, value in source.options.items() if key.lower() in reason.lower()}
    options = ", ".join(f"{key}: {value!r}" for key, value in (named or source.options).items())
    return f" with options {{{options}}}" if options else ""
