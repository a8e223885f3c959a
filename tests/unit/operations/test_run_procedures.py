"""run_clean and run_compaction, with Hudi's arguments."""

from __future__ import annotations

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


def call(services: TableServices, name: str, **given: str) -> list[tuple[object, ...]]:
    return PROCEDURES[name].call(services, given)


def test_execute_runs_what_is_planned_and_plans_nothing(services: TableServices) -> None:
    assert call(services, "run_compaction", op="execute") == []
    assert services.compactions() == []
    ((instant, groups, _),) = call(services, "run_compaction", op="schedule")
    assert call(services, "run_compaction", op="execute", limit="1") == [(instant, groups, "COMPLETED")]


def test_a_plan_is_run_by_its_instant(services: TableServices) -> None:
    ((instant, groups, _),) = call(services, "run_compaction", op="schedule")
    assert call(services, "run_compaction", op="execute", instants=str(instant)) == [
        (instant, groups, "COMPLETED")
    ]


def test_a_compaction_takes_options_as_pairs(services: TableServices) -> None:
    ((_, groups, _),) = call(
        services,
        "run_compaction",
        op="scheduleAndExecute",
        options="hoodie.compaction.logfile.num.threshold=100, "
        "hoodie.compaction.strategy=org.apache.hudi.table.action.compact.strategy.LogFileNumBasedCompactionStrategy",
    ) or [(None, 0, None)]
    assert groups == 0


def test_a_clean_goes_by_the_figure_that_is_given(services: TableServices) -> None:
    services.compact()
    assert call(services, "run_clean", trigger_max_commits="100", file_versions_retained="1") == []
    ((_, _, deleted, _, _, _),) = call(services, "run_clean", file_versions_retained="1")
    assert deleted


def test_a_clean_takes_options_as_pairs(services: TableServices) -> None:
    services.compact()
    pairs = "hoodie.cleaner.policy=KEEP_LATEST_FILE_VERSIONS, hoodie.cleaner.fileversions.retained=1"
    assert call(services, "run_clean", options=pairs)


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("run_clean", {"skip_locking": "true"}, "cleans under the table's lock"),
        ("run_clean", {"schedule_in_line": "false"}, "plans what it runs"),
        ("run_clean", {"trigger_strategy": "NUM_HOURS"}, "legal values: NUM_COMMITS"),
        ("run_clean", {"retain_commits": "2", "hours_retained": "3"}, "name the one"),
        ("run_clean", {"clean_policy": "KEEP_ALL"}, "KEEP_ALL"),
        ("run_compaction", {"op": "now"}, "legal values: run, schedule"),
        ("run_compaction", {"path": "/elsewhere"}, "leave path out"),
        ("run_compaction", {"op": "schedule", "instants": "1"}, "instants are run by op"),
    ],
)
def test_illegal_arguments_are_refused(
    name: str, given: dict[str, str], said: str, services: TableServices
) -> None:
    with pytest.raises(ConfigError, match=said):
        call(services, name, **given)
