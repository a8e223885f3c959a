"""Views and functions that a directory catalog keeps in files, and which of them the sessions of this process show."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from hudi_engine.errors import ConfigError, CorruptTableError
from hudi_engine.format.storage.base import FileStatus, Storage
from hudi_engine.spark.catalog.entry import VIEW, CatalogEntry, is_mark, kept_text, kept_texts
from hudi_engine.spark.catalog.spark_entry import (
    FINGERPRINT_PROPERTY,
    Column,
    ViewSpec,
    drop_entry,
    find_entry,
    put_view,
)
from hudi_engine.spark.catalog.sql_text import TableName, identifier
from hudi_engine.spark.jvm.catalog import functions_in
from hudi_engine.spark.jvm.plans import parse
from hudi_engine.spark.jvm.session import own_settings
from hudi_engine.spark.read.reason import reason_of, spark_errors

_KEPT_AS = "view.sqlConfig."
# Name code to load, where to load it from, or put environment variables into a query; a file of a warehouse may not say those.
_NEVER = ("spark.sql.catalog", "spark.sql.maven.", "spark.sql.variable.substitute")

# Spark keeps none of these with a view, for they do not decide what its query means.
_NOT_KEPT = (
    "spark.sql.adaptive.",
    "spark.sql.codegen.",
    "spark.sql.execution.",
    "spark.sql.hive.convert",
    "spark.sql.optimizer.",
    "spark.sql.shuffle.",
    "spark.sql.view.maxNestedViewDepth",
)

_FOLLOWS = "EVOLUTION"
_MODES = frozenset(("", "BINDING", "TYPE EVOLUTION", _FOLLOWS))
"""What has to be asked for; unasked Spark takes what the columns can be cast to."""
_RELATION = re.compile(r"UnresolvedRelation \[([^\]]*)\]")


def settings_of(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that Spark keeps among the properties of a view."""
    return {
        key.removeprefix(_KEPT_AS): value for key, value in properties.items() if key.startswith(_KEPT_AS)
    }


@contextmanager
def made_under(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Give a session the settings that a view is to be made under, and no others, for the time of this block.

    Only settings that queries may change at any time are taken, as they come from a file of the warehouse. What else the session
    has set would be kept with the view, so it is unset meanwhile; without any settings nothing changes.
    """
    before: dict[str, str | None] = {}
    try:
        for key in _others_set(spark, settings) if settings else ():
            before[key] = spark.conf.get(key)
            spark.conf.unset(key)
        for key, value in settings.items():
            now = spark.conf.get(key, None)
            if now != value and _may_be_set(spark, key):
                before[key] = now
                spark.conf.set(key, value)
        yield
    finally:
        for key, usual in before.items():
            if usual is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, usual)


def _others_set(spark: SparkSession, settings: Mapping[str, str]) -> list[str]:
    """Return what else the session has set of what Spark keeps with a view and may be set at any time."""
    others = own_settings(spark) - settings.keys()
    return [key for key in others if not key.startswith(_NOT_KEPT) and _may_be_set(spark, key)]


def _may_be_set(spark: SparkSession, key: str) -> bool:
    return key.startswith("spark.sql.") and not key.startswith(_NEVER) and spark.conf.isModifiable(key)


@dataclass(frozen=True)
class ViewDefinition:
    """A permanent view as it is kept in a file.

    Args:
        columns: Name and comment (``""`` for none) of each column.
        comment: View comment, ``""`` for none.
        database: Schema in which unqualified names of the query are looked up.
        selects: Names of the query's own columns, in the order of `columns`; none where they are not known.
        settings: Settings of the session that made it, as Spark keeps them with the view.
        mode: What becomes of the view when its query's columns change, in Spark's words after WITH SCHEMA; ``""`` for what
            Spark does unasked. A view whose columns follow its query has none of its own.
    """

    name: TableName
    columns: Sequence[tuple[str, str]]
    query: str
    comment: str
    properties: Mapping[str, str]
    database: str
    selects: Sequence[str] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    mode: str = ""

    @classmethod
    def of(cls, spark: SparkSession, name: TableName) -> ViewDefinition:
        """Read a view out of a session's catalog; ConfigError when there is no such view."""
        entry = find_entry(spark, name)
        if entry is None or not entry.is_view:
            raise ConfigError(
                f"{name.label} is not a view of this session's catalog, so its definition cannot be kept; "
                "create the view first"
            )
        mode = entry.properties.get("view.schemaMode", "")
        follows = mode == _FOLLOWS
        fields = [] if follows else json.loads(entry.schema_json)["fields"]
        namespace = [
            value
            for key, value in sorted(entry.properties.items())
            if key.startswith("view.catalogAndNamespace.part.")
        ]
        return cls(
            name,
            tuple((field["name"], field["metadata"].get("comment", "")) for field in fields),
            entry.handle.viewText().get(),
            entry.comment or "",
            {
                key: value
                for key, value in entry.properties.items()
                if not key.startswith("view.") and not is_mark(key)
            },
            namespace[-1] if namespace else name.database,
            () if follows else _selected(entry),
            settings_of(entry.properties),
            mode if mode in _MODES else "",
        )

    def to_json(self) -> bytes:
        """Format as the file's content."""
        raw = {
            "format": _FORMAT,
            "columns": [{"name": name, "comment": comment} for name, comment in self.columns],
            "query": self.query,
            "comment": self.comment,
            "properties": dict(self.properties),
            "database": self.database,
            "selects": list(self.selects),
            "settings": dict(self.settings),
            "schemaMode": self.mode,
        }
        return json.dumps(raw, indent=2).encode()

    @classmethod
    def from_json(cls, name: TableName, body: bytes, source: str) -> ViewDefinition:
        """Parse a file; CorruptTableError names ``source``."""
        try:
            raw: dict[str, Any] = json.loads(body)
            if raw["format"] != _FORMAT:
                raise ValueError(f"its format is {raw['format']!r}, not {_FORMAT}")
            properties = kept_texts(raw["properties"])
            marks = [key for key in properties if is_mark(key)]
            if marks:
                raise ValueError(f"its properties {', '.join(marks)} are those of a table")
            mode = kept_text(raw.get("schemaMode", ""))
            if mode not in _MODES:
                raise ValueError(f"its schemaMode is {mode!r}")
            return cls(
                name,
                tuple((kept_text(column["name"]), kept_text(column["comment"])) for column in raw["columns"]),
                kept_text(raw["query"]),
                kept_text(raw["comment"]),
                properties,
                kept_text(raw["database"]),
                tuple(kept_text(each) for each in raw.get("selects", ())),
                kept_texts(raw.get("settings", {})),
                mode,
            )
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CorruptTableError(
                f"{source} is no readable view definition: {error!r}. Delete it and build the view again"
            ) from error

    def create(self, spark: SparkSession) -> None:
        """Create the view in a session unless it is there; fails as Spark does when the query is broken.

        Columns of the query are matched by name, whatever their order is now: a table of which the query selects all columns may
        have new ones, or the same ones in another order, and Spark would match the columns of a view by position.

        Args:
            spark: A session that no other code uses: its settings change meanwhile, its current schema is the view's afterwards.
        """
        mode = "" if spark.version.startswith("3.") else self.mode  # which binds the columns as they are
        as_told, by_name = self._spec(self.query, mode), self._spec(self._query_by_name(), mode)
        existing = find_entry(spark, self.name)
        made_of = None if existing is None else existing.properties.get(FINGERPRINT_PROPERTY)
        if made_of in (as_told.fingerprint, by_name.fingerprint):
            return
        with made_under(spark, self.settings):
            spark.catalog.setCurrentDatabase(self.database)
            self._create(spark, as_told, by_name, existing)

    def _create(
        self, spark: SparkSession, as_told: ViewSpec, by_name: ViewSpec, existing: CatalogEntry | None
    ) -> None:
        """Create the view from its query as it is; where this gives other columns, create it again with columns chosen by name."""
        try:
            fresh = put_view(spark, as_told, existing)
        except AnalysisException:
            if not self.selects:
                raise
            put_view(spark, by_name, existing)
            return
        made = find_entry(spark, self.name) if fresh and self.selects else None
        if made is None or _selected(made) == self.selects:
            return
        try:
            put_view(spark, by_name, made)
        except AnalysisException:
            drop_entry(spark, made)
            raise

    def _spec(self, query: str, mode: str) -> ViewSpec:
        columns = [Column(name, "", comment) for name, comment in self.columns]
        return ViewSpec(self.name, columns, query, self.comment, self.properties, self.settings, mode)

    def _query_by_name(self) -> str:
        return f"SELECT {', '.join(map(identifier, self.selects))} FROM (\n{self.query}\n)"

    def names_read(self, spark: SparkSession) -> set[tuple[str, str]]:
        """Return (schema, name), lower case, of every relation the query names."""
        plan = parse(spark, self.query)
        found = set()
        for match in _RELATION.findall(plan.treeString()):
            parts = [part.strip().strip("`").lower() for part in match.split(",")]
            found.add((parts[-2] if len(parts) > 1 else self.database.lower(), parts[-1]))
        return found


def _selected(view: CatalogEntry) -> tuple[str, ...]:
    """Return the names of the columns that a view takes from its query, as Spark keeps them."""
    kept = view.properties
    return tuple(
        kept[f"view.query.out.col.{place}"] for place in range(int(kept.get("view.query.out.numCols", "0")))
    )


def in_dependency_order(spark: SparkSession, views: Iterable[ViewDefinition]) -> list[ViewDefinition]:
    """Sort views so that each comes after the views it reads; unreadable queries and circles stop no others."""
    waiting = {(view.name.database.lower(), view.name.name.lower()): view for view in views}
    reads = {key: _names_read(spark, view) & waiting.keys() - {key} for key, view in waiting.items()}
    ordered: list[ViewDefinition] = []
    while waiting:
        ready = [key for key in waiting if not reads[key] & waiting.keys()] or list(waiting)
        ordered.extend(waiting.pop(key) for key in ready)
    return ordered


def _names_read(spark: SparkSession, view: ViewDefinition) -> set[tuple[str, str]]:
    try:
        return view.names_read(spark)
    except spark_errors():
        return set()


_FORMAT = 1
_CREATE = "CreateUserDefinedFunction"


logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class FunctionDefinition:
    """A permanent SQL function as it is kept in a file; ``database`` is the schema of its unqualified names."""

    name: TableName
    statement: str
    database: str

    def to_json(self) -> bytes:
        """Format as the file's content."""
        raw = {"format": _FORMAT, "statement": self.statement, "database": self.database}
        return json.dumps(raw, indent=2).encode()

    @classmethod
    def from_json(cls, name: TableName, body: bytes, source: str) -> FunctionDefinition:
        """Parse a file; CorruptTableError names ``source``."""
        try:
            raw: dict[str, Any] = json.loads(body)
            if raw["format"] != _FORMAT:
                raise ValueError(f"its format is {raw['format']!r}, not {_FORMAT}")
            return cls(name, str(raw["statement"]), str(raw["database"]))
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptTableError(
                f"{source} is no readable function: {error!r}. Delete it and build the function again"
            ) from error

    def create(self, spark: SparkSession) -> None:
        """Create the function, unless it is there, in a session of its own, whose schema is then the function's."""
        if self.name.name.lower() in function_names(spark, self.name.database):
            return
        self._check(spark)
        spark.catalog.setCurrentDatabase(self.database)
        spark.sql(self.statement)

    def _check(self, spark: SparkSession) -> None:
        # a file of the warehouse may make its function and do nothing else
        plan = parse(spark, self.statement)
        if plan.getClass().getSimpleName() == _CREATE:
            parts = plan.child().nameParts()
            if str(parts.last()).lower() == self.name.name.lower():
                return
        raise CorruptTableError(
            f"the kept definition of the function {self.name.label} does something else; delete it and build the function again"
        )


SUFFIX_OF: Mapping[type, str] = {ViewDefinition: ".view.json", FunctionDefinition: ".function.json"}
_Kept = TypeVar("_Kept", ViewDefinition, FunctionDefinition)
_Name = tuple[type, str, str]

_SHOWN: dict[_Name, tuple[str, str]] = {}
"""What sessions of this process show: kind, schema and name, with the folder that keeps it and a digest of its definition."""


def function_names(spark: SparkSession, schema: str) -> set[str]:
    """Return the names, lower case, of the permanent functions of a schema; none when the schema does not exist."""
    return {name.lower() for name in functions_in(spark, schema)}


def create_all(
    spark: SparkSession, functions: Iterable[FunctionDefinition]
) -> list[tuple[FunctionDefinition, Exception]]:
    """Create functions in an own session, those that call others after them; returns those that fail, with the reason."""
    waiting = list(functions)
    failed: list[tuple[FunctionDefinition, Exception]] = []
    while waiting:
        failed = []
        for function in waiting:
            try:
                function.create(spark)
            except spark_errors(CorruptTableError) as error:
                failed.append((function, error))
        if len(failed) == len(waiting):
            break
        waiting = [function for function, _ in failed]
    return failed


def read_kept(
    storage: Storage, listings: Mapping[str, Sequence[FileStatus]], kind: type[_Kept], warnings: list[str]
) -> list[_Kept]:
    """Read the definitions of one kind in listed folders; a damaged one is left out with a warning."""
    suffix, found = SUFFIX_OF[kind], []
    for schema, statuses in listings.items():
        for status in statuses:
            if status.is_dir or not status.name.endswith(suffix):
                continue
            name = TableName(schema, unquote(status.name.removesuffix(suffix)))
            try:
                body = storage.read(status.path)
                found.append(kind.from_json(name, body, f"{storage.base}/{status.path}"))
            except FileNotFoundError:
                continue
            except (CorruptTableError, OSError) as error:
                warnings.append(f"{name.label} was not restored: {error}")
    return found


def note_shown(root: str, shown: Iterable[ViewDefinition | FunctionDefinition]) -> None:
    """Note that sessions of this process show what a folder keeps."""
    for each in shown:
        _SHOWN[_key(type(each), each.name)] = root, _digest(each)


def note_removed(kind: type, name: TableName) -> None:
    """Note that a view or function is no longer kept."""
    _SHOWN.pop(_key(kind, name), None)


def drop_outdated(
    spark: SparkSession,
    root: str,
    listings: Mapping[str, Sequence[FileStatus]],
    kept: Iterable[ViewDefinition | FunctionDefinition],
) -> None:
    """Drop views and functions that another process has dropped or replaced since this one was filled with them."""
    now = {_key(type(each), each.name): _digest(each) for each in kept}
    schemas = {schema.lower() for schema in listings}
    files = {
        _key(kind, TableName(schema, unquote(status.name.removesuffix(suffix))))
        for schema, statuses in listings.items()
        for status in statuses
        for kind, suffix in SUFFIX_OF.items()
        if status.name.endswith(suffix)
    }
    for key, (folder, digest) in list(_SHOWN.items()):
        is_gone = folder == root and key[1] in schemas and key not in files
        if is_gone or now.get(key, digest) != digest:
            _drop(spark, key)


def drop_shown(spark: SparkSession, root: str) -> None:
    """Drop the views and functions that one folder keeps; its files stay. Warns of one that Spark refuses to drop."""
    for key, (folder, _) in list(_SHOWN.items()):
        if folder != root:
            continue
        try:
            _drop(spark, key)
        except spark_errors() as error:
            logger.warning(
                "%s of %s may still be shown: %s", TableName(*key[1:]).label, root, reason_of(error)
            )


def _drop(spark: SparkSession, key: _Name) -> None:
    kind, name = key[0], TableName(*key[1:])
    _SHOWN.pop(key, None)
    if kind is FunctionDefinition:
        if name.name in function_names(spark, name.database):
            spark.sql(f"DROP FUNCTION IF EXISTS {name.sql}")
        return
    entry = find_entry(spark, name)
    if entry is not None and entry.kind == VIEW:
        drop_entry(spark, entry)


def _key(kind: type, name: TableName) -> _Name:
    return kind, name.database.lower(), name.name.lower()


def _digest(definition: ViewDefinition | FunctionDefinition) -> str:
    return hashlib.sha256(definition.to_json()).hexdigest()
