"""Inline table services of a model: the ``compaction:``, ``clean:`` and ``archive:`` configs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dbt.adapters.hudi.model.reading import Problems, boolean, option_text
from dbt.adapters.hudi.model.table import ModelTable, RawConfig

COMPACTION_KEYS: Mapping[str, str] = {
    "trigger": "hoodie.compact.inline.trigger.strategy",
    "delta_commits": "hoodie.compact.inline.max.delta.commits",
    "delta_seconds": "hoodie.compact.inline.max.delta.seconds",
    "strategy": "hoodie.compaction.strategy",
    "target_io_mb": "hoodie.compaction.target.io",
    "order": "hoodie.compaction.order",
}
CLEAN_KEYS: Mapping[str, str] = {
    "policy": "hoodie.clean.policy",
    "retain_commits": "hoodie.clean.commits.retained",
    "retain_versions": "hoodie.clean.fileversions.retained",
    "retain_hours": "hoodie.clean.hours.retained",
}
ARCHIVE_KEYS: Mapping[str, str] = {
    "min_commits": "hoodie.keep.min.commits",
    "max_commits": "hoodie.keep.max.commits",
    "batch": "hoodie.commits.archival.batch",
    "beyond_savepoint": "hoodie.archive.beyond.savepoint",
    "merge": "hoodie.archive.merge.enable",
}
_EXECUTE: Mapping[str, dict[str, str]] = {
    "inline": {"hoodie.compact.inline": "true"},
    "schedule": {"hoodie.compact.schedule.inline": "true"},
    "off": {"hoodie.compact.inline": "false"},
}
_AUTOMATIC_CLEAN = "hoodie.clean.automatic"
_AUTOMATIC_ARCHIVE = "hoodie.archive.automatic"


@dataclass(frozen=True)
class ServicesConfig:
    """Options of the services that run after a commit."""

    settings: tuple[tuple[str, str], ...] = ()

    def options(self) -> dict[str, str]:
        """Engine options of the services."""
        return dict(self.settings)


def read_services(raw: RawConfig, table: ModelTable) -> ServicesConfig:
    """The inline services a model asks for."""
    settings = {
        **_compaction(raw, table),
        **_switched(raw, "clean", _AUTOMATIC_CLEAN, CLEAN_KEYS),
        **_switched(raw, "archive", _AUTOMATIC_ARCHIVE, ARCHIVE_KEYS),
    }
    return ServicesConfig(tuple(sorted(settings.items())))


def _compaction(raw: RawConfig, table: ModelTable) -> dict[str, str]:
    value, problems = raw.config.get("compaction"), raw.problems
    if value is None:
        return {}
    if table.table_type != "mor" and value not in (False, "off"):
        problems.add(
            f"compaction is {value!r}, but the table type is {table.table_type!r}; only mor tables are compacted"
        )
    if isinstance(value, bool):
        return dict(_EXECUTE["inline" if value else "off"])
    if isinstance(value, str):
        return _execute("compaction", value, problems)
    settings = _mapped("compaction", value, COMPACTION_KEYS, ("execute",), problems)
    execute = value.get("execute", "inline") if isinstance(value, Mapping) else "inline"
    return {**_execute("compaction.execute", execute, problems), **settings}


def _execute(key: str, value: object, problems: Problems) -> dict[str, str]:
    word = "off" if value is False else "inline" if value is True else str(value).lower()
    if word not in _EXECUTE:
        problems.add(f"{key} is {value!r}; legal values: {', '.join(_EXECUTE)}")
        return {}
    return dict(_EXECUTE[word])


def _switched(raw: RawConfig, name: str, switch: str, keys: Mapping[str, str]) -> dict[str, str]:
    """Options of a service that is on unless said otherwise: true, false or a mapping."""
    value, problems = raw.config.get(name), raw.problems
    if value is None:
        return {}
    if isinstance(value, bool):
        return {switch: option_text(value)}
    if isinstance(value, str) and value.lower() in ("on", "off", "true", "false"):
        return {switch: option_text(value.lower() in ("on", "true"))}
    settings = _mapped(name, value, keys, ("enabled",), problems)
    if isinstance(value, Mapping) and "enabled" in value:
        settings[switch] = option_text(boolean(f"{name}.enabled", value["enabled"], problems, True))
    return settings


def _mapped(
    name: str, value: object, keys: Mapping[str, str], extra: tuple[str, ...], problems: Problems
) -> dict[str, str]:
    if not isinstance(value, Mapping):
        problems.add(f"{name} is {value!r}; give true, false or a mapping with {', '.join((*extra, *keys))}")
        return {}
    settings = {}
    for key, item in value.items():
        if key in keys:
            settings[keys[key]] = option_text(item)
        elif key not in extra:
            problems.add(f"{name} has the unknown key {key!r}; legal keys: {', '.join((*extra, *keys))}")
    return settings
