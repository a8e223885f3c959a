"""Options that belong to the table: a write takes them from there and may repeat them, but not contradict them."""

from __future__ import annotations

from collections.abc import Callable

from hudi_engine.config.options import Options
from hudi_engine.config.table_config import TableConfig
from hudi_engine.errors import ConfigError

STICKY_INDEX = ("hoodie.index.type", "hoodie.bucket.index.num.buckets", "hoodie.bucket.index.hash.field")
"""Index options that a table keeps in its properties."""

_DEFINITION: dict[str, Callable[[TableConfig], str]] = {
    "hoodie.table.name": lambda config: config.name,
    "hoodie.datasource.write.table.name": lambda config: config.name,
    "hoodie.datasource.write.recordkey.field": lambda config: ",".join(config.record_key_fields),
    "hoodie.table.recordkey.fields": lambda config: ",".join(config.record_key_fields),
    "hoodie.datasource.write.precombine.field": lambda config: ",".join(config.ordering_fields),
    "hoodie.table.precombine.field": lambda config: ",".join(config.ordering_fields),
    "hoodie.datasource.write.partitionpath.field": lambda config: ",".join(
        field.name for field in config.partition_fields
    ),
    "hoodie.table.partition.fields": lambda config: ",".join(field.name for field in config.partition_fields),
    "hoodie.datasource.write.table.type": lambda config: config.table_type.value,
    "hoodie.table.type": lambda config: config.table_type.value,
    "hoodie.datasource.write.hive_style_partitioning": lambda config: str(config.hive_style).lower(),
    "hoodie.datasource.write.partitionpath.urlencode": lambda config: str(config.url_encode).lower(),
}


def with_table_options(config: TableConfig, options: Options, operation: str) -> Options:
    """The options of a call over those the table keeps.

    Args:
        config: The table's properties.
        options: Options of the call.
        operation: Hudi's name of the operation that is called, e.g. ``UPSERT``.

    Raises:
        ConfigError: Options that contradict the table or the call; all in one message.
    """
    problems = [
        f"{key} is {options.raw[key]!r}, but table {config.name!r} has {stored(config)!r}; leave the option out, or rebuild "
        "the table"
        for key, stored in _DEFINITION.items()
        if key in options.raw and _words(options.raw[key]) != _words(stored(config))
    ]
    wanted = options.raw.get("hoodie.datasource.write.operation")
    if wanted is not None and wanted.upper() != operation:
        problems.append(
            f"hoodie.datasource.write.operation is {wanted!r}, but {operation.lower()} was called; leave the option out"
        )
    kept = {key: config.properties[key] for key in STICKY_INDEX if key in config.properties}
    if kept.get("hoodie.index.type") == "BUCKET":
        problems += [
            f"{key} is {options.raw[key]!r}, but table {config.name!r} was made with {value!r}, which decides where its rows "
            "are; leave the option out, or rebuild the table"
            for key, value in kept.items()
            if key in options.raw and options.raw[key].upper() != value.upper()
        ]
    if problems:
        raise ConfigError("; ".join(problems), tuple(problems))
    return options.merged({key: value for key, value in kept.items() if key not in options.raw})


def _words(text: str) -> list[str]:
    return [word.partition(":")[0].strip().lower() for word in text.split(",") if word.strip()]
