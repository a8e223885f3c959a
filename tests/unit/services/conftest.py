"""What the tests of table services share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.helpers.handmade import HandmadeTable
from tests.unit.services import tables


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is never killed for real here, and syncs are most of the time."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def table(tmp_path: Path) -> HandmadeTable:
    """A merge-on-read table with logs, see :func:`tables.merge_on_read`."""
    return tables.merge_on_read(tmp_path / "table")
