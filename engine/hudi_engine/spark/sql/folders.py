"""Folders that other files must not be written to: those of Hudi tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import NoReturn

from pyspark.sql import SparkSession

from hudi_engine.errors import ConfigError, StatementError
from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.storage import open_storage
from hudi_engine.spark.sql.warehouse import StatementWarehouse


def check_files(session: SparkSession, warehouse: StatementWarehouse, path: str) -> None:
    """Raise StatementError for files that would be written into a Hudi table, or in the place of some."""
    with suppress(ConfigError):  # a store that the engine does not know has no table of its own
        found = next((place for place in _places(path) if open_storage(place).exists(PROPERTIES_PATH)), None)
        if found is not None:
            _refuse(path, found)
    for schema in warehouse.schemas(session):
        folder = _plain(warehouse.schema_folder(schema))
        if f"{folder}/".startswith(f"{_plain(path)}/"):
            _refuse(path, folder)


def _refuse(path: str, place: str) -> NoReturn:
    raise StatementError(
        f"writing files to {path} is refused: Hudi tables are at {place}; choose another folder, or write to a table by its name"
    )


def _places(path: str) -> Iterator[str]:
    """Give a folder and those above it, within its store."""
    place = _plain(path)
    start = place.find("/", place.find("://") + 3) if "://" in place else 0
    while place and len(place) > start:
        yield place
        place = place.rpartition("/")[0]


def _plain(path: str) -> str:
    text = path.rstrip("/")
    return "/" + text[len("file:") :].lstrip("/") if text.startswith("file:") else text
