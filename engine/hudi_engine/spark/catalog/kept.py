"""Views and functions that a directory catalog keeps in files, and which of them the sessions of this process show."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import unquote

from pyspark.sql import SparkSession

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.storage.base import FileStatus, Storage
from hudi_engine.spark.catalog.entry import VIEW
from hudi_engine.spark.catalog.session import apart
from hudi_engine.spark.catalog.spark_entry import drop_entry, find_entry
from hudi_engine.spark.catalog.sql_text import TableName
from hudi_engine.spark.catalog.view_file import ViewDefinition
from hudi_engine.spark.jvm.catalog import functions_in
from hudi_engine.spark.jvm.plans import parse
from hudi_engine.spark.read.reason import reason_of, spark_errors

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
        """Create the function in a session unless it is there; fails as Spark does when its body is broken.

        Args:
            spark: A session that nobody else uses: its current schema is afterwards the function's.

        Raises:
            CorruptTableError: The statement is another than the CREATE FUNCTION of this name.
        """
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


def restore_kept(
    spark: SparkSession,
    storage: Storage,
    path: str,
    kind: type[ViewDefinition | FunctionDefinition],
    name: TableName,
) -> bool:
    """Make a session know what a file keeps, as another process has made it; fails as Spark does.

    Args:
        spark: The session, which stays as it is otherwise.

    Returns:
        Whether there is such a file.

    Raises:
        CorruptTableError: It is damaged.
    """
    try:
        definition = kind.from_json(name, storage.read(path), f"{storage.base}/{path}")
    except FileNotFoundError:
        return False
    definition.create(apart(spark))
    note_shown(storage.base, [definition])
    return True


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
    """Drop the views and functions that one folder keeps; its files stay. Of one that Spark refuses to drop a warning tells."""
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
