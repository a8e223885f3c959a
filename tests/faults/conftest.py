"""What all fault tests share."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Killing a process does not lose what the system has in memory, and thousands of syncs take minutes."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
