"""Keys of a service that count only under some values of another: ``retain_hours`` under one ``policy``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.declared.clustering_options import ClusteringOptions
from hudi_engine.format.config.declared.service_options import CleanOptions, CompactionOptions
from hudi_engine.format.config.enums import CleanPolicy, CompactionTrigger, Name, PartitionFilter
from hudi_engine.format.config.option import Option
from hudi_engine.format.config.options import canonical_key

from dbt.adapters.hudi.model.table import RawConfig


@dataclass(frozen=True)
class DecidingKey:
    """A key that says which others of its service count.

    Args:
        counts_under: The values under which each of the other keys counts. The first is meant where nothing is said.
    """

    key: str
    option: Option[Any]
    counts_under: Mapping[str, tuple[Name, ...]]

    def implied(self, service: str, given: Mapping[object, object], raw: RawConfig) -> dict[str, str]:
        """Return the option that the keys given imply, where a model does not say it; what contradicts is a problem.

        Args:
            service: Name of the service in a model.
            given: What the model says of the service.
        """
        keys = [key for key in self.counts_under if key in given]
        said = self._said(given, raw)
        if said is not None:
            self._check(service, {key: given[key] for key in keys}, said, raw)
            return {}
        if not keys:
            return {}
        if len(keys) == 1:
            return {self.option.key: str(self.counts_under[keys[0]][0])}
        joint = [
            str(value)
            for value in self.counts_under[keys[0]]
            if all(value in self.counts_under[key] for key in keys)
        ]
        step = f"say {self.key}: {' or '.join(joint)}, or give one of them" if joint else "give one of them"
        raw.problems.add(
            f"{service} has {' and '.join(keys)} without {self.key}, and each means another one; {step}"
        )
        return {}

    def _said(self, given: Mapping[object, object], raw: RawConfig) -> tuple[str, object] | None:
        """Return the key's name and value as the model says it: with the service, or among its options, which win."""
        for name, value in raw.options.items():
            if canonical_key(name) == self.option.key:
                return name, value
        return (self.key, given[self.key]) if self.key in given else None

    def _check(
        self, service: str, keys: Mapping[str, object], said: tuple[str, object], raw: RawConfig
    ) -> None:
        name, value = said
        try:
            chosen = self.option.parse(value)
        except ConfigError:
            return  # the check of options says it
        for key, of_key in keys.items():
            legal = self.counts_under[key]
            if chosen not in legal:
                raw.problems.add(
                    f"{key} of {service} is {of_key!r}, but counts only with {self.key} {', '.join(map(str, legal))}, and "
                    f"{name} is {value!r}; leave one of the two out"
                )


DECIDING_KEYS: Mapping[str, DecidingKey] = {
    "compaction": DecidingKey(
        "trigger",
        CompactionOptions.TRIGGER,
        {
            "delta_commits": (
                CompactionTrigger.NUM_COMMITS,
                CompactionTrigger.NUM_COMMITS_AFTER_LAST_REQUEST,
                CompactionTrigger.NUM_AND_TIME,
                CompactionTrigger.NUM_OR_TIME,
            ),
            "delta_seconds": (
                CompactionTrigger.TIME_ELAPSED,
                CompactionTrigger.NUM_AND_TIME,
                CompactionTrigger.NUM_OR_TIME,
            ),
        },
    ),
    "clean": DecidingKey(
        "policy",
        CleanOptions.POLICY,
        {
            "retain_commits": (CleanPolicy.KEEP_LATEST_COMMITS,),
            "retain_versions": (CleanPolicy.KEEP_LATEST_FILE_VERSIONS,),
            "retain_hours": (CleanPolicy.KEEP_LATEST_BY_HOURS,),
        },
    ),
    "clustering": DecidingKey(
        "partitions",
        ClusteringOptions.PARTITION_FILTER,
        {"recent_days": (PartitionFilter.RECENT_DAYS,)},
    ),
}
