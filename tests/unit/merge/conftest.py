"""A slice builder in a folder of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from slices import SliceBuilder  # noqa: E402


@pytest.fixture
def builder(tmp_path: Path) -> SliceBuilder:
    """An empty slice."""
    return SliceBuilder(tmp_path)
