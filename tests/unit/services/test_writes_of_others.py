"""Pending writes of other processes: those that go on, and those whose process has ended."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hudi_engine.cli import main
from hudi_engine.format.config.options import resolve_options
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.recovery import left_by_ended, under_way

from tests.helpers.handmade import HandmadeTable
from tests.helpers.owners import running, write_owner
from tests.unit.services import tables


def test_a_write_is_under_way_until_its_process_has_ended(
    table: HandmadeTable, capsys: pytest.CaptureFixture[str]
) -> None:
    instant = tables.writer_at_work(table, ["2026-01-01"])
    state = TableState.load(table.storage)
    assert under_way(table.storage, state.timeline, resolve_options({})) == [], "it is of this process"
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    write_owner(table.storage, instant, running(other))

    (named,) = under_way(table.storage, state.timeline, resolve_options({}))
    assert named.startswith(f"deltacommit {instant} (process {other.pid} on ")
    assert left_by_ended(table.storage, state.timeline) == []

    other.communicate(b"\n")
    assert under_way(table.storage, state.timeline, resolve_options({})) == []
    assert left_by_ended(table.storage, state.timeline) == [instant]
    assert main([table.storage.base, "validate"]) == 0
    assert f"whose process has ended: {instant}; the next write" in capsys.readouterr().out
