"""What a node is built with: its configs and the options of its writes, each with the place that it comes from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dbt.clients.yaml_helper import load_yaml_text
from dbt_common.exceptions import DbtBaseException
from hudi_engine.format.config.options import OPTIONS, canonical_key
from hudi_engine.table.operations import Answer

from dbt.adapters.hudi.credentials import shown_options
from dbt.adapters.hudi.model.known_configs import PLACE, USED

_OF_DBT = (
    "materialized",
    "incremental_strategy",
    "unique_key",
    "on_schema_change",
    "full_refresh",
    "event_time",
)
_CALL = re.compile(r"\bconfig\s*\((.*?)\)\s*(?:-?\}\}|$)", re.DOTALL | re.MULTILINE)
PROJECT, PROFILE, DEFAULT = "dbt_project.yml", "options of the profile", "default"


def effective_config(adapter: Any, node: Any, *, defaults: bool = False) -> Answer:
    """Return the configs that a node sets and the options of its table and writes.

    Args:
        defaults: Whether options that nothing sets are listed too.
    """
    config = adapter.hudi_configs(node.to_dict())
    plan = adapter._resolve(node.schema, node.alias, config)
    rows = []
    for key in (*_OF_DBT, *USED):
        if config.get(key) not in (None, "", [], {}):
            rows.append({"setting": key, "value": str(config[key]), "from": _origin(adapter, node, key)})
    layers = {
        PROFILE: adapter.connections.warehouse.options,
        "table_type, partition_by and the like": plan.table.options(),
        "index": plan.index.options(),
        "compaction, clean, archive, clustering": plan.services.options(),
        "incremental_strategy and the like": plan.merge.options(),
        "options": plan.given_options,
    }
    # as ModelPlan lays them over each other, the last one wins
    found = {DEFAULT: {key: each.default for key, each in OPTIONS.items()}} if defaults else {}
    options: dict[str, tuple[str, str]] = {}
    for place, given in {**found, **layers}.items():
        for key, value in given.items():
            where = _origin(adapter, node, "options", "hudi_options") if place == "options" else place
            options[canonical_key(key)] = (str(value), where)
    shown = shown_options({key: value for key, (value, _) in options.items()})
    rows += [
        {"setting": key, "value": shown[key], "from": where} for key, (_, where) in sorted(options.items())
    ]
    return Answer(
        rows, {"node": node.unique_id, "table": f"{plan.schema}.{plan.name}", "location": plan.base}
    )


def _origin(adapter: Any, node: Any, *keys: str) -> str:
    """Return where a config of a node is given, the nearest place first."""
    root = Path(adapter.config.project_root)
    calls = " ".join(_CALL.findall(node.raw_code or ""))
    if any(re.search(rf"\b{re.escape(key)}['\"]?\s*[=:]", calls) for key in keys):
        return str(node.original_file_path)
    patch = str(getattr(node, "patch_path", None) or "").partition("://")[2]
    entries = list(_entries(root / patch, node.name)) if patch else []
    if any(key in given for given in entries for key in keys):
        return patch
    project = getattr(adapter.config, f"{node.resource_type}s", None) or {}
    for name in node.fqn:
        project = project.get(name) if isinstance(project, Mapping) else None
        entries.append(project if isinstance(project, Mapping) else {})
    whole = getattr(adapter.config, f"{node.resource_type}s", None) or {}
    if any(f"+{key}" in each or key in each for each in (whole, *entries) for key in keys):
        return PROJECT
    return "dbt"


def _entries(path: Path, name: str) -> Iterator[Mapping[str, Any]]:
    """Yield the configs that a properties file gives a node."""
    try:
        found = load_yaml_text(path.read_text(encoding="utf-8"))
    except (OSError, DbtBaseException):
        return
    for listed in found.values() if isinstance(found, Mapping) else ():
        for each in listed if isinstance(listed, list) else ():
            if isinstance(each, Mapping) and each.get("name") == name:
                config = each.get("config") or {}
                for given in (config, (config.get("meta") or each.get("meta") or {}).get(PLACE)):
                    if isinstance(given, Mapping):
                        yield given
