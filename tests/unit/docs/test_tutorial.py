"""The tutorial shows the models of the demo as they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
MODELS = "\n".join(
    path.read_text(encoding="utf-8") for path in (ROOT / "integration_tests" / "models").rglob("*.sql")
)


@pytest.mark.parametrize("snippet", re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL))
def test_snippet_is_part_of_a_model(snippet: str) -> None:
    assert snippet in MODELS
