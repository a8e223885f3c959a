"""run_clustering and show_clustering, in Hudi's words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hudi_engine.errors import ConfigError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.table.operations.procedures import PROCEDURES
from hudi_engine.table.table_services import TableServices

from tests.golden.golden import unpack


@pytest.fixture
def services(tmp_path: Path) -> TableServices:
    path = unpack("v6_mor_simple_deletes_h0150", tmp_path)
    return TableServices(open_storage(str(path)), resolve_options({}))


def call(services: TableServices, name: str = "run_clustering", **given: str) -> list[tuple[object, ...]]:
    return PROCEDURES[name].call(services, given)


def test_a_plan_is_scheduled_shown_and_executed(services: TableServices) -> None:
    ((instant, groups, state, partitions),) = call(
        services, op="schedule", order="name", order_strategy="z-order"
    )
    assert (state, partitions) == ("REQUESTED", "*") and groups
    (shown,) = call(services, "show_clustering", show_involved_partition="true")
    assert shown[:3] == (instant, groups, "REQUESTED") and "day=" in str(shown[3])
    assert call(services, instants=str(instant)) == [(instant, groups, "COMPLETED", "*")]
    assert call(services, op="execute") == []


def test_plans_and_runs_by_default(services: TableServices) -> None:
    key = "hoodie.clustering.plan.strategy.small.file.limit"
    assert call(services, options=f"{key}=1, hoodie.clustering.inline=false") == []
    assert [row[2] for row in call(services)] == ["COMPLETED"]


def test_partitions_are_selected_or_found_by_a_predicate(services: TableServices) -> None:
    with pytest.raises(ConfigError, match="needs Spark"):
        call(services, predicate="day > 'a'")
    asked: list[str] = []

    def find(condition: str) -> list[str]:
        asked.append(condition)
        return []

    assert call(replace(services, find_partitions=find), predicate="day > 'z'") == []
    assert asked == ["day > 'z'"]
    ((_, _, _, partitions),) = call(services, selected_partitions="day=mon", show_involved_partition="true")
    assert partitions == "day=mon"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"op": "now"}, "legal values: schedule, execute, scheduleAndExecute"),
        ({"op": "schedule", "instants": "1"}, "instants are run by op"),
        ({"options": "what"}, "key=value pairs"),
        ({"order": "nothing"}, "names 'nothing'"),
        ({"order_strategy": "spiral"}, "legal values: linear, z-order, hilbert"),
    ],
)
def test_illegal_arguments_are_refused(given: dict[str, str], said: str, services: TableServices) -> None:
    with pytest.raises(ConfigError, match=said):
        call(services, **given)
