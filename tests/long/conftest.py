"""What takes long on an idle machine takes several times as long on a busy one, and is no failure for it."""

from __future__ import annotations

from pathlib import Path

import pytest

MOST_SECONDS = 3600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test of this folder an hour, where it names no limit of its own."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(MOST_SECONDS))
