"""Making a table: its folders first, its properties last, so that a killed create leaves nothing that looks like a table."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from hudi_engine.errors import StorageError, TableExistsError
from hudi_engine.format.config.declared.table_options import TableOptions
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import TEMP_PREFIX, FileStatus, Storage, storage_errors
from hudi_engine.table.metadata.build import check_metadata_options
from hudi_engine.table.txn.table_folder import REMOVER, clear_removed

logger = logging.getLogger(__name__)

FOLDERS = (
    ".hoodie/.aux/.bootstrap/.partitions",
    ".hoodie/.aux/.bootstrap/.fileids",
    ".hoodie/.schema",
    ".hoodie/.temp",
)
_SHOWN = 3
"""How many of the names that prevent a table are looked for and named."""


def create_table(storage: Storage, config: TableConfig, options: Mapping[str, object] | None = None) -> None:
    """Write a new table's folders and properties; refuse ``options`` of writes to come that it could not obey."""
    check_metadata_options(config, resolve_options(options))
    check_absent(storage)
    with storage_errors(storage, "make a table"):
        try:
            # Stores that have keys only have no folders to make.
            for folder in (*FOLDERS, config.archive_folder) if storage.renames_folders else ():
                storage.make_dirs(folder)
            _create_properties(storage, _with_zone_of_texts(config).to_bytes())
        except FileExistsError:
            raise TableExistsError(_exists(storage)) from None
        except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
            folders = (Path(storage.base), *Path(storage.base).parents)
            above = next((str(each) for each in folders if os.path.isfile(each)), None)
            why = f"{above} is a file" if above else str(error)
            raise StorageError(
                f"no table can be made at {storage.base}: {why}. Choose another path, or one that may be written"
            ) from error


def _with_zone_of_texts(config: TableConfig) -> TableConfig:
    """Return settings that say the zone of texts, so that other engines go by it too."""
    times = config.timestamp_keygen
    if "input.dateformat" not in times or "input.timezone" not in times or "timezone" in times:
        return config
    return config.with_properties({TableOptions.INPUT_TIME_ZONE.key: times["input.timezone"]})


def check_absent(storage: Storage) -> None:
    """Raise TableExistsError unless the folder is missing, empty, or what a killed create or removal left, which is finished."""
    if storage.exists(PROPERTIES_PATH):
        raise TableExistsError(_exists(storage))
    with storage_errors(storage, "finish a removal"):
        clear_removed(storage)
        itself = storage.stat("")
        if itself is not None and not itself.is_dir:
            raise TableExistsError(f"{storage.base} is a file, not a folder; choose another path")
        strangers = list(islice(_strangers(storage), _SHOWN))
        strangers += islice(_timeline_files(storage), _SHOWN - len(strangers))
    if strangers:
        many = "at least " if len(strangers) == _SHOWN else ""
        damaged = any(not each.is_dir for each in storage.list(".hoodie", recursive=True))
        raise TableExistsError(
            f"{storage.base} holds {many}{len(strangers)} file(s) or folder(s) ({', '.join(strangers)}) but no readable Hudi "
            "table; choose an empty folder, or remove them first"
            + (f". If they are those of a damaged table, put its {PROPERTIES_PATH} back" if damaged else "")
        )


def _strangers(storage: Storage) -> Iterator[str]:
    """Yield what a killed create does not leave; each folder that is looked at may cost a request."""
    for each in storage.list(""):
        if each.name == ".hoodie" or each.name.startswith(TEMP_PREFIX):
            continue
        # a folder that is listed and not there is one of nothing but marks, as a removed table of another writer leaves in a store
        if not each.is_dir or (storage.exists(each.path) and not _is_mark(storage, each)):
            yield each.name


def _timeline_files(storage: Storage) -> Iterator[str]:
    for each in storage.list(".hoodie"):
        if not each.is_dir and (re.match(r"\d{14}", each.name) or each.path == REMOVER):
            yield each.path


def _is_mark(storage: Storage, folder: FileStatus) -> bool:
    """Return whether a folder is hidden and empty, as the one that a session makes where it takes a table's folder for a schema."""
    return folder.name.startswith(".") and not storage.list(folder.path)


def _exists(storage: Storage) -> str:
    return f"a Hudi table is already at {storage.base}; open it with open_table or HudiTable.open, or choose another path"


def _create_properties(storage: Storage, body: bytes) -> None:
    """Write the properties, which make the table; an error may come after they are there, and then the table is made."""
    try:
        storage.create(PROPERTIES_PATH, body)
    except FileExistsError:
        raise
    except (OSError, StorageError) as error:
        if not (storage.exists(PROPERTIES_PATH) and storage.read(PROPERTIES_PATH) == body):
            raise
        logger.warning("the table at %s is made although the storage reported: %s", storage.base, error)
