"""Configs of packages, which are written for many warehouses: what a Hudi table need not obey is left out.

The root project can set each of them: what its ``dbt_project.yml`` gives the models of a package wins over their own files.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbt.adapters.hudi.model.known_configs import REFUSED
from dbt.adapters.hudi.model.table import COLUMN, TABLE_TYPES

_EXPRESSION = "Hudi tables are laid out by columns, and this is an expression"
_NOT_DAYS = "each of its values would get a folder; a column of dates can be set for the package's models in dbt_project.yml"


def config_of_package(config: Mapping[str, object]) -> tuple[dict[str, object], dict[str, str]]:
    """Return the config of a package's node as a Hudi table takes it, and what was left out of it, each with the reason.

    Only what decides neither which rows a run writes nor which it replaces is left out. Everything else stays, and is
    refused as in the root project where it cannot be obeyed.
    """
    left = {key: word for key, word in REFUSED.items() if config.get(key)}
    if str(config.get("file_format") or "hudi").lower() != "hudi":
        left["file_format"] = "dbt-hudi builds Hudi tables only"
    if str(config.get("table_type") or "cow").lower() not in TABLE_TYPES:
        left["table_type"] = f"legal values: {', '.join(dict.fromkeys(TABLE_TYPES.values()))}"
    if not _are_columns(config.get("cluster_by")):
        left["cluster_by"] = _EXPRESSION
    kept = dict(config)
    partitions = config.get("partition_by")
    if isinstance(partitions, Mapping) and (days := _column_of_days(partitions)) is not None:
        kept["partition_by"] = days
    elif not _are_columns(partitions) and config.get("incremental_strategy") != "insert_overwrite":
        # that strategy replaces partitions, and all rows of a table without any
        left["partition_by"] = _NOT_DAYS if isinstance(partitions, Mapping) else _EXPRESSION
    return {key: value for key, value in kept.items() if key not in left}, left


def _are_columns(value: object) -> bool:
    """Whether a config names columns, or is of a type that is refused with its own words."""
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)):
        return not isinstance(value, Mapping)
    return all(isinstance(item, str) and COLUMN.match(item.strip().strip("`")) for item in items if item)


def _column_of_days(partitions: Mapping[object, object]) -> object:
    """Return the column of BigQuery's ``partition_by`` whose partitions are its values, as those of dates; None for others."""
    kind, granularity = partitions.get("data_type", "date"), partitions.get("granularity", "day")
    return partitions.get("field") if (kind, granularity) == ("date", "day") else None
