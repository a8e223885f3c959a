"""The configuration reference says what the option registry says."""

from __future__ import annotations

import runpy
from pathlib import Path

DOCS = Path(__file__).resolve().parents[3] / "docs"


def test_the_page_is_what_the_registry_makes() -> None:
    made = runpy.run_path(str(DOCS / "make_configuration.py"))["page"]()

    assert (DOCS / "configuration.md").read_text(encoding="utf-8") == made, (
        "docs/configuration.md is out of date; run `make docs`"
    )
