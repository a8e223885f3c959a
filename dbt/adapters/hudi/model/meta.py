"""Configs under ``meta: {hudi: ...}``, the place that every version of dbt leaves to others.

dbt 2 refuses the name of a config that it does not know itself; of adapters that it does not have it knows none.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.format.config.options import laid_over
from hudi_engine.format.spelling import did_you_mean

from dbt.adapters.hudi.model.known_configs import OF_DBT, USED

PLACE = "hudi"
_OF_KEYS = ("options", "hudi_options", "tblproperties")
"""Configs that are put together key by key."""


def with_meta(config: Mapping[str, object], node: str) -> dict[str, object]:
    """Return a node's config with what is under ``meta: {hudi: ...}``; a config given directly wins."""
    meta = config.get("meta")
    given = meta.get(PLACE) if isinstance(meta, Mapping) else None
    if given is None:
        return dict(config)
    if not isinstance(given, Mapping):
        raise DbtRuntimeError(
            f"meta.{PLACE} of {node} is {given!r}; legal is a mapping of configs, such as {{precombine_field: updated_at}}"
        )
    for key in given:
        if key not in USED:
            raise DbtRuntimeError(f"meta.{PLACE} of {node} has the key {key!r}, which {_hint(str(key))}")
    direct = {key: value for key, value in config.items() if value is not None}
    merged = {**config, **given, **direct}
    for key in _OF_KEYS:
        below, above = given.get(key), direct.get(key)
        if isinstance(below, Mapping) and isinstance(above, Mapping):
            merged[key] = laid_over(below, above)
    return merged


def _hint(key: str) -> str:
    if key in OF_DBT:
        return "is a config of dbt: it stands beside meta"
    if key.startswith("hoodie."):
        return f"stands in options: meta: {{{PLACE}: {{options: {{{key}: ...}}}}}}"
    return f"is no config of dbt-hudi; {did_you_mean(key, USED)}docs/model-configs.md has their list"
