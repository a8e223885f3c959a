"""Sentences of the adapter come out as they were written."""

from __future__ import annotations

from typing import Any

import pytest

from dbt.adapters.hudi import logs


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What dbt's events print, in the order in which they were fired."""
    found: list[str] = []

    def fire(event: Any) -> None:
        found.append(event.message())

    monkeypatch.setattr("dbt.adapters.events.logging.fire_event", fire)
    return found


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
def test_numbers_lists_and_braces_are_printed_as_python_prints_them(level: str, said: list[str]) -> None:
    say = getattr(logs.logger, level)
    say("{:,} rows of {}: {}, {}", 2_000_000, "a {b}", ["w"], {"v": "string"})
    say("text {as} it is")
    assert said == [
        "Hudi adapter: 2,000,000 rows of a {b}: ['w'], {'v': 'string'}",
        "Hudi adapter: text {as} it is",
    ]
