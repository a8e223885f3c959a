"""The snippets of the reading page run."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pyarrow as pa
import pytest

from tests.helpers.handmade import HandmadeTable, file_id

PAGE = Path(__file__).resolve().parents[3] / "docs/reading.md"
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
ORDERS = pa.table(
    {
        "order_id": ["1", "2", "3"],
        "amount": [10, 20, 30],
        "status": ["paid", "sent", "new"],
        "order_date": ["2026-01-01", "2026-01-02", "2026-01-02"],
    }
)


@pytest.mark.parametrize("snippet", [each for each in SNIPPETS if "hudi_engine.read" in each])
def test_snippets_run_on_the_table_they_name(
    snippet: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = HandmadeTable(tmp_path / "warehouse/analytics/orders", ORDERS.schema, ("order_date",))
    for day in ("2026-01-01", "2026-01-02"):
        of_day = ORDERS.filter(pa.compute.equal(ORDERS["order_date"], day))
        table.commit({f"order_date={day}": {file_id(): of_day}})
    monkeypatch.chdir(tmp_path)
    for library in ("polars", "duckdb"):
        if f"import {library}" in snippet:
            pytest.importorskip(library)

    (tmp_path / "snippet.py").write_text(snippet, encoding="utf-8")
    runpy.run_path(str(tmp_path / "snippet.py"))


def test_there_is_a_snippet_for_each_library() -> None:
    text = "".join(SNIPPETS)

    assert all(call in text for call in ("to_pandas()", "to_polars()", "to_duckdb()", "files()"))
