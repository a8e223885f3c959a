"""Inline table services of a model: ``compaction:``, ``clustering:``, ``clean:`` and ``archive:``, and its ``cluster_by:``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hudi_engine.format.config.declared.clustering_options import ClusteringOptions, LayoutOptions
from hudi_engine.format.config.declared.service_options import ArchiveOptions, CleanOptions, CompactionOptions
from hudi_engine.format.config.declared.write_options import WriteOptions
from hudi_engine.format.config.enums import CleanPolicy, CompactionTrigger, PartitionFilter
from hudi_engine.format.config.options import canonical_key

from dbt.adapters.hudi.model.reading import Problems, boolean, names, option_text
from dbt.adapters.hudi.model.table import ModelTable, RawConfig

COMPACTION_KEYS: Mapping[str, str] = {
    "trigger": CompactionOptions.TRIGGER.key,
    "delta_commits": CompactionOptions.DELTA_COMMITS.key,
    "delta_seconds": CompactionOptions.DELTA_SECONDS.key,
    "strategy": CompactionOptions.STRATEGY.key,
    "target_io_mb": CompactionOptions.TARGET_IO.key,
    "order": CompactionOptions.ORDER.key,
}
CLEAN_KEYS: Mapping[str, str] = {
    "policy": CleanOptions.POLICY.key,
    "retain_commits": CleanOptions.COMMITS_RETAINED.key,
    "retain_versions": CleanOptions.FILE_VERSIONS_RETAINED.key,
    "retain_hours": CleanOptions.HOURS_RETAINED.key,
}
CLUSTERING_KEYS: Mapping[str, str] = {
    "order": LayoutOptions.STRATEGY.key,
    "max_commits": ClusteringOptions.MAX_COMMITS.key,
    "target_file_bytes": ClusteringOptions.TARGET_FILE_BYTES.key,
    "small_file_bytes": ClusteringOptions.SMALL_FILE_LIMIT.key,
    "partitions": ClusteringOptions.PARTITION_FILTER.key,
    "recent_days": ClusteringOptions.RECENT_PARTITIONS.key,
    "updates": ClusteringOptions.UPDATES_STRATEGY.key,
    "rollback_on_conflict": ClusteringOptions.ROLLBACK_ON_CONFLICT.key,
}
ARCHIVE_KEYS: Mapping[str, str] = {
    "min_commits": ArchiveOptions.MIN_COMMITS.key,
    "max_commits": ArchiveOptions.MAX_COMMITS.key,
    "batch": ArchiveOptions.BATCH.key,
    "beyond_savepoint": ArchiveOptions.BEYOND_SAVEPOINT.key,
}
_SERVICES: Mapping[str, Mapping[str, str]] = {
    "compaction": COMPACTION_KEYS,
    "clustering": CLUSTERING_KEYS,
    "clean": CLEAN_KEYS,
    "archive": ARCHIVE_KEYS,
}
_BY_NUMBER = (
    CompactionTrigger.NUM_COMMITS,
    CompactionTrigger.NUM_COMMITS_AFTER_LAST_REQUEST,
    CompactionTrigger.NUM_AND_TIME,
    CompactionTrigger.NUM_OR_TIME,
)
_BY_TIME = (CompactionTrigger.TIME_ELAPSED, CompactionTrigger.NUM_AND_TIME, CompactionTrigger.NUM_OR_TIME)
# Of each service the key that decides which others count, its option, and the values under which each other one counts,
# the implied one first.
_COUNTS_UNDER: Mapping[str, tuple[str, str, Mapping[str, Sequence[str]]]] = {
    "compaction": (
        "trigger",
        CompactionOptions.TRIGGER.key,
        {"delta_commits": _BY_NUMBER, "delta_seconds": _BY_TIME},
    ),
    "clean": (
        "policy",
        CleanOptions.POLICY.key,
        {
            "retain_commits": (CleanPolicy.KEEP_LATEST_COMMITS,),
            "retain_versions": (CleanPolicy.KEEP_LATEST_FILE_VERSIONS,),
            "retain_hours": (CleanPolicy.KEEP_LATEST_BY_HOURS,),
        },
    ),
    "clustering": (
        "partitions",
        ClusteringOptions.PARTITION_FILTER.key,
        {"recent_days": (PartitionFilter.RECENT_DAYS,)},
    ),
}
_EXECUTE: Mapping[str, dict[str, str]] = {
    "inline": {CompactionOptions.INLINE.key: "true"},
    "schedule": {CompactionOptions.SCHEDULE_INLINE.key: "true"},
    "off": {CompactionOptions.INLINE.key: "false"},
}
_CLUSTER: Mapping[str, dict[str, str]] = {
    "inline": {ClusteringOptions.INLINE.key: "true"},
    "schedule": {ClusteringOptions.SCHEDULE_INLINE.key: "true"},
    "off": {ClusteringOptions.INLINE.key: "false"},
}
_SORT_COLUMNS = (ClusteringOptions.SORT_COLUMNS.key, WriteOptions.BULK_INSERT_SORT_COLUMNS.key)
_AUTOMATIC_CLEAN = CleanOptions.AUTOMATIC.key
_AUTOMATIC_ARCHIVE = ArchiveOptions.AUTOMATIC.key


@dataclass(frozen=True)
class ServicesConfig:
    """Options of the services that run after a commit.

    Args:
        cluster_by: Columns by which rows are ordered in files.
    """

    settings: tuple[tuple[str, str], ...] = ()
    cluster_by: tuple[str, ...] = ()

    def options(self) -> dict[str, str]:
        """Engine options of the services."""
        return dict(self.settings)


def in_words_of_a_model(problems: Iterable[str], config: Mapping[str, object]) -> list[str]:
    """Put the setting that a model has given a service by before a problem that names Hudi's option."""
    given = {
        option: f"{key} of {service}"
        for service, keys in _SERVICES.items()
        for key, option in keys.items()
        if isinstance(settings := config.get(service), Mapping) and key in settings
    }
    return [
        f"{given[problem.split(' ')[0]]}: {problem}" if problem.split(" ")[0] in given else problem
        for problem in problems
    ]


def read_services(raw: RawConfig, table: ModelTable) -> ServicesConfig:
    """Return the inline services of a model."""
    cluster_by = names("cluster_by", raw.config.get("cluster_by"), raw.problems)
    settings = {
        **_implied(raw),
        **_compaction(raw, table),
        **_clustering(raw),
        **(dict.fromkeys(_SORT_COLUMNS, ",".join(cluster_by)) if cluster_by else {}),
        **_switched(raw, "clean", _AUTOMATIC_CLEAN, CLEAN_KEYS),
        **_switched(raw, "archive", _AUTOMATIC_ARCHIVE, ARCHIVE_KEYS),
    }
    return ServicesConfig(tuple(sorted(settings.items())), cluster_by)


def _implied(raw: RawConfig) -> dict[str, str]:
    """Options that other keys of a service imply: ``retain_hours`` counts under one ``policy`` only."""
    found = {}
    for service, (key, option, counts_under) in _COUNTS_UNDER.items():
        given = raw.config.get(service)
        keys = [each for each in counts_under if isinstance(given, Mapping) and each in given]
        if not isinstance(given, Mapping) or not keys:
            continue
        legal = [
            value for value in counts_under[keys[0]] if all(value in counts_under[each] for each in keys)
        ]
        options = {name: value for name, value in raw.options.items() if canonical_key(name) == option}
        chosen = [*options.values(), given.get(key)][0]
        if chosen is None and len(keys) == 1:
            found[option] = str(legal[0])
        elif str(chosen).upper() not in legal:
            step = f"set {key}: {' or '.join(map(str, legal))}" if legal else "leave one of them out"
            not_used = "each is of another" if chosen is None else f"not used with {chosen!r} as the"
            raw.problems.add(f"{service} has {' and '.join(keys)}, {not_used} {key}; {step}")
    return found


def _compaction(raw: RawConfig, table: ModelTable) -> dict[str, str]:
    value, problems = raw.config.get("compaction"), raw.problems
    if value is None:
        return {}
    if table.table_type != "mor" and value not in (False, "off"):
        problems.add(
            f"compaction is {value!r}, but the table type is {table.table_type!r}; only mor tables are compacted"
        )
    return _when("compaction", value, _EXECUTE, COMPACTION_KEYS, problems)


def _clustering(raw: RawConfig) -> dict[str, str]:
    value = raw.config.get("clustering")
    return {} if value is None else _when("clustering", value, _CLUSTER, CLUSTERING_KEYS, raw.problems)


def _when(
    name: str,
    value: object,
    ways: Mapping[str, dict[str, str]],
    keys: Mapping[str, str],
    problems: Problems,
) -> dict[str, str]:
    """Options of a service that runs inline, is only scheduled, or is off: a word, true or false, or a mapping."""
    if isinstance(value, (bool, str)):
        return _execute(name, value, ways, problems)
    settings = _mapped(name, value, keys, ("execute",), problems)
    execute = value.get("execute", "inline") if isinstance(value, Mapping) else "inline"
    return {**_execute(f"{name}.execute", execute, ways, problems), **settings}


def _execute(
    key: str, value: object, ways: Mapping[str, dict[str, str]], problems: Problems
) -> dict[str, str]:
    word = "off" if value is False else "inline" if value is True else str(value).lower()
    if word not in ways:
        problems.add(f"{key} is {value!r}; legal values: {', '.join(ways)}")
        return {}
    return dict(ways[word])


def _switched(raw: RawConfig, name: str, switch: str, keys: Mapping[str, str]) -> dict[str, str]:
    """Options of a service that is on by default: true, false or a mapping."""
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
