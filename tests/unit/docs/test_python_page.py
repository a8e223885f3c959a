"""The snippets of the page on tables without Spark run."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs/python.md"
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_snippets_run_from_nothing(snippet: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "snippet.py").write_text(snippet, encoding="utf-8")

    left = runpy.run_path(str(tmp_path / "snippet.py"))

    assert left["orders"].to_arrow().to_pylist() == [{"id": 2, "ts": 2, "day": "tue", "amount": 25.0}]
