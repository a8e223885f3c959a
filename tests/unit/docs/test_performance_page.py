"""The page on performance has the figures of the last run, and says of each aim whether it is met."""

from __future__ import annotations

import json

from benchmarks.aims import AIMS
from benchmarks.page import MEASURED, PAGE, filled, tables


def test_the_tables_are_those_of_what_was_measured_last() -> None:
    page, results = PAGE.read_text("utf-8"), json.loads(MEASURED.read_text("utf-8"))
    assert filled(page, results) == page, "run: python -m benchmarks.page"
    for name, table in tables(results).items():
        assert f"<!-- table: {name} -->\n{table}\n<!-- end of table -->" in page, name
    assert all(aim.text in page for aim in AIMS)
