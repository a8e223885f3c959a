"""What makes a table the one it is: whether it can be built anew where it is, and whether a write still meets the same."""

from __future__ import annotations

from hudi_engine.errors import WriteConflictError
from hudi_engine.format.config.declared.table_options import TableOptions
from hudi_engine.format.config.declared.write_options import IndexOptions
from hudi_engine.format.config.enums import IndexType
from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import Storage
from hudi_engine.table.write.define.table_options import STICKY_INDEX, USUAL_DATABASE

_COLUMNS = ("record_key_fields", "ordering_fields", "partition_fields")
_SETTINGS = (
    "name",
    "version",
    "table_type",
    "key_generator",
    "hive_style",
    "url_encode",
    "timestamp_keygen",
    "merge_mode",
    "delete_marker",
    "keeps_operations",
    "cdc_enabled",
    "cdc_logging",
)
_PROPERTIES = {
    "merge_rule": TableOptions.MERGE_RULE.key,
    "timestamps_in_keys": TableOptions.CONSISTENT_TIMESTAMPS.key,
}


def same_definition(stored: TableConfig, wanted: TableConfig) -> bool:
    """Tell whether a table can be rebuilt in place: key, ordering, partitioning, type, merge rule and buckets are equal."""
    return (
        wanted.database.lower() in (stored.database.lower(), USUAL_DATABASE)
        and _settings(stored) == _settings(wanted)
        and _any_case(stored) == _any_case(wanted)
        and _buckets(stored) == _buckets(wanted)
    )


def check_same_definition(before: TableConfig, now: TableConfig, instant: str) -> None:
    """Refuse a write to a table that was built anew with another definition since its rows got their keys and places.

    Args:
        before: The table as the write has found it.
        now: The table as of the begin of its instant.

    Raises:
        WriteConflictError: naming what differs.
    """
    was, stands = (
        {**{name: getattr(each, name) for name in _COLUMNS}, **_settings(each), "index": _index(each)}
        for each in (before, now)
    )
    changed = [name.replace("_", " ") for name, value in was.items() if value != stands[name]]
    if changed:
        raise WriteConflictError(
            f"instant {instant} cannot be written: table {now.name!r} was built anew by another writer meanwhile and differs "
            f"in {', '.join(changed)}. Run this write again"
        )


def _settings(config: TableConfig) -> dict[str, object]:
    """Return what decides beside columns and index where a row goes, and what becomes of rows of one key."""
    properties = {name: config.properties.get(key, "").strip() for name, key in _PROPERTIES.items()}
    properties["timestamps_in_keys"] = properties["timestamps_in_keys"].lower() or "false"
    return {**{name: getattr(config, name) for name in _SETTINGS}, **properties}


def _any_case(config: TableConfig) -> list[list[str]]:
    """Return key, ordering and partition columns; a rebuild in place keeps the table's spelling of them."""
    partitions = [f"{field.name}:{field.kind}" for field in config.partition_fields]
    roles = (config.record_key_fields, config.ordering_fields, partitions)
    return [[name.lower() for name in names] for names in roles]


def _index(config: TableConfig) -> list[str | None]:
    """Return the settings of the index that the table keeps."""
    return [config.properties.get(option.key) for option in STICKY_INDEX]


def _buckets(config: TableConfig) -> list[str | None] | None:
    """Return settings of the bucket index, which decide where rows are; None for the others."""
    if config.properties.get(IndexOptions.TYPE.key, "").upper() != IndexType.BUCKET:
        return None
    return _index(config)


def exists(storage: Storage) -> bool:
    """Tell whether a table's properties are at the storage's base."""
    return storage.exists(PROPERTIES_PATH)
