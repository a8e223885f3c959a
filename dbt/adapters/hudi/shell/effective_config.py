"""What a node is built with: its configs and the options of its writes, each with the place that it comes from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dbt.clients.yaml_helper import load_yaml_text
from dbt_common.exceptions import DbtBaseException
from hudi_engine.format.config.options import OPTIONS, canonical_key
from hudi_engine.format.storage.redact import shown_settings
from hudi_engine.table.operations import Answer

from dbt.adapters.hudi.model.known_configs import PLACE, USED
from dbt.adapters.hudi.model.plan import OPTIONS_OF_MODEL

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
    place_of = _places(adapter, node)
    rows = [
        {"setting": key, "value": str(config[key]), "from": place_of(key)}
        for key in (*_OF_DBT, *USED)
        if config.get(key) not in (None, "", [], {})
    ]
    # the last one wins
    layers = {PROFILE: adapter.connections.warehouse.options, **plan.layers}
    found = {DEFAULT: {key: each.default for key, each in OPTIONS.items()}} if defaults else {}
    options: dict[str, tuple[str, str]] = {}
    for layer, given in {**found, **layers}.items():
        place = place_of("options", "hudi_options") if layer == OPTIONS_OF_MODEL else layer
        options.update({canonical_key(key): (str(value), place) for key, value in given.items()})
    shown = shown_settings({key: value for key, (value, _) in options.items()})
    rows += [
        {"setting": key, "value": shown[key], "from": where} for key, (_, where) in sorted(options.items())
    ]
    return Answer(
        rows, {"node": node.unique_id, "table": f"{plan.schema}.{plan.name}", "location": plan.base}
    )


def _places(adapter: Any, node: Any) -> Callable[..., str]:
    """Return what finds where a config of a node is given, under one of some keys, the nearest place first."""
    calls = " ".join(_CALL.findall(node.raw_code or ""))
    patch = str(getattr(node, "patch_path", None) or "").partition("://")[2]
    of_patch = list(_entries(Path(adapter.config.project_root) / patch, node.name)) if patch else []
    project = getattr(adapter.config, f"{node.resource_type}s", None) or {}
    of_project = [project]
    for name in node.fqn:
        project = project.get(name) if isinstance(project, Mapping) else None
        of_project.append(project if isinstance(project, Mapping) else {})

    def place_of(*keys: str) -> str:
        """Return the nearest place."""
        if any(re.search(rf"\b{re.escape(key)}['\"]?\s*[=:]", calls) for key in keys):
            return str(node.original_file_path)
        if any(key in given for given in of_patch for key in keys):
            return patch
        if any(f"+{key}" in each or key in each for each in of_project for key in keys):
            return PROJECT
        return "dbt"

    return place_of


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
