"""Procedures: arguments are checked, rows fit their columns, and what changes a table changes it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.errors import ConfigError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.table.operations import Operation, hudi_metadata
from hudi_engine.table.operations.procedures import PROCEDURES, find_procedure, help_text
from hudi_engine.table.state import TableState
from hudi_engine.table.table_services import TableServices

from tests.golden.golden import unpack


@pytest.fixture
def services(tmp_path: Path) -> TableServices:
    path = unpack("v6_mor_simple_deletes_h0150", tmp_path)
    return TableServices(
        open_storage(str(path)), resolve_options({"hoodie.engine.publish.manifest": "false"})
    )


OF_METADATA = [each.name for each in vars(hudi_metadata).values() if isinstance(each, Operation)]


def newest(services: TableServices) -> str:
    return TableState.load(services.storage).timeline.completed_writes[-1].requested_time


@pytest.mark.parametrize(
    "name", [each for each in PROCEDURES if not PROCEDURES[each].changes and each not in OF_METADATA]
)
def test_every_row_has_a_value_for_each_column(name: str, services: TableServices) -> None:
    services.savepoint()
    services.compact()
    services.clean(1)
    procedure = PROCEDURES[name]
    known = {
        "instant_time": newest(services),
        "log_file_path_pattern": "*",
        "file_group_id": services.storage.base,
        "path": services.storage.base,
    }
    given = {name: known[name] for name in procedure.required}
    for row in procedure.call(services, given):
        assert len(row) == len(procedure.columns.split(", "))


def test_unknown_procedure_or_argument_is_named() -> None:
    with pytest.raises(ConfigError, match="no procedure 'run_magic'; there are: archive_commits"):
        find_procedure("run_magic")
    with pytest.raises(ConfigError, match="no procedure 'show_commit'; did you mean 'show_commits'"):
        find_procedure("show_commit")
    procedure = find_procedure("SHOW_COMMIT_FILES")
    with pytest.raises(
        ConfigError, match="no argument 'instant'; .*its arguments: table, limit, instant_time"
    ):
        procedure.call(None, {"instant": "1"})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="needs instant_time"):
        procedure.call(None, {})  # type: ignore[arg-type]


def test_write_amplification_counts_deltacommits_and_compactions(
    services: TableServices,
) -> None:
    before = PROCEDURES["stats_wa"].call(services, {})
    services.compact()
    after = PROCEDURES["stats_wa"].call(services, {})

    assert [row[1:] for row in before] == [(1, 1, "1.00"), (3, 4, "1.33"), (5, 5, "1.00"), (9, 10, "1.11")]
    assert [row[1:] for row in after] == [(0, 5, "0"), *(row[1:] for row in before[:-1]), (9, 15, "1.67")]


def test_limit_must_be_a_number(services: TableServices) -> None:
    with pytest.raises(ConfigError, match="limit is 'all'; legal values: whole numbers"):
        find_procedure("show_commits").call(services, {"limit": "all"})


def test_a_table_goes_back_to_a_savepoint(services: TableServices) -> None:
    saved = newest(services)
    assert PROCEDURES["create_savepoint"].call(services, {"commit_time": saved}) == [(True,)]
    services.compact()
    assert newest(services) > saved
    assert PROCEDURES["show_savepoints"].call(services, {}) == [(saved,)]
    assert PROCEDURES["rollback_to_savepoint"].call(services, {"instant_time": saved}) == [(True,)]
    assert newest(services) == saved
    with pytest.raises(ConfigError, match=f"is no savepoint; the savepoints are: {saved}"):
        PROCEDURES["rollback_to_savepoint"].call(services, {"instant_time": "20260101000000000"})


def test_a_compaction_is_planned_run_and_shown(services: TableServices) -> None:
    ((instant, groups, state),) = PROCEDURES["run_compaction"].call(services, {"op": "schedule"})
    assert (groups, state) == (3, "REQUESTED")
    assert PROCEDURES["run_compaction"].call(services, {"op": "run"}) == [(instant, 3, "COMPLETED")]
    assert PROCEDURES["show_compaction"].call(services, {}) == [(instant, 3, "COMPLETED")]


def test_help_names_every_procedure_and_what_one_takes() -> None:
    told = help_text()
    for procedure in PROCEDURES.values():
        assert f"call {procedure.name}(...): " in told
        assert procedure.columns in help_text(procedure.name.upper())
    assert "arguments: table (required), instant_time (required)" in help_text("restore_to_instant")
    with pytest.raises(ConfigError, match="no procedure 'nothing'"):
        help_text("nothing")


@pytest.mark.parametrize(
    ("name", "argument", "value", "said"),
    [
        ("run_compaction", "path", "/data/t", "path (refused: the table goes by its name)"),
        ("run_clean", "skip_locking", "true", "skip_locking (true is refused)"),
        ("run_clean", "schedule_in_line", "false", "schedule_in_line (false is refused)"),
        ("repair_orphan_files", "backup_path", "/b", "backup_path (refused: nothing is copied)"),
    ],
)
def test_help_marks_refused_arguments(
    services: TableServices, name: str, argument: str, value: str, said: str
) -> None:
    assert said in help_text(name)
    with pytest.raises(ConfigError, match=f"{argument} "):
        find_procedure(name).call(services, {argument: value})
    with pytest.raises(ConfigError, match="leave"):
        find_procedure(name).call(services, {argument: value})
