"""The catalog entries of a Hudi table in a SparkSession.

A copy-on-write table is one table. A merge-on-read table ``t`` is a view ``t`` and its second name ``t_rt``
(snapshot: base files and logs), a table ``t_ro`` (read-optimized: base files only), and an internal table
over the same manifest that the view reads. Only the table's own columns are declared, so ``select *`` leaves
out Hudi's five meta columns.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import SparkSession

from hudi_engine.errors import ConfigError, TableExistsError, UnsupportedTableError
from hudi_engine.format.config.enums import TableType
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.schema.any_case import AnyCase
from hudi_engine.format.storage.base import Storage
from hudi_engine.spark.catalog.entry import (
    BASE_PATH_PROPERTY,
    FILES,
    FILES_SUFFIX,
    FOREIGN_PROPERTY,
    READ_OPTIMIZED,
    READ_OPTIMIZED_SUFFIX,
    REALTIME,
    REALTIME_SUFFIX,
    ROLE_PROPERTY,
    SNAPSHOT,
    TABLE,
    CatalogEntry,
    EntryNotes,
    NotesGiven,
)
from hudi_engine.spark.catalog.session import sidecar_runner
from hudi_engine.spark.catalog.spark_entry import (
    Column,
    TableSpec,
    ViewSpec,
    drop_entry,
    find_entry,
    forget_statistics,
    put_table,
    put_view,
)
from hudi_engine.spark.catalog.sql_text import TableName, identifier, type_text
from hudi_engine.spark.schema.spark_types import arrow_to_spark
from hudi_engine.table.snapshot.manifest import Published, publish
from hudi_engine.table.snapshot.manifest_file import Layout
from hudi_engine.table.snapshot.native import AS_STORED, METADATA_COLUMN, filled_by_spark
from hudi_engine.table.snapshot.sidecar import CHUNK_BITS, CHUNK_COLUMN, WORDS_COLUMN
from hudi_engine.table.snapshot.snapshot_files import DELTA_LABEL, MASKED_LABEL

if TYPE_CHECKING:
    from typing_extensions import Unpack


logger = logging.getLogger(__name__)

REFUSED_TO_SPARK = {
    "partitionOverwriteMode": "this is an Apache Hudi table; plain Spark cannot write it, "
    "write with hudi_engine.HudiTable or with dbt"
}
"""Option of Spark's reader that has no effect on reading. A plain ``INSERT`` would leave Parquet files next to the
manifest, where no reader looks; with this mode, Spark refuses the statement with the text, before it writes."""

_REFUSED_TO_STREAMS = {"modifiedBefore": "9999-01-01T00:00:00"}
"""Option that leaves out no file of a query; streams refuse it. One from a name would repeat rows that were rewritten."""

_BASE_FILES = {"modifiedBefore": "2022-01-01T00:00:00"}
"""Leaves out sidecars by their label, which is a later time; base files, and copies of them, have earlier ones."""

_PROVIDER = "PARQUET"
"""Spark's own name of the format is in small letters, and for a stream into a table the two have to be equal: it would take
the manifests for what it wrote itself before, and leave out its first batches."""

TYPE_PROPERTY = "hoodie.table.type"
PROVIDER_PROPERTY = "provider"


_LABEL = f"{METADATA_COLUMN}.file_modification_time"
_ROW = f"{METADATA_COLUMN}.row_index"
_BASE, _MASK = "_hoodie_base", "_hoodie_mask"
"""Names of the two sides of the join; a table has no columns that start so, which would win over them."""

_CHUNK_MASK = (1 << CHUNK_BITS) - 1
_CHUNKS_BITS = 32
"""Room for the chunk number: a file may have 2 ** (CHUNK_BITS + 32) rows."""


@dataclass(frozen=True)
class _Face:
    """How one table is shown: everything the specs of its entries are made of."""

    name: TableName
    storage: Storage
    place: Storage
    config: TableConfig
    layout: Layout
    columns: Sequence[Column]
    notes: EntryNotes

    def properties(self, role: str) -> dict[str, str]:
        own = {
            BASE_PATH_PROPERTY: self.storage.uri(),
            TYPE_PROPERTY: self.config.table_type.value,
            ROLE_PROPERTY: role,
        }
        if role in (SNAPSHOT, REALTIME):
            # Spark reserves the property for tables, where it is PARQUET.
            own[PROVIDER_PROPERTY] = "hudi"
        if self.place is not self.storage:
            own[FOREIGN_PROPERTY] = "true"
        return {**self.notes.properties, **own}

    def table(self, name: TableName, role: str, columns: Sequence[Column], **options: str) -> TableSpec:
        if self.layout is Layout.FLAT:
            values = {"recursiveFileLookup": "true"}
        else:
            # Spark wants the base path above the manifest; without one it goes up from a file as long as
            # folders are named column=value.
            values = {"basePath": self.storage.uri()} if self.place is self.storage else {}
        return TableSpec(
            name,
            columns,
            self.place.uri(self.layout.folder),
            {**values, **AS_STORED, **REFUSED_TO_SPARK, **_REFUSED_TO_STREAMS, **options},
            self.notes.comment,
            self.properties(role),
            _PROVIDER,
        )


def register_table(
    spark: SparkSession,
    name: TableName,
    storage: Storage,
    config: TableConfig | None = None,
    *,
    published: Published | None = None,
    **notes_given: Unpack[NotesGiven],
) -> Published:
    """Publish a table if needed, make its catalog entries equal to it, and refresh them.

    After a normal commit this costs file operations and one refresh of each entry.

    Args:
        config: Its settings, read when None.
        published: What the caller has just published, None to publish here.
        comment: What the table is; None keeps what was said before, ``""`` removes it.
        column_comments: The same for columns, by name; the mapping replaces all of them.
        properties: Table properties of the user's, replacing those before; None keeps them.

    Returns:
        What the manifest shows.

    Raises:
        ConfigError: when the table has no schema yet.
        TableExistsError: when the name belongs to something that is not a Hudi table.
    """
    settings = config if config is not None else TableConfig.load(storage)
    before = EntryNotes.load(storage)
    notes = before.with_changes(**notes_given)
    if notes != before:
        notes.save(storage)
    if published is None:
        published = publish(storage, settings, run_sidecars=sidecar_runner(spark))
    put_entries(spark, name, storage, settings, published, notes)
    refresh_table(spark, name, table_type=settings.table_type)
    return published


def put_entries(
    spark: SparkSession,
    name: TableName,
    storage: Storage,
    config: TableConfig,
    published: Published,
    notes: EntryNotes,
    place: Storage | None = None,
) -> bool:
    """Make the entries of a published table equal to it; ``place`` has the manifest if not the table itself."""
    if published.schema is None:
        raise ConfigError(
            f"the table at {storage.base!r} has no schema yet, so {name.label} cannot be registered: write "
            "to it first, or create it with a schema"
        )
    if (filled := filled_by_spark(published.schema.names)) is not None:
        raise UnsupportedTableError(
            f"{name.label} has a column {filled!r}, which Spark's Parquet reader fills with the places of rows: no query "
            "by name would read what is stored. `HudiTable.snapshot()` and `hudi_engine.read` do; rename the column"
        )
    columns = _columns(published.schema, notes.column_comments)
    face = _Face(name, storage, place or storage, config, published.layout, columns, notes)
    before = find_entry(spark, name)
    if config.table_type is TableType.COPY_ON_WRITE:
        if before is not None and before.is_view:
            _drop_second_faces(spark, name, before)
        existing = _own_entry(spark, before, name, storage.uri(), is_view=False)
        changed = put_table(spark, face.table(name, TABLE, columns), existing)
        _forget_statistics(spark, name, existing)
        return changed
    return _put_merge_on_read(spark, face, before)


def refresh_table(
    spark: SparkSession,
    name: TableName,
    *,
    table_type: TableType | None = None,
) -> None:
    """Make a session see the newest manifest of a table."""
    merged = table_type is TableType.MERGE_ON_READ
    if table_type is None:
        entry = find_entry(spark, name)
        merged = entry is not None and entry.is_view
    names = [name.with_suffix(FILES_SUFFIX), name.with_suffix(READ_OPTIMIZED_SUFFIX)] if merged else [name]
    for entry_name in names:
        found = find_entry(spark, entry_name)
        if found is None or found.is_view:
            continue
        spark.catalog.refreshTable(entry_name.sql)


def drop_table(spark: SparkSession, name: TableName) -> None:
    """Drop the entries of a Hudi table; its files stay. TableExistsError when the name is something else's."""
    main = find_entry(spark, name)
    base = None if main is None else main.base
    if main is not None and base is None:
        raise TableExistsError(
            f"{name.label} is not a Hudi table but a {'view' if main.is_view else 'table'} of another kind; "
            "drop it with SQL"
        )
    for suffix in (REALTIME_SUFFIX, "", READ_OPTIMIZED_SUFFIX, FILES_SUFFIX):
        entry = main if suffix == "" else find_entry(spark, name.with_suffix(suffix))
        if entry is None or (base is not None and entry.base != base):
            continue
        if base is not None or suffix == FILES_SUFFIX:
            drop_entry(spark, entry)


def is_internal(table_name: str) -> bool:
    """Return whether a name is that of an internal table which listings leave out."""
    return table_name.endswith(FILES_SUFFIX)


def registered_base(spark: SparkSession, name: TableName) -> str | None:
    """Return the URI of the Hudi table behind a name, None when it is none or does not exist."""
    entry = find_entry(spark, name)
    return None if entry is None else entry.base


def _drop_second_faces(spark: SparkSession, name: TableName, before: CatalogEntry) -> None:
    """Drop the other names of a merge-on-read table that is copy-on-write now."""
    base = before.base
    for suffix in (REALTIME_SUFFIX, READ_OPTIMIZED_SUFFIX, FILES_SUFFIX):
        entry = find_entry(spark, name.with_suffix(suffix))
        if base is not None and entry is not None and entry.base == base:
            drop_entry(spark, entry)


def _put_merge_on_read(spark: SparkSession, face: _Face, before: CatalogEntry | None) -> bool:
    """Create the four names of a merge-on-read table: its files, the snapshot over them, and Hudi's `_rt` and `_ro`."""
    name, base = face.name, face.storage.uri()
    # after a move the second names still show the place the table was at
    bases = (base, None if before is None else before.base)
    files = name.with_suffix(FILES_SUFFIX)
    mask = (Column(CHUNK_COLUMN, "bigint"), Column(WORDS_COLUMN, "array<bigint>"))
    # the mask comes first: a metastore wants each column's type kept at its position, and new columns come last
    internal = face.table(files, FILES, [*mask, *face.columns])
    found = _own_entry(spark, find_entry(spark, files), files, base, is_view=False)
    changed = put_table(spark, internal, found)
    _forget_statistics(spark, files, found)
    query = snapshot_query(files, [column.name for column in face.columns])
    specs: list[TableSpec | ViewSpec] = [
        ViewSpec(name, face.columns, query, face.notes.comment, face.properties(SNAPSHOT)),
        ViewSpec(
            name.with_suffix(REALTIME_SUFFIX),
            face.columns,
            query,
            face.notes.comment,
            face.properties(REALTIME),
        ),
        face.table(
            name.with_suffix(READ_OPTIMIZED_SUFFIX),
            READ_OPTIMIZED,
            face.columns,
            **_BASE_FILES,
        ),
    ]
    for spec in specs:
        is_view = isinstance(spec, ViewSpec)
        try:
            entry = before
            if spec.name != name:
                entry = find_entry(spark, spec.name)
                _check_free(entry, bases)
            existing = _own_entry(spark, entry, spec.name, base, is_view=is_view)
        except TableExistsError:
            if spec.name == name:
                raise
            logger.warning(
                "%s is taken by something else, so %s is not shown under that name",
                spec.name.label,
                name.label,
            )
            continue
        if isinstance(spec, ViewSpec):
            changed |= put_view(spark, spec, existing)
        else:
            changed |= put_table(spark, spec, existing)
            _forget_statistics(spark, spec.name, existing)
    return changed


def _check_free(entry: CatalogEntry | None, bases: Collection[str | None]) -> None:
    """Raise TableExistsError when an entry is that of a Hudi table at none of some places."""
    if entry is None:
        return
    found = entry.base
    if found not in bases and entry.is_hudi_table:
        raise TableExistsError(
            f"{entry.name.label} is the Hudi table at {found!r}; drop or rename that first"
        )


def _own_entry(
    spark: SparkSession, entry: CatalogEntry | None, name: TableName, base: str, *, is_view: bool
) -> CatalogEntry | None:
    """Return the entry to be altered, None when one has to be made, as after a change of the table's type."""
    if entry is None:
        return None
    if entry.base is None:
        raise TableExistsError(
            f"{name.label} cannot be registered for the Hudi table at {base!r}: the name belongs to another "
            f"{'view' if entry.is_view else 'table'}; drop or rename that first"
        )
    if entry.is_view != is_view:
        drop_entry(spark, entry)
        return None
    return entry


def _forget_statistics(spark: SparkSession, name: TableName, existing: CatalogEntry | None) -> None:
    """Remove a size stored by ANALYZE TABLE, which measures the manifest's folder: 0 bytes, so that any join broadcasts it."""
    if existing is not None and existing.has_statistics:
        forget_statistics(spark, name)


def _columns(schema: pa.Schema, comments: Mapping[str, str]) -> list[Column]:
    by_name = AnyCase(comments.items())
    return [
        Column(field.name, type_text(field.dataType), by_name.get(field.name, ""))
        for field in arrow_to_spark(schema).fields
    ]


def snapshot_query(files: TableName, columns: Sequence[str]) -> str:
    """Return the SELECT of the snapshot over the table of base files and sidecars."""
    if any(column.lower() == METADATA_COLUMN for column in columns):
        raise UnsupportedTableError(
            f"{files.label} has a column {METADATA_COLUMN!r}, which hides Spark's own column of that name: a "
            "merge-on-read table cannot be merged then. Rename the column, or use a copy-on-write table"
        )
    masked, delta = f"timestamp_millis({MASKED_LABEL})", f"timestamp_millis({DELTA_LABEL})"
    names = ", ".join(identifier(column) for column in columns)
    based = ", ".join(f"{_BASE}.{identifier(column)}" for column in columns)
    label, row = f"{_BASE}.{_LABEL}", f"{_BASE}.{_ROW}"
    key = (
        f"shiftleft(unix_millis({label}) - {MASKED_LABEL}, {_CHUNKS_BITS}) + shiftright({row}, {CHUNK_BITS})"
    )
    word = f"{_MASK}.words[CAST(shiftright({row} & {_CHUNK_MASK}, 6) AS INT)]"
    kept = f"shiftright({word}, CAST({row} & 63 AS INT)) & 1 = 0"
    return (
        f"SELECT {names} FROM {files.sql}"
        f" WHERE ({_LABEL} < {masked} OR {_LABEL} >= {delta}) AND {CHUNK_COLUMN} IS NULL"
        f" UNION ALL SELECT /*+ BROADCAST({_MASK}) */ {based} FROM {files.sql} {_BASE} LEFT JOIN"
        f" (SELECT shiftleft(unix_millis({_LABEL}) - {DELTA_LABEL}, {_CHUNKS_BITS}) + {CHUNK_COLUMN}"
        f" AS chunk, {WORDS_COLUMN} AS words FROM {files.sql}"
        f" WHERE {_LABEL} >= {delta} AND {CHUNK_COLUMN} IS NOT NULL) {_MASK}"
        f" ON {_MASK}.chunk = {key}"
        f" WHERE {label} >= {masked} AND {label} < {delta} AND ({_MASK}.chunk IS NULL OR {kept})"
    )
