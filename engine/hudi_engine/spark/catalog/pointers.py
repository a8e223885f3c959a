"""Pointers of a directory catalog: small files that say of a name in which folder its table lives."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING
from urllib.parse import unquote

from hudi_engine.errors import CorruptTableError, HudiError
from hudi_engine.format.parallel import on_threads
from hudi_engine.format.storage.base import FileStatus, Storage
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.storage.given import public_location
from hudi_engine.spark.catalog.sql_text import TableName

if TYPE_CHECKING:
    from hudi_engine.spark.catalog.directory import DirectoryCatalog

logger = logging.getLogger(__name__)

POINTER = ".table.json"


def read_pointer(storage: Storage, path: str, label: str) -> str | None:
    """Return the folder that a pointer names, None when there is no such file.

    Raises:
        CorruptTableError: It is damaged.
    """
    try:
        raw = json.loads(storage.read(path))
        return public_location(str(raw["base"]))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTableError(
            f"{storage.base}/{path} cannot be parsed: {error!r}. It says where {label} lives; "
            "delete it and build the table again"
        ) from error


def all_pointers(catalog: DirectoryCatalog) -> dict[TableName, str]:
    """Return the names of all schemas that have pointers and where these lead.

    Damaged ones, which lead nowhere, are left out, and with a warning those that may not be looked at.
    """
    storage = open_storage(catalog.root)

    def entries(schema: str) -> list[FileStatus]:
        try:
            return storage.list(schema)
        except OSError as refused:
            logger.warning("the names in %s/%s are not looked at: %s", catalog.root, schema, refused)
            return []

    listings = on_threads(entries, catalog.schemas())
    paths = [each.path for found in listings for each in found if not each.is_dir]
    paths = [path for path in paths if path.endswith(POINTER)]

    def place(path: str) -> str | None:
        try:
            return read_pointer(storage, path, path)
        except HudiError:
            return None
        except OSError as refused:
            logger.warning("where %s/%s leads is not looked at: %s", catalog.root, path, refused)
            return None

    found = {}
    for path, base in zip(paths, on_threads(place, paths), strict=True):
        schema, _, file = path.rpartition("/")
        if base is not None:
            found[TableName(schema, unquote(file.removesuffix(POINTER)))] = base
    return found
