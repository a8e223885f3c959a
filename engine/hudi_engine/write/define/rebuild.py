"""Building a table anew: in one replace instant while its definition stays, by swapping folders when it changes.

The swap is two renames. Between them there is no table at the path for a moment; a process killed there is recovered by
the next open or rebuild (see recover_swap).
"""

from __future__ import annotations

import logging
import uuid

from hudi_engine.config.table_config import PROPERTIES_PATH, TableConfig
from hudi_engine.errors import StorageError
from hudi_engine.storage.base import Storage
from hudi_engine.storage.factory import open_storage
from hudi_engine.write.define.table_options import STICKY_INDEX

logger = logging.getLogger(__name__)

_BUILD, _OLD = ".rebuild-", ".replaced-"


def same_definition(stored: TableConfig, wanted: TableConfig) -> bool:
    """Whether a table can be rebuilt in place: key, ordering, partitioning, type, merge rule and buckets are equal."""
    return (
        all(
            getattr(stored, name) == getattr(wanted, name)
            for name in (
                "table_type",
                "key_generator",
                "hive_style",
                "url_encode",
                "merge_mode",
                "delete_marker",
                "name",
            )
        )
        and _columns(stored) == _columns(wanted)
        and _buckets(stored) == _buckets(wanted)
        and stored.version == wanted.version
        and stored.timestamp_keygen == wanted.timestamp_keygen
    )


def _columns(config: TableConfig) -> list[list[str]]:
    """Key, ordering and partition columns; a rebuild in place keeps the table's spelling of them."""
    partitions = [f"{field.name}:{field.kind}" for field in config.partition_fields]
    roles = (config.record_key_fields, config.ordering_fields, partitions)
    return [[name.lower() for name in names] for names in roles]


def _buckets(config: TableConfig) -> list[str | None] | None:
    """Settings of the bucket index, which decide where rows are; None for the others."""
    if config.properties.get("hoodie.index.type", "").upper() != "BUCKET":
        return None
    return [config.properties.get(key) for key in STICKY_INDEX]


def side_folder(base: str) -> str:
    """A fresh folder beside a table's for building its successor."""
    parent, name = _split(base)
    return f"{parent}/.{name}{_BUILD}{uuid.uuid4().hex[:12]}"


def swap(base: str, side: str) -> None:
    """Put the table built in ``side`` in the place of the one at ``base``, and remove the old one.

    Raises:
        StorageError: The storage cannot rename; the old table is in place and the new one stays in ``side``.
    """
    parent, name = _split(base)
    storage = open_storage(parent)
    new = _split(side)[1]
    old = new.replace(_BUILD, _OLD)
    try:
        if storage.exists(name):
            storage.rename(name, old)
        storage.rename(new, name)
    except OSError as error:
        if not storage.exists(name) and storage.exists(old):
            storage.rename(old, name)
        raise StorageError(
            f"could not put the rebuilt table of {base} in place: {error}; the old one stands"
        ) from error
    storage.delete_tree(old)


def recover_swap(base: str) -> None:
    """Finish or undo a swap that was killed, and remove half-built successors whose builder is gone.

    After the first rename the successor is complete, so it takes the place.
    """
    parent, name = _split(base)
    storage = open_storage(parent)
    if storage.exists(name):
        return
    siblings = [each.name for each in storage.list("") if each.is_dir and each.name.startswith(f".{name}.")]
    replaced = [each for each in siblings if _OLD in each]
    for old in replaced:
        new = old.replace(_OLD, _BUILD)
        if storage.exists(f"{new}/{PROPERTIES_PATH}"):
            logger.warning("finishing the rebuild of %s that was cut off", base)
            storage.rename(new, name)
            storage.delete_tree(old)
        else:
            logger.warning("bringing back %s: its rebuild was cut off", base)
            storage.rename(old, name)
        return


def remove_side(side: str) -> None:
    """Remove a side folder after a failed build."""
    parent, name = _split(side)
    open_storage(parent).delete_tree(name)


def _split(base: str) -> tuple[str, str]:
    parent, _, name = base.rstrip("/").rpartition("/")
    return parent, name


def exists(storage: Storage) -> bool:
    """Whether a table's properties are at the storage's base."""
    return storage.exists(PROPERTIES_PATH)
