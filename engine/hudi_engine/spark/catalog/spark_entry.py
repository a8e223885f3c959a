"""Single entries of a SparkSession's catalog: looked up, created and altered.

A table entry is created by letting Spark analyse a ``CREATE TABLE`` and handing the result to the catalog,
rather than by running the statement: running it would look at the table's files and then drop the declared
schema, because folder names and files both have the partition columns. It is also one atomic step, and costs
milliseconds. Works with Spark's in-memory catalog and a Hive metastore, Spark 3.5 and 4.
"""

from __future__ import annotations

import hashlib
import logging
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from hudi_engine.spark.catalog.entry import CatalogEntry
from hudi_engine.spark.catalog.sql_text import TableName, identifier, literal
from hudi_engine.spark.jvm import catalog as jvm_catalog
from hudi_engine.spark.jvm.errors import SPARK_ERRORS
from hudi_engine.spark.jvm.plans import parse
from hudi_engine.spark.read.reason import spark_errors

logger = logging.getLogger(__name__)

FINGERPRINT_PROPERTY = "hoodie.catalog.fingerprint"
_EMPTY_FOLDER = "nothing-here"
_DATA_SOURCE_COMMAND = "CreateDataSourceTableCommand"
# Random, so that no property can contain it.
_SEPARATOR = f"\x1f{uuid.uuid4().hex}\x1f"
_analysed_views: WeakKeyDictionary[SparkSession, tuple[CatalogEntry, dict[str, Any]]] = WeakKeyDictionary()
"""A view over a table's files that Spark has analysed in a session, with the fields of its entry: the one to copy there."""


@dataclass(frozen=True)
class Column:
    """A column as the catalog shows it: name, type as DDL, comment (``""`` for none)."""

    name: str
    type_text: str
    comment: str = ""

    @property
    def definition(self) -> str:
        """The column in a CREATE TABLE."""
        comment = f" COMMENT {literal(self.comment)}" if self.comment else ""
        return f"{identifier(self.name)} {self.type_text}{comment}"

    @property
    def view_definition(self) -> str:
        """The column in a CREATE VIEW, which takes no types."""
        comment = f" COMMENT {literal(self.comment)}" if self.comment else ""
        return f"{identifier(self.name)}{comment}"


@dataclass(frozen=True)
class TableSpec:
    """An external table of files; ``location`` is the URI of the manifest's folder, not percent-encoded."""

    name: TableName
    columns: Sequence[Column]
    location: str
    options: Mapping[str, str]
    comment: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    using: str = "parquet"

    def statement(self, location: str | None = None) -> str:
        """Return the CREATE TABLE; ``location`` replaces the spec's own."""
        columns = ", ".join(column.definition for column in self.columns)
        properties = {**self.properties, FINGERPRINT_PROPERTY: self.fingerprint}
        return (
            f"CREATE TABLE {self.name.sql} ({columns}) USING {self.using}{_options(self.options)}"
            f" LOCATION {literal(location if location is not None else self.location)}"
            f"{_comment(self.comment)} TBLPROPERTIES ({_pairs(properties)})"
        )

    @property
    def fingerprint(self) -> str:
        """Changes whenever anything of the entry does."""
        columns = [column.definition for column in self.columns]
        return _digest(columns, self.location, self.options, self.comment, self.properties, self.using)


@dataclass(frozen=True)
class ViewSpec:
    """A permanent view; only names and comments of ``columns`` count."""

    name: TableName
    columns: Sequence[Column]
    query: str
    comment: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    mode: str = ""

    def statement(self) -> str:
        """Return the CREATE OR REPLACE VIEW."""
        columns = ", ".join(column.view_definition for column in self.columns)
        properties = {**self.properties, FINGERPRINT_PROPERTY: self.fingerprint}
        return (
            f"CREATE OR REPLACE VIEW {self.name.sql}{f' ({columns})' if columns else ''}{_comment(self.comment)}"
            f"{f' WITH SCHEMA {self.mode}' if self.mode else ''} TBLPROPERTIES ({_pairs(properties)}) AS {self.query}"
        )

    @property
    def fingerprint(self) -> str:
        """Changes whenever anything of the entry does."""
        columns = [column.view_definition for column in self.columns]
        types = [column.type_text for column in self.columns]
        later = [each for each in (self.settings, self.mode) if each]
        return _digest(columns, types, self.query, self.comment, self.properties, *later)


def find_entry(spark: SparkSession, name: TableName) -> CatalogEntry | None:
    """Look up a table or permanent view; None when the catalog has no such name."""
    catalog, identifier_ = _catalog(spark), _identifier(spark, name)
    if not catalog.tableExists(identifier_):
        return None
    return _entry(catalog.getTableMetadata(identifier_), name.database)


def list_entries(spark: SparkSession, database: str) -> list[CatalogEntry]:
    """List the tables and permanent views of a schema; none when the schema does not exist."""
    catalog = _catalog(spark)
    if not catalog.databaseExists(database):
        return []
    handles = catalog.getTablesByName(catalog.listTables(database, "*", False))
    return [_entry(handles.apply(position), database) for position in range(handles.size())]


def listed_schemas(spark: SparkSession) -> list[str]:
    """Return the names of all schemas, without a query of Spark's."""
    names = _catalog(spark).listDatabases()
    return [str(names.apply(position)) for position in range(names.size())]


def listed_names(spark: SparkSession, database: str) -> list[str]:
    """Return the names of a schema that is there, without their entries."""
    names = _catalog(spark).listTables(database, "*", False)
    return [names.apply(position).table() for position in range(names.size())]


def put_table(spark: SparkSession, spec: TableSpec, existing: CatalogEntry | None) -> bool:
    """Make the entry equal to the spec; returns whether anything was changed. ``existing`` must not be a view."""
    if existing is not None and existing.properties.get(FINGERPRINT_PROPERTY) == spec.fingerprint:
        return False
    definition = _analysed(spark, spec)
    if definition is None:
        if existing is not None:
            spark.sql(f"DROP TABLE IF EXISTS {spec.name.sql}")
        _create_by_statements(spark, spec)
    else:
        if existing is None:
            # Another process may create it in the same moment: its entry is then altered like any other.
            _catalog(spark).createTable(definition, True, False)
            existing = find_entry(spark, spec.name)
        if existing is not None and existing.properties.get(FINGERPRINT_PROPERTY) != spec.fingerprint:
            _alter_or_replace(spark, existing, definition)
    return True


def put_view(spark: SparkSession, spec: ViewSpec, existing: CatalogEntry | None) -> bool:
    """Make a view equal to the spec; returns whether anything was changed."""
    if existing is not None and existing.properties.get(FINGERPRINT_PROPERTY) == spec.fingerprint:
        return False
    over_files = bool(spec.columns) and all(column.type_text for column in spec.columns)
    if existing is None and over_files and _create_copied(spark, spec):
        return True
    spark.sql(spec.statement())
    made = find_entry(spark, spec.name) if over_files else None
    # Spark 3.5 does not tell the fields of a catalog entry
    if made is not None and not spark.version.startswith("3."):
        handle = made.handle
        fields = {
            handle.productElementName(place): handle.productElement(place)
            for place in range(handle.productArity())
        }
        _analysed_views[spark] = made, fields
    return True


def _create_copied(spark: SparkSession, spec: ViewSpec) -> bool:
    """Create a view over a table's files as a copy of an analysed one; False where that cannot be done.

    ``CREATE VIEW`` analyses the whole query and looks at the table's files, most of what it costs to show a merge-on-read table.
    Such views differ in names, columns and text alone.
    """
    try:
        definition = copied_view(spark, spec)
        if definition is not None:
            _catalog(spark).createTable(definition, False, False)
    except SPARK_ERRORS as error:
        logger.debug("the view %s is created by a statement, as copying failed: %s", spec.name.label, error)
        return False
    return definition is not None


def copied_view(spark: SparkSession, spec: ViewSpec) -> Any:
    """Return the definition of a view over a table's files, None while there is none to copy in this session."""
    found = _analysed_views.get(spark)
    if found is None:
        return None
    made, fields = found
    of_session = {
        key: value
        for key, value in made.properties.items()
        if key.startswith("view.") and not key.startswith("view.query.out.")
    }
    out = {f"view.query.out.col.{place}": column.name for place, column in enumerate(spec.columns)}
    own = {key: value for key, value in spec.properties.items() if not key.startswith("view.")}
    own |= {FINGERPRINT_PROPERTY: spec.fingerprint, "view.query.out.numCols": str(len(out))}
    pairs = ", ".join(
        f"{literal(key)}={literal(value)}" for key, value in {**own, **of_session, **out}.items()
    )
    changed = {
        "identifier": _identifier(spark, spec.name),
        "schema": jvm_catalog.parsed_columns(spark, ", ".join(column.definition for column in spec.columns)),
        "properties": parse(spark, f"CREATE VIEW v TBLPROPERTIES ({pairs}) AS SELECT 1").properties(),
        "viewText": jvm_catalog.some(spark, spec.query),
        "viewOriginalText": jvm_catalog.some(spark, spec.query),
        "comment": jvm_catalog.some(spark, spec.comment or None),
    }
    return made.handle.copy(*{**fields, **changed}.values())


def drop_entry(spark: SparkSession, entry: CatalogEntry) -> None:
    """Drop a table or view from the catalog; an external table's files stay."""
    spark.sql(f"DROP {'VIEW' if entry.is_view else 'TABLE'} IF EXISTS {entry.name.sql}")


def forget_statistics(spark: SparkSession, name: TableName) -> None:
    """Remove a size that was stored with an entry."""
    jvm_catalog.forget_statistics(spark, _identifier(spark, name))


def _alter_or_replace(spark: SparkSession, existing: CatalogEntry, definition: Any) -> None:
    """Alter an entry; replace it where the metastore refuses the types at their positions."""
    try:
        _alter(spark, existing, definition)
    except spark_errors() as error:
        logger.info("the entry %s is replaced, as it cannot be altered: %s", existing.name.label, error)
        drop_entry(spark, existing)
        _catalog(spark).createTable(definition, True, False)


def _alter(spark: SparkSession, existing: CatalogEntry, definition: Any) -> None:
    external = jvm_catalog.external_catalog(spark)
    found = existing.handle.identifier()
    # A Hive metastore takes columns only through a call of their own; this one, unlike the session
    # catalog's, also lets columns go. It may fail, so it comes before the properties that say all is done.
    external.alterTableDataSchema(found.database().get(), found.table(), definition.schema())
    _catalog(spark).alterTable(definition)
    # what the session has read of the entry has the columns of before, with which the view over it would be checked
    _catalog(spark).refreshTable(found)


def _analysed(spark: SparkSession, spec: TableSpec) -> Any:
    """Return the catalog's form of the spec; None when the session's catalog was replaced by another."""
    plan = jvm_catalog.analyzed_statement(spark, spec.statement())
    if plan.getClass().getSimpleName() != _DATA_SOURCE_COMMAND:
        return None
    return plan.table()


def _create_by_statements(spark: SparkSession, spec: TableSpec) -> None:
    """Create the entry over a folder that does not exist, which keeps the schema, then point it at the table."""
    spark.sql(spec.statement(f"{spec.location}/{_EMPTY_FOLDER}"))
    spark.sql(f"ALTER TABLE {spec.name.sql} SET LOCATION {literal(spec.location)}")


def _catalog(spark: SparkSession) -> Any:
    return jvm_catalog.session_catalog(spark)


def _identifier(spark: SparkSession, name: TableName) -> Any:
    return jvm_catalog.identifier_of(spark, name.sql)


def _entry(handle: Any, database: str) -> CatalogEntry:
    # a Hive metastore keeps no comment of a view as an empty one
    comment = handle.comment()
    return CatalogEntry(
        TableName(database, handle.identifier().table()),
        handle.tableType().name() == "VIEW",
        _properties(handle),
        (comment.get() or None) if comment.isDefined() else None,
        handle,
    )


def _properties(handle: Any) -> dict[str, str]:
    """Return the properties of an entry; whatever is in the text of one, it is no other's name."""
    pairs = handle.properties()
    names, texts = (each.mkString(_SEPARATOR).split(_SEPARATOR) for each in (pairs.keys(), pairs.values()))
    return {name: text for name, text in zip(names, texts, strict=True) if name}


def _pairs(values: Mapping[str, str]) -> str:
    return ", ".join(f"{literal(key)} {literal(value)}" for key, value in sorted(values.items()))


def _options(values: Mapping[str, str]) -> str:
    return f" OPTIONS ({_pairs(values)})" if values else ""


def _comment(text: str) -> str:
    return f" COMMENT {literal(text)}" if text else ""


def _digest(*parts: object) -> str:
    normal = [sorted(part.items()) if isinstance(part, Mapping) else part for part in parts]
    return hashlib.sha256(repr(normal).encode()).hexdigest()[:32]
