"""Services that run by themselves after a commit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hudi_engine.errors import ServiceError
from hudi_engine.table.services import (
    Workers,
    clean,
    inline,
    run_after_commit,
    run_compaction,
    schedule_compaction,
)

from tests.helpers.handmade import HandmadeTable
from tests.unit.services import tables
from tests.unit.services.tables import MERGED, options, rows


def broken(function: object, items: Sequence[object]) -> list[object]:
    raise OSError("executor lost")


def test_by_default_only_clean_is_asked_for(table: HandmadeTable) -> None:
    report = run_after_commit(table.storage, options())
    assert report.compactions == ()
    assert report.clean is not None and report.clean.instant is None
    assert report.failures == ()


def test_inline_compaction_waits_for_its_trigger(table: HandmadeTable) -> None:
    inline = {"compact__inline": "true", "clean__automatic": "false"}
    assert run_after_commit(table.storage, options(**inline)).compactions == ()
    report = run_after_commit(table.storage, options(**inline, compact__inline__max__delta__commits=3))
    assert [each.state for each in report.compactions] == ["completed"]
    assert report.clean is None
    assert rows(table.storage, read_optimized=True) == MERGED


def test_inline_compaction_runs_a_plan_that_is_there_whatever_the_trigger(table: HandmadeTable) -> None:
    planned = schedule_compaction(table.storage, options())
    report = run_after_commit(table.storage, options(compact__inline="true"))
    assert [each.instant for each in report.compactions] == [planned.instant]


def test_inline_schedule_only_plans(table: HandmadeTable) -> None:
    chosen = options(compact__schedule__inline="true", compact__inline__max__delta__commits=3)
    report = run_after_commit(table.storage, chosen)
    assert [each.state for each in report.compactions] == ["scheduled"]
    assert rows(table.storage) == MERGED


def test_after_a_compaction_clean_takes_the_old_slices(table: HandmadeTable) -> None:
    chosen = options(
        compact__inline="true",
        compact__inline__max__delta__commits=3,
        clean__policy="KEEP_LATEST_FILE_VERSIONS",
        clean__fileversions__retained=1,
    )
    report = run_after_commit(table.storage, chosen)
    assert report.clean is not None
    assert report.clean.files_deleted == 5
    assert rows(table.storage) == MERGED


def test_clean_waits_for_as_many_commits_as_its_trigger_says(table: HandmadeTable) -> None:
    assert run_after_commit(table.storage, options(clean__trigger__max__commits=4)).clean is None
    assert run_after_commit(table.storage, options(clean__trigger__max__commits=3)).clean is not None


def test_a_failed_service_is_reported_and_the_next_one_still_runs(table: HandmadeTable) -> None:
    chosen = options(
        compact__inline="true",
        compact__inline__max__delta__commits=3,
        clean__commits__retained=1,
    )
    report = run_after_commit(table.storage, chosen, workers=Workers(broken))
    assert len(report.failures) == 1
    assert report.failures[0].startswith("compaction: ")
    assert report.failures[0].endswith("executor lost")
    assert report.clean is not None
    assert rows(table.storage) == MERGED


def test_strict_services_fail_the_call(table: HandmadeTable) -> None:
    chosen = options(
        compact__inline="true", compact__inline__max__delta__commits=3, engine__services__strict="true"
    )
    with pytest.raises(ServiceError, match="1 table service.s. failed: compaction: .*executor lost"):
        run_after_commit(table.storage, chosen, workers=Workers(broken))
    assert rows(table.storage) == MERGED


def test_on_copy_on_write_there_is_no_compaction(tmp_path: Path) -> None:
    table = tables.copy_on_write(tmp_path / "cow", 3)
    report = run_after_commit(table.storage, options(compact__inline="true", clean__commits__retained=1))
    assert report.compactions == ()
    assert report.failures == ()
    assert report.clean is not None and report.clean.files_deleted == 1


def test_with_table_services_off_none_runs_after_a_write_and_one_that_is_called_does(tmp_path: Path) -> None:
    table = tables.copy_on_write(tmp_path / "five", 5)
    off = options(table__services__enabled="false", clean__commits__retained=1, compact__inline="true")
    report = run_after_commit(table.storage, off)
    assert (report.compactions, report.clean, report.archive) == ((), None, None)
    assert len(tables.data_files(table.storage)) == 5
    assert clean(table.storage, off).files_deleted == 3


def test_a_plan_that_another_writer_runs_first_is_no_failure(
    table: HandmadeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = inline.schedule_compaction

    def overtaken(*args: Any, **named: Any) -> object:
        planned = schedule(*args, **named)
        run_compaction(table.storage, options(), instant=planned.instant)
        return planned

    monkeypatch.setattr(inline, "schedule_compaction", overtaken)
    asked = {"compact__inline": "true", "compact__inline__max__delta__commits": 1}
    report = run_after_commit(table.storage, options(**asked, engine__services__strict="true"))
    assert (report.failures, report.compactions) == ((), ())
    assert rows(table.storage, read_optimized=True) == MERGED
