"""Reading ``.hoodie/hoodie.properties``, or the backup that Hudi keeps while it changes the file."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from hudi_engine.errors import CorruptTableError, TableNotFoundError
from hudi_engine.format.config.properties import parse_properties, table_checksum
from hudi_engine.format.storage.base import Storage

logger = logging.getLogger(__name__)

HOODIE_FOLDER = ".hoodie"
PROPERTIES_PATH = f"{HOODIE_FOLDER}/hoodie.properties"
BACKUP_PATH = f"{HOODIE_FOLDER}/hoodie.properties.backup"
CHECKSUM_KEY = "hoodie.table.checksum"


def read_properties(storage: Storage) -> dict[str, str]:
    """Read the properties of the table at ``storage.base``."""
    damage: str | None = None
    for path in (PROPERTIES_PATH, BACKUP_PATH):
        try:
            properties = parse_properties(storage.read(path))
            problem = _damage(properties)
        except FileNotFoundError:
            continue
        except ValueError as error:
            problem, properties = str(error), {}
        if problem is None:
            if path == BACKUP_PATH:
                logger.warning("%s: %s is missing or damaged, using %s", storage.base, PROPERTIES_PATH, path)
            return properties
        damage = damage or f"{path} {problem}"
    if damage is None:
        raise TableNotFoundError(
            f"there is no Hudi table at {storage.base!r}: {PROPERTIES_PATH} is missing. Check the path, "
            "or create the table first"
        )
    raise CorruptTableError(
        f"the table at {storage.base!r} cannot be opened: {damage}. Restore the file from a copy; data "
        "files are not affected"
    )


def _damage(properties: Mapping[str, str]) -> str | None:
    """Return what is wrong with parsed properties, None when nothing is."""
    for key in ("hoodie.table.name", "hoodie.table.type", "hoodie.table.version"):
        if not properties.get(key, "").strip():
            return f"has no {key}: it is empty or was cut short"
    stored = properties.get(CHECKSUM_KEY)
    if stored is None:
        return None
    expected = str(table_checksum(properties))
    return None if stored.strip() == expected else f"has the checksum {stored!r} instead of {expected!r}"
