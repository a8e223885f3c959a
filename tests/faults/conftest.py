"""What all fault tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hudi_engine.format.storage.base import Storage

import tests.faults.mini_table as mini


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Killing a process does not lose what the system has in memory, and thousands of syncs take minutes."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def model(tmp_path: Path) -> Storage:
    """A table without rows on the disk, whose definition others take."""
    return mini.create_table(str(tmp_path))
