"""Views and functions that a directory catalog keeps in files, and which of them the sessions of this process show."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar
from urllib.parse import unquote

from pyspark.sql import SparkSession

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.storage.base import FileStatus, Storage
from hudi_engine.spark.catalog.entry import VIEW
from hudi_engine.spark.catalog.function_file import FunctionDefinition, function_names
from hudi_engine.spark.catalog.session import apart
from hudi_engine.spark.catalog.spark_entry import drop_entry, find_entry
from hudi_engine.spark.catalog.sql_text import TableName
from hudi_engine.spark.catalog.view_file import ViewDefinition
from hudi_engine.spark.read.reason import reason_of, spark_errors

logger = logging.getLogger(__name__)

SUFFIX_OF: Mapping[type, str] = {ViewDefinition: ".view.json", FunctionDefinition: ".function.json"}
_Kept = TypeVar("_Kept", ViewDefinition, FunctionDefinition)
_Name = tuple[type, str, str]

_SHOWN: dict[_Name, tuple[str, str]] = {}
"""What sessions of this process show: kind, schema and name, with the folder that keeps it and a digest of its definition."""


def read_kept(
    storage: Storage, listings: Mapping[str, Sequence[FileStatus]], kind: type[_Kept], warnings: list[str]
) -> list[_Kept]:
    """Read the definitions of one kind; a damaged one is left out with a warning.

    Args:
        listings: What the folders of its schemas hold.
        warnings: Takes a sentence for each that is left out.
    """
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
    """Drop views and functions that another process has dropped or made anew since this one was filled with them.

    Else a table could not take the name of such a view, and such a function would go on as it was. What was made by nobody's file
    stays, and so does what has a file that cannot be read.

    Args:
        spark: The session that is to be filled: what it has looked up of a function goes too.
        listings: What the folders of its schemas hold.
    """
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
