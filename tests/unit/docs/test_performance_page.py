"""The pages on performance have the figures of the last run, and say of each aim whether it is met."""

from __future__ import annotations

import json

from benchmarks.aims import AIMS
from benchmarks.page import MEASURED, PAGES, files, tables


def test_tables_and_pictures_are_those_of_what_was_measured_last() -> None:
    results = json.loads(MEASURED.read_text("utf-8"))
    for path, text in files(results).items():
        assert path.read_text("utf-8") == text, f"{path}: run python -m benchmarks.page"
    pages = "".join(page.read_text("utf-8") for page in PAGES)
    for name, table in tables(results).items():
        assert f"<!-- table: {name} -->\n{table}\n<!-- end of table -->" in pages, name
    assert all(aim.text in pages for aim in AIMS)
