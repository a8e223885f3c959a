"""Keys of a model's services that count only under one policy, trigger or partition filter."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.hudi.model.plan import ModelPlan, Places, resolve_plan


def planned(**config: Any) -> ModelPlan:
    node = {"config": {"materialized": "incremental", **config}}
    return resolve_plan(node, "analytics", "orders", Places("/warehouse", "/project"), ())


def problems(**config: Any) -> list[str]:
    with pytest.raises(DbtRuntimeError) as raised:
        planned(**config)
    return [line.removeprefix("  * ") for line in raised.value.msg.splitlines() if line.startswith("  * ")]


@pytest.mark.parametrize(
    ("config", "option", "implied"),
    [
        ({"clean": {"retain_versions": 1}}, "hoodie.clean.policy", "KEEP_LATEST_FILE_VERSIONS"),
        ({"clean": {"retain_hours": 24}}, "hoodie.clean.policy", "KEEP_LATEST_BY_HOURS"),
        ({"clean": {"retain_commits": 3}}, "hoodie.clean.policy", "KEEP_LATEST_COMMITS"),
        ({"compaction": {"delta_seconds": 60}}, "hoodie.compact.inline.trigger.strategy", "TIME_ELAPSED"),
        ({"compaction": {"delta_commits": 2}}, "hoodie.compact.inline.trigger.strategy", "NUM_COMMITS"),
        (
            {"compaction": {"delta_commits": 2, "delta_seconds": 60, "trigger": "num_or_time"}},
            "hoodie.compact.inline.trigger.strategy",
            "num_or_time",
        ),
        (
            {"clustering": {"recent_days": 2}},
            "hoodie.clustering.plan.partition.filter.mode",
            "RECENT_DAYS",
        ),
    ],
)
def test_a_key_of_a_service_means_the_policy_under_which_it_counts(
    config: dict[str, Any], option: str, implied: str
) -> None:
    assert planned(table_type="mor", **config).write_options[option] == implied


def test_a_policy_among_the_options_is_not_said_again() -> None:
    said = {"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS"}
    resolved = planned(clean={"retain_versions": 1}, options=said)
    assert resolved.write_options == {**said, "hoodie.clean.fileversions.retained": "1"}


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (
            {"clean": {"policy": "keep_latest_commits", "retain_versions": 2}},
            "clean has retain_versions, not used with 'keep_latest_commits' as the policy; set policy: KEEP_LATEST_FILE_VERSIONS",
        ),
        (
            {"clean": {"retain_hours": 2}, "options": {"hoodie.cleaner.policy": "KEEP_LATEST_COMMITS"}},
            "clean has retain_hours, not used with 'KEEP_LATEST_COMMITS' as the policy; set policy: KEEP_LATEST_BY_HOURS",
        ),
        (
            {"clean": {"retain_versions": 2, "retain_hours": 24}},
            "clean has retain_versions and retain_hours, each is of another policy; leave one of them out",
        ),
        (
            {"compaction": {"delta_commits": 2, "delta_seconds": 60}},
            "compaction has delta_commits and delta_seconds, each is of another trigger; set trigger: NUM_AND_TIME or NUM_OR_TIME",
        ),
        (
            {"compaction": {"trigger": "TIME_ELAPSED", "delta_commits": 2}},
            "compaction has delta_commits, not used with 'TIME_ELAPSED' as the trigger; set trigger: NUM_COMMITS or "
            "NUM_COMMITS_AFTER_LAST_REQUEST or NUM_AND_TIME or NUM_OR_TIME",
        ),
        (
            {"clustering": {"partitions": "NONE", "recent_days": 2}},
            "clustering has recent_days, not used with 'NONE' as the partitions; set partitions: RECENT_DAYS",
        ),
    ],
)
def test_a_key_of_a_service_that_would_not_count_is_refused(config: dict[str, Any], problem: str) -> None:
    assert problems(table_type="mor", **config) == [problem]
